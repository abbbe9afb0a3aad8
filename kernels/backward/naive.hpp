#pragma once
// g by the paper's Algorithm 1, "without cache": every matrix that it names has its own words
// in fast memory and is deleted where it says. Given dO alone.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel backward_naive();

}  // namespace redblue
