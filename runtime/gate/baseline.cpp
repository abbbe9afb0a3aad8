#include "runtime/gate/baseline.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/kernel.hpp"
#include "memsim/errors.hpp"
#include "runtime/gate/arguments_json.hpp"
#include "runtime/gate/metrics.hpp"
#include "runtime/gate/suite_origin_json.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/parse_json.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

constexpr int kRecordingSchema = 1;
constexpr std::string_view kKind = "recording";

// Returns the counts of a phase as a recording has them. `path` differs from the phase's path for
// moves outside all phases: recordings give them a name, so that every line has one.
PhaseCounts recorded_phase(const PhaseCounts& phase, const std::string& path) {
  return {
      .path = path, .io = phase.io, .operations = {}, .peak = phase.peak, .indices = phase.indices};
}

Json json_of(const PhaseCounts& phase, bool with_path) {
  Json json = Json::object();
  if (with_path) {
    json["path"] = phase.path;
  }
  json.update(Json{{"reads", phase.io.reads}, {"writes", phase.io.writes}, {"peak", phase.peak}});
  for (const auto& [name, words] : {std::pair("index_reads", phase.indices.reads),
                                    std::pair("index_writes", phase.indices.writes)}) {
    if (words != 0) {
      json[name] = words;
    }
  }
  return json;
}

// Writes one line for each phase, after the head of a point or level. The head has the total.
std::string lines_of(std::string head, const std::vector<PhaseCounts>& phases,
                     const std::string& indent) {
  head.back() = ',';
  head += "\"phases\":[";
  const char* comma = "";
  for (const PhaseCounts& phase : phases) {
    head += comma + ("\n" + indent) + json_of(phase, true).dump();
    comma = ",";
  }
  return head + "]}";
}

Json json_of(const Accepted& accepted) {
  return {{"date", accepted.date},
          {"who", accepted.who},
          {"reason", accepted.reason},
          {"before", accepted.before},
          {"after", accepted.after}};
}

// Adds budgets and accepted changes to the head of a point.
void add_limits(const RecordedPoint& recorded, Json& head) {
  for (const Budget& budget : recorded.at_most) {
    head["at_most"][budget.name()] =
        budget.metric == kOverBound ? Json(budget.over_bound) : Json(budget.words);
  }
  if (recorded.bound) {
    head["bound"] = *recorded.bound;
  }
  for (const Accepted& accepted : recorded.accepted) {
    head["accepted"].push_back(json_of(accepted));
  }
}

// Refuses unknown keys. A misspelled key would silently drop a limit.
void expect_no_other_than(const std::set<std::string_view>& keys, const JsonField& field) {
  for (const auto& [key, value] : field.members()) {
    if (!keys.contains(key)) {
      throw InputError(fmt::format("{}: expected one of {}", value.place(), fmt::join(keys, ", ")));
    }
  }
}

std::vector<Budget> budgets_of(const JsonField& field) {
  if (!field.json().is_object() || field.json().empty()) {
    field.refuse("is no object {\"METRIC\": MOST}");
  }
  std::vector<Budget> budgets;
  for (const auto& [name, most] : field.members()) {
    if (!most.json().is_number()) {
      most.refuse("is no number");
    }
    try {
      budgets.push_back(parse_budget(name, most.json().get<double>()));
    } catch (const std::invalid_argument& error) {
      throw InputError(fmt::format("{}: {}", field.place(), error.what()));
    }
  }
  return budgets;
}

PhaseCounts counts_of(const JsonField& field, std::string path) {
  const auto if_any = [&](const char* key) { return field.has(key) ? field[key].words() : 0; };
  return {.path = std::move(path),
          .io = {.reads = field["reads"].words(), .writes = field["writes"].words()},
          .operations = {},
          .peak = field["peak"].words(),
          .indices = {.reads = if_any("index_reads"), .writes = if_any("index_writes")}};
}

RecordedPoint known_point_of(const JsonField& field) {
  RecordedPoint recorded{.point = {field["kernel"].text(), arguments_of(field["arguments"])}};
  if (field.has("least_M")) {
    recorded.least_M = field["least_M"].words();
  }
  if (field.has("fingerprints")) {
    recorded.fingerprints = field["fingerprints"].texts();
  }
  if (field.has("at_most")) {
    recorded.at_most = budgets_of(field["at_most"]);
  }
  if (field.has("bound")) {
    recorded.bound = field["bound"].words();
  }
  if (field.has("accepted")) {
    for (const JsonField& accepted : field["accepted"].items()) {
      recorded.accepted.push_back({.date = accepted["date"].text(),
                                   .who = accepted["who"].text(),
                                   .reason = accepted["reason"].text(),
                                   .before = accepted["before"].words(),
                                   .after = accepted["after"].words()});
    }
  }
  if (field.has("fits") && !field["fits"].yes()) {
    recorded.fits = false;
    return recorded;
  }
  const auto level_of = [](const JsonField& level) {
    RunCounts::Level counts{.phases = {}, .total = counts_of(level["total"], "")};
    for (const JsonField& phase : level["phases"].items()) {
      counts.phases.push_back(counts_of(phase, phase["path"].text()));
    }
    return counts;
  };
  RunCounts::Level own = level_of(field);
  recorded.counts = {.phases = std::move(own.phases), .total = std::move(own.total)};
  if (field.has("inner")) {
    for (const JsonField& level : field["inner"].items()) {
      recorded.counts.inner.push_back(level_of(level));
    }
  }
  return recorded;
}

RecordedPoint point_of(const JsonField& field) {
  RecordedPoint recorded = known_point_of(field);
  expect_no_other_than({"kernel", "arguments", "least_M", "fingerprints", "at_most", "bound",
                        "accepted", "fits", "total", "phases", "inner"},
                       field);
  return recorded;
}

RecordedPart part_of(const JsonField& field) {
  const auto part = parse_part(field["part"].text());
  if (!part) {
    field["part"].refuse("is no i/N");
  }
  return {*part, origin_of(field)};
}

// Refuses a repeated point or phase, because a comparison could use either.
void check_once(const Recording& recording, const std::string& from) {
  std::set<PointKey> points;
  for (const RecordedPoint& recorded : recording.points) {
    const std::string point = fmt::format("{}, {}", from, to_string(recorded.point));
    if (!points.insert(key_of(recorded.point)).second) {
      throw InputError(point + " is there twice");
    }
    const auto check_phases = [&](const std::vector<PhaseCounts>& phases) {
      std::set<std::string> paths;
      for (const PhaseCounts& phase : phases) {
        if (!paths.insert(phase.path).second) {
          throw InputError(fmt::format("{}: the phase {} is there twice", point, phase.path));
        }
      }
    };
    check_phases(recorded.counts.phases);
    for (const RunCounts::Level& level : recorded.counts.inner) {
      check_phases(level.phases);
    }
  }
}

}  // namespace

std::string_view to_string(How how) {
  return how == How::run ? "run" : "count";
}

PointKey key_of(const Point& point) {
  return {point.subject, {point.arguments.begin(), point.arguments.end()}};
}

std::string to_string(const Point& point) {
  return point.subject + " " + to_string(point.arguments);
}

std::string to_json(const Recording& recording) {
  std::string text = fmt::format("{{\n\"schema\": {},\n\"redblue\": \"{}\",\n\"how\": \"{}\",\n",
                                 kRecordingSchema, kKind, to_string(recording.how));
  if (recording.part) {
    Json part = {{"part", to_string(recording.part->part)}};
    part.update(to_json(recording.part->origin));
    text += fmt::format("\"part\": {},\n", part.dump());
  }
  text += "\"points\": [";
  const char* between = "\n";
  for (const RecordedPoint& recorded : recording.points) {
    Json head = {{"kernel", recorded.point.subject},
                 {"arguments", arguments_json(recorded.point.arguments)}};
    if (recorded.least_M) {
      head["least_M"] = *recorded.least_M;
    }
    if (!recorded.fingerprints.empty()) {
      head["fingerprints"] = recorded.fingerprints;
    }
    add_limits(recorded, head);
    if (recorded.fits) {
      head["total"] = json_of(recorded.counts.total, false);
    } else {
      head["fits"] = false;
    }
    std::string line = head.dump();
    if (recorded.fits) {
      line = lines_of(std::move(line), recorded.counts.phases, "  ");
    }
    if (!recorded.counts.inner.empty()) {
      line.back() = ',';
      line += "\"inner\":[";
      const char* comma = "\n  ";
      for (const RunCounts::Level& level : recorded.counts.inner) {
        const Json total = {{"total", json_of(level.total, false)}};
        line += comma + lines_of(total.dump(), level.phases, "    ");
        comma = ",\n  ";
      }
      line += "]}";
    }
    text += between + line;
    between = ",\n";
  }
  return text + "\n]\n}\n";
}

Recording parse_recording(std::string_view text, const std::string& from) {
  const Json document = [&] {
    try {
      return parse_json(text, from);
    } catch (const JsonError& error) {
      if (!error.byte) {
        throw InputError(error.what());
      }
      throw InputError(fmt::format(
          "{} is cut off or no JSON, at byte {} of {}: record it again, or take the whole file",
          from, std::min(*error.byte, text.size()), text.size()));
    }
  }();
  const JsonField top(document, from);
  if (!top.has("redblue") || top["redblue"].text() != kKind) {
    throw InputError(from + " is no recording: `record` makes one");
  }
  if (const Index schema = top["schema"].words(); schema != kRecordingSchema) {
    throw InputError(fmt::format("{} has schema {}; this program reads {}: record it again", from,
                                 schema, kRecordingSchema));
  }
  Recording recording;
  const std::string how = top["how"].text();
  if (how != to_string(How::run) && how != to_string(How::count)) {
    throw InputError(fmt::format("{}, how is '{}': expected run or count", from, shortened(how)));
  }
  recording.how = how == to_string(How::run) ? How::run : How::count;
  for (const JsonField& point : top["points"].items()) {
    recording.points.push_back(point_of(point));
  }
  if (top.has("part")) {
    recording.part = part_of(top["part"]);
  }
  if (recording.points.empty() && !recording.part) {
    throw InputError(from + " has no points: there is nothing to watch");
  }
  check_once(recording, from);
  return recording;
}

RecordedPoint recorded(const Point& point, const RunCounts& counts) {
  RecordedPoint recorded{.point = point};
  const auto recorded_phases = [](const std::vector<PhaseCounts>& phases) {
    std::vector<PhaseCounts> all;
    for (const PhaseCounts& phase : phases) {
      all.push_back(recorded_phase(phase, phase.path.empty() ? kOutside : phase.path));
    }
    return all;
  };
  recorded.counts = {.phases = recorded_phases(counts.phases),
                     .total = recorded_phase(counts.total, "")};
  for (const RunCounts::Level& level : counts.inner) {
    recorded.counts.inner.push_back(
        {recorded_phases(level.phases), recorded_phase(level.total, "")});
  }
  return recorded;
}

std::optional<Index> number_of(const RecordedPoint& recorded, std::string_view phase,
                               std::string_view metric) {
  if (metric == kLeastM) {
    return recorded.least_M;
  }
  const PhaseCounts* counts = &recorded.counts.total;
  if (!phase.empty()) {
    const auto found = std::ranges::find(recorded.counts.phases, phase, &PhaseCounts::path);
    counts = found == recorded.counts.phases.end() ? nullptr : &*found;
  }
  if (!recorded.fits || counts == nullptr) {
    return std::nullopt;
  }
  if (metric == kWords) {
    const Words both = Words(counts->io.reads) + counts->io.writes;
    return both.overflowed() ? std::numeric_limits<Index>::max() : both.value();
  }
  return find_metric(metric)->of(*counts);
}

RecordedPoint record(const Subject& subject, const Arguments& arguments, How how,
                     const std::vector<Budget>& at_most) {
  RecordedPoint recorded{.point = {subject.name, arguments}};
  if (subject.least_M && !arguments.contains(kInner)) {
    recorded.least_M = subject.least_M(arguments);
  }
  if (subject.fingerprints) {
    recorded.fingerprints = subject.fingerprints(arguments);
  }
  recorded.at_most = at_most;
  if (std::ranges::find(at_most, kOverBound, &Budget::metric) != at_most.end()) {
    recorded.bound = subject.bound ? subject.bound(arguments) : std::nullopt;
    if (!recorded.bound) {
      throw std::logic_error(fmt::format(
          "at_most has {}, and no lower bound is known for these arguments: leave it out",
          kOverBound));
    }
  }
  const auto too_large = [&](const std::exception& error) {
    recorded.why = error.what();
    return std::nullopt;
  };
  const auto counts = [&]() -> std::optional<RunCounts> {
    try {
      if (how == How::run) {
        return subject.run(arguments);
      }
      if (!subject.formula) {
        throw std::logic_error(subject.name + " has no formula: it can only run");
      }
      RunCounts formula = predicted(subject.formula(arguments),
                                    subject.inner_formulas ? subject.inner_formulas(arguments)
                                                           : std::vector<std::vector<PhaseCost>>());
      recorded.why = why_not_in(arguments["M"], formula);
      return recorded.why.empty() ? std::optional(formula) : std::nullopt;
    } catch (const FastMemoryTooSmall& error) {
      return too_large(error);
    } catch (const FastMemoryOverflow& error) {
      return too_large(error);
    }
  }();
  recorded.fits = counts.has_value();
  if (counts) {
    recorded.counts = redblue::recorded(recorded.point, *counts).counts;
  }
  return recorded;
}

std::string why_not_in(Index M, const RunCounts& formula) {
  if (formula.total.peak <= M) {
    return "";
  }
  const auto largest = std::ranges::max_element(formula.phases, {}, &PhaseCounts::peak);
  return fmt::format("by its formula {} holds {} words, and M = {}", largest->path, largest->peak,
                     M);
}

void in_any_order(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work,
                  const std::function<void(std::size_t done)>& progress) {
  std::atomic<std::size_t> next = 0;
  std::size_t done = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto worker = [&] {
    for (std::size_t k = next++; k < count; k = next++) {
      try {
        work(k);
        const std::lock_guard lock(mutex);
        progress(++done);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (failure == nullptr) {
          failure = std::current_exception();
        }
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned k = 1; k < std::min<std::size_t>(threads, count); ++k) {
      try {
        others.emplace_back(worker);
      } catch (const std::system_error&) {  // no more threads: fewer threads do all the work
        break;
      }
    }
    worker();
  }
  if (failure != nullptr) {
    std::rethrow_exception(failure);
  }
}

}  // namespace redblue
