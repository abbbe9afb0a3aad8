#include "runtime/ranks/plan_on_grid.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "kernels/attention.hpp"
#include "runtime/ranks/rank_kinds.hpp"

namespace redblue {
namespace {

// What a rank receives in each phase.
std::map<std::string, LinkCount> received_by_phase(const Links& links, Index rank) {
  std::map<std::string, LinkCount> phases;
  for (const auto& [link, count] : links) {
    if (link.to == rank) {
      phases[link.phase] += count;
    }
  }
  return phases;
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

GridPlan plan_on_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
                      Objective objective, const Grid& grid) {
  const Blocks blocks = blocks_on_grid(kernel, problem, memory, objective, grid, grid.columns);
  GridPlan on{.grid = grid,
              .plan = kernel.plan(problem, memory, blocks),
              .ranks = {},
              .costs = {},
              .received = {},
              .arena = {},
              .home = {},
              .path = {}};
  on.ranks = ranks_of_each_kind(kernel, on.plan, grid);
  const std::vector<Segment> segments = segments_of(kernel, on.plan, grid);
  std::map<std::string, LinkCount> most;
  for (const Index rank : on.ranks) {
    const RankCost& cost =
        on.costs.emplace_back(cost_of_rank(RankPart(kernel, on.plan, grid, rank), segments));
    const PhaseCost arena = total(cost.arena);
    on.received = std::max(on.received, received(cost.links, rank));
    on.arena = std::max(on.arena, arena.reads + arena.writes);
    on.home = std::max(on.home, cost.home);
    for (const auto& [phase, count] : received_by_phase(cost.links, rank)) {
      LinkCount& its = most[phase];
      its.words = std::max(its.words, count.words);
      its.messages = std::max(its.messages, count.messages);
    }
  }
  if (most.contains(std::string(kg.name))) {
    const Index hops = std::ssize(segments) - 1;
    LinkCount& sum = most.at(std::string(kg.name));
    sum = count_of(problem.shape.d * problem.shape.d);
    sum.words *= hops;
    sum.messages *= hops;
  }
  for (const auto& [_, count] : most) {
    on.path += count;
  }
  return on;
}

std::vector<GridPlan> plans_on_grids(const Kernel& kernel, const Problem& problem,
                                     const Memory& memory, Objective objective, Index ranks) {
  std::vector<GridPlan> plans;
  for (Index columns = 1; columns <= std::min(ranks, problem.shape.m); ++columns) {
    if (ranks % columns != 0) {
      continue;
    }
    GridPlan on = plan_on_grid(kernel, problem, memory, objective, {ranks / columns, columns});
    if (total(on.plan.phases).peak <= Words(memory.M)) {
      plans.push_back(std::move(on));
    }
  }
  return plans;
}

const GridPlan& best_of(const std::vector<GridPlan>& plans) {
  return *std::ranges::min_element(
      plans, {}, [](const GridPlan& on) { return std::pair(on.received, on.arena); });
}

Grid best_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
               Objective objective, Index ranks) {
  const std::vector<GridPlan> plans = plans_on_grids(kernel, problem, memory, objective, ranks);
  return plans.empty() ? Grid{ranks, 1} : best_of(plans).grid;
}

}  // namespace redblue
