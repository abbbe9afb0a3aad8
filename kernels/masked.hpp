#pragma once
// Kernels under masks. A kernel that asks its problem which keys its queries meet is made one that
// takes every mask: it works on live queries and keys alone, as if there were no others, so that
// dead ones are not read; what it returns of these is written in a phase `dead`, 0, and
// minus infinity for L.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel with_masks(Kernel kernel);

}  // namespace redblue
