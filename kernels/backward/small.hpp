#pragma once
// g by the paper's small-cache algorithm (Algorithms 2 to 6): four phases of square blocks,
// B = floor(sqrt(M / 4)), with f, q and p in the slow store. Given dO alone: O and L are not
// needed. Moves about 12 n m d / sqrt(M) + 9 n m words.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel backward_small();

}  // namespace redblue
