#pragma once
// O and L with everything in fast memory at once, in the order of Algorithm 1's lines: the
// least that any algorithm can move, where M is large enough.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel forward_naive();

}  // namespace redblue
