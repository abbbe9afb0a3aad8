#pragma once
// O and L with rows in fast memory: for a row block I, S_I = A1_I X and the sum Z_I = e_I A3
// stay while keys pass (online softmax); then O_I = (Z_I / l_I) Y, so that h = A3 Y is never
// made. Nothing goes to the slow store but O and L:
//
//   reads and writes   2 m d T + 2 d^2 T + 2 n d + n,   T = ceil(n / Br)

#include "kernels/kernel.hpp"

namespace redblue {

Kernel forward_rows();
Kernel forward_rows_shared();  // A3 is A2, and m d T of the words less

}  // namespace redblue
