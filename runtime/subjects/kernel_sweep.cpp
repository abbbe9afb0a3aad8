#include "runtime/subjects/kernel_sweep.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "kernels/arithmetic/simd.hpp"
#include "kernels/kernel.hpp"
#include "memsim/machine.hpp"
#include "runtime/observe/machine_file.hpp"
#include "runtime/report/context.hpp"
#include "runtime/run/inputs.hpp"
#include "runtime/subjects/kernel_subjects.hpp"

namespace redblue {

static_assert(kSweepSeed == kDefaultSeed);

namespace {

using Clock = std::chrono::steady_clock;

// Returns the words per second that a machine reads from main memory, the best of a few tries.
// Blocks have half of M, at most some megabytes. Throws: std::runtime_error if memory is too small.
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

// Adds the phases of a part at one level. `counted` is set if the part ran.
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
  Predicted said = sum.formula.value_or(Predicted());
  said.io += total.formula->io;
  said.peak = std::max(said.peak, total.formula->peak);
  sum.formula = said;
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

// Converts a report to a point. It is timed if `words_per_second` is set.
Swept swept_of(const Point& point, const Report& report,
               const std::optional<double>& words_per_second) {
  const bool timed = words_per_second.has_value();
  Swept swept{.point = point, .kernel = spelled(report.kernel.plan)};
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
  // Levels of equal size were treated as one, so each of them has the same counts.
  for (std::size_t level = 1; level < report.equal_levels; ++level) {
    swept.inner.push_back(swept.levels().back());
  }
  const auto clear = [](SweptPhase& phase) {
    phase.counts.operations = {};
    phase.seconds.reset();
  };
  for (SweptLevel& level : swept.inner) {  // operations and seconds belong to M
    clear(level.total);
    std::ranges::for_each(level.phases, clear);
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

}  // namespace

Swept sweep_point(const Point& point, How how, bool timed, MemoryBudget* memory,
                  const std::function<void()>& stop, Sparsities* sparsities) {
  constexpr int kTimes = 3;
  constexpr double kLong = 2;
  try {
    const auto counted = [&] { return count_subject(point.subject, point.arguments, sparsities); };
    if (how == How::count) {
      return swept_of(point, counted(), std::nullopt);
    }
    // Measured before the runs, because too little memory would otherwise waste them. Measured
    // after counted(), which throws for a point that does not fit.
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

std::string sweep_context(const Topology& topology) {
  Json context = context_json(std::nullopt);
  context["simd"] = simd_target();
  context["processor"] = topology.model;
  context["cores"] = topology.cores.size();
  context["caches"] = caches_json(topology);
  return context.dump();
}

}  // namespace redblue
