#pragma once
// Computes the shape of the tile that a product holds in vector registers, from their number and
// width.

#include <algorithm>

#include "kernels/arithmetic/arithmetic.hpp"

namespace redblue {

// The registers hold three things: the sums of the tile, one row of the streaming factor (as wide
// as the tile), and one broadcast word of the other factor.
struct RegisterTile {
  int registers;
  int vectors;  // in a row of a panel

  // Returns the largest number of panels side by side. A row takes an eighth of the registers,
  // because a nearly square tile loads the fewest words per operation.
  [[nodiscard]] constexpr int panels() const { return std::max(registers / 8 / vectors, 1); }
  // Returns as many rows as fit. Callers have kRegisterRows in fast memory at once.
  [[nodiscard]] constexpr int rows(int panels) const {
    const int wide = panels * vectors;
    return std::clamp((registers - 1 - wide) / wide, 1, static_cast<int>(kRegisterRows));
  }
};

}  // namespace redblue
