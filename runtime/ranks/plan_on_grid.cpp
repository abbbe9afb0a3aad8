#include "runtime/ranks/plan_on_grid.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "kernels/masked.hpp"
#include "runtime/ranks/rank_cost.hpp"

namespace redblue {
namespace {

// What decides between grids: words received, then words of the arena, of the ranks asked.
std::pair<Words, Words> most_moved(const Kernel& kernel, const Plan& plan, const Grid& grid) {
  const GridPlan of(kernel, plan, grid);
  std::pair<Words, Words> most;
  for (const Index row : std::set{Index{0}, grid.rows / 2, grid.rows - 1}) {
    for (const Index column : std::set{Index{0}, grid.columns / 2, grid.columns - 1}) {
      const Index rank = row * grid.columns + column;
      const RankCost cost = cost_of_rank(RankPart(of, rank));
      const PhaseCost arena = total(cost.arena);
      most.first = std::max(most.first, received(cost.links, rank));
      most.second = std::max(most.second, arena.reads + arena.writes);
    }
  }
  return most;
}

}  // namespace

Index usual_groups(const Problem& problem, const Grid& grid) {
  return std::min(grid.columns * (problem.mask.full() || grid.columns == 1 ? 1 : 2),
                  size_of(problem.live_keys()));
}

// Fitting is of one group, of which the peak is a little other than of several, and without the
// mask, of which some words say what lives: then of less memory. Under a mask a row of ranks has at
// least two row blocks, one that meets many pairs and one that meets few.
Blocks blocks_on_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
                      Objective objective, const Grid& grid, Index groups) {
  const Problem live = problem.live_part();
  const bool masked = !live.mask.full();
  Problem share = live.with_mask({});
  share.shape.n = ceil_div(live.shape.n, grid.rows * (masked ? 2 : 1));
  share.shape.m = ceil_div(live.shape.m, groups);
  const bool groups_queries = takes_query_groups(kernel);
  for (Index M = memory.M;;) {
    Blocks blocks = kernel.blocks(share, {M, memory.prefetch}, objective);
    blocks.drop(kKeyGroups);
    if (groups > 1) {
      blocks.add(std::string(kKeyGroups), groups);
    }
    if (groups_queries && grid.rows > 1) {
      const Index row_blocks = ceil_div(live.shape.n, blocks[row_block_of(blocks)]);
      blocks.add(std::string(kQueryGroups), std::min(grid.rows * (masked ? 2 : 1), row_blocks));
    }
    const Words peak = total(kernel.formula.cost(kernel.with_inputs(problem), blocks)).peak;
    if (peak <= Words(memory.M) || M == 1) {
      return blocks;
    }
    M = std::max<Index>(M - std::max<Index>(peak.value() - memory.M, M / 64), 1);
  }
}

Grid best_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
               Objective objective, Index ranks) {
  Grid best{ranks, 1};
  std::optional<std::pair<Words, Words>> fewest;
  for (Index columns = 1; columns <= std::min(ranks, size_of(problem.live_keys())); ++columns) {
    if (ranks % columns != 0) {
      continue;
    }
    const Grid grid{ranks / columns, columns};
    const Plan plan = kernel.plan(
        problem, memory,
        blocks_on_grid(kernel, problem, memory, objective, grid, usual_groups(problem, grid)));
    if (total(plan.phases).peak > Words(memory.M) ||
        (takes_query_groups(kernel) && query_groups_of(kernel, live_plan(plan)) < grid.rows)) {
      continue;
    }
    const auto most = most_moved(kernel, plan, grid);
    if (!fewest || most < *fewest) {
      best = grid;
      fewest = most;
    }
  }
  return best;
}

}  // namespace redblue
