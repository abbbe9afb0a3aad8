#pragma once
// g with tiles of scores in fast memory, for caches far below d^2: n x m matrices of scores go to
// the slow store tile by tile, and what is left are products with a block that stays.
//
//   tiles         given O and L: f = exp(s - L), then p = f (q - v) in its place; W = p A2
//   tiles-shared  the same where A3 is A2: two tiles, of s and q, take in A2 together and leave p
//   tiles-sqp     from nothing: raw s, with L; q, with v; p in place of q
//   tiles-sq      from nothing: p is made of s and q whenever W = p A2 needs it, and not stored
//
// In units of n^2, with x = d / sqrt(M) > 2 and n = m >> d: 6 x + 3, 6 x + 1, 6 x + 6, 6.8 x + 3.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel backward_tiles();
Kernel backward_tiles_shared();
Kernel backward_tiles_sqp();
Kernel backward_tiles_sq();

}  // namespace redblue
