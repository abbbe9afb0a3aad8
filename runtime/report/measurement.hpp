#pragma once
// The report of `redblue measure`: for each phase, the words counted by redblue and the traffic or
// events measured in a cache.

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
  // Words that came into the inner cache, if the simulation reports that cache.
  std::optional<Index> inner_traffic = {};
};

// The words counted at an inner level of fast memory.
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
  std::string mask = {};  // empty without a mask
  Activation activation = Activation::softmax;
  std::vector<MeasuredPhase> phases;
  MeasuredPhase total;
  std::vector<MeasuredLevel> inner = {};  // from the innermost out
};

struct Measurement {
  std::string via;                       // "papi" or "callgrind"
  std::string version;                   // "PAPI 7.0.0", "callgrind-3.19.0"
  std::string source;                    // the source of the cache sizes
  std::string simd;                      // the vector instructions that the kernel used
  std::optional<Simulation> simulation;  // set if via callgrind
  std::vector<MeasuredEvent> events;
  MeasuredPart kernel;
  std::optional<MeasuredPart> forward;  // the pass that computed O and L, if they were not given
  // For several levels of fast memory: the cache that each level stands for, from the innermost
  // out.
  std::vector<CacheLevel> caches = {};
  std::vector<FastMemoryOrigin> inner_from = {};
  std::optional<FastMemoryOrigin> M_from;
  Origins operands;
  std::optional<std::uint64_t> seed;  // set if an operand comes from it
};

// Joins the counts of a run with callgrind's. `report` is the run's JSON document. With several
// levels, their caches are the caches of the simulation. Throws: std::runtime_error if the profile
// lacks a phase of the run.
Measurement simulated_measurement(const std::string& report, const CallgrindProfile& profile,
                                  const Simulation& simulation);

// Returns the cache's words divided by the machine's words, for the kernel. The cache's words are
// those in and out if both are known, else the words in. A written line comes in first, so it is
// among them. Returns nullopt if neither is known.
std::optional<double> traffic_ratio(const Measurement& measurement, CacheLevel level);

Description describe(const Measurement& measurement);

}  // namespace redblue
