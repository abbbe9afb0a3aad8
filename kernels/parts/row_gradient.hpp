#pragma once
// Building blocks of kernels that add A1_I^T W_I to g, one row block after another. If keys come in
// groups, all row blocks come with the first group, then with the next
// (kernels/parts/grouped_rows.hpp).
//
// Several machines may work on different units. Each unit then writes a partial g, and the partials
// are added in the order of the units. A single machine adds to g in the same order.

#include "kernels/kernel.hpp"
#include "kernels/parts/grouped_rows.hpp"
#include "kernels/parts/rows.hpp"

namespace redblue {

// Computes A1_I^T W of one unit in a phase g. It writes the result to the d rows of this unit in
// `partials`, or adds it to g if `partials` is null. `a1_t` holds the columns that row_scores()
// kept.
void add_gradient(Machine& machine, const GroupedRows& by, const Operands& io, Index unit,
                  const Tile& W, Tile a1_t, SlowMatrix* partials);
PhaseCost add_gradient_cost(const GroupedRows& by, Range units, bool partials);
void add_gradient_nest(NestWriter& nest, const GroupedRows& by, const NestLoop& I,
                       const NestTile& W);

// The work of a kernel on one unit.
using RowUnit = std::function<void(Machine& machine, const GroupedRows& by, const Operands& io,
                                   Index unit, SlowMatrix* partials)>;

// Returns a kernel that sums into g, from its work on one unit and the cost of some units. The
// caller adds the name and the operands.
Kernel row_kernel(const RowUnit& unit, const decltype(SplitStage::part_cost)& part_cost,
                  const decltype(SplitStage::level_cost)& level_cost);
// The cost of all units on one machine.
CostOfBlocks whole_cost(const decltype(SplitStage::part_cost)& part_cost);

}  // namespace redblue
