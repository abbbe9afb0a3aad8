#include "runtime/report/device_report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/report/bounds_report.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/plan_report.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSmall = "backward/small";
constexpr std::string_view kLarge = "backward/large";

std::optional<Choice> find(const std::vector<Choice>& choices, std::string_view kernel) {
  const auto found = std::ranges::find_if(
      choices, [&](const Choice& choice) { return spelled(choice.plan) == kernel; });
  return found == choices.end() ? std::nullopt : std::optional(*found);
}

// "192 KiB", or in bytes where that is no whole number.
std::string size_text(Index bytes) {
  return bytes % 1024 == 0 ? grouped(bytes / 1024) + " KiB" : grouped(bytes) + " bytes";
}

// Without the room, which is the same for all.
std::string short_name(std::string_view kernel) {
  return std::string(kernel.substr(kernel.find('/') + 1));
}

// Where the sizes come from: a line for neighbours of one source.
std::string sources(const DeviceReport& report) {
  std::string text;
  const Device* last = nullptr;
  for (const DeviceChoice& choice : report.choices) {
    const Device& device = choice.device;
    if (last == nullptr || device.source != last->source) {
      text += last == nullptr ? "" : fmt::format(": {}\n", last->source);
      text += device.name;
    } else if (device.name != last->name) {
      text += ", " + device.name;
    }
    last = &device;
  }
  return fmt::format("{}: {}\n", text, last->source);
}

Json choice_json(const std::optional<Choice>& choice) {
  return choice ? Json{{"kernel", spelled(choice->plan)},
                       {"forward", choice->forward ? Json(spelled(*choice->forward)) : Json()},
                       {"words", choice->words.value()},
                       {"lower_bound", bound_json(choice->bound)},
                       {"ratio", over_bound(*choice)}}
                : Json();
}

}  // namespace

std::string_view DeviceChoice::by_rule() const {
  return Words(task.M) < dividing_point(task.shape) ? kSmall : kLarge;
}

const Choice* DeviceChoice::by_words() const {
  if (small && large) {
    return small->words <= large->words ? &*small : &*large;
  }
  return small ? &*small : large ? &*large : nullptr;
}

std::optional<double> DeviceChoice::ratio() const {
  const Choice* paper = by_words();
  return paper == nullptr ? std::nullopt
                          : std::optional(static_cast<double>(paper->words.value()) /
                                          static_cast<double>(best->words.value()));
}

DeviceReport report_devices(const std::vector<Device>& devices, const std::vector<Task>& tasks) {
  DeviceReport report;
  for (const Device& device : devices) {
    for (Task task : tasks) {
      task.M = device.bytes / Index{sizeof(float)};
      const std::vector<Choice> all = choices(task);
      report.choices.push_back({.device = device,
                                .task = task,
                                .small = find(all, kSmall),
                                .large = find(all, kLarge),
                                .best = all.empty() ? std::nullopt : std::optional(all.front()),
                                .bound = largest(lower_bounds(task), {.sharing = task.sharing})});
    }
  }
  if (std::ranges::none_of(report.choices,
                           [](const DeviceChoice& of) { return of.best.has_value(); })) {
    throw no_kernel_fits(report.choices.front().task);
  }
  return report;
}

std::string to_table(const DeviceReport& report) {
  const Task& first = report.choices.front().task;
  std::string text = fmt::format(
      "backward n={} m={}, {}{}   (reads + writes, in words)\nthe paper's two algorithms: {} where "
      "M < d^2, else {}\n",
      first.shape.n, first.shape.m,
      first.known == Known::nothing ? "from nothing" : "given O and L",
      first.sharing == Sharing::none ? "" : fmt::format(", sharing {}", to_string(first.sharing)),
      kSmall, kLarge);
  Table table;
  table.add({"device", "memory", "d", "d^2", "M", "paper says", "its fewer", "words",
             "fewest of all", "words", "paper / that", "bound of its kind", "over it",
             "bound of any"});
  const Device* last = nullptr;
  for (const DeviceChoice& choice : report.choices) {
    const Device& device = choice.device;
    const std::optional<Choice>& best = choice.best;
    const Choice* const paper = choice.by_words();
    const bool again = last != nullptr && last->name == device.name;
    table.add({again ? "" : device.name, again ? "" : size_text(device.bytes),
               grouped(choice.task.shape.d), grouped(dividing_point(choice.task.shape).value()),
               grouped(choice.task.M), short_name(choice.by_rule()),
               paper == nullptr ? "none fits" : short_name(spelled(paper->plan)),
               paper == nullptr ? "-" : grouped(paper->words.value()),
               best ? short_name(spelled(best->plan)) : "none fits",
               best ? grouped(best->words.value()) : "-",
               paper == nullptr ? "-" : fmt::format("{:.2f}", *choice.ratio()),
               best ? grouped(best->bound.words) : "-",
               best ? fmt::format("{:.3f}", over_bound(*best)) : "-", grouped(choice.bound.words)});
    last = &device;
  }
  return text + "\n" + table.text() + "\n" + sources(report);
}

std::string to_json(const DeviceReport& report) {
  Json choices = Json::array();
  for (const DeviceChoice& choice : report.choices) {
    const Device& device = choice.device;
    const Choice* const paper = choice.by_words();
    choices.push_back({{"device", device.name},
                       {"source", device.source},
                       {"bytes", device.bytes},
                       {"M", choice.task.M},
                       {"d", choice.task.shape.d},
                       {"dividing_point", dividing_point(choice.task.shape).value()},
                       {"paper",
                        {{"by_rule", choice.by_rule()},
                         {"by_words", paper == nullptr ? Json() : Json(spelled(paper->plan))},
                         {"small", choice_json(choice.small)},
                         {"large", choice_json(choice.large)}}},
                       {"best", choice_json(choice.best)},
                       {"paper_over_best", known(choice.ratio())},
                       {"lower_bound", bound_json(choice.bound)}});
  }
  const Task& first = report.choices.front().task;
  const Json json = {{"schema", kSchema},
                     {"context", context_json(std::nullopt)},
                     {"problem", to_string(first.pass)},
                     {"n", first.shape.n},
                     {"m", first.shape.m},
                     {"sharing", to_string(first.sharing)},
                     {"given", to_string(first.known)},
                     {"devices", std::move(choices)}};
  return json.dump(2) + "\n";
}

std::string to_csv(const DeviceReport& report) {
  std::string text =
      "device,bytes,n,m,d,dividing_point,M,sharing,given,by_rule,small,large,best,forward,words,"
      "lower_bound,any_bound\n";
  const auto words = [](const std::optional<Choice>& choice) {
    return choice ? fmt::format("{}", choice->words.value()) : "";
  };
  for (const DeviceChoice& choice : report.choices) {
    const auto [n, m, d] = choice.task.shape;
    const std::optional<Choice>& best = choice.best;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", choice.device.name,
                        choice.device.bytes, n, m, d, dividing_point(choice.task.shape).value(),
                        choice.task.M, to_string(choice.task.sharing), to_string(choice.task.known),
                        choice.by_rule(), words(choice.small), words(choice.large),
                        best ? spelled(best->plan) : "",
                        best && best->forward ? spelled(*best->forward) : "", words(best),
                        best ? fmt::format("{}", best->bound.words) : "", choice.bound.words);
  }
  return text;
}

}  // namespace redblue
