#pragma once
// Arithmetic on sparse rows in fast memory: their words with the columns that these stand in, in
// their order; and with rows of tiles. These may be in fast memory for one computation alone: a
// caller takes their addresses when the last tile is made, and reports the operations.

#include <algorithm>
#include <span>
#include <type_traits>

#include "kernels/sparsity.hpp"
#include "memsim/layout.hpp"
#include "memsim/unchecked.hpp"
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

// The sum over l of a_l b_l, where both have an entry. `width` columns in all.
inline float dot(const SparseRow& a, const SparseRow& b, Index width) {
  float sum = 0;
  if (a.size() == width) {
    for (Index k = 0; k < b.size(); ++k) {
      sum += b.words[k] * a.words[b.columns[static_cast<std::size_t>(k)]];
    }
    return sum;
  }
  constexpr Index kMany = 16;  // times as many entries: it is quicker to look for a few
  const bool looks = a.size() > kMany * b.size();
  auto at = a.columns.begin();
  for (Index k = 0; k < b.size(); ++k) {
    const Index column = b.columns[static_cast<std::size_t>(k)];
    if (looks) {
      at = std::lower_bound(at, a.columns.end(), column);
    } else {
      while (at != a.columns.end() && *at < column) {
        ++at;
      }
    }
    if (at == a.columns.end()) {
      break;
    }
    if (*at == column) {
      sum += b.words[k] * a.words[at - a.columns.begin()];
    }
  }
  return sum;
}

// Row i of a tile, panel by panel: calls visit(its words there, those of the only row of `other`,
// how many), the number being a constant where the panel is whole.
template <class Word, class Visit>
void with_row(const BasicView<Word>& a, Index i, const ConstView& other, const Visit& visit) {
  for (Index p = 0; p < a.panels(); ++p) {
    const Index cols = Unchecked(a).panel_cols(p);
    Word* const words = Unchecked(a).at(i, p);
    const float* const of_other = Unchecked(other).at(0, p);
    if (cols == kPanel) {
      visit(words, of_other, std::integral_constant<Index, kPanel>());
    } else {
      visit(words, of_other, cols);
    }
  }
}

// a_i += factor b.
inline void add_scaled_row(const View& a, Index i, float factor, const ConstView& b) {
  with_row(a, i, b, [&](float* to, const float* from, auto cols) {
    for (Index l = 0; l < cols; ++l) {
      to[l] += factor * from[l];
    }
  });
}

// a_i *= factor.
inline void scale_row(const View& a, Index i, float factor) {
  with_row(a, i, a, [&](float* to, const float*, auto cols) {
    for (Index l = 0; l < cols; ++l) {
      to[l] *= factor;
    }
  });
}

// a_i . b.
inline float dot_row(const ConstView& a, Index i, const ConstView& b) {
  float lanes[kPanel] = {};
  with_row(a, i, b, [&](const float* of_a, const float* of_b, auto cols) {
    for (Index l = 0; l < cols; ++l) {
      lanes[l] += of_a[l] * of_b[l];
    }
  });
  float sum = 0;
  for (const float lane : lanes) {
    sum += lane;
  }
  return sum;
}

}  // namespace redblue
