#pragma once
// The kernel of skeleton.cpp, which is not in the registry.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel skeleton();

}  // namespace redblue
