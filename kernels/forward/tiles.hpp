#pragma once
// O and L with raw scores in the slow store, for caches below d^2: rows of S, or tiles of scores,
// stay while A2 passes, and L is made along the way; then O = exp(s - L) h is a product that takes
// the exponentials of what it reads. In units of n^2, with x = d / sqrt(M) and n = m >> d:
// (x + 1)^2 for x < 2, 4 x + 1 beyond.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel forward_tiles();
Kernel forward_tiles_shared();  // A3 is A2, in as many words

}  // namespace redblue
