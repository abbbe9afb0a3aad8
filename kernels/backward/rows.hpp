#pragma once
// g with rows in fast memory: for a row block I, S_I = A1_I X, G_I = dO_I Y^T and the sum
// W_I = p_I A2 stay while keys pass (q_ij = G_i . A3_j, so that h = A3 Y is never made); then
// A1_I^T W_I is added to g. Given dO, O and L. Nothing goes to the slow store but g:
//
//   reads and writes   2 m d T + 4 d^2 T - d^2 + (4 d - kept) n + n,   T = ceil(n / Br)
//
// where `kept` columns of A1_I stay until they meet W_I.
//
// rows-w is for fast memories below 3 d^2, where T is large: W goes to the slow store and
// g = A1^T W is a product; S and G, too, are products where that moves fewer words.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel backward_rows();
Kernel backward_rows_shared();  // A3 is A2, and m d T of the words less
Kernel backward_rows_w();
Kernel backward_rows_w_shared();

}  // namespace redblue
