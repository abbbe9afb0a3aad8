#pragma once
// Reads the text of a nest.

#include <cstddef>

namespace redblue {

// The most operands that wait in a size at once, and the most loops and phases around a line.
inline constexpr std::size_t kDeepest = 32;

}  // namespace redblue
