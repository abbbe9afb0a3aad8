#pragma once
// Plans kernels for ranks. It finds blocks that fit in the M of each rank and share out evenly, and
// the words moved on each grid.

#include <optional>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/ranks/grid.hpp"
#include "runtime/ranks/rank_cost.hpp"

namespace redblue {

// Returns fitting blocks for the largest share of a rank, with `groups` key groups. If no blocks
// fit, returns the smallest. Requires: a kernel that runs on grids, and groups >= columns.
Blocks blocks_on_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
                      Objective objective, const Grid& grid, Index groups);
// Returns the default number of key groups: one for each column, or two under a mask. Groups then
// meet different numbers of pairs, so that each column may have one with many pairs and one with
// few.
Index usual_groups(const Problem& problem, const Grid& grid);

// A plan on a grid, with the first rank of each kind (rank_kinds.hpp) and the words that it moves.
struct PlannedGrid {
  Grid grid;
  Plan plan;
  std::vector<Index> ranks = {};
  std::vector<RankCost> costs = {};
  // Maxima over the ranks: words received, reads plus writes of the arena, and words of the home.
  Words received = {}, arena = {}, home = {};
  // Words and messages received one after the other: the maximum of one rank in each phase of
  // links, and all hops of the running sum.
  LinkCount path = {};
};
PlannedGrid plan_on_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
                         Objective objective, const Grid& grid);

// Returns plans for all grids of `ranks` ranks on which the kernel fits, in the order of columns.
// They have the default number of groups, because more groups move and keep more words. Throws:
// ShapeMismatch if the mask has no live pair.
std::vector<PlannedGrid> plans_on_grids(const Kernel& kernel, const Problem& problem,
                                        const Memory& memory, Objective objective, Index ranks);

// Returns the plan with the smallest maximum of words received. Among equal ones it returns the
// plan with the fewest words moved in the arena. Requires: at least one plan.
const PlannedGrid& best_of(const std::vector<PlannedGrid>& plans);
// Returns the grid of the best plan, or ranks x 1 if the kernel fits on no grid.
Grid best_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
               Objective objective, Index ranks);

}  // namespace redblue
