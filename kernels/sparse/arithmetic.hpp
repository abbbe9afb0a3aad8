#pragma once
// Arithmetic on sparse rows in fast memory: their words with the columns that these stand in, in
// their order.

#include <algorithm>
#include <span>

#include "kernels/sparsity.hpp"
#include "memsim/words.hpp"

namespace redblue {

struct SparseRow {
  std::span<const Index> columns;
  const float* words;

  [[nodiscard]] Index size() const { return std::ssize(columns); }
};

// to_l += factor a_l.
inline void add_scaled(const SparseRow& a, float factor, float* to) {
  for (Index k = 0; k < a.size(); ++k) {
    to[a.columns[static_cast<std::size_t>(k)]] += factor * a.words[k];
  }
}

}  // namespace redblue
