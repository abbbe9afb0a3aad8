#pragma once
// g with blocks of keys in fast memory: K_J = X A2_J^T, h_J = A3_J Y and T_J = p_J^T A1 stay, rows
// of A1 and dO pass, and g += T_J^T A2_J once for each block. v = rowsum(dO * O) is made as the
// first block sees the rows of O, and goes to the slow store if there is a second. For many
// queries and few keys; given dO, O and L:
//
//   reads    T (2 n d + n + 2 d^2) + n d + 3 m d + (T - 1) (n + d^2),   T = ceil(m / Bc)
//   writes   T d^2, and n where T > 1

#include "kernels/kernel.hpp"

namespace redblue {

Kernel backward_columns();

}  // namespace redblue
