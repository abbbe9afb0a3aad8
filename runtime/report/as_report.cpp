#include "runtime/report/as_report.hpp"

#include <fmt/format.h>

#include "kernels/registry.hpp"
#include "runtime/report/bounds_report.hpp"
#include "runtime/report/context.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/text/table.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

Index peak_of(const Report& report) {
  return total(report.kernel.plan.phases).peak.value();
}

std::optional<double> over_bound_of(const Report& report) {
  return report.bound ? std::optional(static_cast<double>(report.kernel.io()) /
                                      static_cast<double>(report.bound->words))
                      : std::nullopt;
}

// A schedule with its tiles, and the same loops with blocks that fit.
Cells as_cells(const AsReport::Row& row) {
  const auto of = [](const std::optional<Report>& report, const auto& value) -> CellValue {
    return report ? CellValue(value(*report)) : CellValue(nullptr);
  };
  const auto text = [](const Report& its) { return blocks_text(its.kernel.plan.blocks); };
  const auto blocks = [](const Report& its) { return blocks_json(its.kernel.plan.blocks); };
  const auto words = [](const Report& its) { return its.kernel.io(); };
  const std::optional<double> ratio = row.counted ? over_bound_of(*row.counted) : std::nullopt;
  const std::optional<double> planned = row.planned ? over_bound_of(*row.planned) : std::nullopt;
  return {{{"as", "as"}, row.schedule->name},
          {{"loops of", "kernel"},
           of(row.counted, [](const Report& its) { return spelled(its.kernel.plan); })},
          {in_table("its blocks"), of(row.counted, text)},
          {in_json("blocks"), of(row.counted, blocks)},
          {in_csv("blocks"), of(row.counted, text)},
          {"words", of(row.counted, words)},
          {{"over the bound", "ratio"}, decimals(ratio, 3)},
          {{"needs M", "peak"}, of(row.counted, peak_of)},
          {{"too many", "too_many"}, of(row.counted, [&](const Report&) { return row.too_many; })},
          {in_table("planned"), of(row.planned, words)},
          {in_table("over it"), decimals(planned, 3)},
          {in_json("planned.blocks"), of(row.planned, blocks)},
          {in_csv("planned_blocks"), of(row.planned, text)},
          {{"", "planned.words", "planned_words"}, of(row.planned, words)},
          {{"", "planned.ratio", "planned_ratio"}, decimals(planned, 3)},
          {in_json("missing"), row.missing.empty() ? absent() : CellValue(row.missing)},
          {in_json("source"),
           row.counted ? CellValue(row.schedule->of(row.counted->kernel.plan.pass)->source)
                       : absent()}};
}

Cells problem_cells(const AsReport& report) {
  const Plan& plan = report.best.kernel.plan;
  const auto [n, m, d] = plan.problem.one_head().shape;
  return joined({{in_json_and_csv("problem"), to_string(report.pass)},
                 {in_json_and_csv("n"), n},
                 {in_json_and_csv("m"), m},
                 {in_json_and_csv("d"), d}},
                joined(heads_cells(report.pass, plan.problem, report.best.kernel.team.heads),
                       {{in_json_and_csv("M"), plan.M}}));
}

Cells list_cells(const KnownSchedule& schedule, const KnownSchedule::OfPass& of,
                 const KnownSchedule::Tiles& tiles) {
  const auto least = [](Index size, Index none) {
    return size == none ? CellValue(nullptr) : CellValue(size);
  };
  return {{{"name", "name"}, schedule.name},
          {{"loops of", "kernel"}, of.kernel->name},
          {{"from n", "least_n"}, least(tiles.least_n, 1)},
          {{"to d", "most_d"}, least(tiles.most_d, 0)},
          {"causal", tiles.causal ? CellValue(*tiles.causal) : CellValue(nullptr)},
          {in_json("blocks"), blocks_json(tiles.blocks)},
          {in_csv("blocks"), blocks_text(tiles.blocks)},
          {in_table("blocks"), blocks_text(tiles.blocks)},
          {"source", of.source}};
}

std::vector<Cells> list_rows(const std::vector<KnownSchedule>& schedules) {
  std::vector<Cells> rows;
  for (const KnownSchedule& schedule : schedules) {
    for (const KnownSchedule::OfPass& of : schedule.passes) {
      for (const KnownSchedule::Tiles& tiles : of.tiles) {
        rows.push_back(list_cells(schedule, of, tiles));
      }
    }
  }
  return rows;
}

}  // namespace

AsReport report_as(const Request& asked, Pass pass,
                   const std::vector<const KnownSchedule*>& schedules) {
  const auto request_of = [&](std::string_view kernel) {
    Request request = asked;
    request.kernel = kernel;
    request.forward_in_more_M = true;
    return request;
  };
  AsReport report{
      .pass = pass, .rows = {}, .best = count(request_of(fmt::format("{}/auto", to_string(pass))))};
  const Problem& problem = report.best.kernel.plan.problem;
  for (const KnownSchedule* schedule : schedules) {
    AsReport::Row row{.schedule = schedule};
    const KnownSchedule::OfPass* const of = schedule->of(pass);
    const KnownSchedule::Tiles* const tiles = of == nullptr ? nullptr : of->for_problem(problem);
    if (tiles == nullptr) {
      row.missing = of == nullptr
                        ? schedule->missing.at(pass)
                        : fmt::format("it has no tiles for d = {}", problem.one_head().shape.d);
    } else {
      Request request = request_of(of->kernel->name);
      Request planned = request;
      request.whole_blocks = tiles->blocks;
      row.counted = count(request);
      if (const Index needed = peak_of(*row.counted); needed > request.M) {
        row.too_many = needed - request.M;
        request.M = planned.M = needed;
        row.counted = count(request);
      }
      row.planned = count(planned);
    }
    report.rows.push_back(std::move(row));
  }
  return report;
}

std::string to_table(const AsReport& report) {
  const Report& best = report.best;
  const Plan& plan = best.kernel.plan;
  Task task = task_of(find_kernel(plan.kernel), plan.problem, plan.M);
  task.heads = best.kernel.team.heads;
  task.known = Known::O_and_L;
  std::string text = fmt::format("{}   (reads + writes, in words)\n\n{}\n", to_words(task),
                                 table_of(rows_of(report.rows, as_cells)));
  for (const AsReport::Row& row : report.rows) {
    text += fmt::format("{}: {}", row.schedule->name, row.schedule->title);
    text += row.counted ? fmt::format("\n  {}\n  planned in M = {}: {}\n",
                                      row.schedule->of(report.pass)->source,
                                      grouped(row.planned->kernel.plan.M),
                                      blocks_text(row.planned->kernel.plan.blocks))
                        : fmt::format("; {}\n", row.missing);
  }
  const std::optional<double> ratio = over_bound_of(best);
  return text + fmt::format("\nof all kernels {} moves the fewest, {} words{}\n{}\n", spelled(plan),
                            grouped(best.kernel.io()),
                            ratio ? fmt::format(": {:.3f} times its bound", *ratio) : "",
                            to_string(plan, task.heads));
}

std::string to_json(const AsReport& report) {
  const Report& best = report.best;
  const Problem& problem = best.kernel.plan.problem;
  Json json = {{"schema", kSchema}, {"context", context_json(best.M_from)}};
  json.update(json_of(problem_cells(report)));
  json["mask"] = mask_json(problem);
  json["as"] = json_of(rows_of(report.rows, as_cells));
  const std::optional<double> ratio = over_bound_of(best);
  json["best"] = {{"kernel", spelled(best.kernel.plan)},
                  {"blocks", blocks_json(best.kernel.plan.blocks)},
                  {"words", best.kernel.io()},
                  {"ratio", ratio ? Json(*ratio) : Json()}};
  return json.document();
}

std::string to_csv(const AsReport& report) {
  const Cells problem = problem_cells(report);
  return csv_of(rows_of(report.rows,
                        [&](const AsReport::Row& row) { return joined(problem, as_cells(row)); }));
}

std::string list_table(const std::vector<KnownSchedule>& schedules) {
  return table_of(list_rows(schedules));
}
Json list_json(const std::vector<KnownSchedule>& schedules) {
  return json_of(list_rows(schedules));
}
std::string list_csv(const std::vector<KnownSchedule>& schedules) {
  return csv_of(list_rows(schedules));
}

}  // namespace redblue
