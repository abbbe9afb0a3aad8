#include "runtime/report/as_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/nests/text_nest.hpp"
#include "kernels/registry.hpp"
#include "runtime/report/bounds_report.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/text/table.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

// The task that the kernels of the rows and the best kernel solve.
Task task_of(const Report& best, Sharing sharing) {
  const Plan& plan = best.kernel.plan;
  Task task = task_of(find_kernel(plan.kernel), plan.problem, plan.M);
  task.problem.sharing = sharing;
  task.heads = best.kernel.team.heads;
  task.known = Known::O_and_L;
  return task;
}

std::optional<double> ratio_to_bound(const Report& report) {
  return report.bound ? quotient(report.kernel.io(), report.bound->words) : std::nullopt;
}

Cells nest_cells(const Project& project, const KnownFile& file) {
  const TextNest nest = parse_nest(file.text, file.name);
  std::vector<std::string> takes, blocks;
  for (const NestTakes& its : nest.takes) {
    takes.push_back(its.text);
  }
  for (const NestBlock& block : nest.blocks) {
    blocks.push_back(nest.symbols[block.symbol].name);
  }
  return {{"name", project.name},
          {"problem", to_string(*nest.pass)},
          {"nest", "nest:" + nest.name},
          {"takes", fmt::format("{}", fmt::join(takes, " and "))},
          {"blocks", fmt::format("{}", fmt::join(blocks, " "))},
          {"source", to_the_left(fmt::format("{}", fmt::join(source_of(file), " ")))}};
}

}  // namespace

AsReport report_as(const Request& asked, Pass pass, const std::vector<const Project*>& projects) {
  Request request = asked;
  request.kernel = fmt::format("{}/auto", to_string(pass));
  request.forward_in_more_M = true;
  AsReport report{.pass = pass, .best = count(request)};
  const Task task = task_of(report.best, asked.sharing);
  for (const Project* project : projects) {
    report.rows.push_back(as_row(*project, task));
  }
  return report;
}

Description describe(const AsReport& report) {
  const Report& best = report.best;
  const Plan& plan = best.kernel.plan;
  const auto [n, m, d] = plan.problem.one_head().shape;
  const Task task = task_of(best, plan.problem.sharing);
  const std::optional<double> ratio = ratio_to_bound(best);
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

Description describe(const std::vector<Project>& projects) {
  std::vector<Cells> rows;
  for (const Project& project : projects) {
    for (const KnownFile* nest : project.nests) {
      rows.push_back(nest_cells(project, *nest));
    }
  }
  Description of;
  of.fact("schema", kSchema);
  of.table("as", std::move(rows));
  return of;
}

}  // namespace redblue
