#pragma once
// Tells listeners of arithmetic that runs word by word. A word is named by its address in fast
// memory.

#include <initializer_list>
#include <string_view>

#include "kernels/arithmetic/telling.hpp"
#include "memsim/machine.hpp"

namespace redblue {

// All require: a listener hears arithmetic.

// sum += a b, or sum = a b.
void tell_term(Machine& machine, const float* a, const float* b, const float* sum,
               Old old = Old::taken);
// word = name(word, operands) if `old` is taken, else word = name(operands).
void tell_map(Machine& machine, std::string_view name, const float* word, Old old,
              std::initializer_list<const float*> operands, float constant = 0);
// word = name(word, term).
void tell_fold(Machine& machine, std::string_view name, const float* word, const float* term);
// sum += a b.
void tell_product(const ToldPart& a, const ToldPart& b, const ToldPart& sum);
// a_i += factor_k b, for a tile b of one row.
void tell_scaled_row(const View& a, Index i, const ConstView& factors, Index k, const ConstView& b);
// a_i *= factor.
void tell_scale_row(const View& a, Index i, const ConstView& factor);
// to_jk += a_i . b.
void tell_dot_row(const ConstView& a, Index i, const ConstView& b, const View& to, Index j,
                  Index k);

// Returns a row, or a word, of a tile.
inline ToldPart row_of(const ConstView& a, Index i) {
  return {a, {i, i + 1}, {0, a.cols()}};
}
inline ToldPart word_of(const ConstView& a, Index i, Index j) {
  return {a, {i, i + 1}, {j, j + 1}};
}

}  // namespace redblue
