#pragma once
// v = rowsum(dO * O), made in a phase v before all others, so that all groups of keys, or
// of queries, find it in the slow store.

#include <functional>

#include "kernels/kernel.hpp"
#include "kernels/nest.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/parts/split_stages.hpp"
#include "kernels/units.hpp"

namespace redblue {

inline constexpr Signature kOfRows{"v", &Shape::n, nullptr, Holds::sums, true};

// Of some row blocks.
void make_v(Machine& machine, const RowPlan& by, const Operands& io, Range units);
PhaseCost v_cost(const Problem& problem, const Units::Sum& of);
void v_nest(NestWriter& nest, const Problem& problem, const NestLoop& I);

// So many row blocks, or 0 where v is not made so, of which the plan is this.
SplitStage v_stage(const UnitsOfStage& units,
                   const std::function<RowPlan(const Problem& problem, const Blocks& blocks)>& by);

}  // namespace redblue
