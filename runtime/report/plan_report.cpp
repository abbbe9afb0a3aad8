#include "runtime/report/plan_report.hpp"

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/report/bounds_report.hpp"
#include "runtime/report/context.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

std::string blocks_text(const Blocks& blocks) {
  std::string text;
  for (const auto& [name, size] : blocks) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, size);
  }
  return text.empty() ? "-" : text;
}

std::string to_ms(double seconds) {
  return fmt::format("{:.2f}", 1e3 * seconds);
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

// The reason for the first choice.
std::string reason(const PlanReport& report) {
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

std::vector<Cells> plan_rows(const PlanReport& report) {
  const bool sparse = !report.task.problem.sparsity.dense();
  return rows_of(report.choices, [&](const Choice& choice) {
    return choice_cells(choice, report.rates.has_value(), sparse);
  });
}

// The row of the table for the bound of every algorithm.
Cells bound_row(const PlanReport& report) {
  Cells cells = {{in_table("kernel"), "(any algorithm)"}};
  if (report.rates) {
    cells.push_back({in_table("ms"), "-"});
  }
  return joined(std::move(cells), {{in_table("words"), report.bound.words},
                                   {in_table("over the bound"), ""},
                                   {in_table("of its kind"), report.bound.name}});
}

}  // namespace

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
      fmt::format("no kernel fits in M = {} words: {}{}", task.memory.M, to_words(task), remedy));
}

PlanReport report_plan(const Task& task, const std::optional<Rates>& rates) {
  PlanReport report{.task = task,
                    .M_from = std::nullopt,
                    .choices = {},
                    .bound = largest(lower_bounds(task), {.sharing = task.problem.sharing}),
                    .rates = rates};
  report.choices = choices(task, {.rates = rates ? &*rates : nullptr}, &report.left_out);
  if (report.choices.empty()) {
    throw no_kernel_fits(task);
  }
  return report;
}

std::string to_table(const PlanReport& report) {
  std::string text = to_words(report.task) + "   (reads + writes, in words)\n";
  if (report.M_from) {
    text += to_words(*report.M_from) + "\n";
  }
  std::vector<Cells> rows = plan_rows(report);
  rows.push_back(bound_row(report));
  const Choice& best = report.choices.front();
  text += "\n" + table_of(rows) + "\n" + reason(report) + "\n";
  text += report.left_out ? to_words(*report.left_out) + "\n" : "";
  text += report.rates ? rates_text(report) : "";
  const Index heads = report.task.heads;
  text += to_string(best.plan, heads) + "\n";
  text += best.forward ? to_string(*best.forward, heads) + "\n" : "";
  const std::optional<Regrouping> prepare = regrouping(best);
  return text + (prepare ? to_words(*prepare) : "");
}

std::string to_json(const PlanReport& report) {
  const std::vector<Cells> rows = plan_rows(report);
  Json json = task_json(report.task, report.M_from);
  json["objective"] = report.rates ? "time" : "words";
  json["rates"] = report.rates ? Json(report.rates->origin) : Json();
  json["lower_bound"] = bound_json(report.bound);
  json["plan"] = json_of(rows.front());
  json["reason"] = reason(report);
  if (report.left_out) {
    json["densified_left_out"] = to_words(*report.left_out);
  }
  json["runners_up"] = json_of(std::vector(rows.begin() + 1, rows.end()));
  return json.document();
}

std::string to_csv(const PlanReport& report) {
  const Cells problem = task_cells(report.task, true);
  return csv_of(rows_of(plan_rows(report), [&](const Cells& row) { return joined(problem, row); }));
}

}  // namespace redblue
