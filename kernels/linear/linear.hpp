#pragma once
// Linear attention, which has no activation and no matrix of n x m words:
//
//   O = A1 X (A2^T A3) Y;   given dO: g = A1^T dO (A2^T A3 Y)^T, its gradient for X
//
// Under the causal mask, each query uses the sum A2^T A3 of the keys up to its own.

#include "kernels/kernel.hpp"
#include "kernels/registry.hpp"

namespace redblue {

// Returns a kernel with the operands and results that all kernels of linear attention share.
Kernel linear_kernel(LinearResult of);

}  // namespace redblue
