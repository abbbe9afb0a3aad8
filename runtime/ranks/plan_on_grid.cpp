#include "runtime/ranks/plan_on_grid.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "kernels/attention.hpp"
#include "kernels/masked.hpp"
#include "memsim/errors.hpp"
#include "runtime/ranks/rank_kinds.hpp"
#include "runtime/ranks/ring.hpp"

namespace redblue {
namespace {

// Returns the words and messages that a rank receives in each phase.
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

Index usual_groups(const Problem& problem, const Grid& grid) {
  return std::min(grid.columns * (problem.mask.full() || grid.columns == 1 ? 1 : 2),
                  size_of(problem.live_keys()));
}

// Fits blocks for one group and without the mask. Several groups change the peak slightly, and the
// mask's index takes some words. So it fits again for less memory until the whole plan fits.
//
// Under a mask, a row of ranks has at least two row blocks, one with many pairs and one with few.
// In a ring, a rank has as few row blocks as possible, because all rows stream past it once for
// each block.
Blocks blocks_on_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
                      Objective objective, const Grid& grid, Index groups) {
  const Problem live = problem.live_part();
  const bool masked = !live.mask.full();
  Problem share = live.with_mask({});
  share.shape.n = ceil_div(live.shape.n, grid.rows * (masked && !grid.ring ? 2 : 1));
  share.shape.m = ceil_div(live.shape.m, groups);
  const bool groups_queries = takes_query_groups(kernel) && !grid.ring;
  if (grid.ring) {  // a home holds a few streaming blocks, or the own resident keys
    share.shape.m =
        ceil_div(live.shape.m, grid.rows * (takes_query_groups(kernel) ? 1 : kPiecesOfARank));
  }
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

namespace {

Plan usual_plan(const Kernel& kernel, const Problem& problem, const Memory& memory,
                Objective objective, const Grid& grid) {
  return kernel.plan(
      problem, memory,
      blocks_on_grid(kernel, problem, memory, objective, grid, usual_groups(problem, grid)));
}

PlannedGrid on_grid(const Kernel& kernel, Plan plan, const Grid& grid) {
  PlannedGrid on{.grid = grid, .plan = std::move(plan)};
  const GridPlan of(kernel, on.plan, grid);
  on.ranks = ranks_of_each_kind(of);
  std::map<std::string, LinkCount> most;
  for (const Index rank : on.ranks) {
    const RankCost& cost = on.costs.emplace_back(cost_of_rank(RankPart(of, rank)));
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
    const Index hops = std::ssize(of.segments()) - 1;
    LinkCount& sum = most.at(std::string(kg.name));
    sum = count_of(on.plan.problem.shape.d * on.plan.problem.shape.d);
    sum.words *= hops;
    sum.messages *= hops;
  }
  for (const auto& [_, count] : most) {
    on.path += count;
  }
  if (grid.ring) {
    const Words sum =
        most.contains(std::string(kg.name)) ? Words(most.at(std::string(kg.name)).words) : Words(0);
    on.path.words = (ring_path(of) + sum).value();
  }
  return on;
}

}  // namespace

PlannedGrid plan_on_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
                         Objective objective, const Grid& grid) {
  return on_grid(kernel, usual_plan(kernel, problem, memory, objective, grid), grid);
}

std::vector<PlannedGrid> plans_on_grids(const Kernel& kernel, const Problem& problem,
                                        const Memory& memory, Objective objective, Index ranks) {
  std::vector<PlannedGrid> plans;
  if (problem.live_queries().empty()) {
    throw ShapeMismatch("no query meets a key under this mask: ranks have nothing to share");
  }
  for (Index columns = 1; columns <= std::min(ranks, size_of(problem.live_keys())); ++columns) {
    if (ranks % columns != 0) {
      continue;
    }
    const Grid grid{ranks / columns, columns};
    Plan plan = usual_plan(kernel, problem, memory, objective, grid);
    const bool has_rows =
        !takes_query_groups(kernel) || query_groups_of(kernel, live_plan(plan)) >= grid.rows;
    if (has_rows && total(plan.phases).peak <= Words(memory.M)) {
      plans.push_back(on_grid(kernel, std::move(plan), grid));
    }
  }
  return plans;
}

const PlannedGrid& best_of(const std::vector<PlannedGrid>& plans) {
  return *std::ranges::min_element(
      plans, {}, [](const PlannedGrid& on) { return std::pair(on.received, on.arena); });
}

Grid best_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
               Objective objective, Index ranks) {
  const std::vector<PlannedGrid> plans = plans_on_grids(kernel, problem, memory, objective, ranks);
  return plans.empty() ? Grid{ranks, 1} : best_of(plans).grid;
}

}  // namespace redblue
