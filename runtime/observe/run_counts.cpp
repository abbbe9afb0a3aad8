#include "runtime/observe/run_counts.hpp"

#include <algorithm>
#include <stdexcept>

namespace redblue {

RunCounts no_counts(const std::vector<PhaseCost>& phases) {
  RunCounts counts{.phases = {}, .total = {}, .largest = 0, .span = 0};
  for (const PhaseCost& phase : phases) {
    counts.phases.push_back({.path = phase.path, .io = {}, .operations = {}});
  }
  counts.seconds = RunCounts::Seconds{.phases = std::vector<double>(phases.size())};
  return counts;
}

void add_counts(const Machine& machine, const PhaseClock& clock, const Plan& plan, Index workers,
                RunCounts& counts) {
  const PhaseCounts all = total(machine.phases());
  counts.total += all;
  counts.largest = std::max(*counts.largest, all.io.io());
  counts.span = std::max(*counts.span, machine.span());
  for (const PhaseCounts& phase : leaves(machine.phases())) {
    const auto sum = std::ranges::find(counts.phases, phase.path, &PhaseCounts::path);
    if (sum == counts.phases.end()) {
      throw std::logic_error(spelled(plan) + " has other phases than its formulas: " + phase.path);
    }
    *sum += phase;
    counts.seconds->phases[static_cast<std::size_t>(sum - counts.phases.begin())] +=
        clock.seconds(phase.path) / static_cast<double>(workers);
  }
}

void add_counts(const RunCounts& before, RunCounts& counts) {
  for (std::size_t k = 0; k < counts.phases.size(); ++k) {
    counts.phases[k] += before.phases[k];
    counts.seconds->phases[k] += before.seconds->phases[k];
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
