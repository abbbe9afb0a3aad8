#pragma once
// Ranks of a grid that do the same with as many words: whatever the number of ranks, there are a
// few kinds of them.

#include <vector>

#include "runtime/ranks/grid.hpp"

namespace redblue {

// The first rank of each kind, in order. Ranks of a kind begin with, receive, send and keep as many
// words as each other, and move as many in their arenas. Under a mask no two ranks are of one kind.
std::vector<Index> ranks_of_each_kind(const GridPlan& of);

}  // namespace redblue
