#pragma once
// g with X and g in fast memory: then S is not needed, nor W. For a row block I only A1_I and
// G_I = dO_I Y^T stay; a key that passes meets X first, s_ij = A1_i . (X A2_j), and what the
// row block sums up for it, T_j = sum_i p_ij A1_i, goes to g at once, as T_j A2_j^T. Two row
// blocks stay in place of three, for 4 d^2 flops a key and row block more: for M above 6 d^2.
// Given dO, O and L:
//
//   reads and writes   2 m d T + d^2 (T + 2) + 3 n d + n,   T = ceil(n / Br)
//
// Where there are few row blocks and room beside them, `resident` keys stay, too, and are read
// once: 2 resident d (T - 1) of the words less.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel backward_rows_xg();
Kernel backward_rows_xg_shared();  // A3 is A2, and m d T of the words less

}  // namespace redblue
