#include "runtime/report/tune_report.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "kernels/arithmetic/simd.hpp"
#include "runtime/observe/machine_file.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/plan_report.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

std::vector<const Trial*> timed_trials(const Tuning& tuning) {
  std::vector<const Trial*> timed;
  for (const Trial& trial : tuning.trials()) {
    if (trial.timed()) {
      timed.push_back(&trial);
    }
  }
  std::ranges::stable_sort(timed, {}, [](const Trial* trial) { return trial->middle(); });
  return timed;
}

const Trial* fastest_from_scratch(const Tuning& tuning, const std::vector<const Trial*>& timed) {
  return *std::ranges::min_element(timed, {},
                                   [&](const Trial* trial) { return tuning.from_scratch(*trial); });
}

Cells trial_cells(const Tuning& tuning, const Trial& trial) {
  const bool backward = is_backward(tuning.task().pass);
  const auto [least, most] = std::ranges::minmax(trial.seconds);
  const double scratch = tuning.from_scratch(trial);
  const Trial* const forward = tuning.forward_of(trial);
  CellValue blocks = always_quoted(blocks_text(trial.plan.blocks));
  blocks.left = true;
  return {
      {"kernel", spelled(trial.plan)},
      {in_table("M"), fmt::format("{}*{}", to_string(trial.part.level), trial.part.share)},
      {in_json_and_csv("cache"), to_string(trial.part.level)},
      {in_json_and_csv("share"), trial.part.share},
      {{"words", "M", "M"}, trial.plan.M},
      {in_json("blocks"), blocks_json(trial.plan.blocks)},
      {in_json_and_csv("runs"), trial.seconds.size()},
      {{"ms", "seconds.median", "seconds"}, CellValue(trial.middle()).shown(to_ms(trial.middle()))},
      {{"from", "seconds.least", "least"}, CellValue(least).shown(to_ms(least))},
      {{"to", "seconds.most", "most"}, CellValue(most).shown(to_ms(most))},
      {{"of peak", "percent_of_peak"}, decimals(100 * tuning.of_peak(trial), 1, "%")},
      {in_json_and_csv("forward"), forward != nullptr ? Json(spelled(forward->plan)) : Json()},
      {{backward ? "from scratch" : "", "from_scratch_seconds", "from_scratch"},
       CellValue(scratch).shown(to_ms(scratch))},
      {{"blocks", "", "blocks"}, blocks}};
}

Json choice_json(const Tuning& tuning, const Trial& trial, double seconds) {
  return {{"kernel", spelled(trial.plan)},
          {"cache", to_string(trial.part.level)},
          {"share", trial.part.share},
          {"M", trial.plan.M},
          {"seconds", seconds},
          {"percent_of_peak", 100 * tuning.of_peak(trial)}};
}

void add_problem(Description& of, const Tuning& tuning) {
  const Task& task = tuning.task();
  const Shape shape = task.problem.one_head().shape;
  of.facts({{"problem", to_string(task.pass)}, {"n", shape.n}, {"m", shape.m}, {"d", shape.d}});
  of.facts(only_in_json(heads_cells(task.pass, task.problem, task.heads)));
  of.fact("threads", tuning.threads());
  of.facts(problem_cells(task));
}

}  // namespace

TunedProblem tuned_problem(const Tuning& tuning, const std::string& date) {
  const Task& task = tuning.task();
  const Problem one = task.problem.one_head();
  TunedProblem tuned{.pass = task.pass,
                     .mask = mask_class(one.mask),
                     .n = one.shape.n,
                     .m = one.shape.m,
                     .d = one.shape.d,
                     .heads = task.heads * task.problem.stacked,
                     .kv_heads = task.heads,
                     .threads = tuning.threads(),
                     .date = date};
  for (const Trial* trial : timed_trials(tuning)) {
    tuned.kernels.push_back({.kernel = spelled(trial->plan),
                             .part = trial->part,
                             .seconds = trial->middle(),
                             .from_scratch = tuning.from_scratch(*trial)});
  }
  return tuned;
}

Description describe(const TuneReport& report) {
  const Tuning& tuning = report.tuning;
  const Task& task = tuning.task();
  const std::vector<const Trial*> timed = timed_trials(tuning);
  const Trial& fastest = *timed.front();
  const Trial& scratch = *fastest_from_scratch(tuning, timed);
  const Shape shape = task.problem.one_head().shape;
  Description of = begin_report(fmt::format(
      "{} n={} m={} d={}{}, {}\n{} ({}, {})", to_string(task.pass), shape.n, shape.m, shape.d,
      task.problem.mask.full() ? "" : ", mask " + printable(task.problem.one_head().mask.spec()),
      counted(tuning.threads(), "thread"), report.topology.model.value_or("processor unknown"),
      report.topology.source, simd_target()));
  of.facts({{in_json("context.simd"), simd_target()},
            {in_json("context.model"), report.topology.model},
            {in_json("context.source"), report.topology.source},
            {in_json("context.caches"), caches_json(report.topology)},
            {in_json("context.date"), report.date}});
  add_problem(of, tuning);
  const auto left_out = std::ssize(tuning.trials()) - std::ssize(timed);
  of.fact("rounds", tuning.rounds());
  of.fact("left_out", left_out);
  of.fact("file", report.file);
  of.fact("fastest", choice_json(tuning, fastest, fastest.middle()));
  if (is_backward(task.pass)) {
    of.fact("fastest_from_scratch", choice_json(tuning, scratch, tuning.from_scratch(scratch)));
  }
  of.text("\n");
  std::vector<Cells> rows;
  Index few = 0;
  for (const Trial* trial : timed) {
    Cells cells = trial_cells(tuning, *trial);
    // A trial that was left behind after a few rounds is of no interest to people.
    if (std::ssize(trial->seconds) < tuning.rounds()) {
      std::ranges::for_each(cells, [](Cell& cell) { cell.names.title.clear(); });
      ++few;
    }
    rows.push_back(std::move(cells));
  }
  of.table("trials", std::move(rows));
  of.say("\nmedians of {}; {} more were slower, and {} were not timed: their prediction is slow",
         counted(tuning.rounds(), "round"), few, left_out);
  const auto said = [](const Trial& trial) {
    return fmt::format("{} in {}*{}", spelled(trial.plan), to_string(trial.part.level),
                       trial.part.share);
  };
  of.say("fastest: {}{}", said(fastest),
         &scratch == &fastest ? "" : fmt::format("; from scratch {}", said(scratch)));
  of.say("written: {}", printable(report.file));
  return of;
}

}  // namespace redblue
