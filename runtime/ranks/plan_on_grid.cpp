#include "runtime/ranks/plan_on_grid.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "runtime/ranks/rank_cost.hpp"

namespace redblue {
namespace {

// What decides between grids: words received, then words of the arena, of the ranks asked.
std::pair<Words, Words> most_moved(const Kernel& kernel, const Plan& plan, const Grid& grid) {
  const std::vector<Segment> segments = segments_of(kernel, plan, grid);
  std::pair<Words, Words> most;
  for (const Index row : std::set{Index{0}, grid.rows / 2, grid.rows - 1}) {
    for (const Index column : std::set{Index{0}, grid.columns / 2, grid.columns - 1}) {
      const Index rank = row * grid.columns + column;
      const RankCost cost = cost_of_rank(RankPart(kernel, plan, grid, rank), segments);
      const PhaseCost arena = total(cost.arena);
      most.first = std::max(most.first, received(cost.links, rank));
      most.second = std::max(most.second, arena.reads + arena.writes);
    }
  }
  return most;
}

}  // namespace

// Fitting is of one group, of which the peak is a little other than of several: then of less
// memory.
Blocks blocks_on_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
                      Objective objective, const Grid& grid, Index groups) {
  Problem share = problem;
  share.shape.n = ceil_div(problem.shape.n, grid.rows);
  share.shape.m = ceil_div(problem.shape.m, groups);
  for (Index M = memory.M;;) {
    Blocks blocks = kernel.blocks(share, {M, memory.prefetch}, objective);
    blocks.drop(kKeyGroups);
    if (groups > 1) {
      blocks.add(std::string(kKeyGroups), groups);
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
  for (Index columns = 1; columns <= std::min(ranks, problem.shape.m); ++columns) {
    if (ranks % columns != 0) {
      continue;
    }
    const Grid grid{ranks / columns, columns};
    const Plan plan = kernel.plan(
        problem, memory, blocks_on_grid(kernel, problem, memory, objective, grid, grid.columns));
    if (total(plan.phases).peak > Words(memory.M)) {
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
