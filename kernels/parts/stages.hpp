#pragma once
// Kernels in stages that come one after another, each with the whole fast memory: a kernel lists
// them once, in the order of their phases, and has fit, cost and loop nest from the list.

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
};
using Stages = std::function<std::vector<Stage>(const Problem& problem)>;

// The factors of a product, for the text of a nest.
struct FactorNames {
  std::string_view left, right;
};
using StationaryNest = std::function<void(NestWriter& nest, const StationaryBlocks& by)>;

// One phase with stationary blocks of its name: any; a product_phase; a scores_phase, of which
// `right` is B^T; a generated_product, of which `left` is F. Factors `left` of scores, or of their
// transpose, have live words alone.
Stage stationary_stage(const std::string& name, const ProductShape& of, const StationaryCost& cost,
                       const StationaryNest& nest, const StationaryCost& all_live = nullptr);
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

// The formula, the loops and the blocks of a kernel of these stages.
CostOfBlocks cost_of(const Stages& stages);
NestOfBlocks nest_of(const Stages& stages);
Fitting fitting_of(const Stages& stages);

}  // namespace redblue
