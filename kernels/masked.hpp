#pragma once
// Kernels under masks. A kernel that asks its problem which keys its queries meet becomes one that
// takes every mask. It works on live queries and keys alone, as if there were no others: dead ones
// are not read. Their results are written in a phase `dead`: 0, and minus infinity for L.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel with_masks(Kernel kernel);

}  // namespace redblue
