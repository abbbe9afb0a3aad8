#pragma once
// The kernel of skeleton.cpp, which is in no registry.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel skeleton();

}  // namespace redblue
