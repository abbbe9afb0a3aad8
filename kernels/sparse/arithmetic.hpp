#pragma once
// Arithmetic on sparse rows in fast memory, and between them and rows of tiles. A sparse row is its
// words with their columns, in order. Addresses are valid only until the next tile is made. So the
// caller takes them after the last tile is made, and reports the operations. These functions tell
// listeners of their arithmetic, except dot_row().

#include <algorithm>
#include <span>
#include <type_traits>

#include "kernels/sparse/telling.hpp"
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

// word = value.
inline void fill_word(Machine& machine, float* word, float value) {
  *word = value;
  if (machine.is_heard()) [[unlikely]] {
    tell_map(machine, "fill", word, Old::overwritten, {}, value);
  }
}

// to_l += factor a_l.
inline void add_scaled(Machine& machine, const SparseRow& a, const float* factor, float* to) {
  const float by = *factor;
  for (Index k = 0; k < a.size(); ++k) {
    to[a.columns[static_cast<std::size_t>(k)]] += by * a.words[k];
  }
  if (machine.is_heard()) [[unlikely]] {
    for (Index k = 0; k < a.size(); ++k) {
      tell_term(machine, factor, a.words + k, to + a.columns[static_cast<std::size_t>(k)]);
    }
  }
}

// The same for a `to` that has words for `columns` alone. Requires: `columns` contains a's columns.
inline void add_scaled(Machine& machine, const SparseRow& a, const float* factor,
                       std::span<const Index> columns, float* to) {
  const float by = *factor;
  auto at = columns.begin();
  for (Index k = 0; k < a.size(); ++k) {
    at = std::lower_bound(at, columns.end(), a.columns[static_cast<std::size_t>(k)]);
    to[at - columns.begin()] += by * a.words[k];
    if (machine.is_heard()) [[unlikely]] {
      tell_term(machine, factor, a.words + k, to + (at - columns.begin()));
    }
  }
}

// Calls visit(a_l, b_l) for each column in which both rows have an entry. `width` is the number of
// all columns.
template <class Visit>
void each_common(const SparseRow& a, const SparseRow& b, Index width, const Visit& visit) {
  if (a.size() == width) {
    for (Index k = 0; k < b.size(); ++k) {
      visit(a.words + b.columns[static_cast<std::size_t>(k)], b.words + k);
    }
    return;
  }
  constexpr Index kMany = 16;  // if a has this many times more entries, binary search is faster
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
      visit(a.words + (at - a.columns.begin()), b.words + k);
    }
  }
}

// to = the sum of a_l b_l over the columns l in which both have an entry.
inline void dot(Machine& machine, const SparseRow& a, const SparseRow& b, Index width, float* to) {
  float sum = 0;
  each_common(a, b, width, [&](const float* of_a, const float* of_b) { sum += *of_b * *of_a; });
  *to = sum;
  if (machine.is_heard()) [[unlikely]] {
    tell_map(machine, "fill", to, Old::overwritten, {});
    each_common(a, b, width,
                [&](const float* of_a, const float* of_b) { tell_term(machine, of_a, of_b, to); });
  }
}

// Walks row i of a tile, panel by panel. Calls visit(words there, words of the only row of `other`,
// number of words). The number is a compile-time constant for a whole panel.
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

// a_i += factor b, with the factor in word (k, 0) of a tile.
inline void add_scaled_row(const View& a, Index i, const ConstView& factors, Index k,
                           const ConstView& b) {
  const float factor = factors(k, 0);
  with_row(a, i, b, [&](float* to, const float* from, auto cols) {
    for (Index l = 0; l < cols; ++l) {
      to[l] += factor * from[l];
    }
  });
  if (a.machine().is_heard()) [[unlikely]] {
    tell_scaled_row(a, i, factors, k, b);
  }
}

// a_i *= factor, with the factor in a tile of one word.
inline void scale_row(const View& a, Index i, const ConstView& factor) {
  const float by = factor(0, 0);
  with_row(a, i, a, [&](float* to, const float*, auto cols) {
    for (Index l = 0; l < cols; ++l) {
      to[l] *= by;
    }
  });
  if (a.machine().is_heard()) [[unlikely]] {
    tell_scale_row(a, i, factor);
  }
}

// Returns a_i . b. The caller tells listeners, once for many calls: this is the inner loop of
// tiles.
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
