#pragma once
// A sweep is the points of a suite, counted and perhaps timed. Figures and reports are made from
// it. All types are values.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/plan.hpp"
#include "memsim/phase.hpp"
#include "runtime/gate/baseline.hpp"
#include "runtime/gate/subject.hpp"
#include "runtime/gate/suite_part.hpp"
#include "runtime/system/input_error.hpp"

namespace redblue {

// The prediction of a formula for a phase, or for all phases.
struct Predicted {
  IoCount io;
  Index peak = 0;

  friend bool operator==(const Predicted&, const Predicted&) = default;
};

// The counts of a phase, or of all phases, and the formula's prediction if it exists. Elementwise
// operations are 0 if the point was not run. Flops are 0 beyond 63 bits.
struct SweptPhase {
  PhaseCounts counts;  // empty path: all phases
  std::optional<Predicted> formula = std::nullopt;
  std::optional<double> seconds = std::nullopt;

  friend bool operator==(const SweptPhase&, const SweptPhase&) = default;
};

// An inner level of fast memory. It has no own operations: they are counted once, with M.
struct SweptLevel {
  Index M = 0;
  SweptPhase total = {};
  std::vector<SweptPhase> phases = {};
  std::optional<Index> bound = std::nullopt;

  friend bool operator==(const SweptLevel&, const SweptLevel&) = default;
};

// The speed of a run, and the machine's limits as measured in the same process.
struct Speed {
  double gflops = 0;
  double peak_gflops = 0;       // speed of multiply-adds
  double words_per_second = 0;  // one thread reading a slow matrix of 256 MiB
  friend bool operator==(const Speed&, const Speed&) = default;
};

struct Swept {
  Point point;              // with complete arguments
  std::string kernel = {};  // the kernel that ran; differs from the subject for auto
  std::string blocks = {};  // "Br=64 Bc=8"
  bool fits = true;         // fits in M and runs; if not, only `failed` and `why` are set
  bool failed = false;      // cannot run at any M
  std::string why = {};     // reason for not fitting or failing
  SweptPhase total = {};
  std::vector<SweptPhase> phases = {};
  std::optional<Index> bound = {};     // largest proven lower bound of its class
  std::vector<SweptLevel> inner = {};  // inner levels, innermost first
  std::optional<Speed> speed = {};
  // The processor that took the times. Set only if a sweep has times of several machines.
  std::optional<std::string> processor = std::nullopt;

  [[nodiscard]] Index size(std::string_view name) const { return point.arguments[name]; }
  // Returns the inner levels, then M itself.
  [[nodiscard]] std::vector<SweptLevel> levels() const;
  friend bool operator==(const Swept&, const Swept&) = default;
};

// One line of JSON. Doubles survive parse_line() unchanged.
std::string to_line(const Swept& swept);
// Throws: InputError with `place` in front.
Swept parse_line(std::string_view line, const std::string& place);

// Returns the entry of a point that does not fit or failed.
Swept nothing_swept(const Point& point, bool failed, const std::string& why);

// Returns the prediction of a formula for one phase, without counts.
SweptPhase predicted_phase(const PhaseCost& cost);
// Returns a point with one level from its counts, its formula, or both. Requires: at least one.
Swept swept_of(const Point& point, const std::optional<RunCounts>& counted,
               const std::optional<std::vector<PhaseCost>>& formula);

// Seed of all operands of redblue's kernels.
inline constexpr std::uint64_t kSweepSeed = 1;
// Key in a context. Its value is the command that has the user's own kernels.
inline constexpr const char* kProgram = "program";

struct Sweep {
  std::string how;    // run, count, time
  std::string suite;  // text of the suite
  std::vector<Swept> points = {};
  SuitePart part = {};                    // the part of the suite that the points are
  std::vector<std::string> missing = {};  // names of points that no merged part had
  // Facts about the build and the machine, by name, and the command of the user's own kernels
  // (empty: redblue). Set only in a parsed sweep.
  std::vector<std::pair<std::string, std::string>> context = {};
  std::string program = {};
};

// Returns the names of all arguments, in order of first use.
std::vector<std::string> argument_names(const Sweep& sweep);

// Writes a row for each phase of a point and a row for its total. Inner levels have such rows, too.
std::string to_csv(const Sweep& sweep);
// Writes the whole sweep. `context` describes the build and the machine, as one line of JSON.
// Throws: InputError if `context` is not JSON.
std::string to_json(const Sweep& sweep, const std::string& context);
// Throws: InputError with `place` in front.
Sweep parse_sweep(std::string_view text, const std::string& place);

}  // namespace redblue
