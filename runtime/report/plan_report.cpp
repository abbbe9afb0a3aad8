#include "runtime/report/plan_report.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/report/bounds_report.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/device_figures.hpp"
#include "runtime/report/part_times.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/text/sizes.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

double over_bound(const LevelChoice& level) {
  return *quotient(level.words().value(), level.bound.words);
}

// Returns the origin of the times, and the kernels without measured rates.
std::string rates_text(const PlanReport& report) {
  std::set<std::string> unmeasured;
  const auto look_at = [&](const std::string& kernel) {
    if (!report.rates->measured(kernel)) {
      unmeasured.insert(kernel);
    }
  };
  for (const Choice& choice : report.choices) {
    look_at(spelled(choice.plan));
    if (choice.forward) {
      look_at(spelled(*choice.forward));
    }
  }
  return fmt::format("rates: {}{}{}\n", report.rates->origin,
                     unmeasured.empty() ? "" : "; not measured, the median of the others: ",
                     fmt::join(unmeasured, ", "));
}

// A weighted sum is a number of words only if each word costs 1, so it is not grouped.
std::string to_words(double weighted) {
  return fmt::format("{:.6g}", weighted);
}

double over_weighted_bound(const Choice& choice) {
  return *choice.weighted / *choice.weighted_bound;
}

// Returns the reason for the first choice, with several levels.
std::string reason_in_levels(const PlanReport& report) {
  const Choice& best = report.choices.front();
  const std::string time = best.seconds ? to_ms(*best.seconds) + " ms for its words, " : "";
  const std::string beginning = fmt::format("{}: {}{:.3f} times the weighted sum of its bounds",
                                            to_words(best), time, over_weighted_bound(best));
  if (report.choices.size() == 1) {
    return beginning;
  }
  const Choice& next = report.choices[1];
  return best.seconds && next.seconds
             ? fmt::format("{}; {}, the next, takes {:.3f} times as long", beginning,
                           to_words(next), *next.seconds / *best.seconds)
             : fmt::format("{}; {}, the next, has {:.3f} times its weighted sum", beginning,
                           to_words(next), *next.weighted / *best.weighted);
}

// Returns the reason for the first choice.
std::string reason(const PlanReport& report) {
  if (!report.level_bounds.empty()) {
    return reason_in_levels(report);
  }
  const Choice& best = report.choices.front();
  const std::string time = best.seconds ? to_ms(*best.seconds) + " ms by the rates, " : "";
  const std::string beginning =
      fmt::format("{}: {}{:.3f} times the bound {} ({})", to_words(best), time, over_bound(best),
                  best.bound.name, to_string(best.bound.status));
  if (report.choices.size() == 1) {
    return beginning + "; no other kernel fits";
  }
  const Choice& next = report.choices[1];
  // With the balanced objective, a choice that moves too many words has no seconds.
  if (best.seconds && next.seconds) {
    return fmt::format("{}; {}, the next, takes {:.3f} times as long", beginning, to_words(next),
                       *next.seconds / *best.seconds);
  }
  return next.words == best.words
             ? fmt::format("{}; {} moves as many words {}", beginning, to_words(next),
                           flops(next) > flops(best)
                               ? "with more flops"
                               : "and flops, and comes later in `redblue list`")
             : fmt::format("{}; {}, the next, moves {:.3f} times as many words", beginning,
                           to_words(next), *quotient(next.words.value(), best.words.value()));
}

// Returns the words moved to regroup a sparse pattern for both passes. This is done once for many
// calls.
std::optional<Regrouping> regrouping(const Choice& choice) {
  std::optional<Regrouping> sum = redblue::regrouping(choice.plan);
  if (sum && choice.forward) {
    const Regrouping more = redblue::regrouping(*choice.forward).value_or(Regrouping());
    sum = {sum->reads + more.reads, sum->writes + more.writes};
  }
  return sum;
}

// Says why kernels on densified operands are not among the choices.
std::string to_words(const LeftOut& left_out) {
  const std::string which =
      fmt::format("kernels of dense operands under a mask of these {} live pairs",
                  grouped(left_out.pairs.value()));
  return left_out.bound ? fmt::format(
                              "{} move at least {} words (bound: {}), more than the first choice: "
                              "they are left out",
                              which, grouped(left_out.bound->words), left_out.bound->name)
                        : fmt::format("{} are left out: a mask has at most {}", which,
                                      grouped(kMostMaskedPairs));
}

// Says why a nest that solves the problem has no plan.
std::string why_none(const Kernel& nest, const Problem& problem, const Task& task) {
  try {
    const Index least = nest.least_M(problem, 1, task.memory.multiple);
    if (least > task.memory.M) {
      return fmt::format("it needs M of at least {}", grouped(least));
    }
    return nest.needs_forward(problem.activation) && task.known == Known::nothing
               ? "no kernel that makes O and L for it fits"
               : "its blocks for this M do not fit, or its words pass 63 bits";
  } catch (const CountOverflow&) {
    return "its least M passes 63 bits";
  }
}

// Says of each nest that is not among the choices why it is not.
std::vector<std::string> nests_left_out(const PlanReport& report, const Goal& goal) {
  std::vector<std::string> all;
  for (const Kernel* nest : report.task.nests) {
    if (std::ranges::any_of(report.choices, [&](const Choice& choice) {
          return choice.plan.kernel == nest->name;
        })) {
      continue;
    }
    Problem problem = report.task.problem;
    problem.sharing = Sharing::none;
    const std::string why = goal.admits && !goal.admits(*nest)  ? "it has no threads"
                            : !report.task.memory.inner.empty() ? "it has one level of fast memory"
                            : !problem.sparsity.dense()         ? "it has no sparse operands"
                            : !nest->takes(problem.mask)        ? "it takes no mask of this kind"
                            : !nest->takes(problem.activation)  ? "it computes softmax alone"
                            : nest->can_return(problem) ? why_none(*nest, problem, report.task)
                            : nest->own_results().all()
                                ? "it computes all results"
                                : "it returns " + nest->own_results().text();
    all.push_back(fmt::format("{}: {}", nest->name, why));
  }
  return all;
}

// A line of the table: a choice, the tiles of another kernel, or the bound of every algorithm.
struct PlanLine {
  std::string name;
  CellValue kernel = nullptr, forward = nullptr, densified = nullptr, blocks = nullptr;
  std::optional<Index> words = {}, bound = {};
  std::optional<double> seconds = {};
  std::optional<std::string> kind = {};  // the kind of bound that the words are compared with
  const AsRow* as = nullptr;
};

// Rates hold for planned blocks, so rows of other kernels have no time.
Cells line_cells(const PlanReport& report, const PlanLine& line) {
  const bool counted = line.as != nullptr && line.as->counted;
  const Problem& problem = report.task.problem;
  Cells cells = {{in_table("kernel"), line.name},
                 {in_table(report.rates ? "ms" : ""), line.seconds ? to_ms(*line.seconds) : "-"},
                 {in_csv("kernel"), line.kernel},
                 {in_csv(problem.sparsity.dense() ? "" : "densified"), line.densified},
                 {in_csv("forward"), line.forward},
                 {{"words", "", "words"}, line.words},
                 bytes_cell(problem.word_bytes, line.words, {"bytes", "", "bytes"}),
                 {in_csv("lower_bound"), line.bound},
                 {in_table("ratio"),
                  decimals(quotient(line.words, line.bound), 3, "", line.as != nullptr ? "-" : "")},
                 {in_table("bound"), line.kind.value_or("-")},
                 {in_csv("blocks"), line.blocks},
                 {in_csv("seconds"), line.seconds}};
  if (!report.as.empty()) {
    cells = joined(cells,
                   {{in_csv("as"), line.as != nullptr ? Json(line.as->as) : Json()},
                    {in_table("its blocks"), counted ? line.blocks : CellValue(nullptr)}},
                   tiles_cells(line.as));
  }
  return cells;
}

// Returns the line of a choice, or of one of its levels if `level` is not null.
PlanLine line_of(const Choice& choice, const LevelChoice* level = nullptr) {
  const Bound& bound = level != nullptr ? level->bound : choice.bound;
  return {.name = to_words(choice),
          .kernel = spelled(choice.plan),
          .forward = choice.forward ? Json(spelled(*choice.forward)) : Json(),
          .densified = choice.densified,
          .blocks = always_quoted(blocks_text(choice.plan.blocks)),
          .words = (level != nullptr ? level->words() : choice.words).value(),
          .bound = bound.words,
          .seconds = choice.seconds,
          .kind = std::string(bound.name)};
}

PlanLine line_of(const AsRow& row) {
  PlanLine line = row.counted ? line_of(*row.counted) : PlanLine{.name = row.as};
  line.as = &row;
  return line;
}

Json choice_json(const PlanReport& report, const Choice& choice) {
  const Memory& memory = report.task.memory;
  const std::optional<Regrouping> prepare = regrouping(choice);
  const bool has_levels = choice.weighted.has_value();
  std::size_t level = 0;
  const Json levels = json_of(rows_of(choice.levels, [&](const LevelChoice& of) -> Cells {
    return {{"M", of.M},
            {"word_cost", memory.word_cost(level++)},
            {"total.reads", of.reads.value()},
            {"total.writes", of.writes.value()},
            {"total.io", of.words().value()},
            {"total.peak", of.peak.value()},
            {"lower_bound", bound_json(of.bound)},
            {"ratio", over_bound(of)}};
  }));
  return json_of(
      {{"kernel", spelled(choice.plan)},
       {in_json(report.task.problem.sparsity.dense() ? "" : "densified"), choice.densified},
       {"words", choice.words.value()},
       bytes_cell(choice.plan.problem.word_bytes, choice.words.value()),
       {prepare ? "prepare" : "", prepare ? regrouping_json(*prepare) : Json()},
       {"lower_bound", bound_json(choice.bound)},
       {"ratio", over_bound(choice)},
       {"seconds", choice.seconds},
       {"blocks", blocks_json(choice.plan.blocks)},
       {"forward", choice.forward ? Json(spelled(*choice.forward)) : Json()},
       {has_levels ? "weighted" : "", choice.weighted},
       {has_levels ? "weighted_bound" : "", choice.weighted_bound},
       {has_levels ? "weighted_ratio" : "", has_levels ? over_weighted_bound(choice) : 0},
       {has_levels ? "levels" : "", levels}});
}

// Returns the table for several levels: a row for each choice, and a row for the bound of every
// algorithm.
std::vector<Cells> level_table(const PlanReport& report) {
  const bool timed = report.choices.front().seconds.has_value();
  const auto row = [&](const std::string& kernel, const std::optional<double>& seconds, double sum,
                       const std::optional<double>& over) {
    Cells cells = {{in_table("kernel"), kernel}};
    if (timed) {
      cells.push_back({in_table("ms"), seconds ? to_ms(*seconds) : "-"});
    }
    cells.push_back({in_table("weighted"), to_words(sum)});
    cells.push_back({in_table("ratio"), decimals(over, 3, "", "")});
    return cells;
  };
  const auto add = [&](Cells& cells, std::size_t level, const CellValue& words,
                       const CellValue& over, std::string_view bound) {
    cells.push_back({in_table(fmt::format("level {}", level + 1)), words});
    cells.push_back({in_table("ratio"), over});
    cells.push_back({in_table("bound"), bound});
  };
  std::vector<Cells> rows;
  for (const Choice& choice : report.choices) {
    Cells& cells = rows.emplace_back(
        row(to_words(choice), choice.seconds, *choice.weighted, over_weighted_bound(choice)));
    for (std::size_t level = 0; level < choice.levels.size(); ++level) {
      const LevelChoice& of = choice.levels[level];
      add(cells, level, of.words().value(), decimals(over_bound(of), 3), of.bound.name);
    }
  }
  Cells& cells =
      rows.emplace_back(row("(lower bound)", std::nullopt, report.weighted_bound, std::nullopt));
  for (std::size_t level = 0; level < report.level_bounds.size(); ++level) {
    const Bound& bound = report.level_bounds[level];
    add(cells, level, bound.words, "", bound.name);
  }
  return rows;
}

// Says what a word costs at each level, and how the kernels are sorted.
std::string to_words_of_costs(const PlanReport& report) {
  const Memory& memory = report.task.memory;
  std::string text =
      fmt::format("a word of each level weighs {}{}", costs_text(memory, report.word_costs_from),
                  memory.word_costs.empty() ? " (default: the size of the level)" : "");
  if (report.rates && !report.choices.front().seconds) {
    text +=
        "\nnot timed: what a word takes at each level is not known: run `redblue calibrate`; the "
        "weighted sum comes first";
  }
  return text + "\n";
}

// Returns the words of the first choice at each level.
WordsOfLevels words_of_levels(const PlanReport& report) {
  const Choice& best = report.choices.front();
  std::vector<Index> words;
  for (const LevelChoice& level : best.levels) {
    words.push_back(level.words().value());
  }
  return {words.empty() ? std::vector<Index>{best.words.value()} : words,
          report.task.problem.word_bytes.value_or(kFloatBytes)};
}

// Adds whether the traffic of the first choice matters.
void add_part_times(Description& of, const PlanReport& report) {
  const Task& task = report.task;
  const Choice& best = report.choices.front();
  const Index workers = task.heads == 1 ? report.threads : std::min(report.threads, task.heads);
  Work work{.moved = words_of_levels(report), .workers = workers};
  add_operations(work, best.plan, task.heads);
  if (best.forward) {
    const Kernel& forward = find_kernel(best.forward->kernel);
    add_operations(work, *best.forward, task.heads,
                   task.heads == 1 ? team_for(forward, workers, 1).workers : workers);
  }
  if (const auto times = part_times(work, report.device, report.calibration, task.memory)) {
    of.member("part_times", describe(*times));
  }
}

// Adds a row for each choice and each kernel with its own tiles. The text also has a row for every
// algorithm.
void add_choices(Description& of, const PlanReport& report) {
  std::vector<Cells> rows =
      rows_of(report.choices, [&](const Choice& its) { return line_cells(report, line_of(its)); });
  for (const AsRow& row : report.as) {
    rows.push_back(line_cells(report, line_of(row)));
  }
  rows.push_back(only_in_table(line_cells(report, {.name = "(lower bound)",
                                                   .words = report.bound.words,
                                                   .kind = std::string(report.bound.name)})));
  of.table("", std::move(rows));
}

void add_levels(Description& of, const PlanReport& report) {
  const Memory& memory = report.task.memory;
  of.table("", level_table(report));
  std::vector<Cells> rows;
  for (const Choice& choice : report.choices) {
    for (std::size_t level = 0; level < choice.levels.size(); ++level) {
      rows.push_back(joined(only_in_csv(line_cells(report, line_of(choice, &choice.levels[level]))),
                            {{in_csv("M_levels"), levels_text(memory)},
                             {in_csv("level"), static_cast<Index>(level + 1)},
                             {in_csv("word_cost"), memory.word_cost(level)},
                             {in_csv("weighted"), *choice.weighted}}));
    }
  }
  of.table("", std::move(rows));
  for (std::size_t level = 0; level < memory.levels(); ++level) {
    Description its;
    its.facts({{in_json("M"), memory.words(level)},
               {in_json("word_cost"), memory.word_cost(level)},
               {in_json("lower_bound"), bound_json(report.level_bounds[level])}});
    of.element("levels", its);
  }
  of.fact("weighted_bound", report.weighted_bound);
  of.fact("of_one_level", report.of_one_level);
  of.fact(report.word_costs_from.empty() ? "" : "word_costs_from", report.word_costs_from);
}

}  // namespace

std::string to_ms(double seconds) {
  return fmt::format("{:.2f}", 1e3 * seconds);
}

double over_bound(const Choice& choice) {
  return *quotient(choice.words.value(), choice.bound.words);
}

FastMemoryTooSmall no_kernel_fits(const Task& task, const Goal& goal) {
  const LeastMemory least = least_memory(task, goal);
  std::string remedy;
  if (!least.kernel.empty()) {
    remedy = fmt::format("; {}{} needs the least, M of at least {}", least.kernel,
                         least.densified ? " (densified)" : "", least.M);
  }
  return FastMemoryTooSmall(
      fmt::format("no kernel fits in M = {} words: {}{}", task.memory.M, to_words(task), remedy),
      least.kernel.empty() ? std::nullopt : std::optional(least.M));
}

PlanReport report_plan(const Task& task, Objective objective, const std::optional<Rates>& rates,
                       std::string_view only, Index threads) {
  PlanReport report{.task = task,
                    .bound = largest(lower_bounds(task), {.sharing = task.problem.sharing}),
                    .objective = objective,
                    .rates = rates,
                    .threads = threads};
  const bool shared = threads > 1 && task.heads == 1;
  const Goal goal{.objective = objective,
                  .rates = rates ? &*rates : nullptr,
                  .workers = shared ? threads : std::min(threads, task.heads),
                  .only = only,
                  .admits = [shared](const Kernel& kernel) {
                    return !shared || kernel.schedule.split.has_value();
                  }};
  report.choices = choices(task, goal, &report.left_out);
  for (const Choice& choice : report.choices) {
    if (goal.objective == Objective::time && find_kernel(choice.plan.kernel).is_nest &&
        flops(choice) == Words()) {
      throw UsageError(choice.plan.kernel + " has no time: give flops in its loops");
    }
  }
  report.nests_left_out = nests_left_out(report, goal);
  const bool has_levels = !task.memory.inner.empty();
  if (report.choices.empty()) {
    throw has_levels ? no_levels_fit(task, goal) : no_kernel_fits(task, goal);
  }
  if (has_levels) {
    const Schedule any{.sharing = task.problem.sharing};
    const std::vector<std::vector<Bound>> bounds = bounds_of_levels(task);
    for (const std::vector<Bound>& of_level : bounds) {
      report.level_bounds.push_back(largest(of_level, any));
    }
    report.weighted_bound = weighted_bound(task.memory, bounds, any);
    report.of_one_level = only.empty() ? kernels_of_one_level(task) : std::vector<std::string>();
  }
  return report;
}

Description describe(const PlanReport& report) {
  const Task& task = report.task;
  const Choice& best = report.choices.front();
  const bool has_levels = !report.level_bounds.empty();
  Description of =
      begin_report(fmt::format("{}   (reads + writes, {})", to_words(task), in_words(task.problem)),
                   report.M_from, report.inner_from, report.device);
  of.text(has_levels ? to_words_of_costs(report) : "");
  if (report.threads > 1) {
    of.say("{} threads, each with M words; words are those of one thread", report.threads);
  }
  of.facts(only_in_csv(task_cells(task, true)));
  of.facts(only_in_json(joined(task_cells(task), problem_cells(task))));
  of.facts({{in_json("objective"), to_string(report.objective)},
            {in_json("balanced_share"), best.narrow ? CellValue(best.share) : absent()},
            {in_json("threads"), report.threads > 1 ? CellValue(report.threads) : absent()},
            {in_json("lower_bound"), bound_json(report.bound)},
            {in_json("reason"), reason(report)},
            {in_json("plan"), choice_json(report, best)}});
  Json others = Json::array();
  for (std::size_t k = 1; k < report.choices.size(); ++k) {
    others.push_back(choice_json(report, report.choices[k]));
  }
  of.fact("runners_up", std::move(others));
  of.text("\n");
  if (has_levels) {
    add_levels(of, report);
  } else {
    add_choices(of, report);
  }
  if (best.narrow) {
    of.say("\nblocks: {}\n{}", goal_text(report.objective, best.share), narrow_text(*best.narrow));
  }
  of.say("\n{}", reason(report));
  if (report.left_out) {
    of.fact("densified_left_out", to_words(*report.left_out));
    of.say("{}", to_words(*report.left_out));
  }
  of.fact(report.nests_left_out.empty() ? "" : "nests_left_out", report.nests_left_out);
  for (const std::string& nest : report.nests_left_out) {
    of.say("not listed: {}", nest);
  }
  if (!report.of_one_level.empty()) {
    of.say("not listed (one level of fast memory only): {}", fmt::join(report.of_one_level, ", "));
  }
  const bool timed = report.rates && (!has_levels || best.seconds);
  of.fact("rates", timed ? Json(report.rates->origin) : Json());
  of.text(!timed ? "" : has_levels ? "rates: " + report.rates->origin + "\n" : rates_text(report));
  of.say("{}", to_string(best.plan, task.heads));
  if (best.forward) {
    of.say("{}", to_string(*best.forward, task.heads));
  }
  if (!report.as.empty()) {
    of.fact("as", json_of(rows_of(report.as, as_cells)));
    of.text("\n" + to_words(report.as));
  }
  const std::optional<Regrouping> prepare = regrouping(best);
  of.text(prepare ? to_words(*prepare) : "");
  if (report.device) {
    of.member("device", device_figures(*report.device, "words of " + to_words(best),
                                       words_of_levels(report)));
  }
  if (report.device || report.calibration) {
    add_part_times(of, report);
  }
  return of;
}

}  // namespace redblue
