#pragma once
// The report of `redblue measure`: phase by phase the counted words, and beside them the traffic or
// the events of a cache.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/plan.hpp"
#include "memsim/phase.hpp"
#include "runtime/observe/callgrind.hpp"
#include "runtime/report/run_report.hpp"
#include "runtime/text/description.hpp"

namespace redblue {

struct MeasuredEvent {
  std::string name;
  std::optional<CacheLevel> lines_into = {};  // set if the event counts lines into a cache
  Index line = 0;                             // bytes of such a line
};

struct MeasuredPhase {
  PhaseCounts counted;
  std::vector<std::int64_t> events;         // in the order of Measurement::events
  std::optional<LineTraffic> traffic = {};  // in words; set if both directions are known
  // Words that came into the inner cache of a simulation that looks at it.
  std::optional<Index> inner_traffic = {};
};

// An inner level of fast memory: what was counted there.
struct MeasuredLevel {
  Index M = 0;
  std::vector<PhaseCounts> phases;
  PhaseCounts total;
};

struct MeasuredPart {
  std::string kernel;
  Shape shape;
  Index M = 0;
  Blocks blocks;
  std::string mask = {};  // empty: none was asked for
  Activation activation = Activation::softmax;
  std::vector<MeasuredPhase> phases;
  MeasuredPhase total;
  std::vector<MeasuredLevel> inner = {};  // from the innermost out
};

struct Measurement {
  std::string via;                       // "papi" or "callgrind"
  std::string version;                   // "PAPI 7.0.0", "callgrind-3.19.0"
  std::string source;                    // the origin of the sizes of caches
  std::string simd;                      // the vector instructions
  std::optional<Simulation> simulation;  // via callgrind
  std::vector<MeasuredEvent> events;
  MeasuredPart kernel;
  std::optional<MeasuredPart> forward;  // the pass that made O and L, if they were not given
  // Of several levels of fast memory, the caches that they stand for, from the innermost out.
  std::vector<CacheLevel> caches = {};
  std::vector<FastMemoryOrigin> inner_from = {};
  std::optional<FastMemoryOrigin> M_from;
  Origins operands;
  std::optional<std::uint64_t> seed;  // set if an operand comes from it
};

// The counts of a run and, beside them, those of callgrind. `report` is the run's JSON document.
// The caches of several levels are those of the simulation. Throws: std::runtime_error if the
// profile lacks a phase of the run.
Measurement simulated_measurement(const std::string& report, const CallgrindProfile& profile,
                                  const Simulation& simulation);

// Words that a cache moved over words that the machine counted, of the kernel. Both directions if
// they are known, else the words that came in: a written line comes in first. Nothing if neither is
// known.
std::optional<double> traffic_ratio(const Measurement& measurement, CacheLevel level);

Description describe(const Measurement& measurement);

}  // namespace redblue
