#pragma once
// Plans of a kernel for ranks: blocks that fit in the M of each, and share out evenly; and the grid
// on which the fewest words are sent.

#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/ranks/grid.hpp"

namespace redblue {

// The fitting blocks for the share of the largest rank, with so many groups of keys. Where nothing
// fits: the smallest. Requires: a kernel that runs on grids; at least as many groups as columns.
Blocks blocks_on_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
                      Objective objective, const Grid& grid, Index groups);
// Groups of keys where nobody says how many: one a column; two under a mask, which meet different
// numbers of pairs, so that each column may have one that meets many and one that meets few.
Index usual_groups(const Problem& problem, const Grid& grid);

// Of the grids of so many ranks, with as many groups of keys as columns, the one on which the rank
// that receives most receives the fewest words, and then moves the fewest in its arena. Ranks in
// corners and in the middle are asked.
Grid best_grid(const Kernel& kernel, const Problem& problem, const Memory& memory,
               Objective objective, Index ranks);

}  // namespace redblue
