#include "runtime/observe/run_counts.hpp"

#include <algorithm>
#include <stdexcept>

namespace redblue {

namespace {

// Adds the counts of one level to the sums of the phases.
template <class Add>
void add_phases(const PhaseNode& root, const Plan& plan, std::vector<PhaseCounts>& sums,
                const Add& add) {
  for (const PhaseCounts& phase : leaves(root)) {
    const auto sum = std::ranges::find(sums, phase.path, &PhaseCounts::path);
    if (sum == sums.end()) {
      throw std::logic_error(spelled(plan) + " has other phases than its formulas: " + phase.path);
    }
    *sum += phase;
    add(static_cast<std::size_t>(sum - sums.begin()));
  }
}

}  // namespace

RunCounts no_counts(const std::vector<PhaseCost>& phases, std::size_t inner_levels) {
  RunCounts counts{.phases = {}, .total = {}, .largest = 0, .span = 0};
  for (const PhaseCost& phase : phases) {
    counts.phases.push_back({.path = phase.path, .io = {}, .operations = {}});
  }
  counts.seconds = RunCounts::Seconds{.phases = std::vector<double>(phases.size())};
  counts.inner.assign(inner_levels, {.phases = counts.phases, .total = {}});
  return counts;
}

void add_counts(const Machine& machine, const PhaseClock& clock, const Plan& plan, Index workers,
                RunCounts& counts) {
  const PhaseCounts all = total(machine.phases());
  counts.total += all;
  counts.largest = std::max(*counts.largest, all.io.io());
  counts.span = std::max(*counts.span, machine.span());
  add_phases(machine.phases(), plan, counts.phases, [&](std::size_t which) {
    counts.seconds->phases[which] +=
        clock.seconds(counts.phases[which].path) / static_cast<double>(workers);
  });
  for (std::size_t level = 0; level < counts.inner.size(); ++level) {
    RunCounts::Level& sums = counts.inner[level];
    const PhaseNode& root = machine.inner()[level].phases();
    sums.total += total(root);
    add_phases(root, plan, sums.phases, [](std::size_t) {});
  }
}

void add_counts(const RunCounts& before, RunCounts& counts) {
  for (std::size_t k = 0; k < counts.phases.size(); ++k) {
    counts.phases[k] += before.phases[k];
    counts.seconds->phases[k] += before.seconds->phases[k];
  }
  for (std::size_t level = 0; level < counts.inner.size(); ++level) {
    for (std::size_t k = 0; k < counts.phases.size(); ++k) {
      counts.inner[level].phases[k] += before.inner[level].phases[k];
    }
    counts.inner[level].total += before.inner[level].total;
  }
  counts.total += before.total;
  *counts.largest += *before.largest;
  counts.span = std::max(*counts.span, *before.span);
  counts.seconds->total += before.seconds->total;
}

PhaseCost times(PhaseCost phase, Words times) {
  for (Words PhaseCost::*words : {&PhaseCost::reads, &PhaseCost::writes, &PhaseCost::flops,
                                  &PhaseCost::index_reads, &PhaseCost::index_writes}) {
    phase.*words = phase.*words * times;
  }
  phase.peak = times == Words(0) ? Words(0) : phase.peak;
  return phase;
}

void add_costs(std::vector<PhaseCost>& sums, const std::vector<PhaseCost>& phases) {
  for (const PhaseCost& phase : phases) {
    const auto known = std::ranges::find(sums, phase.path, &PhaseCost::path);
    if (known == sums.end()) {
      sums.push_back(phase);
      continue;
    }
    known->reads += phase.reads;
    known->writes += phase.writes;
    known->flops += phase.flops;
    known->index_reads += phase.index_reads;
    known->index_writes += phase.index_writes;
    known->peak = std::max(known->peak, phase.peak);
  }
}

}  // namespace redblue
