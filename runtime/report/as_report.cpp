#include "runtime/report/as_report.hpp"

#include <fmt/format.h>

#include "kernels/registry.hpp"
#include "runtime/report/bounds_report.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/text/table.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

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

}  // namespace

AsReport report_as(const Request& asked, Pass pass,
                   const std::vector<const KnownSchedule*>& schedules) {
  Request request = asked;
  request.kernel = fmt::format("{}/auto", to_string(pass));
  request.forward_in_more_M = true;
  AsReport report{.pass = pass, .best = count(request)};
  report.rows = as_rows(asked, report.best.kernel.plan.problem, pass, schedules);
  return report;
}

Description describe(const AsReport& report) {
  const Report& best = report.best;
  const Plan& plan = best.kernel.plan;
  const auto [n, m, d] = plan.problem.one_head().shape;
  Task task = task_of(find_kernel(plan.kernel), plan.problem, plan.M);
  task.heads = best.kernel.team.heads;
  task.known = Known::O_and_L;
  const std::optional<double> ratio = over_bound(best);
  Description of = begin_report(
      fmt::format("{}   (reads + writes, {})\n", to_words(task), in_words(plan.problem)));
  of.facts(joined({{in_json("context"), context_json(best.M_from)},
                   {in_json_and_csv("problem"), to_string(report.pass)},
                   {in_json_and_csv("n"), n},
                   {in_json_and_csv("m"), m},
                   {in_json_and_csv("d"), d}},
                  heads_cells(report.pass, plan.problem, task.heads),
                  {{in_json_and_csv("M"), plan.M}, {in_json("mask"), mask_json(plan.problem)}}));
  of.table("as", rows_of(report.rows, as_cells));
  of.text("\n" + to_words(report.rows));
  of.facts({{in_json("best.kernel"), spelled(plan)},
            {in_json("best.blocks"), blocks_json(plan.blocks)},
            {in_json("best.words"), best.kernel.io()},
            {in_json("best.ratio"), ratio},
            bytes_cell(plan.problem.word_bytes, best.kernel.io(), in_json("best.bytes"))});
  of.say("\nof all kernels {} moves the fewest, {} words{}\n{}", spelled(plan),
         grouped(best.kernel.io()), ratio ? fmt::format(": {:.3f} times its bound", *ratio) : "",
         to_string(plan, task.heads));
  return of;
}

Description describe(const std::vector<KnownSchedule>& schedules) {
  std::vector<Cells> rows;
  for (const KnownSchedule& schedule : schedules) {
    for (const KnownSchedule::OfPass& of : schedule.passes) {
      for (const KnownSchedule::Tiles& tiles : of.tiles) {
        rows.push_back(list_cells(schedule, of, tiles));
      }
    }
  }
  Description of;
  of.fact("schema", kSchema);
  of.table("as", std::move(rows));
  return of;
}

}  // namespace redblue
