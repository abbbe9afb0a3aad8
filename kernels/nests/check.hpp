#pragma once
// The checks of a nest that need no sizes: names fit matrices, tiles live when they are used, temps
// are written before they are read, and results are written whole.

#include "kernels/nests/text_nest.hpp"

namespace redblue {

// Throws: NestError.
void check(const TextNest& nest);

}  // namespace redblue
