#include "runtime/report/plan_report.hpp"

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/report/bounds_report.hpp"
#include "runtime/report/context.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

using Json = nlohmann::ordered_json;

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

// Whose times these are, and of whom they are a guess.
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

// Why the first is the first.
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

Json choice_json(const Choice& choice) {
  Json json = {{"kernel", spelled(choice.plan)},
               {"words", choice.words.value()},
               {"lower_bound", bound_json(choice.bound)},
               {"ratio", over_bound(choice)},
               {"seconds", known(choice.seconds)},
               {"blocks", Json::object()},
               {"forward", choice.forward ? Json(spelled(*choice.forward)) : Json()}};
  for (const auto& [name, size] : choice.plan.blocks) {
    json["blocks"][name] = size;
  }
  return json;
}

}  // namespace

double over_bound(const Choice& choice) {
  return static_cast<double>(choice.words.value()) / static_cast<double>(choice.bound.words);
}

FastMemoryTooSmall no_kernel_fits(const Task& task) {
  return FastMemoryTooSmall(
      fmt::format("no kernel fits in M = {} words: {} (redblue list --n {} --m {} --d {} has the "
                  "least M of each)",
                  task.M, to_words(task), task.shape.n, task.shape.m, task.shape.d));
}

PlanReport report_plan(const Task& task, const std::optional<Rates>& rates) {
  PlanReport report{.task = task,
                    .M_from = std::nullopt,
                    .choices = choices(task, {.rates = rates ? &*rates : nullptr}),
                    .bound = largest(lower_bounds(task), {.sharing = task.sharing}),
                    .rates = rates};
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
  Table table;
  const auto add = [&](std::vector<std::string> cells, const std::string& time) {
    if (report.rates) {
      cells.insert(cells.begin() + 1, time);
    }
    table.add(std::move(cells));
  };
  add({"kernel", "words", "over the bound", "of its kind"}, "ms");
  for (const Choice& choice : report.choices) {
    add({to_words(choice), grouped(choice.words.value()), fmt::format("{:.3f}", over_bound(choice)),
         std::string(choice.bound.name)},
        to_ms(choice.seconds.value_or(0)));
  }
  add({"(any algorithm)", grouped(report.bound.words), "", std::string(report.bound.name)}, "-");
  const Choice& best = report.choices.front();
  text += "\n" + table.text() + "\n" + reason(report) + "\n";
  text += report.rates ? rates_text(report) : "";
  text += to_string(best.plan) + "\n";
  return best.forward ? text + to_string(*best.forward) + "\n" : text;
}

std::string to_json(const PlanReport& report) {
  Json json = task_json(report.task, report.M_from);
  json["objective"] = report.rates ? "time" : "words";
  json["rates"] = report.rates ? Json(report.rates->origin) : Json();
  json["lower_bound"] = bound_json(report.bound);
  json["plan"] = choice_json(report.choices.front());
  json["reason"] = reason(report);
  json["runners_up"] = Json::array();
  for (std::size_t k = 1; k < report.choices.size(); ++k) {
    json["runners_up"].push_back(choice_json(report.choices[k]));
  }
  return json.dump(2) + "\n";
}

std::string to_csv(const PlanReport& report) {
  const auto [n, m, d] = report.task.shape;
  std::string text =
      "problem,n,m,d,M,sharing,given,kernel,forward,words,lower_bound,blocks,seconds\n";
  for (const Choice& choice : report.choices) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},\"{}\",{}\n", to_string(report.task.pass),
                        n, m, d, report.task.M, to_string(report.task.sharing),
                        to_string(report.task.known), spelled(choice.plan),
                        choice.forward ? spelled(*choice.forward) : "", choice.words.value(),
                        choice.bound.words, blocks_text(choice.plan.blocks),
                        choice.seconds ? fmt::format("{}", *choice.seconds) : "");
  }
  return text;
}

}  // namespace redblue
