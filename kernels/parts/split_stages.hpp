#pragma once
// Stages that several machines can share (SplitStage), with one phase each.

#include <cstddef>
#include <functional>
#include <vector>

#include "kernels/kernel.hpp"

namespace redblue {

using UnitsOfStage = decltype(SplitStage::units);
using PartOfStage =
    std::function<void(Machine& machine, const Plan& plan, const Operands& io, Range units)>;
using CostOfStage =
    std::function<PhaseCost(const Problem& problem, const Blocks& blocks, Range units)>;

using LevelCostOfStage = std::function<PhaseCost(const Problem& problem, const Blocks& blocks,
                                                 Range units, std::size_t level)>;

// Returns a stage on row blocks and groups. A caller adds which matrices it brings to a rank
// (SplitStage::brings). Without `level_cost` the stage does not work in inner levels.
SplitStage stage(const UnitsOfStage& units, const PartOfStage& part, const CostOfStage& cost,
                 const LevelCostOfStage& level_cost = nullptr);
// Return the cost of all stages on one machine.
CostOfBlocks cost_of_stages(std::vector<SplitStage> stages);
LevelCostOfBlocks level_cost_of_stages(std::vector<SplitStage> stages);

// Returns the number of rows written after some units, in a matrix with a copy for each group. A
// copy has `rows` rows in `blocks` blocks of `block` rows. A unit writes one block: first all
// blocks of the first copy, then of the next.
Index rows_left(Index units, Index blocks, Index block, Index rows);

}  // namespace redblue
