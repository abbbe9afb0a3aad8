#pragma once
// Sums the counts of machines over the phases that the formulas name.

#include <vector>

#include "kernels/plan.hpp"
#include "memsim/machine.hpp"
#include "memsim/phase.hpp"
#include "runtime/trace/phase_clock.hpp"

namespace redblue {

// Returns zero counts for each phase of the formulas, for a machine with `inner_levels` inner
// levels.
RunCounts no_counts(const std::vector<PhaseCost>& formula, std::size_t inner_levels = 0);
// Adds the counts of one of `workers` machines that worked concurrently. Throws: std::logic_error
// if the machine entered a phase that the plan's formulas do not name.
void add_counts(const Machine& machine, const PhaseClock& clock, const Plan& plan, Index workers,
                RunCounts& counts);
// Adds the earlier counts of a machine. Requires: the same phases, and all counts of `before`
// known.
void add_counts(const RunCounts& before, RunCounts& counts);
// Returns the cost of a phase that runs `times` times. Zero is allowed.
PhaseCost times(PhaseCost phase, Words times);
// Adds words and flops and takes the larger peak, phase by phase.
void add_costs(std::vector<PhaseCost>& sums, const std::vector<PhaseCost>& phases);

}  // namespace redblue
