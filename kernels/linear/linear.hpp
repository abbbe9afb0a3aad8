#pragma once
// Linear attention, which has no activation and no matrix of n x m words:
//
//   O = A1 X (A2^T A3) Y;   given dO: g = A1^T dO (A2^T A3 Y)^T, its gradient for X
//
// and where a query meets the keys up to its own, the sum A2^T A3 of these alone.

#include "kernels/kernel.hpp"
#include "kernels/registry.hpp"

namespace redblue {

// What all kernels of the problem have: operands and results.
Kernel linear_kernel(LinearResult of);

}  // namespace redblue
