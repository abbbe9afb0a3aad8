#pragma once
// Matrices of doubles, and what roundings of float32 do, for references and their error bounds.

#include <algorithm>
#include <span>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// Exceeds u / (1 - u), and 4 of it -log(1 - 4u).
inline constexpr double kHalfUnit = 0x1p-24 * (1 + 1e-6);
inline constexpr double kSmallest = 0x1p-122;  // exceeds what underflow loses in a product
inline constexpr double kIndependent = 8;  // deviations, exceeded with a probability of 2 exp(-32)

struct Doubles {
  Doubles() = default;
  Doubles(Index r, Index c) : rows(r), cols(c), words(static_cast<std::size_t>(r * c)) {}
  Doubles(std::span<const float> from, Index r, Index c) : Doubles(r, c) {
    std::ranges::copy(from, words.begin());
  }
  double* operator[](Index i) { return words.data() + i * cols; }
  const double* operator[](Index i) const { return words.data() + i * cols; }

  Index rows = 0, cols = 0;
  std::vector<double> words;
};

}  // namespace redblue
