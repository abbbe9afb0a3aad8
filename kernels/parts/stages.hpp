#pragma once
// Kernels in stages that come one after another, each with the whole fast memory: a kernel lists
// them once, in the order of their phases, and has fit and cost from the list.

#include <functional>
#include <string>
#include <utility>
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
using Stages = std::vector<Stage> (*)(const Shape& shape);

// One phase with stationary blocks of its name; a product_phase; a scores_phase.
Stage stationary_stage(const std::string& name, const Extents& of, const StationaryCost& cost);
Stage product_stage(const std::string& name, const Extents& of);
Stage scores_stage(const std::string& name, const Extents& of, const UseCost& use);
// row_dots().
Stage row_dots_stage(const Shape& shape);

template <Stages stages, Objective objective>
Blocks fit_stages(const Shape& shape, Index M) {
  Blocks blocks;
  for (const Stage& stage : stages(shape)) {
    stage.put(M, objective, blocks);
  }
  return blocks;
}

template <Stages stages>
std::vector<PhaseCost> cost_stages(const Shape& shape, const Blocks& blocks) {
  std::vector<PhaseCost> phases;
  for (const Stage& stage : stages(shape)) {
    for (PhaseCost& phase : stage.cost(blocks)) {
      phases.push_back(std::move(phase));
    }
  }
  return phases;
}

}  // namespace redblue
