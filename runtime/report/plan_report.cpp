#include "runtime/report/plan_report.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/report/bounds_report.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/device_figures.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

double over_bound(const LevelChoice& level) {
  return static_cast<double>(level.words().value()) / static_cast<double>(level.bound.words);
}

// The origin of the times, and the kernels whose times are guesses.
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

// A weighted sum is a count where a word costs 1, and a number of this size else.
std::string to_words(double weighted) {
  return fmt::format("{:.6g}", weighted);
}

double over_weighted_bound(const Choice& choice) {
  return *choice.weighted / *choice.weighted_bound;
}

// The reason for the first choice, of several levels.
std::string reason_in_levels(const PlanReport& report) {
  const Choice& best = report.choices.front();
  const std::string time = best.seconds ? to_ms(*best.seconds) + " ms for its words, " : "";
  const std::string beginning = fmt::format("{}: {}{:.3f} times the weighted sum of its bounds",
                                            to_words(best), time, over_weighted_bound(best));
  if (report.choices.size() == 1) {
    return beginning;
  }
  const Choice& next = report.choices[1];
  return best.seconds ? fmt::format("{}; {}, the next, takes {:.3f} times as long", beginning,
                                    to_words(next), *next.seconds / *best.seconds)
                      : fmt::format("{}; {}, the next, has {:.3f} times its weighted sum",
                                    beginning, to_words(next), *next.weighted / *best.weighted);
}

// The reason for the first choice.
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
  if (best.seconds) {
    return fmt::format("{}; {}, the next, takes {:.3f} times as long", beginning, to_words(next),
                       *next.seconds / *best.seconds);
  }
  return next.words == best.words
             ? fmt::format("{}; {} moves as many words {}", beginning, to_words(next),
                           flops(next) > flops(best)
                               ? "with more flops"
                               : "and flops, and comes later in `redblue list`")
             : fmt::format("{}; {}, the next, moves {:.3f} times as many words", beginning,
                           to_words(next),
                           static_cast<double>(next.words.value()) /
                               static_cast<double>(best.words.value()));
}

// What regrouping a pattern for both passes moves, once for many calls.
std::optional<Regrouping> regrouping(const Choice& choice) {
  std::optional<Regrouping> sum = redblue::regrouping(choice.plan);
  if (sum && choice.forward) {
    const Regrouping more = redblue::regrouping(*choice.forward).value_or(Regrouping());
    sum = {sum->reads + more.reads, sum->writes + more.writes};
  }
  return sum;
}

// Why kernels on densified operands are not among the choices.
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

// `timed`: the table has milliseconds, too. `sparse`: the task's operands are.
Cells choice_cells(const Choice& choice, bool timed, bool sparse) {
  const std::string kernel = spelled(choice.plan);
  const Json forward = choice.forward ? Json(spelled(*choice.forward)) : Json();
  Cells cells = {{in_table("kernel"), to_words(choice)}};
  if (timed) {
    cells.push_back({in_table("ms"), to_ms(choice.seconds.value_or(0))});
  }
  const std::optional<Regrouping> prepare = regrouping(choice);
  return joined(std::move(cells),
                {{in_json_and_csv("kernel"), kernel},
                 {in_json_and_csv(sparse ? "densified" : ""), choice.densified},
                 {in_csv("forward"), forward},
                 {"words", choice.words.value()},
                 bytes_cell(choice.plan.problem.word_bytes, choice.words.value()),
                 {in_json("prepare"), prepare ? CellValue(regrouping_json(*prepare)) : absent()},
                 {in_json("lower_bound"), bound_json(choice.bound)},
                 {in_csv("lower_bound"), choice.bound.words},
                 {{"over the bound", "ratio", ""}, decimals(over_bound(choice), 3)},
                 {in_table("of its kind"), choice.bound.name},
                 {in_json("seconds"), choice.seconds},
                 {in_json("blocks"), blocks_json(choice.plan.blocks)},
                 {in_csv("blocks"), always_quoted(blocks_text(choice.plan.blocks))},
                 {in_csv("seconds"), choice.seconds},
                 {in_json("forward"), forward}});
}

// The table of several levels: a row for each choice, and one for every algorithm.
std::vector<Cells> level_table(const PlanReport& report) {
  const bool timed = report.choices.front().seconds.has_value();
  const auto row = [&](const std::string& kernel, const std::optional<double>& seconds, double sum,
                       const std::optional<double>& over) {
    Cells cells = {{in_table("kernel"), kernel}};
    if (timed) {
      cells.push_back({in_table("ms"), seconds ? to_ms(*seconds) : "-"});
    }
    cells.push_back({in_table("weighted"), to_words(sum)});
    cells.push_back({in_table("over the bound"), decimals(over, 3, "", "")});
    return cells;
  };
  const auto add = [&](Cells& cells, std::size_t level, const CellValue& words,
                       const CellValue& over, std::string_view bound) {
    cells.push_back({in_table(fmt::format("level {}", level + 1)), words});
    cells.push_back({in_table("over it"), over});
    cells.push_back({in_table("of its kind"), bound});
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
      rows.emplace_back(row("(any algorithm)", std::nullopt, report.weighted_bound, std::nullopt));
  for (std::size_t level = 0; level < report.level_bounds.size(); ++level) {
    const Bound& bound = report.level_bounds[level];
    add(cells, level, bound.words, "", bound.name);
  }
  return rows;
}

// What a word costs at each level, and by what the kernels are ordered.
std::string to_words_of_costs(const PlanReport& report) {
  const Memory& memory = report.task.memory;
  std::string text = fmt::format("a word of each level weighs {}", costs_text(memory));
  text += memory.word_costs.empty()        ? ", as many as the level has words"
          : report.word_costs_from.empty() ? ""
                                           : fmt::format(" ns ({})", report.word_costs_from);
  if (report.rates && !report.choices.front().seconds) {
    text +=
        "\nnot timed: what a word takes at each level is not known: run `redblue calibrate`; the "
        "weighted sum comes first";
  }
  return text + "\n";
}

// The words of each level, of the first choice.
MovedWords words_of_levels(const PlanReport& report) {
  const Choice& best = report.choices.front();
  std::vector<Index> words;
  for (const LevelChoice& level : best.levels) {
    words.push_back(level.words().value());
  }
  return {words.empty() ? std::vector<Index>{best.words.value()} : words,
          report.task.problem.word_bytes.value_or(kFloatBytes)};
}

Json levels_json(const PlanReport& report, const Choice& choice) {
  Json levels = Json::array();
  for (std::size_t level = 0; level < choice.levels.size(); ++level) {
    const LevelChoice& of = choice.levels[level];
    levels.push_back({{"M", of.M},
                      {"word_cost", report.task.memory.word_cost(level)},
                      {"total",
                       {{"reads", of.reads.value()},
                        {"writes", of.writes.value()},
                        {"io", of.words().value()},
                        {"peak", of.peak.value()}}},
                      {"lower_bound", bound_json(of.bound)},
                      {"ratio", over_bound(of)}});
  }
  return levels;
}

// A choice as JSON, which of several levels has more.
Json choice_json(const PlanReport& report, const Choice& choice, const Cells& cells) {
  Json json = json_of(cells);
  if (choice.weighted) {
    json["weighted"] = *choice.weighted;
    json["weighted_bound"] = *choice.weighted_bound;
    json["weighted_ratio"] = over_weighted_bound(choice);
    json["levels"] = levels_json(report, choice);
  }
  return json;
}

// A row for each level of a choice: `row` with the words of the level.
std::vector<Cells> level_rows(const PlanReport& report, const Choice& choice, const Cells& row) {
  const Memory& memory = report.task.memory;
  std::vector<Cells> rows;
  for (std::size_t level = 0; level < choice.levels.size(); ++level) {
    const LevelChoice& of = choice.levels[level];
    Cells cells = row;
    for (Cell& cell : cells) {
      if (cell.names.column == "words") {
        cell.value = of.words().value();
      } else if (cell.names.column == "bytes") {
        cell.value = bytes_cell(choice.plan.problem.word_bytes, of.words().value()).value;
      } else if (cell.names.column == "lower_bound") {
        cell.value = of.bound.words;
      }
    }
    rows.push_back(joined(std::move(cells), {{in_csv("M_levels"), levels_text(memory)},
                                             {in_csv("level"), static_cast<Index>(level + 1)},
                                             {in_csv("word_cost"), memory.word_cost(level)},
                                             {in_csv("weighted"), *choice.weighted}}));
  }
  return rows;
}

std::vector<Cells> plan_rows(const PlanReport& report) {
  const bool sparse = !report.task.problem.sparsity.dense();
  return rows_of(report.choices, [&](const Choice& choice) {
    return choice_cells(choice, report.rates.has_value(), sparse);
  });
}

// The columns that rows of other kernels bring into the table, and tables without them lack.
Cells beside_cells(const AsRow* row) {
  const bool counted = row != nullptr && row->counted;
  return joined(
      {{in_table("its blocks"),
        counted ? CellValue(blocks_text(row->counted->kernel.plan.blocks)) : CellValue(nullptr)}},
      tiles_cells(row));
}

// What another kernel moves with its tiles, as a row beside the choices. Rates are of planned
// blocks: others have no time.
Cells as_choice_cells(const AsRow& row, bool timed) {
  Cells cells = {{in_table("kernel"), name_of(row)}};
  if (timed) {
    cells.push_back({in_table("ms"), "-"});
  }
  CellValue kernel = nullptr, words = nullptr, bound = nullptr, kind = "-", blocks = nullptr;
  std::optional<double> ratio;
  if (row.counted) {
    const Plan& plan = row.counted->kernel.plan;
    kernel = spelled(plan);
    words = row.counted->kernel.io();
    bound = row.counted->bound->words;
    kind = row.counted->bound->name;
    blocks = always_quoted(blocks_text(plan.blocks));
    ratio = over_bound(*row.counted);
  }
  return joined(std::move(cells),
                {{in_csv("kernel"), kernel},
                 {in_csv("forward"), nullptr},
                 {in_table("words"), words},
                 {in_csv("words"), words},
                 bytes_cell(row.word_bytes,
                            row.counted ? std::optional(row.counted->kernel.io()) : std::nullopt),
                 {in_csv("lower_bound"), bound},
                 {in_table("over the bound"), decimals(ratio, 3)},
                 {in_table("of its kind"), kind},
                 {in_csv("blocks"), blocks},
                 {in_csv("seconds"), nullptr}});
}

// The rows of the choices and, beside them, of other kernels.
std::vector<Cells> rows_beside(const PlanReport& report) {
  std::vector<Cells> rows = plan_rows(report);
  if (report.as.empty()) {
    return rows;
  }
  for (Cells& row : rows) {
    row = joined(std::move(row), {{in_csv("as"), nullptr}});
    row = joined(std::move(row), beside_cells(nullptr));
  }
  for (const AsRow& row : report.as) {
    Cells cells = as_choice_cells(row, report.rates.has_value());
    cells.push_back({in_csv("as"), row.schedule->name});
    rows.push_back(joined(std::move(cells), beside_cells(&row)));
  }
  return rows;
}

// The row of the table for the bound of every algorithm.
Cells bound_row(const PlanReport& report) {
  Cells cells = {{in_table("kernel"), "(any algorithm)"}};
  if (report.rates) {
    cells.push_back({in_table("ms"), "-"});
  }
  return joined(
      joined(std::move(cells), {{in_table("words"), report.bound.words},
                                bytes_cell(report.task.problem.word_bytes, report.bound.words),
                                {in_table("over the bound"), ""},
                                {in_table("of its kind"), report.bound.name}}),
      report.as.empty() ? Cells() : beside_cells(nullptr));
}

}  // namespace

std::string to_ms(double seconds) {
  return fmt::format("{:.2f}", 1e3 * seconds);
}

double over_bound(const Choice& choice) {
  return static_cast<double>(choice.words.value()) / static_cast<double>(choice.bound.words);
}

FastMemoryTooSmall no_kernel_fits(const Task& task) {
  const LeastMemory least = least_memory(task);
  std::string remedy;
  if (!least.kernel.empty()) {
    remedy = fmt::format("; {}{} needs the least, M of at least {}", least.kernel,
                         least.densified ? " (densified)" : "", least.M);
  }
  return FastMemoryTooSmall(
      fmt::format("no kernel fits in M = {} words: {}{}", task.memory.M, to_words(task), remedy),
      least.kernel.empty() ? std::nullopt : std::optional(least.M));
}

PlanReport report_plan(const Task& task, const std::optional<Rates>& rates, std::string_view only) {
  PlanReport report{.task = task,
                    .M_from = std::nullopt,
                    .choices = {},
                    .bound = largest(lower_bounds(task), {.sharing = task.problem.sharing}),
                    .rates = rates};
  const Goal goal{.rates = rates ? &*rates : nullptr, .only = only};
  report.choices = choices(task, goal, &report.left_out);
  const bool has_levels = !task.memory.inner.empty();
  if (report.choices.empty()) {
    throw has_levels ? no_levels_fit(task, goal) : no_kernel_fits(task);
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

std::string to_table(const PlanReport& report) {
  std::string text = fmt::format("{}   (reads + writes, {})\n", to_words(report.task),
                                 in_words(report.task.problem));
  for (const FastMemoryOrigin& from : report.inner_from) {
    text += to_words(from) + "\n";
  }
  if (report.M_from) {
    text += to_words(*report.M_from) + "\n";
  }
  text += report.device ? to_words(*report.device) + "\n" : "";
  const bool has_levels = !report.level_bounds.empty();
  text += has_levels ? to_words_of_costs(report) : "";
  std::vector<Cells> rows = has_levels ? level_table(report) : rows_beside(report);
  if (!has_levels) {
    rows.push_back(bound_row(report));
  }
  const Choice& best = report.choices.front();
  text += "\n" + table_of(rows) + "\n" + reason(report) + "\n";
  text += report.left_out ? to_words(*report.left_out) + "\n" : "";
  text += report.of_one_level.empty() ? ""
                                      : fmt::format("left out, as they work in one level: {}\n",
                                                    fmt::join(report.of_one_level, ", "));
  text += has_levels && best.seconds    ? "rates: " + report.rates->origin + "\n"
          : !has_levels && report.rates ? rates_text(report)
                                        : "";
  const Index heads = report.task.heads;
  text += to_string(best.plan, heads) + "\n";
  text += best.forward ? to_string(*best.forward, heads) + "\n" : "";
  text += report.as.empty() ? "" : "\n" + to_words(report.as);
  const std::optional<Regrouping> prepare = regrouping(best);
  text += prepare ? to_words(*prepare) : "";
  return text + (report.device ? figures_text(*report.device, "words of " + to_words(best),
                                              words_of_levels(report))
                               : "");
}

std::string to_json(const PlanReport& report) {
  const std::vector<Cells> rows = plan_rows(report);
  const bool has_levels = !report.level_bounds.empty();
  std::vector<Json> choices;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    choices.push_back(choice_json(report, report.choices[k], rows[k]));
  }
  Json json = task_json(report.task, report.M_from);
  json["objective"] = report.rates ? "time" : "words";
  json["rates"] = report.rates && (!has_levels || report.choices.front().seconds)
                      ? Json(report.rates->origin)
                      : Json();
  json["lower_bound"] = bound_json(report.bound);
  json["plan"] = choices.front();
  json["reason"] = reason(report);
  if (report.left_out) {
    json["densified_left_out"] = to_words(*report.left_out);
  }
  json["runners_up"] = Json::array();
  for (std::size_t k = 1; k < choices.size(); ++k) {
    json["runners_up"].push_back(choices[k]);
  }
  if (has_levels) {
    const Memory& memory = report.task.memory;
    json["levels"] = Json::array();
    for (std::size_t level = 0; level < memory.levels(); ++level) {
      json["levels"].push_back({{"M", memory.words(level)},
                                {"word_cost", memory.word_cost(level)},
                                {"lower_bound", bound_json(report.level_bounds[level])}});
    }
    json["weighted_bound"] = report.weighted_bound;
    json["of_one_level"] = report.of_one_level;
    if (!report.word_costs_from.empty()) {
      json["word_costs_from"] = report.word_costs_from;
    }
  }
  if (report.device) {
    json["device"] = device_json(*report.device, words_of_levels(report));
  }
  if (!report.as.empty()) {
    json["as"] = json_of(rows_of(report.as, as_cells));
  }
  return json.document();
}

std::string to_csv(const PlanReport& report) {
  const Cells problem = task_cells(report.task, true);
  const std::vector<Cells> choices = rows_beside(report);
  std::vector<Cells> rows;
  for (std::size_t k = 0; k < choices.size(); ++k) {
    const Cells row = joined(problem, choices[k]);
    if (report.level_bounds.empty()) {
      rows.push_back(row);
    } else {
      std::ranges::move(level_rows(report, report.choices[k], row), std::back_inserter(rows));
    }
  }
  return csv_of(rows);
}

}  // namespace redblue
