#pragma once
// A sweep: points of a suite, each counted and, where time is asked for, timed; what figures and
// reports are made of. Values.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/plan.hpp"
#include "memsim/phase.hpp"
#include "runtime/gate/baseline.hpp"
#include "runtime/gate/subject.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/memory.hpp"

namespace redblue {

// What a phase, or all of them, did, and beside it what the formula says. Elementwise operations
// are 0 where nothing ran, flops where they are beyond 63 bits.
struct SweptPhase {
  PhaseCounts counts;  // path empty: all
  IoCount formula;
  Index formula_peak = 0;
  std::optional<double> seconds = std::nullopt;

  friend bool operator==(const SweptPhase&, const SweptPhase&) = default;
};

// How fast a run was, and what the machine reached beside it: the roof.
struct Speed {
  double gflops = 0;
  double peak_gflops = 0;       // of multiply-adds
  double words_per_second = 0;  // of one thread that reads a slow matrix of 256 MiB
  friend bool operator==(const Speed&, const Speed&) = default;
};

struct Swept {
  Point point;           // with all its arguments
  std::string kernel;    // that it came to: another name than the subject's where that is auto
  std::string blocks;    // "Br=64 Bc=8"
  bool fits = true;      // in M, and runs; else there is nothing below but why
  bool failed = false;   // it does not run, whatever M is
  std::string why = {};  // it does not fit, or failed
  SweptPhase total;
  std::vector<SweptPhase> phases;
  std::optional<Index> bound;  // the largest proven one of algorithms of its kind
  std::optional<Speed> speed;

  [[nodiscard]] Index size(std::string_view name) const { return point.arguments[name]; }
  friend bool operator==(const Swept&, const Swept&) = default;
};

// One line of JSON. Doubles come back as they were.
std::string to_line(const Swept& swept);
// Throws: InputError with `place` in front.
Swept parse_line(std::string_view line, const std::string& place);

// Of a point that does not fit, or failed.
Swept nothing_swept(const Point& point, bool failed, const std::string& why);

// Runs or counts a point of redblue's kernels. Timed, it runs three times, or once where that takes
// more than two seconds, and the fastest counts. Several at a time share `memory`; where slow words
// are on a disk, `stop` is called again and again, and ends it by throwing. Throws: as run().
Swept sweep_point(const Point& point, How how, bool timed, MemoryBudget* memory = nullptr,
                  const std::function<void()>& stop = nullptr);

struct Sweep {
  std::string how;    // run, count, time
  std::string suite;  // its text
  std::vector<Swept> points;
  // The build and the machine by name, in words; only of a sweep that was parsed.
  std::vector<std::pair<std::string, std::string>> context = {};
};

// Of all arguments, in the order in which points name them.
std::vector<std::string> argument_names(const Sweep& sweep);

// A row a phase, and one for the total of each point.
std::string to_csv(const Sweep& sweep);
// All of it, and the machine that it ran on.
std::string to_json(const Sweep& sweep, const Topology& topology);
// Throws: InputError with `place` in front.
Sweep parse_sweep(std::string_view text, const std::string& place);

}  // namespace redblue
