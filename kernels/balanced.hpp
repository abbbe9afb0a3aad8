#pragma once
// Blocks between those of the fewest words and those of the least time, and blocks in multiples.

#include "kernels/kernel.hpp"
#include "memsim/words.hpp"

namespace redblue {

// Blocks that fit and move at most `share` times the fewest words, as near to those of the least
// time as they can be: the sizes that are larger there grow, without a last part of a vector that
// is small, and the others shrink for them. In several levels the words are the weighted sum, and
// the blocks are those of one objective or of the other.
Blocks fastest_within(const Kernel& kernel, const Problem& problem, const Memory& memory,
                      double share);

// How much longer products take that leave lanes of vectors empty: 1 where tiles of scores are of
// whole vectors.
double narrowness(const Blocks& blocks);

// These blocks, each size a multiple of memory.multiple or the whole extent: rounded down, or up to
// one multiple, and then as large as they fit. One multiple each where no larger ones fit.
// Requires: one level.
Blocks in_multiples(const Kernel& kernel, const Problem& problem, const Memory& memory,
                    const Blocks& blocks);

}  // namespace redblue
