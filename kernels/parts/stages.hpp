#pragma once
// Kernels in stages that run one after another, each with the whole fast memory. A kernel lists its
// stages once, in the order of their phases. Its fit, its cost and its loop nest follow from the
// list.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/parts/generated_product.hpp"
#include "kernels/parts/scores.hpp"
#include "kernels/parts/stationary.hpp"

namespace redblue {

struct Stage {
  // Chooses the blocks of this stage and adds them to `blocks`, after the blocks of earlier stages.
  std::function<void(Index M, Objective objective, Blocks& blocks)> put;
  // Returns the cost of its phases with these blocks.
  std::function<std::vector<PhaseCost>(const Blocks& blocks)> cost;
  // Writes the loops of its phases.
  std::function<void(NestWriter& nest, const Blocks& blocks)> nest;
  // For a stage that works in inner levels: adds the blocks of all levels, and returns the cost of
  // one inner level.
  std::function<void(const Memory& memory, Objective objective, Blocks& blocks)> put_levels =
      nullptr;
  std::function<std::vector<PhaseCost>(const Blocks& blocks, std::size_t level)> level_cost =
      nullptr;
};
using Stages = std::function<std::vector<Stage>(const Problem& problem)>;

// The names of the factors of a product, for a nest.
struct FactorNames {
  std::string_view left, right;
};
using StationaryNest = std::function<void(NestWriter& nest, const StationaryBlocks& by)>;

// The cost of a phase with stationary blocks under a mask. The cost of an inner level may be
// missing.
struct StationaryFormula {
  std::function<PhaseCost(const StationaryBlocks& by, const Mask& live)> cost;
  std::function<PhaseCost(const StationaryBlocks& by, const Mask& live, std::size_t level)>
      level_cost = nullptr;

  [[nodiscard]] StationaryCost under(const Mask& live) const {
    return [cost = cost, live](const StationaryBlocks& by) { return cost(by, live); };
  }
};

// Return a stage of one phase that has stationary blocks of its name. stationary_stage() takes any
// such phase. The others make a product_phase, a scores_phase (`right` names B^T) or a
// generated_product (`left` names F). If the left factor is a matrix of scores or its transpose, it
// stores only words of `live` pairs.
Stage stationary_stage(const std::string& name, const ProductShape& of,
                       const StationaryFormula& formula, const StationaryNest& nest,
                       const Mask& live = {});
Stage product_stage(const std::string& name, const ProductShape& of, const FactorNames& factors,
                    const Mask& live = {});
Stage scores_stage(const std::string& name, const Problem& problem, const FactorNames& factors,
                   const EpilogueCost& epilogue);
// Like scores_stage() under a mask, but rows of A stay for every M.
Stage score_rows_stage(const std::string& name, const Problem& problem, const FactorNames& factors,
                       const EpilogueCost& epilogue);
Stage generated_product_stage(const std::string& name, const ProductShape& of,
                              const FactorNames& factors, const FactorCost& made,
                              const Mask& live = {});
// The stage of row_dots().
Stage row_dots_stage(const Problem& problem);

// Return the formulas, the loops and the choice of blocks of a kernel with these stages. The
// functions with `level` are for stages that work in inner levels.
CostOfBlocks cost_of(const Stages& stages);
LevelCostOfBlocks level_cost_of(const Stages& stages);
NestOfBlocks nest_of(const Stages& stages);
Fitting fitting_of(const Stages& stages);
Fitting level_fitting_of(const Stages& stages);

}  // namespace redblue
