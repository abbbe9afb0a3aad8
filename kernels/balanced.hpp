#pragma once
// Chooses blocks between the fewest words and the least time, and blocks in multiples.

#include "kernels/kernel.hpp"
#include "memsim/words.hpp"

namespace redblue {

// Returns blocks that fit and move at most `share` times the fewest words, as close as possible to
// the blocks of least time. Sizes that are larger there grow, without a small last part of a
// vector, and the other sizes shrink to make room. With several levels, the words are the weighted
// sum, and the result is the blocks of one objective or the other.
Blocks fastest_within(const Kernel& kernel, const Problem& problem, const Memory& memory,
                      double share);

// Returns how much longer products take if they leave vector lanes empty. 1 if tiles of scores
// consist of whole vectors.
double narrowness(const Blocks& blocks);

// Returns these blocks with each size a multiple of memory.multiple, or the whole extent. It rounds
// sizes down, but to at least one multiple, and then grows them as far as they fit. If no larger
// sizes fit, each size is one multiple. Requires: one level.
Blocks in_multiples(const Kernel& kernel, const Problem& problem, const Memory& memory,
                    const Blocks& blocks);

}  // namespace redblue
