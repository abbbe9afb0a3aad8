#include "kernels/parts/stages.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace redblue {

namespace {

// The memory that the index of a mask leaves free in the machine. The blocks for it are chosen as
// if all pairs were live.
Memory beside_index(Memory memory, const Mask& live) {
  memory.M = std::max<Index>(memory.M - live.index().live(), 1);
  return memory;
}

}  // namespace

Stage stationary_stage(const std::string& name, const ProductShape& of,
                       const StationaryFormula& formula, const StationaryNest& nest,
                       const Mask& live) {
  Stage stage{.put =
                  [=](Index M, Objective objective, Blocks& blocks) {
                    fit_stationary(of, M, objective, formula.under(live),
                                   all_live_cost(formula.under({}), live))
                        .put(name, blocks);
                  },
              .cost = [=](const Blocks& blocks) -> std::vector<PhaseCost> {
                return {formula.cost(StationaryBlocks::get(name, blocks), live)};
              },
              .nest =
                  [=](NestWriter& to, const Blocks& blocks) {
                    to.phase(name, [&] { nest(to, StationaryBlocks::get(name, blocks)); });
                  }};
  if (formula.level_cost) {
    stage.put_levels = [=](const Memory& memory, Objective objective, Blocks& blocks) {
      fit_stationary_levels(of, beside_index(memory, live), objective,
                            {Stays::C, Stays::A, Stays::B},
                            [&](const StationaryBlocks& by, std::size_t level) {
                              return level < by.inner.size() ? formula.level_cost(by, {}, level)
                                                             : formula.cost(by, {});
                            })
          .put(name, blocks);
    };
    stage.level_cost = [=](const Blocks& blocks, std::size_t level) -> std::vector<PhaseCost> {
      return {formula.level_cost(StationaryBlocks::get(name, blocks), live, level)};
    };
  }
  return stage;
}

Stage product_stage(const std::string& name, const ProductShape& of, const FactorNames& factors,
                    const Mask& live) {
  return stationary_stage(
      name, of,
      {.cost = [=](const StationaryBlocks& by,
                   const Mask& mask) { return stationary_cost(name, of, by, stays(of, by), mask); },
       .level_cost =
           [=](const StationaryBlocks& by, const Mask& mask, std::size_t level) {
             return stationary_level_cost(name, of, by, stays(of, by), level, mask);
           }},
      [=](NestWriter& nest, const StationaryBlocks& by) {
        stationary_nest(nest, {name, factors.left, factors.right}, of, by, stays(of, by), live);
      },
      live);
}

namespace {

StationaryFormula formula_of_scores(const std::string& name, const Problem& problem,
                                    const EpilogueCost& epilogue) {
  return {.cost =
              [=](const StationaryBlocks& by, const Mask& mask) {
                return scores_cost(name, problem.with_mask(mask), by, epilogue);
              },
          .level_cost =
              [=](const StationaryBlocks& by, const Mask& mask, std::size_t level) {
                return scores_level_cost(name, problem.with_mask(mask), by, epilogue, level);
              }};
}

}  // namespace

Stage scores_stage(const std::string& name, const Problem& problem, const FactorNames& factors,
                   const EpilogueCost& epilogue) {
  const StationaryFormula formula = formula_of_scores(name, problem, epilogue);
  Stage stage = stationary_stage(
      name, Products(problem).scores, formula,
      [=](NestWriter& nest, const StationaryBlocks& by) {
        scores_nest(nest, {name, factors.left, factors.right}, problem, by, epilogue);
      },
      problem.mask);
  if (!problem.mask.full()) {
    stage.put = [=](Index M, Objective objective, Blocks& blocks) {
      fit_live_scores(problem, M, objective, formula.under(problem.mask),
                      all_live_cost(formula.under({}), problem.mask))
          .put(name, blocks);
    };
  }
  return stage;
}

Stage score_rows_stage(const std::string& name, const Problem& problem, const FactorNames& factors,
                       const EpilogueCost& epilogue) {
  Stage stage = scores_stage(name, problem, factors, epilogue);
  stage.put = [=](Index M, Objective objective, Blocks& blocks) {
    fit_score_rows(problem, M, objective,
                   formula_of_scores(name, problem, epilogue).under(problem.mask))
        .put(name, blocks);
  };
  return stage;
}

Stage generated_product_stage(const std::string& name, const ProductShape& of,
                              const FactorNames& factors, const FactorCost& made,
                              const Mask& live) {
  return stationary_stage(
      name, of,
      {.cost = [=](const StationaryBlocks& by,
                   const Mask& mask) { return generated_product_cost(name, of, by, made, mask); },
       .level_cost =
           [=](const StationaryBlocks& by, const Mask& mask, std::size_t level) {
             return generated_product_level_cost(name, of, by, made, level, mask);
           }},
      [=](NestWriter& nest, const StationaryBlocks& by) {
        generated_product_nest(nest, {name, factors.left, factors.right}, of, by, made, live);
      },
      live);
}

Stage row_dots_stage(const Problem& problem) {
  return {.put = [=](Index M, Objective, Blocks& blocks) { plan_row_dots(problem, M, blocks); },
          .cost = [=](const Blocks& blocks) -> std::vector<PhaseCost> {
            return {row_dots_cost(problem, blocks)};
          },
          .nest =
              [=](NestWriter& nest, const Blocks& blocks) {
                nest.phase("v", [&] { row_dots_nest(nest, problem, blocks); });
              },
          .put_levels = [=](const Memory& memory, Objective,
                            Blocks& blocks) { plan_row_dots(problem, memory, blocks); },
          .level_cost = [=](const Blocks& blocks, std::size_t level) -> std::vector<PhaseCost> {
            return {row_dots_level_cost(problem, blocks, level)};
          }};
}

CostOfBlocks cost_of(const Stages& stages) {
  return [stages](const Problem& problem, const Blocks& blocks) {
    std::vector<PhaseCost> phases;
    for (const Stage& stage : stages(problem)) {
      std::ranges::move(stage.cost(blocks), std::back_inserter(phases));
    }
    return phases;
  };
}

LevelCostOfBlocks level_cost_of(const Stages& stages) {
  return [stages](const Problem& problem, const Blocks& blocks, std::size_t level) {
    std::vector<PhaseCost> phases;
    for (const Stage& stage : stages(problem)) {
      std::ranges::move(stage.level_cost(blocks, level), std::back_inserter(phases));
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

Fitting level_fitting_of(const Stages& stages) {
  Fitting fitting{
      .fit = [stages](const Problem& problem, const Memory& memory, Objective objective) {
        if (memory.inner.empty()) {
          return fitting_of(stages).fit(problem, memory, objective);
        }
        Blocks blocks;
        for (const Stage& stage : stages(problem)) {
          stage.put_levels(memory, objective, blocks);
        }
        return blocks;
      }};
  // The names of all stages of all kernels.
  for (const std::string_view stage :
       {"S", "G", "h", "s", "f", "q", "p", "v", "O", "W", "g", "dQ", "dK", "dV"}) {
    for (const char* side : {"rows", "cols", "depth"}) {
      fitting.inner_blocks.push_back({.name = std::string(stage) + "." + side, .cuts = true});
    }
  }
  return fitting;
}

}  // namespace redblue
