#pragma once
// What `redblue measure` has to say, as a value, and its three forms: phase by phase the counted
// words, beside what a cache did meanwhile.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/plan.hpp"
#include "memsim/phase.hpp"
#include "runtime/observe/callgrind.hpp"
#include "runtime/report/run_report.hpp"

namespace redblue {

struct MeasuredEvent {
  std::string name;
  std::optional<CacheLevel> lines_into = {};  // where it counts the lines that a cache takes in
  Index line = 0;                             // bytes of such a line
};

struct MeasuredPhase {
  PhaseCounts counted;
  std::vector<std::int64_t> events;         // in the order of Measurement::events
  std::optional<LineTraffic> traffic = {};  // words; where both directions are known
};

struct MeasuredPart {
  std::string kernel;
  Shape shape;
  Index M = 0;
  Blocks blocks;
  std::vector<MeasuredPhase> phases;
  MeasuredPhase total;
};

struct Measurement {
  std::string via;                       // "papi" or "callgrind"
  std::string version;                   // "PAPI 7.0.0", "callgrind-3.19.0"
  std::string source;                    // where the sizes of the caches came from
  std::string simd;                      // the vector instructions
  std::optional<Simulation> simulation;  // via callgrind
  std::vector<MeasuredEvent> events;
  MeasuredPart kernel;
  std::optional<MeasuredPart> forward;  // the kernel that made O and L, if they were not given
  std::optional<FastMemoryOrigin> M_from;
  Origins operands;
  std::optional<std::uint64_t> seed;  // where an operand comes from it
};

// What a run counted, and beside it the counts of callgrind. `report` is the document of that
// run, as to_json writes it. Throws: std::runtime_error where the two do not fit.
Measurement simulated_measurement(const std::string& report, const CallgrindProfile& profile,
                                  const Simulation& simulation);

// Words that a cache moved over words counted, of the kernel: in and out where both are known,
// else those that came in, for a written line comes in first. Nothing where neither is.
std::optional<double> traffic_ratio(const Measurement& measurement, CacheLevel level);

std::string to_table(const Measurement& measurement);
std::string to_json(const Measurement& measurement);
std::string to_csv(const Measurement& measurement);

}  // namespace redblue
