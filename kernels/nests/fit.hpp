#pragma once
// Chooses the block sizes of a nest: those that move the fewest words with a peak of at most M.

#include "kernels/nests/count.hpp"

namespace redblue {

// Returns a size for each block that `sizes` and the nest do not give, and for each of the others
// its size. Of blocks that move equally many words, the largest. `multiple`: as Memory::multiple.
// If no blocks fit, the smallest. M is sizes.extents.M.
Blocks fit(const TextNest& nest, const NestSizes& sizes, Index multiple = 1);

// Returns blocks of about equal sizes, as large as fit: tiles of scores are then square, on which
// arithmetic is fast.
Blocks fit_evenly(const TextNest& nest, const NestSizes& sizes, Index multiple = 1);

}  // namespace redblue
