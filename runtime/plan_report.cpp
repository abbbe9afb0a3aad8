#include "runtime/plan_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/bounds_report.hpp"
#include "runtime/context.hpp"
#include "runtime/table.hpp"

namespace redblue {
namespace {

using Json = nlohmann::ordered_json;

double ratio(const PlanReport& report, const Choice& choice) {
  return static_cast<double>(choice.words.value()) / static_cast<double>(report.bound.words);
}

std::string blocks_text(const Blocks& blocks) {
  std::string text;
  for (const auto& [name, size] : blocks) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, size);
  }
  return text.empty() ? "-" : text;
}

// Why the first is the first.
std::string reason(const PlanReport& report) {
  const Choice& best = report.choices.front();
  const std::string beginning =
      fmt::format("{}: {:.3f} times the bound {} ({})", to_words(best), ratio(report, best),
                  report.bound.name, to_string(report.bound.status));
  if (report.choices.size() == 1) {
    return beginning + "; no other kernel fits";
  }
  const Choice& next = report.choices[1];
  return next.words == best.words
             ? fmt::format("{}; {} moves as many words, with more flops or later in the list",
                           beginning, to_words(next))
             : fmt::format("{}; {}, the next, moves {:.3f} times as many words", beginning,
                           to_words(next),
                           static_cast<double>(next.words.value()) /
                               static_cast<double>(best.words.value()));
}

Json choice_json(const PlanReport& report, const Choice& choice) {
  Json json = {{"kernel", choice.plan.kernel},
               {"words", choice.words.value()},
               {"ratio", ratio(report, choice)},
               {"blocks", Json::object()},
               {"forward", choice.forward ? Json(choice.forward->kernel) : Json()}};
  for (const auto& [name, size] : choice.plan.blocks) {
    json["blocks"][name] = size;
  }
  return json;
}

}  // namespace

PlanReport report_plan(const Task& task) {
  PlanReport report{.task = task,
                    .M_from = std::nullopt,
                    .choices = choices(task),
                    .bound = largest(lower_bounds(task), {.sharing = task.sharing})};
  if (report.choices.empty()) {
    throw FastMemoryTooSmall(
        fmt::format("no kernel fits in M = {} words: {} (redblue list --n {} --m {} --d {} has the "
                    "least M of each)",
                    task.M, to_words(task), task.shape.n, task.shape.m, task.shape.d));
  }
  return report;
}

std::string to_table(const PlanReport& report) {
  std::string text = to_words(report.task) + "   (reads + writes, in words)\n";
  if (report.M_from) {
    text += to_words(*report.M_from) + "\n";
  }
  Table table;
  table.add({"kernel", "words", "over the bound"});
  for (const Choice& choice : report.choices) {
    table.add({to_words(choice), grouped(choice.words.value()),
               fmt::format("{:.3f}", ratio(report, choice))});
  }
  table.add({fmt::format("(bound: {})", report.bound.name), grouped(report.bound.words), "1.000"});
  const Choice& best = report.choices.front();
  text += "\n" + table.text() + "\n" + reason(report) + "\n" + to_string(best.plan) + "\n";
  return best.forward ? text + to_string(*best.forward) + "\n" : text;
}

std::string to_json(const PlanReport& report) {
  Json json = task_json(report.task, report.M_from);
  json["lower_bound"] = bound_json(report.bound);
  json["plan"] = choice_json(report, report.choices.front());
  json["reason"] = reason(report);
  json["runners_up"] = Json::array();
  for (std::size_t k = 1; k < report.choices.size(); ++k) {
    json["runners_up"].push_back(choice_json(report, report.choices[k]));
  }
  return json.dump(2) + "\n";
}

std::string to_csv(const PlanReport& report) {
  const auto [n, m, d] = report.task.shape;
  std::string text = "problem,n,m,d,M,sharing,given,kernel,forward,words,lower_bound,blocks\n";
  for (const Choice& choice : report.choices) {
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},\"{}\"\n", to_string(report.task.pass), n, m,
                    d, report.task.M, to_string(report.task.sharing), to_string(report.task.known),
                    choice.plan.kernel, choice.forward ? choice.forward->kernel : "",
                    choice.words.value(), report.bound.words, blocks_text(choice.plan.blocks));
  }
  return text;
}

}  // namespace redblue
