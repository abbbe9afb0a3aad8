#include "kernels/parts/stages.hpp"

#include <utility>

namespace redblue {

Stage stationary_stage(const std::string& name, const ProductShape& of, const StationaryCost& cost,
                       const StationaryNest& nest, const StationaryCost& all_live) {
  return {.put =
              [=](Index M, Objective objective, Blocks& blocks) {
                fit_stationary(of, M, objective, cost, all_live).put(name, blocks);
              },
          .cost = [=](const Blocks& blocks) -> std::vector<PhaseCost> {
            return {cost(StationaryBlocks::get(name, blocks))};
          },
          .nest =
              [=](NestWriter& to, const Blocks& blocks) {
                to.phase(name, [&] { nest(to, StationaryBlocks::get(name, blocks)); });
              }};
}

Stage product_stage(const std::string& name, const ProductShape& of, const FactorNames& factors,
                    const Mask& live) {
  return {.put = [=](Index M, Objective objective,
                     Blocks& blocks) { plan_product(name, of, M, objective, blocks, live); },
          .cost = [=](const Blocks& blocks) -> std::vector<PhaseCost> {
            return {product_phase_cost(name, of, blocks, live)};
          },
          .nest =
              [=](NestWriter& nest, const Blocks& blocks) {
                product_phase_nest(nest, {name, factors.left, factors.right}, of, blocks, live);
              }};
}

namespace {

StationaryCost cost_of_scores(const std::string& name, const Problem& problem,
                              const EpilogueCost& epilogue) {
  return [=](const StationaryBlocks& by) { return scores_cost(name, problem, by, epilogue); };
}

}  // namespace

Stage scores_stage(const std::string& name, const Problem& problem, const FactorNames& factors,
                   const EpilogueCost& epilogue) {
  const StationaryCost cost = cost_of_scores(name, problem, epilogue);
  Stage stage = stationary_stage(
      name, Products(problem).scores, cost, [=](NestWriter& nest, const StationaryBlocks& by) {
        scores_nest(nest, {name, factors.left, factors.right}, problem, by, epilogue);
      });
  if (!problem.mask.full()) {
    stage.put = [=](Index M, Objective objective, Blocks& blocks) {
      fit_live_scores(
          problem, M, objective, cost,
          all_live_cost(cost_of_scores(name, problem.with_mask({}), epilogue), problem.mask))
          .put(name, blocks);
    };
  }
  return stage;
}

Stage score_rows_stage(const std::string& name, const Problem& problem, const FactorNames& factors,
                       const EpilogueCost& epilogue) {
  Stage stage = scores_stage(name, problem, factors, epilogue);
  stage.put = [=](Index M, Objective objective, Blocks& blocks) {
    fit_score_rows(problem, M, objective, cost_of_scores(name, problem, epilogue))
        .put(name, blocks);
  };
  return stage;
}

Stage generated_product_stage(const std::string& name, const ProductShape& of,
                              const FactorNames& factors, const FactorCost& made,
                              const Mask& live) {
  const auto cost = [=](const Mask& mask) -> StationaryCost {
    return [=](const StationaryBlocks& by) {
      return generated_product_cost(name, of, by, made, mask);
    };
  };
  return stationary_stage(
      name, of, cost(live),
      [=](NestWriter& nest, const StationaryBlocks& by) {
        generated_product_nest(nest, {name, factors.left, factors.right}, of, by, made, live);
      },
      all_live_cost(cost({}), live));
}

Stage row_dots_stage(const Problem& problem) {
  return {.put = [=](Index M, Objective, Blocks& blocks) { plan_row_dots(problem, M, blocks); },
          .cost = [=](const Blocks& blocks) -> std::vector<PhaseCost> {
            return {row_dots_cost(problem, blocks)};
          },
          .nest =
              [=](NestWriter& nest, const Blocks& blocks) {
                nest.phase("v", [&] { row_dots_nest(nest, problem, blocks); });
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

NestOfBlocks nest_of(const Stages& stages) {
  return [stages](const Problem& problem, const Blocks& blocks) {
    NestWriter nest;
    for (const Stage& stage : stages(problem)) {
      stage.nest(nest, blocks);
    }
    return nest.lines();
  };
}

Fitting fitting_of(const Stages& stages) {
  return {.fit = [stages](const Problem& problem, const Memory& memory, Objective objective) {
    Blocks blocks;
    for (const Stage& stage : stages(problem)) {
      stage.put(memory.M, objective, blocks);
    }
    return blocks;
  }};
}

}  // namespace redblue
