#pragma once
// What machines counted, held against the phases of formulas.

#include <vector>

#include "kernels/plan.hpp"
#include "memsim/machine.hpp"
#include "memsim/phase.hpp"
#include "runtime/trace/phase_clock.hpp"

namespace redblue {

// Counts of 0 for each phase of the formulas, of a machine with so many inner levels.
RunCounts no_counts(const std::vector<PhaseCost>& formula, std::size_t inner_levels = 0);
// Adds the counts of one of `workers` machines that worked at the same time. Throws:
// std::logic_error where it entered a phase that the formulas of the plan do not name.
void add_counts(const Machine& machine, const PhaseClock& clock, const Plan& plan, Index workers,
                RunCounts& counts);
// Adds what one machine counted before. Requires: the same phases, and all of `before` known.
void add_counts(const RunCounts& before, RunCounts& counts);
// Of a phase that is run so many times, perhaps never.
PhaseCost times(PhaseCost phase, Words times);
// Adds sums of words and flops, and takes the larger peak, phase by phase.
void add_costs(std::vector<PhaseCost>& sums, const std::vector<PhaseCost>& phases);

}  // namespace redblue
