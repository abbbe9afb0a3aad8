#pragma once
// C = A B with three B x B blocks in fast memory, B = floor(sqrt(M / 3)).

#include "kernels/kernel.hpp"

namespace redblue {

Kernel matmul_blocked();

}  // namespace redblue
