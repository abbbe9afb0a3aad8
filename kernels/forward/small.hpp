#pragma once
// O and L for a fast memory too small to hold rows: square blocks, B = floor(sqrt(M / 4)),
// scores and probabilities in the slow store. The forward half of Algorithms 2 and 3.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel forward_small();

}  // namespace redblue
