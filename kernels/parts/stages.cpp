#include "kernels/parts/stages.hpp"

#include <utility>

namespace redblue {

Stage stationary_stage(const std::string& name, const Extents& of, const StationaryCost& cost) {
  return {.put = [=](Index M, Objective objective,
                     Blocks& blocks) { fit_stationary(of, M, objective, cost).put(name, blocks); },
          .cost = [=](const Blocks& blocks) -> std::vector<PhaseCost> {
            return {cost(StationaryBlocks::get(name, blocks))};
          }};
}

Stage product_stage(const std::string& name, const Extents& of) {
  return {.put = [=](Index M, Objective objective,
                     Blocks& blocks) { put_product(name, of, M, objective, blocks); },
          .cost = [=](const Blocks& blocks) -> std::vector<PhaseCost> {
            return {product_phase_cost(name, of, blocks)};
          }};
}

Stage scores_stage(const std::string& name, const Extents& of, const UseCost& use) {
  return stationary_stage(
      name, of, [=](const StationaryBlocks& by) { return scores_cost(name, of, by, use); });
}

Stage row_dots_stage(const Problem& problem) {
  return {.put = [=](Index M, Objective, Blocks& blocks) { put_row_dots(problem, M, blocks); },
          .cost = [=](const Blocks& blocks) -> std::vector<PhaseCost> {
            return {row_dots_cost(problem, blocks)};
          }};
}

CostOfBlocks cost_of(const Stages& stages) {
  return [stages](const Problem& problem, const Blocks& blocks) {
    std::vector<PhaseCost> phases;
    for (const Stage& stage : stages(problem)) {
      for (PhaseCost& phase : stage.cost(blocks)) {
        phases.push_back(std::move(phase));
      }
    }
    return phases;
  };
}

Fitting fitting_of(const Stages& stages) {
  return {.fit = [stages](const Problem& problem, Index M, Objective objective) {
    Blocks blocks;
    for (const Stage& stage : stages(problem)) {
      stage.put(M, objective, blocks);
    }
    return blocks;
  }};
}

}  // namespace redblue
