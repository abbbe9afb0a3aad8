#pragma once
// g by the paper's large-cache algorithm (Algorithms 7 to 9): S and h are written, then g
// stays in fast memory while row blocks (S_i, dO_i, A1_i) stay in turn and column blocks
// (h_j, A2_j) pass. Given dO, O and L. Needs M of at least about d^2 + 5 d.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel backward_large();

}  // namespace redblue
