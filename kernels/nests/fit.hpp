#pragma once
// Chooses the block sizes of a nest that move the fewest words with a peak of at most M.

#include "kernels/nests/count.hpp"

namespace redblue {

// Returns a size for each block of the nest. Blocks in `sizes`, and blocks with a size in the nest,
// keep it. If several choices move the fewest words, the blocks are as large as possible.
// `multiple`: as Memory::multiple. If no blocks fit, the smallest. M is sizes.extents.M.
Blocks fit(const TextNest& nest, const NestSizes& sizes, Index multiple = 1);

// Returns blocks of about equal sizes, as large as fit: tiles of scores are then square, on which
// arithmetic is fast.
Blocks fit_evenly(const TextNest& nest, const NestSizes& sizes, Index multiple = 1);

}  // namespace redblue
