#pragma once
// O and L with blocks of keys in fast memory: K_J = X A2_J^T and h_J = A3_J Y stay, rows of A1
// pass. Between two blocks the sums of e h are where O will be, the maxima where L will be, and the
// sums of e in the workspace. For many queries and few keys:
//
//   reads    T (n d + 2 d^2) + 2 m d + (T - 1) (n d + 2 n),   T = ceil(m / Bc)
//   writes   T (n d + n) + (T - 1) n

#include "kernels/kernel.hpp"

namespace redblue {

Kernel forward_columns();

}  // namespace redblue
