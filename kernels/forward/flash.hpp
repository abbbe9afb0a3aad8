#pragma once
// O and L in the manner of FlashAttention: S and h as in Algorithm 7, then a core in which a
// row block (S_I, O_I, running maximum and sum) stays and column blocks (A2_J, then h_J)
// pass; scores never leave the fast memory.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel forward_flash();

}  // namespace redblue
