#pragma once
// Stages of kernels that split (SplitStage), of which each counts in one phase.

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

// On row blocks and groups; a caller says what ranks bring. Without a cost of inner levels: of what
// is not done in these.
SplitStage stage(const UnitsOfStage& units, const PartOfStage& part, const CostOfStage& cost,
                 const LevelCostOfStage& level_cost = nullptr);
// The cost of all stages, on one machine.
CostOfBlocks cost_of_stages(std::vector<SplitStage> stages);
LevelCostOfBlocks level_cost_of_stages(std::vector<SplitStage> stages);

// The rows that are there of a matrix with a copy for each group, when so many units have left a
// block each: all blocks of the first copy, then of the next.
Index rows_left(Index units, Index blocks, Index block, Index rows);

}  // namespace redblue
