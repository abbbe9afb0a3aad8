#pragma once
// Kernels in stages that come one after another, each with the whole fast memory: a kernel lists
// them once, in the order of their phases, and has fit, cost and loop nest from the list.

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
  // Adds its blocks, after those of the stages before it.
  std::function<void(Index M, Objective objective, Blocks& blocks)> put;
  // What its phases move and hold with these blocks.
  std::function<std::vector<PhaseCost>(const Blocks& blocks)> cost;
  // Their loops.
  std::function<void(NestWriter& nest, const Blocks& blocks)> nest;
  // Of one that works in inner levels: adds the blocks of all levels; the words of one.
  std::function<void(const Memory& memory, Objective objective, Blocks& blocks)> put_levels =
      nullptr;
  std::function<std::vector<PhaseCost>(const Blocks& blocks, std::size_t level)> level_cost =
      nullptr;
};
using Stages = std::function<std::vector<Stage>(const Problem& problem)>;

// The factors of a product, for the text of a nest.
struct FactorNames {
  std::string_view left, right;
};
using StationaryNest = std::function<void(NestWriter& nest, const StationaryBlocks& by)>;

// What a phase with stationary blocks costs under a mask; that of an inner level may be missing.
struct StationaryFormula {
  std::function<PhaseCost(const StationaryBlocks& by, const Mask& live)> cost;
  std::function<PhaseCost(const StationaryBlocks& by, const Mask& live, std::size_t level)>
      level_cost = nullptr;

  [[nodiscard]] StationaryCost under(const Mask& live) const {
    return [cost = cost, live](const StationaryBlocks& by) { return cost(by, live); };
  }
};

// One phase with stationary blocks of its name: any; a product_phase; a scores_phase, of which
// `right` is B^T; a generated_product, of which `left` is F. Factors `left` of scores, or of their
// transpose, have live words alone.
Stage stationary_stage(const std::string& name, const ProductShape& of,
                       const StationaryFormula& formula, const StationaryNest& nest,
                       const Mask& live = {});
Stage product_stage(const std::string& name, const ProductShape& of, const FactorNames& factors,
                    const Mask& live = {});
Stage scores_stage(const std::string& name, const Problem& problem, const FactorNames& factors,
                   const EpilogueCost& epilogue);
// The same under a mask, with rows that stay whatever M is.
Stage score_rows_stage(const std::string& name, const Problem& problem, const FactorNames& factors,
                       const EpilogueCost& epilogue);
Stage generated_product_stage(const std::string& name, const ProductShape& of,
                              const FactorNames& factors, const FactorCost& made,
                              const Mask& live = {});
// row_dots().
Stage row_dots_stage(const Problem& problem);

// The formula, the loops and the blocks of a kernel of these stages; and of one whose stages work
// in inner levels.
CostOfBlocks cost_of(const Stages& stages);
LevelCostOfBlocks level_cost_of(const Stages& stages);
NestOfBlocks nest_of(const Stages& stages);
Fitting fitting_of(const Stages& stages);
Fitting level_fitting_of(const Stages& stages);

}  // namespace redblue
