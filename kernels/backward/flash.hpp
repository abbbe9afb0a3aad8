#pragma once
// g, and dQ, dK, dV for Q = A1 X, K = A2, V = A3 Y, in the manner of FlashAttention: a column
// block (K_J, V_J and their gradients) stays, row blocks pass, and dQ_I is read, added to and
// written once a column block. Given dO, O and L. At last g = A1^T dQ.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel backward_flash();

}  // namespace redblue
