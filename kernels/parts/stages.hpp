#pragma once
// Kernels in stages that come one after another, each with the whole fast memory: a kernel lists
// them once, in the order of their phases, and has fit and cost from the list.

#include <functional>
#include <string>
#include <vector>

#include "kernels/parts/scores.hpp"
#include "kernels/parts/stationary.hpp"

namespace redblue {

struct Stage {
  // Adds its blocks, after those of the stages before it.
  std::function<void(Index M, Objective objective, Blocks& blocks)> put;
  // What its phases move and hold with these blocks.
  std::function<std::vector<PhaseCost>(const Blocks& blocks)> cost;
};
using Stages = std::function<std::vector<Stage>(const Problem& problem)>;

// One phase with stationary blocks of its name; a product_phase; a scores_phase.
Stage stationary_stage(const std::string& name, const Extents& of, const StationaryCost& cost);
Stage product_stage(const std::string& name, const Extents& of);
Stage scores_stage(const std::string& name, const Extents& of, const UseCost& use);
// row_dots().
Stage row_dots_stage(const Problem& problem);

// The formula and the blocks of a kernel of these stages.
CostOfBlocks cost_of(const Stages& stages);
Fitting fitting_of(const Stages& stages);

}  // namespace redblue
