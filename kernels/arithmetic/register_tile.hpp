#pragma once
// The shape of the tile that a product keeps in vector registers, from their number and width.

#include <algorithm>

#include "kernels/arithmetic/arithmetic.hpp"

namespace redblue {

// The registers hold the sums of the tile, one row of the passing factor, which is as wide as the
// tile, and one broadcast word of the other factor.
struct RegisterTile {
  int registers;
  int vectors;  // to a row of a panel

  // The most panels side by side. A row takes an eighth of the registers: the nearly square tile
  // loads the fewest words for its operations.
  [[nodiscard]] constexpr int panels() const { return std::max(registers / 8 / vectors, 1); }
  // As many rows as fit. Callers have kRegisterRows at a time.
  [[nodiscard]] constexpr int rows(int panels) const {
    const int wide = panels * vectors;
    return std::clamp((registers - 1 - wide) / wide, 1, static_cast<int>(kRegisterRows));
  }
};

}  // namespace redblue
