#pragma once
// Plans of a kernel for ranks: blocks that fit in the M of each, and share out evenly; and what
// each grid of so many ranks moves.

#include <optional>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/ranks/grid.hpp"
#include "runtime/ranks/rank_cost.hpp"

namespace redblue {

// The fitting blocks for the share of the largest rank, with so many groups of keys. Where nothing
// fits: the smallest. Requires: a kernel that runs on grids; at least as many groups as columns.
Blocks blocks_on_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
                      Objective objective, const Grid& grid, Index groups);
// Groups of keys where nobody says how many: one a column; two under a mask, which meet different
// numbers of pairs, so that each column may have one that meets many and one that meets few.
Index usual_groups(const Problem& problem, const Grid& grid);

// A plan on a grid, with the ranks of each kind (rank_kinds.hpp) and what they move.
struct PlannedGrid {
  Grid grid;
  Plan plan;
  std::vector<Index> ranks = {};
  std::vector<RankCost> costs = {};
  // Of the rank that has the most of each: words received, reads + writes of the arena, and words
  // of the home.
  Words received = {}, arena = {}, home = {};
  // What is received one after the other: of each phase of links the most of one rank, and of the
  // running sum all.
  LinkCount path = {};
};
PlannedGrid plan_on_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
                         Objective objective, const Grid& grid);

// Of all grids of so many ranks on which the kernel fits, with the usual groups: more move and keep
// more. In the order of columns. Throws: ShapeMismatch where no pair lives.
std::vector<PlannedGrid> plans_on_grids(const Kernel& kernel, const Problem& problem,
                                        const Memory& memory, Objective objective, Index ranks);

// The one of them whose rank that receives most receives the fewest words, and whose arena then
// moves the fewest. Requires: there are some.
const PlannedGrid& best_of(const std::vector<PlannedGrid>& plans);
// The grid of that one. Where the kernel fits on none: ranks x 1.
Grid best_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
               Objective objective, Index ranks);

}  // namespace redblue
