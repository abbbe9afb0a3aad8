#pragma once
// Arithmetic on tiles. It works on them directly, moves nothing, keeps nothing, and reports
// its operations to the machine of the tile that it changes. A column tile (r x 1) holds one
// word for each row of the others.

#include "memsim/tile.hpp"

namespace redblue {

// Names the transpose of a tile or of a slow matrix, without making it.
template <class Matrix>
struct Transposed {
  const Matrix& of;
};
template <class Matrix>
Transposed<Matrix> transposed(const Matrix& matrix) {
  return {matrix};
}

// c += a b, with either factor transposed.
void multiply_add(const Tile& a, const Tile& b, Tile& c);
void multiply_add(const Tile& a, Transposed<Tile> b, Tile& c);
void multiply_add(Transposed<Tile> a, const Tile& b, Tile& c);

// maximum_i = max(maximum_i, max_j s_ij).
void raise_maximum(const Tile& s, Tile& maximum);
// The same, and rescale_i = exp(the old maximum_i - the new): what sums of exponentials
// relative to the old maximum must be multiplied by.
void raise_maximum(const Tile& s, Tile& maximum, Tile& rescale);
// s_ij = exp(s_ij - row_i).
void exponentiate(Tile& s, const Tile& row);
// f_ij = exp(s_ij - row_i).
void exponentiate(const Tile& s, const Tile& row, Tile& f);
// sum_i += sum_j a_ij.
void add_row_sums(const Tile& a, Tile& sum);
// sum_i += sum_j a_ij b_ij.
void add_row_dots(const Tile& a, const Tile& b, Tile& sum);
// a_ij *= factor_i.
void scale_rows(Tile& a, const Tile& factor);
// f_ij = a_ij / divisor_i; f may be a.
void divide_rows(const Tile& a, const Tile& divisor, Tile& f);
// maximum_i += log(sum_i): the log-sum-exp, where the maximum stood.
void add_logarithm(Tile& maximum, const Tile& sum);
// p_ij = f_ij (q_ij - v_i): the gradient of the scores; p may be q.
void softmax_gradient(const Tile& f, const Tile& q, const Tile& v, Tile& p);

}  // namespace redblue
