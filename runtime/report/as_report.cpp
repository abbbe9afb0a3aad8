#include "runtime/report/as_report.hpp"

#include <fmt/format.h>

#include "kernels/registry.hpp"
#include "runtime/report/bounds_report.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/text/table.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

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
  Request request = asked;
  request.kernel = fmt::format("{}/auto", to_string(pass));
  request.forward_in_more_M = true;
  AsReport report{.pass = pass, .rows = {}, .best = count(request)};
  report.rows = as_rows(asked, report.best.kernel.plan.problem, pass, schedules);
  return report;
}

std::string to_table(const AsReport& report) {
  const Report& best = report.best;
  const Plan& plan = best.kernel.plan;
  Task task = task_of(find_kernel(plan.kernel), plan.problem, plan.M);
  task.heads = best.kernel.team.heads;
  task.known = Known::O_and_L;
  std::string text = fmt::format("{}   (reads + writes, {})\n\n{}\n", to_words(task),
                                 in_words(plan.problem), table_of(rows_of(report.rows, as_cells)));
  text += to_words(report.rows);
  const std::optional<double> ratio = over_bound(best);
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
  const std::optional<double> ratio = over_bound(best);
  json["best"] = {{"kernel", spelled(best.kernel.plan)},
                  {"blocks", blocks_json(best.kernel.plan.blocks)},
                  {"words", best.kernel.io()},
                  {"ratio", ratio ? Json(*ratio) : Json()}};
  json["best"].update(json_of({bytes_cell(problem.word_bytes, best.kernel.io())}));
  return json.document();
}

std::string to_csv(const AsReport& report) {
  const Cells problem = problem_cells(report);
  return csv_of(
      rows_of(report.rows, [&](const AsRow& row) { return joined(problem, as_cells(row)); }));
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
