#pragma once
// The stage that makes v = rowsum(dO * O), in a phase v before all others. All groups of keys, or
// of queries, then read v from slow memory.

#include <functional>

#include "kernels/kernel.hpp"
#include "kernels/nest.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/parts/split_stages.hpp"
#include "kernels/units.hpp"

namespace redblue {

inline constexpr Signature kOfRows{"v", &Shape::n, nullptr, Holds::sums, true};

// Makes v of some row blocks.
void make_v(Machine& machine, const RowPlan& by, const Operands& io, Range units);
PhaseCost v_cost(const Problem& problem, const Units::Sum& of);
void v_nest(NestWriter& nest, const Problem& problem, const NestLoop& I);

// Returns the stage. `units` returns the number of row blocks, or 0 if there is no such stage. `by`
// returns their plan.
SplitStage v_stage(const UnitsOfStage& units,
                   const std::function<RowPlan(const Problem& problem, const Blocks& blocks)>& by);

}  // namespace redblue
