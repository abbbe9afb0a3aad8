#pragma once
// g with tiles of scores in fast memory, for caches far below d^2: f = exp(s - L) and then
// p = f (q - v) go to the slow store, tile by tile, and W = p A2 and g = A1^T W are products of
// their own. Given dO, O and L; or nothing beyond dO, and then s and q are stored raw, with L and v
// made along the way. In units of n^2, with x = d / sqrt(M) > 2 and n = m >> d:
//
//   given O and L   6 x + 3
//   from nothing    6 x + 6

#include "kernels/kernel.hpp"

namespace redblue {

Kernel backward_tiles();
Kernel backward_tiles_sq();

}  // namespace redblue
