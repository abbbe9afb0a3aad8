#include "runtime/sweep/sweep.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/arithmetic/simd.hpp"
#include "kernels/kernel.hpp"
#include "memsim/machine.hpp"
#include "runtime/gate/arguments_json.hpp"
#include "runtime/report/context.hpp"
#include "runtime/run/inputs.hpp"
#include "runtime/sweep/kernel_subjects.hpp"
#include "runtime/text/parse_json.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kKind = "sweep";

// Words a second that a machine reads in blocks of half of M, or some megabytes where that is more,
// out of main memory: the best of a few. Throws: std::runtime_error where that is too small.
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
                     .peak = peak},
          .formula = io,
          .formula_peak = peak};
}

void add_part(const Part& part, const std::string& prefix, bool timed, Swept& swept) {
  for (std::size_t k = 0; k < part.formula.size(); ++k) {
    SweptPhase phase = predicted_phase(part.formula[k]);
    if (part.counted) {
      phase.counts = part.counted->phases[k];
      if (timed) {
        phase.seconds = part.counted->seconds->phases[k];
      }
    }
    phase.counts.path = prefix + phase.counts.path;
    swept.phases.push_back(std::move(phase));
  }
  const SweptPhase total = predicted_phase(redblue::total(part.formula));
  SweptPhase& sum = swept.total;
  sum.counts += part.counted ? part.counted->total : total.counts;
  sum.formula += total.formula;
  sum.formula_peak = std::max(sum.formula_peak, total.formula_peak);
  if (timed) {
    sum.seconds = sum.seconds.value_or(0) + part.counted->seconds->total;
  }
}

// Timed where it is known how fast words are read.
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

Json json_of(const SweptPhase& phase) {
  const PhaseCounts& counts = phase.counts;
  Json json = Json::object();
  if (!counts.path.empty()) {
    json["path"] = counts.path;
  }
  json.update(Json{{"reads", counts.io.reads},
                   {"writes", counts.io.writes},
                   {"peak", counts.peak},
                   {"flops", counts.operations.flops},
                   {"elementwise", counts.operations.elementwise},
                   {"formula", {phase.formula.reads, phase.formula.writes, phase.formula_peak}}});
  if (phase.seconds) {
    json["seconds"] = *phase.seconds;
  }
  return json;
}

SweptPhase phase_of(const Json& json) {
  const Json& formula = json.at("formula");
  SweptPhase phase{
      .counts = {.path = json.value("path", ""),
                 .io = {.reads = json.at("reads"), .writes = json.at("writes")},
                 .operations = {.flops = json.at("flops"), .elementwise = json.at("elementwise")},
                 .peak = json.at("peak")},
      .formula = {.reads = formula.at(0), .writes = formula.at(1)},
      .formula_peak = formula.at(2)};
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
  json["bound"] = known(swept.bound);
  if (swept.speed) {
    json["speed"] = {{"gflops", swept.speed->gflops},
                     {"peak_gflops", swept.speed->peak_gflops},
                     {"words_per_second", swept.speed->words_per_second}};
  }
  json["total"] = json_of(swept.total);
  for (const SweptPhase& phase : swept.phases) {
    json["phases"].push_back(json_of(phase));
  }
  return json;
}

Swept swept_of(const Json& json) {
  Swept swept{.point = {json.at("subject"), {}},
              .kernel = {},
              .blocks = {},
              .fits = json.at("fits"),
              .total = {},
              .phases = {},
              .bound = std::nullopt,
              .speed = std::nullopt};
  for (const auto& [name, value] : json.at("arguments").items()) {
    swept.point.arguments.set(
        name, value.is_string() ? Value(value.get<std::string>()) : Value(value.get<Index>()));
  }
  if (!swept.fits) {
    swept.failed = json.value("failed", false);
    swept.why = json.value("why", "");
    return swept;
  }
  swept.kernel = json.at("kernel");
  swept.blocks = json.at("blocks");
  if (!json.at("bound").is_null()) {
    swept.bound = json.at("bound").get<Index>();
  }
  if (json.contains("speed")) {
    const Json& speed = json.at("speed");
    swept.speed = Speed{speed.at("gflops"), speed.at("peak_gflops"), speed.at("words_per_second")};
  }
  swept.total = phase_of(json.at("total"));
  for (const Json& phase : json.at("phases")) {
    swept.phases.push_back(phase_of(phase));
  }
  return swept;
}

template <class Make>
auto parsed(std::string_view text, const std::string& place, const Make& make) {
  try {
    return make(parse_json(text, place));
  } catch (const Json::exception& error) {
    const std::string_view what = error.what();  // "[json.exception.type_error.302] type must ..."
    throw InputError(fmt::format("{}: {}", place, what.substr(what.find("] ") + 2)));
  }
}

}  // namespace

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
                  const std::function<void()>& stop) {
  constexpr int kTimes = 3;
  constexpr double kLong = 2;
  try {
    const auto counted = [&] { return count_subject(point.subject, point.arguments); };
    if (how == How::count) {
      return swept_of(point, counted(), std::nullopt);
    }
    // Before the runs, which would be lost where there is no memory for it; and not for a point
    // that does not fit.
    std::optional<double> words_per_second;
    if (timed) {
      words_per_second = read_speed(counted().kernel.plan.M, memory);
    }
    const auto ran = [&] {
      return swept_of(point, run_subject(point.subject, point.arguments, timed, memory, stop),
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
  std::string text = "subject";
  for (const std::string& name : names) {
    text += "," + name;
  }
  text +=
      ",fits,kernel,blocks,phase,reads,writes,peak,flops,elementwise,formula_reads,formula_writes,"
      "formula_peak,bound,seconds,gflops,peak_gflops,words_per_second,why\n";
  for (const Swept& swept : sweep.points) {
    std::string head = swept.point.subject;
    for (const std::string& name : names) {
      head +=
          "," + (swept.point.arguments.contains(name) ? to_string(swept.point.arguments.value(name))
                                                      : std::string());
    }
    if (!swept.fits) {
      text += fmt::format("{},{},,,total,,,,,,,,,,,,,,{}\n", head, swept.failed ? "failed" : "no",
                          csv_cell(swept.why));
      continue;
    }
    head += fmt::format(",yes,{},{}", swept.kernel, swept.blocks);
    const auto row = [&](const SweptPhase& phase) {
      const auto& [path, io, operations, peak] = phase.counts;
      const bool whole = path.empty();
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}", head, whole ? "total" : path,
                          io.reads, io.writes, peak,
                          operations.flops == 0 ? "" : std::to_string(operations.flops),
                          operations.elementwise == 0 ? "" : std::to_string(operations.elementwise),
                          phase.formula.reads, phase.formula.writes, phase.formula_peak,
                          whole && swept.bound ? std::to_string(*swept.bound) : "",
                          phase.seconds ? fmt::format("{}", *phase.seconds) : "");
      text += whole && swept.speed
                  ? fmt::format(",{},{},{},\n", swept.speed->gflops, swept.speed->peak_gflops,
                                swept.speed->words_per_second)
                  : ",,,,\n";
    };
    for (const SweptPhase& phase : swept.phases) {
      row(phase);
    }
    row(swept.total);
  }
  return text;
}

std::string to_json(const Sweep& sweep, const Topology& topology) {
  Json context = context_json(std::nullopt);
  context["simd"] = simd_target();
  context["processor"] = known(topology.model);
  context["cores"] = topology.cores.size();
  context["caches"] = caches_json(topology);
  Json head = {{"schema", kSchema},
               {"redblue", kKind},
               {"context", std::move(context)},
               {"how", sweep.how},
               {"seed", sweep.how == "count" ? Json() : Json(kDefaultSeed)},  // of all operands
               {"suite", sweep.suite}};
  // A line a point, as in the journal.
  std::string text = head.dump(2);
  text.resize(text.size() - 2);  // "\n}"
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
    Sweep sweep{.how = json.at("how"), .suite = json.at("suite"), .points = {}};
    sweep.context = facts_of(json.at("context"));
    for (const Json& point : json.at("points")) {
      sweep.points.push_back(swept_of(point));
    }
    return sweep;
  });
}

}  // namespace redblue
