#include "runtime/report/device_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/report/context.hpp"
#include "runtime/report/plan_report.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

constexpr std::string_view kPapersSmall = "backward/small";
constexpr std::string_view kPapersLarge = "backward/large";

std::optional<Choice> find(const std::vector<Choice>& choices, std::string_view kernel) {
  const auto found = std::ranges::find_if(
      choices, [&](const Choice& choice) { return spelled(choice.plan) == kernel; });
  return found == choices.end() ? std::nullopt : std::optional(*found);
}

// "192 KiB", or bytes if these are not whole KiB.
std::string bytes_text(Index bytes) {
  return bytes % 1024 == 0 ? grouped(bytes / 1024) + " KiB" : grouped(bytes) + " bytes";
}

// Returns the name without its folder, which is the same for all.
std::string short_name(std::string_view kernel) {
  return std::string(kernel.substr(kernel.find('/') + 1));
}

// The sources of the sizes: one line for neighbours that share a source.
std::string sources(const DeviceReport& report) {
  std::string text;
  const PlannedMemory* last = nullptr;
  for (const DeviceChoice& choice : report.choices) {
    const PlannedMemory& device = choice.device;
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

Json forward_of(const Choice& choice) {
  return choice.forward ? Json(spelled(*choice.forward)) : Json();
}

Json choice_json(const std::optional<Choice>& choice) {
  if (!choice) {
    return {};
  }
  return json_of({{"kernel", spelled(choice->plan)},
                  {"forward", forward_of(*choice)},
                  {"words", choice->words.value()},
                  bytes_cell(choice->plan.problem.word_bytes, choice->words.value()),
                  {"lower_bound", bound_json(choice->bound)},
                  {"ratio", over_bound(*choice)}});
}

Json words_of(const std::optional<Choice>& choice) {
  return choice ? Json(choice->words.value()) : Json();
}

// Returns the name of a kernel, or null if none fits.
CellValue name_of(const Choice* choice) {
  const Json name = choice == nullptr ? Json() : Json(spelled(choice->plan));
  return CellValue(name).shown(choice == nullptr ? "none fits" : short_name(spelled(choice->plan)));
}

// "bytes" is the size of the device, so the bytes moved by the best kernel have other names. JSON
// has them in `best`.
const CellNames kBestBytes("bytes moved", "", "best_bytes");

// If `again` is true, the row above has the same device, which is not repeated.
Cells device_cells(const DeviceChoice& choice, bool again) {
  const PlannedMemory& device = choice.device;
  const Task& task = choice.task;
  const auto [n, m, d] = task.problem.shape;
  const std::optional<Choice>& best = choice.best;
  const Choice* const paper = choice.by_words();
  return {
      {"device", CellValue(device.name).shown(again ? "" : device.name)},
      {in_json("source"), device.source},
      {{"memory", "bytes"}, CellValue(device.bytes).shown(again ? "" : bytes_text(device.bytes))},
      {in_json("M"), task.memory.M},
      {in_csv("n"), n},
      {in_csv("m"), m},
      {"d", d},
      {{"d^2", "dividing_point"}, dividing_point(task.problem.shape).value()},
      {{"M", "", "M"}, task.memory.M},
      {in_csv("sharing"), to_string(task.problem.sharing)},
      {in_csv("given"), to_string(task.known)},
      {{"paper says", "paper.by_rule", "by_rule"},
       CellValue(choice.by_rule()).shown(short_name(choice.by_rule()))},
      {{"paper's better one", "paper.by_words", ""}, name_of(paper)},
      {in_table("words"), paper == nullptr ? Json() : Json(paper->words.value())},
      {in_json("paper.small"), choice_json(choice.small)},
      {in_json("paper.large"), choice_json(choice.large)},
      {in_csv("small"), words_of(choice.small)},
      {in_csv("large"), words_of(choice.large)},
      {in_json("best"), choice_json(best)},
      {{"fewest of all", "", "best"}, name_of(best ? &*best : nullptr)},
      {in_csv("forward"), best ? forward_of(*best) : Json()},
      {{"words", "", "words"}, words_of(best)},
      bytes_cell(task.problem.word_bytes, best ? std::optional(best->words.value()) : std::nullopt,
                 kBestBytes),
      {{"paper / fewest", "paper_over_best", ""}, decimals(choice.ratio(), 2)},
      {{"lower bound", "", "lower_bound"}, best ? Json(best->bound.words) : Json()},
      {in_table("ratio"), decimals(best ? std::optional(over_bound(*best)) : std::nullopt, 3)},
      {in_json("lower_bound"), bound_json(choice.bound)},
      {{"bound of any", "", "any_bound"}, choice.bound.words}};
}

std::vector<Cells> device_rows(const DeviceReport& report) {
  const PlannedMemory* last = nullptr;
  return rows_of(report.choices, [&](const DeviceChoice& choice) {
    const bool again = last != nullptr && last->name == choice.device.name;
    last = &choice.device;
    return device_cells(choice, again);
  });
}

}  // namespace

std::string_view DeviceChoice::by_rule() const {
  return Words(task.memory.M) < dividing_point(task.problem.shape) ? kPapersSmall : kPapersLarge;
}

const Choice* DeviceChoice::by_words() const {
  if (small && large) {
    return small->words <= large->words ? &*small : &*large;
  }
  return small ? &*small : large ? &*large : nullptr;
}

std::optional<double> DeviceChoice::ratio() const {
  const Choice* paper = by_words();
  return paper == nullptr ? std::nullopt : quotient(paper->words.value(), best->words.value());
}

DeviceReport report_devices(const std::vector<PlannedMemory>& memories,
                            const std::vector<Task>& tasks) {
  DeviceReport report;
  for (const PlannedMemory& memory : memories) {
    for (Task task : tasks) {
      task.memory.M = memory.bytes / task.problem.word_bytes.value_or(kFloatBytes);
      const std::vector<Choice> all = choices(task);
      report.choices.push_back(
          {.device = memory,
           .task = task,
           .small = find(all, kPapersSmall),
           .large = find(all, kPapersLarge),
           .best = all.empty() ? std::nullopt : std::optional(all.front()),
           .bound = largest(lower_bounds(task), {.sharing = task.problem.sharing})});
    }
  }
  if (std::ranges::none_of(report.choices,
                           [](const DeviceChoice& of) { return of.best.has_value(); })) {
    throw no_kernel_fits(report.choices.front().task);
  }
  return report;
}

Description describe(const DeviceReport& report) {
  const Task& first = report.choices.front().task;
  const auto [n, m, d] = first.problem.shape;
  const std::string_view sharing = to_string(first.problem.sharing);
  Description of = begin_report(fmt::format(
      "backward n={} m={}, {}{}   (reads + writes, {})\nthe paper's two algorithms: {} where "
      "M < d^2, else {}\n",
      n, m, first.known == Known::nothing ? "from scratch" : "after a forward pass",
      first.problem.sharing == Sharing::none ? "" : fmt::format(", sharing {}", sharing),
      in_words(first.problem), kPapersSmall, kPapersLarge));
  of.facts(only_in_json(joined(width_cells(first.problem), {{"problem", to_string(first.pass)},
                                                            {"n", n},
                                                            {"m", m},
                                                            {"sharing", sharing},
                                                            {"given", to_string(first.known)}})));
  of.table("devices", device_rows(report));
  of.text("\n" + sources(report));
  return of;
}

}  // namespace redblue
