#pragma once
// What kernels share that add A1_I^T W_I to g, a row block after the other; where keys come in
// groups, all row blocks with the first group, then with the next (kernels/parts/grouped_rows.hpp).
// Several machines may work on different units: each unit then writes a partial g, and the partials
// are added in the order of the units, which is also the order of a single machine, which adds as
// it goes.

#include "kernels/kernel.hpp"
#include "kernels/parts/grouped_rows.hpp"
#include "kernels/parts/rows.hpp"

namespace redblue {

// In a phase g: A1_I^T W of one unit: its own d rows of `partials`; or added to g, where there are
// none. `a1_t` is what row_scores() kept.
void add_gradient(Machine& machine, const GroupedRows& by, const Operands& io, Index unit,
                  const Tile& W, Tile a1_t, SlowMatrix* partials);
PhaseCost add_gradient_cost(const GroupedRows& by, Range units, bool partials);
void add_gradient_nest(NestWriter& nest, const GroupedRows& by, const NestLoop& I,
                       const NestTile& W);

// What a kernel does with one unit.
using RowUnit = std::function<void(Machine& machine, const GroupedRows& by, const Operands& io,
                                   Index unit, SlowMatrix* partials)>;

// A kernel that sums into g, from what it does with one unit and what some of them cost. The
// caller names it and what it is given.
Kernel row_kernel(const RowUnit& unit, const decltype(SplitStage::part_cost)& part_cost,
                  const decltype(SplitStage::level_cost)& level_cost);
// The cost of all units on one machine.
CostOfBlocks whole_cost(const decltype(SplitStage::part_cost)& part_cost);

}  // namespace redblue
