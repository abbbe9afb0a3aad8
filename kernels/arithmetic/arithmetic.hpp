#pragma once
// Arithmetic on tiles and parts of tiles, in the vector instructions of this machine
// (kernels/arithmetic/simd.hpp). Functions move no words and keep no state. They report their
// operations to the machine of the tile that they change.
//
// Vectors run along rows of 16 words. In a product, the summed index must therefore not be the
// index along the vectors: a b and a^T b are supported. For a b^T, read b transposed, which costs
// no words.
//
// A column tile (r x 1) holds one word for each row of the other tiles, or for each column of a
// transposed tile.

#include <cstdint>
#include <limits>
#include <span>

#include "kernels/activation.hpp"
#include "memsim/layout.hpp"
#include "memsim/range.hpp"
#include "memsim/tile.hpp"

namespace redblue {

// In a product, the rows or columns of the streaming factor pass in order. Fast memory needs at
// least as many of them at once as registers hold; callers pass the number, or kAllOfIt.
inline constexpr Index kAllOfIt = std::numeric_limits<Index>::max();
inline constexpr Index kRegisterRows = 8, kRegisterColumns = kPanel;
// Largest number of words that a product holds in registers.
inline constexpr Index kRegisterCharge = 384;

// c += a b, or a^T b. Columns of b and c stream. At most kRegisterCharge words of c are needed at
// once.
void multiply_add(const ConstView& a, const ConstView& b, const View& c);
void multiply_add(const Transposed<ConstView>& a, const ConstView& b, const View& c,
                  Index columns = kAllOfIt);
// c = a b, or a^T b. Rows of `a` stream.
void multiply(const ConstView& a, const ConstView& b, const View& c, Index rows = kAllOfIt);
void multiply(const Transposed<ConstView>& a, const ConstView& b, const View& c);

// The maximum of an empty set. It is finite because exp(-inf - -inf) would be NaN.
inline constexpr float kNoMaximum = std::numeric_limits<float>::lowest();
// maximum_i = max(maximum_i, max_j s_ij). A NaN may be lost. Sums of exponentials of the row do not
// lose it.
void raise_maximum(const ConstView& s, const View& maximum);
void raise_maximum(const Transposed<ConstView>& s_t, const View& maximum);
// Same, and rescale_i = exp(old maximum_i - new maximum_i). Multiply sums of exponentials relative
// to the old maximum by this factor.
void raise_maximum(const ConstView& s, const View& maximum, const View& rescale);
void raise_maximum(const Transposed<ConstView>& s_t, const View& maximum, const View& rescale);
// f_ij = exp(s_ij - row_i); f may be s.
void exponentiate(const ConstView& s, const ConstView& row, const View& f);
void exponentiate(const Transposed<View>& s_t, const ConstView& row);  // in place
// Same in place, and sum_i += sum_j f_ij; with q also dots_i += sum_j f_ij q_ij. Requires: no score
// is more than 89 above row_i, except in a row with a NaN. There f may be any number, and the sum
// is NaN.
void exponentiate(const Transposed<View>& s_t, const ConstView& row, const View& sum);
void exponentiate(const Transposed<View>& s_t, const ConstView& row, const View& sum,
                  const Transposed<ConstView>& q_t, const View& dots);
// sum_i += sum_j a_ij.
void add_row_sums(const ConstView& a, const View& sum);
// sum_i += sum_j a_ij b_ij. Transposed factors stream by panels of columns.
void add_row_dots(const ConstView& a, const ConstView& b, const View& sum);
void add_row_dots(const Transposed<ConstView>& a_t, const Transposed<ConstView>& b_t,
                  const View& sum);
// a_ij *= factor_i.
void scale_rows(const View& a, const ConstView& factor);
// a_ij *= factor.
void scale(const View& a, float factor);
// a_ij *= b_ij.
void multiply_words(const View& a, const ConstView& b);
// a_ij -= row_i.
void subtract_rows(const View& a, const ConstView& row);
void subtract_rows(const Transposed<View>& a_t, const ConstView& row);
// a_ij -= factor_i b_ij.
void subtract_scaled_rows(const View& a, const ConstView& factor, const ConstView& b);
// f_ij = a_ij / divisor_i; f may be a.
void divide_rows(const ConstView& a, const ConstView& divisor, const View& f);
// a_ij /= divisor_i, if the divisor is not 0.
void divide_unless_0(const View& a, const ConstView& divisor);
// a_ij = value, for some columns of one row.
void fill_in_row(const View& a, Index row, Range columns, float value);
void fill_in_row(const Transposed<View>& a_t, Index row, Range columns, float value);
// a_ij = value, unless the bit of word j is set: bit j % 64 of kept[j / 64 * rows + i]. It reports
// no step: with a listener, call fill_in_row().
void keep_words(const View& a, std::span<const std::uint64_t> kept, float value);
// a_ij += b_ij.
void add(const View& a, const ConstView& b);
// maximum_i += log(sum_i). This turns the maximum into the log-sum-exp.
void add_logarithm(const View& maximum, const ConstView& sum);
// p_ij = f_ij (q_ij - v_i), the gradient of the scores. p may be f or q; with transposed tiles, p
// is q.
void softmax_gradient(const ConstView& f, const ConstView& q, const ConstView& v, const View& p);
void softmax_gradient(const Transposed<ConstView>& f_t, const ConstView& v,
                      const Transposed<View>& q_t);
// activate: f_ij = phi(s_ij); f may be s. activation_slope: slope_ij = phi'(s_ij).
// activation_gradient: p_ij = phi'(s_ij) q_ij; p may be s or q. Results are finite for every finite
// s. Requires: phi is not softmax.
void activate(Activation phi, const ConstView& s, const View& f);
void activation_slope(Activation phi, const ConstView& s, const View& slope);
void activation_gradient(Activation phi, const ConstView& s, const ConstView& q, const View& p);
// b_ij = a_ij.
void copy(const ConstView& a, const View& b);
// t = a^T.
void transpose(const ConstView& a, const View& t);

// The following products apply a function to the sums in registers before they store them. Rows of
// `a` stream.

// f^T = exp(a b - L): the transpose of f, with one word of L for each column.
void exponentiated_product(const ConstView& a, const ConstView& b, const ConstView& L,
                           const View& f_t, Index rows = kAllOfIt);
// c = a b - shift, with one word of shift for each column.
void shifted_product(const ConstView& a, const ConstView& b, const ConstView& shift, const View& c,
                     Index rows = kAllOfIt);
// p^T = f^T * (a b - v), which overwrites f^T. The sums a b stay in registers while f^T is live.
// `registers` is a tile of fast memory that pays for them.
void softmax_gradient_product(const ConstView& a, const ConstView& b, const ConstView& v,
                              const View& f_t, const Tile& registers, Index rows = kAllOfIt);
// p^T *= a b, with the same use of `registers`.
void multiplied_product(const ConstView& a, const ConstView& b, const View& p_t,
                        const Tile& registers, Index rows = kAllOfIt);

}  // namespace redblue
