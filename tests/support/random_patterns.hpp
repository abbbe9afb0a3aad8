#pragma once
// Random patterns of stored entries.

#include <random>

#include "kernels/sparsity.hpp"

namespace redblue {

// Returns a pattern in which each entry is stored with probability `density`.
inline BlockPattern random_pattern(std::mt19937_64& random, Index rows, Index cols,
                                   double density) {
  BlockPattern found{rows, cols, 1, 1, {0}, {}};
  std::bernoulli_distribution stored(density);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < cols; ++j) {
      if (stored(random)) {
        found.columns.push_back(j);
      }
    }
    found.offsets.push_back(found.stored());
  }
  return found;
}

inline BlockPattern identity_pattern(Index size) {
  BlockPattern found{size, size, 1, 1, {0}, {}};
  for (Index i = 0; i < size; ++i) {
    found.columns.push_back(i);
    found.offsets.push_back(i + 1);
  }
  return found;
}

}  // namespace redblue
