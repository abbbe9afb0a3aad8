#pragma once
// C = A B with one block of one of the three matrices in fast memory while the others pass it:
// kernels/parts/stationary.hpp has the words.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel matmul_stationary_a();
Kernel matmul_stationary_b();
Kernel matmul_stationary_c();

}  // namespace redblue
