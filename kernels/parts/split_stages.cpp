#include "kernels/parts/split_stages.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace redblue {

SplitStage stage(const UnitsOfStage& units, const PartOfStage& part, const CostOfStage& cost,
                 const LevelCostOfStage& level_cost) {
  SplitStage all{
      .units = units,
      .part = [part](Machine& machine, const Plan& plan, const Operands& io, Range of,
                     SlowMatrix*) { part(machine, plan, io, of); },
      .part_cost = [cost](const Problem& problem, const Blocks& blocks, Range of,
                          bool) -> std::vector<PhaseCost> { return {cost(problem, blocks, of)}; }};
  if (level_cost) {
    all.level_cost = [level_cost](const Problem& problem, const Blocks& blocks, Range of, bool,
                                  std::size_t level) -> std::vector<PhaseCost> {
      return {level_cost(problem, blocks, of, level)};
    };
  }
  return all;
}

CostOfBlocks cost_of_stages(std::vector<SplitStage> stages) {
  return [stages = std::move(stages)](const Problem& problem, const Blocks& blocks) {
    std::vector<PhaseCost> phases;
    for (const SplitStage& stage : stages) {
      if (const Index units = stage.units(problem, blocks); units > 0) {
        std::ranges::move(stage.part_cost(problem, blocks, {0, units}, false),
                          std::back_inserter(phases));
      }
    }
    return phases;
  };
}

LevelCostOfBlocks level_cost_of_stages(std::vector<SplitStage> stages) {
  return [stages = std::move(stages)](const Problem& problem, const Blocks& blocks,
                                      std::size_t level) {
    std::vector<PhaseCost> phases;
    for (const SplitStage& stage : stages) {
      if (const Index units = stage.units(problem, blocks); units > 0) {
        std::ranges::move(stage.level_cost(problem, blocks, {0, units}, false, level),
                          std::back_inserter(phases));
      }
    }
    return phases;
  };
}

Index rows_left(Index units, Index blocks, Index block, Index rows) {
  const Index copy = units / blocks;
  return copy * rows + std::min((units - copy * blocks) * block, rows);
}

}  // namespace redblue
