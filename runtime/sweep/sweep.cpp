#include "runtime/sweep/sweep.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "kernels/arithmetic/simd.hpp"
#include "kernels/kernel.hpp"
#include "memsim/machine.hpp"
#include "runtime/gate/arguments_json.hpp"
#include "runtime/report/context.hpp"
#include "runtime/run/inputs.hpp"
#include "runtime/sweep/kernel_subjects.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/text/parse_json.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kKind = "sweep";

// Words a second that a machine reads out of main memory, in blocks of half of M, at most some
// megabytes: the best of a few times. Throws: std::runtime_error if memory is too small.
double read_speed(Index M, MemoryBudget* shared) {
  constexpr Index kCols = 1024;
  constexpr Index kRows = 64 * 1024;  // 256 MiB
  constexpr int kTimes = 3;
  const Index rows = std::clamp<Index>(M / 2 / kCols, 1, 1024);
  const MemoryClaim memory(shared, 4 * (Words(kRows) * kCols + Words(rows) * kCols),
                           "measuring how fast words are read",
                           "have the suite run or count (how)");
  const SlowMatrix slow("slow", kRows, kCols);
  double best = 0;
  for (int k = 0; k < kTimes; ++k) {
    Machine machine(rows * kCols);
    const auto start = Clock::now();
    for (const Range I : blocks(kRows, rows)) {
      const Tile tile = machine.read(slow.row_block(I));
    }
    const std::chrono::duration<double> seconds = Clock::now() - start;
    best = std::max(best, static_cast<double>(kRows * kCols) / seconds.count());
  }
  return best;
}

Index words_or_none(const Words& words) {
  return words.overflowed() ? 0 : words.value();
}

SweptPhase predicted_phase(const PhaseCost& cost) {
  const IoCount io{.reads = cost.reads.value(), .writes = cost.writes.value()};
  const Index peak = cost.peak.value();
  return {.counts = {.path = cost.path,
                     .io = io,
                     .operations = {.flops = words_or_none(cost.flops)},
                     .peak = peak,
                     .indices = {.reads = cost.index_reads.value(),
                                 .writes = cost.index_writes.value()}},
          .formula = io,
          .formula_peak = peak};
}

// Adds what a part moved at one level; `counted` where it ran.
void add_phases(const std::vector<PhaseCost>& formula,
                const std::optional<RunCounts::Level>& counted, const std::string& prefix,
                std::vector<SweptPhase>& phases, SweptPhase& sum) {
  for (std::size_t k = 0; k < formula.size(); ++k) {
    SweptPhase phase = predicted_phase(formula[k]);
    if (counted) {
      phase.counts = counted->phases[k];
    }
    phase.counts.path = prefix + phase.counts.path;
    phases.push_back(std::move(phase));
  }
  const SweptPhase total = predicted_phase(redblue::total(formula));
  sum.counts += counted ? counted->total : total.counts;
  sum.formula += total.formula;
  sum.formula_peak = std::max(sum.formula_peak, total.formula_peak);
}

void add_part(const Part& part, const std::string& prefix, bool timed, Swept& swept) {
  const std::optional<RunCounts>& counted = part.counted;
  const std::size_t first = swept.phases.size();
  add_phases(
      part.formula,
      counted ? std::optional(RunCounts::Level{counted->phases, counted->total}) : std::nullopt,
      prefix, swept.phases, swept.total);
  if (timed) {
    for (std::size_t k = 0; k < part.formula.size(); ++k) {
      swept.phases[first + k].seconds = counted->seconds->phases[k];
    }
    swept.total.seconds = swept.total.seconds.value_or(0) + counted->seconds->total;
  }
  swept.inner.resize(part.levels.size());
  for (std::size_t level = 0; level < part.levels.size(); ++level) {
    SweptLevel& sum = swept.inner[level];
    sum.M = part.levels[level].M;
    add_phases(part.levels[level].phases,
               counted ? std::optional(counted->inner[level]) : std::nullopt, prefix, sum.phases,
               sum.total);
  }
}

// Timed if `words_per_second` is set.
Swept swept_of(const Point& point, const Report& report,
               const std::optional<double>& words_per_second) {
  const bool timed = words_per_second.has_value();
  Swept swept{.point = point,
              .kernel = spelled(report.kernel.plan),
              .blocks = {},
              .total = {},
              .phases = {},
              .bound = std::nullopt,
              .speed = std::nullopt};
  for (const auto& [name, size] : report.kernel.plan.blocks) {
    swept.blocks += fmt::format("{}{}={}", swept.blocks.empty() ? "" : " ", name, size);
  }
  if (report.bound) {
    swept.bound = report.bound->words;
  }
  if (report.forward && !given_forward(point.arguments)) {
    add_part(*report.forward, "forward/", timed, swept);
  }
  add_part(report.kernel, "", timed, swept);
  for (std::size_t level = 0; level < report.level_bounds.size(); ++level) {
    if (const auto& bound = report.level_bounds[level]) {
      swept.inner[level].bound = bound->words;
    }
  }
  // Levels of equal words are one, and each has its words.
  for (std::size_t level = 1; level < report.equal_levels; ++level) {
    swept.inner.push_back(swept.levels().back());
  }
  if (timed) {
    const double seconds = *swept.total.seconds;
    swept.speed = Speed{
        .gflops = seconds > 0
                      ? 1e-9 * static_cast<double>(swept.total.counts.operations.flops) / seconds
                      : 0,
        .peak_gflops = report.kernel.peak_gflops,
        .words_per_second = *words_per_second};
  }
  return swept;
}

// CSV leaves out 0 flops (beyond 63 bits) and 0 other operations (not counted).
Cells phase_cells(const SweptPhase& phase, const std::optional<Index>& bound) {
  const auto& [path, io, operations, peak, indices] = phase.counts;
  const auto& formula = phase.formula;
  const auto if_any = [](Index count) { return count == 0 ? Json() : Json(count); };
  return {{{"", path.empty() ? "" : "path", "phase"}, path.empty() ? "total" : path},
          {in_json_and_csv("reads"), io.reads},
          {in_json_and_csv("writes"), io.writes},
          {in_json_and_csv("index_reads"), indices.reads},
          {in_json_and_csv("index_writes"), indices.writes},
          {in_json_and_csv("peak"), peak},
          {in_json("flops"), operations.flops},
          {in_csv("flops"), if_any(operations.flops)},
          {in_json("elementwise"), operations.elementwise},
          {in_csv("elementwise"), if_any(operations.elementwise)},
          {in_json("formula"), Json::array({formula.reads, formula.writes, phase.formula_peak})},
          {in_csv("formula_reads"), formula.reads},
          {in_csv("formula_writes"), formula.writes},
          {in_csv("formula_peak"), phase.formula_peak},
          {in_csv("bound"), path.empty() ? bound : std::nullopt},
          {in_json_and_csv("seconds"), phase.seconds ? CellValue(*phase.seconds) : absent()}};
}

// The argument M, and the levels below it.
std::string M_levels(const Arguments& arguments) {
  if (!arguments.contains(kInner)) {
    return "";
  }
  std::string levels = to_string(arguments.value(kInner));
  std::ranges::replace(levels, ',', '/');
  return levels + "/" + to_string(arguments.value("M"));
}

// Of a level, whose operations are not its own.
Json level_phase(const SweptPhase& phase) {
  Json json = json_of(phase_cells(phase, {}));
  Json words = Json::object();
  for (const auto& [key, value] : json.items()) {
    if (key != "flops" && key != "elementwise" && key != "seconds") {
      words[key] = value;
    }
  }
  return words;
}

// The inner levels, and last M itself.
Json levels_json(const Swept& swept) {
  Json levels = Json::array();
  for (const SweptLevel& level : swept.levels()) {
    Json phases = Json::array();
    for (const SweptPhase& phase : level.phases) {
      phases.push_back(level_phase(phase));
    }
    levels.push_back({{"M", level.M},
                      {"bound", level.bound},
                      {"total", level_phase(level.total)},
                      {"phases", std::move(phases)}});
  }
  return levels;
}

Cells speed_cells(const std::optional<Speed>& speed) {
  const auto of = [&](double Speed::*rate) { return speed ? Json((*speed).*rate) : Json(); };
  return {{in_json_and_csv("gflops"), of(&Speed::gflops)},
          {in_json_and_csv("peak_gflops"), of(&Speed::peak_gflops)},
          {in_json_and_csv("words_per_second"), of(&Speed::words_per_second)}};
}

SweptPhase phase_of(const Json& json) {
  const auto count = [&](const char* key) { return json.at(key).get<Index>(); };
  const auto if_any = [&](const char* key) { return json.value(key, 0).get<Index>(); };
  const auto formula = [&](std::size_t k) { return json.at("formula").at(k).get<Index>(); };
  SweptPhase phase{
      .counts = {.path = json.value("path", "").get<std::string>(),
                 .io = {.reads = count("reads"), .writes = count("writes")},
                 .operations = {.flops = if_any("flops"), .elementwise = if_any("elementwise")},
                 .peak = count("peak"),
                 .indices = {.reads = if_any("index_reads"), .writes = if_any("index_writes")}},
      .formula = {.reads = formula(0), .writes = formula(1)},
      .formula_peak = formula(2)};
  if (json.contains("seconds")) {
    phase.seconds = json.at("seconds").get<double>();
  }
  return phase;
}

Json json_of(const Swept& swept) {
  Json json = {{"subject", swept.point.subject},
               {"arguments", arguments_json(swept.point.arguments)},
               {"fits", swept.fits}};
  if (!swept.fits) {
    if (swept.failed) {
      json["failed"] = true;
    }
    json["why"] = swept.why;
    return json;
  }
  json["kernel"] = swept.kernel;
  json["blocks"] = swept.blocks;
  json["bound"] = swept.bound;
  if (swept.speed) {
    json["speed"] = json_of(speed_cells(swept.speed));
  }
  if (swept.processor) {
    json["processor"] = *swept.processor;
  }
  json["total"] = json_of(phase_cells(swept.total, {}));
  for (const SweptPhase& phase : swept.phases) {
    json["phases"].push_back(json_of(phase_cells(phase, {})));
  }
  if (!swept.inner.empty()) {
    json["M_levels"] = M_levels(swept.point.arguments);
    json["levels"] = levels_json(swept);
  }
  return json;
}

SweptLevel level_of(const Json& json) {
  SweptLevel level{.M = json.at("M").get<Index>(), .total = phase_of(json.at("total"))};
  for (const Json& phase : json.at("phases")) {
    level.phases.push_back(phase_of(phase));
  }
  if (!json.at("bound").is_null()) {
    level.bound = json.at("bound").get<Index>();
  }
  return level;
}

Swept swept_of(const Json& json) {
  Swept swept{.point = {json.at("subject").get<std::string>(), {}},
              .kernel = {},
              .blocks = {},
              .fits = json.at("fits").get<bool>(),
              .total = {},
              .phases = {},
              .bound = std::nullopt,
              .speed = std::nullopt};
  for (const auto& [name, value] : json.at("arguments").items()) {
    swept.point.arguments.set(
        name, value.is_string() ? Value(value.get<std::string>()) : Value(value.get<Index>()));
  }
  if (!swept.fits) {
    swept.failed = json.value("failed", false).get<bool>();
    swept.why = json.value("why", "").get<std::string>();
    return swept;
  }
  swept.kernel = json.at("kernel").get<std::string>();
  swept.blocks = json.at("blocks").get<std::string>();
  if (!json.at("bound").is_null()) {
    swept.bound = json.at("bound").get<Index>();
  }
  if (json.contains("speed")) {
    const auto speed = [&](const char* key) { return json.at("speed").at(key).get<double>(); };
    swept.speed = Speed{speed("gflops"), speed("peak_gflops"), speed("words_per_second")};
  }
  if (json.contains("processor")) {
    swept.processor = json.at("processor").get<std::string>();
  }
  swept.total = phase_of(json.at("total"));
  for (const Json& phase : json.at("phases")) {
    swept.phases.push_back(phase_of(phase));
  }
  for (const Json& level : json.value("levels", Json::array())) {
    swept.inner.push_back(level_of(level));
  }
  if (!swept.inner.empty()) {  // the last one is M itself
    swept.inner.pop_back();
  }
  return swept;
}

template <class Make>
auto parsed(std::string_view text, const std::string& place, const Make& make) {
  try {
    return make(parse_json(text, place));
  } catch (const JsonMismatch& error) {
    throw InputError(fmt::format("{}: {}", place, error.what()));
  }
}

}  // namespace

std::vector<SweptLevel> Swept::levels() const {
  std::vector<SweptLevel> all = inner;
  all.push_back({.M = size("M"), .total = total, .phases = phases, .bound = bound});
  return all;
}

std::string to_line(const Swept& swept) {
  return json_of(swept).dump() + "\n";
}

Swept parse_line(std::string_view line, const std::string& place) {
  return parsed(line, place, [](const Json& json) { return swept_of(json); });
}

Swept nothing_swept(const Point& point, bool failed, const std::string& why) {
  return {.point = point,
          .kernel = {},
          .blocks = {},
          .fits = false,
          .failed = failed,
          .why = printable(why),
          .total = {},
          .phases = {},
          .bound = std::nullopt,
          .speed = std::nullopt};
}

Swept sweep_point(const Point& point, How how, bool timed, MemoryBudget* memory,
                  const std::function<void()>& stop, Sparsities* sparsities) {
  constexpr int kTimes = 3;
  constexpr double kLong = 2;
  try {
    const auto counted = [&] { return count_subject(point.subject, point.arguments, sparsities); };
    if (how == How::count) {
      return swept_of(point, counted(), std::nullopt);
    }
    // Measured before the runs, which would be lost if memory is too small for it; and after
    // counted(), which throws for a point that does not fit.
    std::optional<double> words_per_second;
    if (timed) {
      words_per_second = read_speed(counted().kernel.plan.M, memory);
    }
    const auto ran = [&] {
      return swept_of(point,
                      run_subject(point.subject, point.arguments, timed, memory, stop, sparsities),
                      words_per_second);
    };
    Swept best = ran();
    for (int k = 1; timed && k < kTimes && *best.total.seconds < kLong; ++k) {
      Swept next = ran();
      if (*next.total.seconds < *best.total.seconds) {
        best = std::move(next);
      }
    }
    return best;
  } catch (const FastMemoryTooSmall& error) {
    return nothing_swept(point, false, error.what());
  }
}

std::vector<std::string> argument_names(const Sweep& sweep) {
  std::vector<std::string> names;
  for (const Swept& swept : sweep.points) {
    for (const auto& [name, value] : swept.point.arguments) {
      if (std::ranges::find(names, name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  return names;
}

std::string to_csv(const Sweep& sweep) {
  const std::vector<std::string> names = argument_names(sweep);
  const bool several_machines =
      std::ranges::any_of(sweep.points, [](const Swept& swept) { return !!swept.processor; });
  const bool several_levels = std::ranges::any_of(
      sweep.points, [](const Swept& swept) { return swept.point.arguments.contains(kInner); });
  std::string text;
  for (const Swept& swept : sweep.points) {
    Cells head = {{in_csv("subject"), swept.point.subject}};
    for (const std::string& name : names) {
      if (name == kInner) {
        continue;  // part of M_levels
      }
      const Arguments& arguments = swept.point.arguments;
      head.push_back({in_csv(name), arguments.contains(name)
                                        ? CellValue(to_string(arguments.value(name)))
                                        : absent()});
    }
    head.push_back({in_csv("fits"), swept.failed ? Json("failed") : Json(swept.fits)});
    head.push_back({in_csv("kernel"), swept.kernel});
    head.push_back({in_csv("blocks"), swept.blocks});
    const auto add_row = [&](const SweptPhase& phase, const std::optional<Index>& bound,
                             std::size_t level) {
      const bool whole = phase.counts.path.empty() && level > swept.inner.size();
      Cells cells = phase_cells(phase, bound);
      for (std::size_t k = 1; k < cells.size() && !swept.fits; ++k) {
        cells[k].value = absent();
      }
      cells = joined(joined(head, cells), speed_cells(whole ? swept.speed : std::nullopt));
      if (several_machines) {
        cells.push_back({in_csv("processor"), Json(swept.processor)});
      }
      cells.push_back({in_csv("why"), swept.why});
      if (several_levels) {
        cells.push_back({in_csv("M_levels"), M_levels(swept.point.arguments)});
        cells.push_back({in_csv("level"), static_cast<Index>(level)});
      }
      text += (text.empty() ? csv_head(cells) : "") + csv_line(cells);
    };
    const auto add = [&](const SweptLevel& of, std::size_t level) {
      for (const SweptPhase& phase : of.phases) {
        add_row(phase, of.bound, level);
      }
      add_row(of.total, of.bound, level);
    };
    add(swept.levels().back(), swept.inner.size() + 1);
    for (std::size_t level = 0; level < swept.inner.size(); ++level) {
      add(swept.inner[level], level + 1);
    }
  }
  return text;
}

std::string sweep_context(const Topology& topology) {
  Json context = context_json(std::nullopt);
  context["simd"] = simd_target();
  context["processor"] = topology.model;
  context["cores"] = topology.cores.size();
  context["caches"] = caches_json(topology);
  return context.dump();
}

std::string to_json(const Sweep& sweep, const std::string& context) {
  Json head = {{"schema", kSchema},
               {"redblue", kKind},
               {"context", parse_json(context, "context")},
               {"how", sweep.how},
               {"seed", sweep.how == "count" ? Json() : Json(kDefaultSeed)},  // of all operands
               {"suite", sweep.suite}};
  if (!sweep.part.is_whole()) {
    head["part"] = to_string(sweep.part);
  }
  if (!sweep.missing.empty()) {
    head["missing"] = sweep.missing;
  }
  // One line for each point, as in the journal.
  std::string text = head.document();
  text.resize(text.size() - 3);  // "\n}\n"
  text += ",\n  \"points\": [";
  const char* between = "\n";
  for (const Swept& swept : sweep.points) {
    text += between + json_of(swept).dump();
    between = ",\n";
  }
  return text + "\n]\n}\n";
}

Sweep parse_sweep(std::string_view text, const std::string& place) {
  return parsed(text, place, [&](const Json& json) {
    if (!json.is_object() || json.value("redblue", "") != kKind) {
      throw InputError(place + " is no sweep: `redblue sweep` makes one");
    }
    if (json.at("schema") != kSchema) {
      throw InputError(fmt::format("{} has schema {}; this program reads {}: sweep again", place,
                                   in_short(json.at("schema")), kSchema));
    }
    Sweep sweep{.how = json.at("how").get<std::string>(),
                .suite = json.at("suite").get<std::string>(),
                .points = {}};
    sweep.context = facts_of(json.at("context"));
    if (json.contains("part")) {
      const std::string typed = json.at("part").get<std::string>();
      const auto part = parse_part(typed);
      if (!part) {
        throw InputError(fmt::format("{}, part '{}': expected i/N", place, shortened(typed)));
      }
      sweep.part = *part;
    }
    for (const Json& point : json.value("missing", Json())) {
      sweep.missing.push_back(point.get<std::string>());
    }
    for (const Json& point : json.at("points")) {
      sweep.points.push_back(swept_of(point));
    }
    return sweep;
  });
}

}  // namespace redblue
