#pragma once
// A sweep: the points of a suite, counted and perhaps timed, from which figures and reports are
// made. Values.

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

// What a formula says of a phase, or of all phases.
struct Predicted {
  IoCount io;
  Index peak = 0;

  friend bool operator==(const Predicted&, const Predicted&) = default;
};

// The counts of a phase, or of all phases, and those of the formula, where there is one.
// Elementwise operations are 0 if nothing ran, flops are 0 beyond 63 bits.
struct SweptPhase {
  PhaseCounts counts;  // path empty: all
  std::optional<Predicted> formula = std::nullopt;
  std::optional<double> seconds = std::nullopt;

  friend bool operator==(const SweptPhase&, const SweptPhase&) = default;
};

// An inner level of fast memory, whose operations are those of M itself.
struct SweptLevel {
  Index M = 0;
  SweptPhase total = {};
  std::vector<SweptPhase> phases = {};
  std::optional<Index> bound = std::nullopt;

  friend bool operator==(const SweptLevel&, const SweptLevel&) = default;
};

// The speed of a run, and the roof: the speeds that the machine reached in the same process.
struct Speed {
  double gflops = 0;
  double peak_gflops = 0;       // of multiply-adds
  double words_per_second = 0;  // of one thread that reads a slow matrix of 256 MiB
  friend bool operator==(const Speed&, const Speed&) = default;
};

struct Swept {
  Point point;              // with complete arguments
  std::string kernel = {};  // that ran; differs from the subject's name for auto
  std::string blocks = {};  // "Br=64 Bc=8"
  bool fits = true;         // in M, and runs; if not, only `failed` and `why` are set
  bool failed = false;      // does not run at any M
  std::string why = {};     // the reason for not fitting, or for failing
  SweptPhase total = {};
  std::vector<SweptPhase> phases = {};
  std::optional<Index> bound = {};     // the largest proven bound for algorithms of its kind
  std::vector<SweptLevel> inner = {};  // levels, from the innermost out
  std::optional<Speed> speed = {};
  // Of the machine that took the times; only if a sweep has times of several machines.
  std::optional<std::string> processor = std::nullopt;

  [[nodiscard]] Index size(std::string_view name) const { return point.arguments[name]; }
  // The inner levels, and last M itself.
  [[nodiscard]] std::vector<SweptLevel> levels() const;
  friend bool operator==(const Swept&, const Swept&) = default;
};

// One line of JSON. Doubles survive parse_line() unchanged.
std::string to_line(const Swept& swept);
// Throws: InputError with `place` in front.
Swept parse_line(std::string_view line, const std::string& place);

// The entry of a point that does not fit, or failed.
Swept nothing_swept(const Point& point, bool failed, const std::string& why);

// The counts of a formula alone, phase by phase.
SweptPhase predicted_phase(const PhaseCost& cost);
// A point of one level that ran, or whose formula says its counts, or both. Requires: one of them.
Swept swept_of(const Point& point, const std::optional<RunCounts>& counted,
               const std::optional<std::vector<PhaseCost>>& formula);

// The seed of all operands of redblue's kernels.
inline constexpr std::uint64_t kSweepSeed = 1;
// The key of a context that names the command of a user's own kernels.
inline constexpr const char* kProgram = "program";

struct Sweep {
  std::string how;    // run, count, time
  std::string suite;  // its text
  std::vector<Swept> points = {};
  SuitePart part = {};                    // that the points are
  std::vector<std::string> missing = {};  // the names of points that no merged part had
  // Facts about the build and the machine, as names and texts; only in a parsed sweep, as is the
  // command whose own kernels were swept; empty: redblue.
  std::vector<std::pair<std::string, std::string>> context = {};
  std::string program = {};
};

// The names of all arguments, in the order of their first points.
std::vector<std::string> argument_names(const Sweep& sweep);

// For each point a row for every phase, and one for the total; and the same for each inner level.
std::string to_csv(const Sweep& sweep);
// The whole sweep. `context` is the document's, as one line of JSON: the build and the machine.
// Throws: InputError for a context that is no JSON.
std::string to_json(const Sweep& sweep, const std::string& context);
// Throws: InputError with `place` in front.
Sweep parse_sweep(std::string_view text, const std::string& place);

}  // namespace redblue
