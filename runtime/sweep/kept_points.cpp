#include "runtime/sweep/kept_points.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "runtime/gate/comparison.hpp"
#include "runtime/gate/suite_origin_json.hpp"
#include "runtime/system/build_info.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/parse_json.hpp"

namespace redblue {
namespace {

constexpr std::array kOfTheMachine = {"simd", "processor", "cores", "caches"};
constexpr const char* kMachines = "machines";  // used instead if a sweep ran on several machines

Json context_of(const KeptHead& head) {
  return parse_json(head.context, "context");
}

std::vector<Json> machines_of(const KeptHead& head) {
  const Json context = context_of(head);
  if (context.contains(kMachines)) {
    return {context.at(kMachines).begin(), context.at(kMachines).end()};
  }
  Json machine = Json::object();
  for (const char* key : kOfTheMachine) {
    machine[key] = context.value(key, Json());
  }
  return {machine};
}

// Returns "AMD EPYC 7763 (AVX3)".
std::string processor_of(const JsonField& machine) {
  const auto model = machine.unless_null("processor");
  return fmt::format("{} ({})", model ? model->text() : "unknown", machine["simd"].text());
}

// Checks a context once, because later functions do not check it again.
void check_context(const JsonField& context) {
  static_cast<void>(context.members());
  if (!context.has(kMachines)) {
    static_cast<void>(processor_of(context));
    return;
  }
  const std::vector<JsonField> machines = context[kMachines].items();
  if (machines.empty()) {
    context.refuse("has no machine");
  }
  std::ranges::for_each(machines, processor_of);
}

KeptHead parse_head(const std::string& line, const std::string& place) {
  const Json json = parse_json(line, place);
  const JsonField field(
      json, place, "this line begins no sweep that redblue goes on with: take another directory");
  const auto part = parse_part(field["part"].text());
  if (!part) {
    field["part"].refuse("is no i/N");
  }
  check_context(field["context"]);
  return {.origin = origin_of(field), .part = *part, .context = json.at("context").dump()};
}

Swept without_times(Swept swept) {
  swept.total.seconds.reset();
  for (SweptPhase& phase : swept.phases) {
    phase.seconds.reset();
  }
  swept.speed.reset();
  swept.processor.reset();
  return swept;
}

RecordedPoint recorded_of(const Swept& swept) {
  std::vector<RunCounts::Level> levels;
  for (const SweptLevel& level : swept.levels()) {
    levels.push_back({.phases = {}, .total = level.total.counts});
    for (const SweptPhase& phase : level.phases) {
      levels.back().phases.push_back(phase.counts);
    }
  }
  RunCounts counts{.phases = levels.back().phases, .total = levels.back().total};
  counts.inner.assign(levels.begin(), levels.end() - 1);
  RecordedPoint point = recorded(swept.point, counts);
  point.fits = swept.fits;
  point.why = swept.why;
  return point;
}

// A point in one of the parts.
struct Held {
  std::string part;  // its name
  const Swept* swept;
};

// Returns the fastest result of a point among several parts. The order of the parts does not
// matter. Throws: InputError if results differ in more than times.
const Swept& fastest(const std::vector<Held>& held) {
  const Held& first = held.front();
  for (const Held& other : held) {
    if (without_times(*first.swept) != without_times(*other.swept)) {
      const std::vector<Difference> found =
          differences(recorded_of(*first.swept), recorded_of(*other.swept), {});
      throw InputError(fmt::format(
          "{} and {} differ at {}: {}", first.part, other.part, to_string(first.swept->point),
          found.empty() ? "the plan, the bound or the reason" : to_words(found.front())));
    }
  }
  return *std::ranges::min_element(held, {}, [](const Held& each) {
            return std::pair(each.swept->total.seconds.value_or(0), to_line(*each.swept));
          })->swept;
}

// Adds the processor to each time of a part.
void name_processor(SweptPart& part) {
  const Json machine = machines_of(part.kept.head).front();
  const std::string processor = processor_of({machine, part.name});
  for (Swept& swept : part.kept.points) {
    if (swept.total.seconds && !swept.processor) {
      swept.processor = processor;
    }
  }
}

// Returns the machines of the parts that have points, each once. The order of the parts does not
// matter.
std::vector<Json> machines_of(const std::vector<SweptPart>& parts) {
  std::map<std::string, Json> machines;
  for (const SweptPart& part : parts) {
    if (!part.kept.points.empty()) {
      for (const Json& machine : machines_of(part.kept.head)) {
        machines.emplace(machine.dump(), machine);
      }
    }
  }
  std::vector<Json> found;
  for (const auto& [text, machine] : machines) {
    found.push_back(machine);
  }
  return found;
}

// Returns the context of a part with its machines replaced.
std::string context_on(const KeptHead& head, const std::vector<Json>& machines) {
  const Json context = context_of(head);
  Json merged = Json::object();
  for (const auto& [key, value] : context.items()) {
    if (key != kMachines && std::ranges::find(kOfTheMachine, key) == kOfTheMachine.end()) {
      merged[key] = value;
    }
  }
  if (machines.size() == 1) {
    merged.update(machines.front());
  } else {
    merged[kMachines] = machines;
  }
  return merged.dump();
}

}  // namespace

std::string to_line(const KeptHead& head) {
  Json json = {{"part", to_string(head.part)}, {"context", context_of(head)}};
  json.update(to_json(head.origin));
  return json.dump() + "\n";
}

std::string differing(const KeptHead& found, const KeptHead& head) {
  const auto machine = [](const KeptHead& of) {
    const Json context = context_of(of);
    return std::pair(context.value("processor", Json()), context.value("simd", Json()));
  };
  if (std::string what = differing(found.origin, head.origin); !what.empty()) {
    return what;
  }
  if (found.part != head.part) {
    return "part";
  }
  return head.origin.how == kTimed && machine(found) != machine(head) ? "machine" : "";
}

KeptPoints parse_kept(const std::vector<std::string>& lines, const std::string& path) {
  const auto place = [&](std::size_t k) { return fmt::format("{}, line {}", path, k + 1); };
  if (lines.empty()) {
    throw InputError(path + " has no whole line: the sweep that began it continues it");
  }
  KeptPoints kept{.head = parse_head(lines.front(), place(0))};
  for (std::size_t k = 1; k < lines.size(); ++k) {
    kept.points.push_back(parse_line(lines[k], place(k)));
  }
  return kept;
}

MergedSweep merge(std::vector<SweptPart> parts) {
  std::vector<PartThere> there;
  std::vector<std::map<std::string, const Swept*>> points(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto& [head, swept] = parts[p].kept;
    if (const Json version = context_of(head).value("redblue", Json());
        version != build_info::kVersion) {
      throw InputError(fmt::format("{} is of redblue {}, and this is {}: merge it by that one",
                                   parts[p].name, in_short(version), build_info::kVersion));
    }
    there.push_back({parts[p].name, head.part, head.origin, {}});
    for (const Swept& each : swept) {
      points[p].insert_or_assign(to_string(each.point), &each);  // the last line counts
    }
    for (const auto& [name, of] : points[p]) {
      there.back().points.push_back(name);
    }
  }
  const std::vector<std::vector<std::size_t>> holders = holders_of(there);
  const KeptHead& first = parts.front().kept.head;
  std::vector<Json> machines = machines_of(parts);
  if (machines.empty()) {  // no part has a point
    machines = machines_of(first);
  }
  if (machines.size() > 1) {
    std::ranges::for_each(parts, name_processor);
  }
  auto [missing, said] = missing_points(there, holders);
  MergedSweep merged{.sweep = {.how = first.origin.how,
                               .suite = first.origin.suite,
                               .missing = std::move(missing)},
                     .head = {.origin = first.origin, .context = context_on(first, machines)},
                     .missing = std::move(said)};
  for (std::size_t k = 0; k < holders.size(); ++k) {
    std::vector<Held> held;
    for (const std::size_t p : holders[k]) {
      held.push_back({parts[p].name, points[p].at(first.origin.points[k])});
    }
    if (!held.empty()) {
      merged.sweep.points.push_back(fastest(held));
    }
  }
  return merged;
}

}  // namespace redblue
