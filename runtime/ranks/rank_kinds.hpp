#pragma once
// Finds the ranks of a grid that do the same work on the same number of words. However many ranks
// there are, they have few kinds.

#include <vector>

#include "runtime/ranks/grid.hpp"

namespace redblue {

// Returns the first rank of each kind, in order. Ranks of one kind own, receive, send and keep the
// same numbers of words, and move the same number in their arenas. Under a mask, every rank is a
// kind.
std::vector<Index> ranks_of_each_kind(const GridPlan& of);

}  // namespace redblue
