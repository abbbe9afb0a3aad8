#pragma once
// The arithmetic of the check of results (reference.cpp) in double precision, compiled for each
// instruction set: products of panels, softmaxes of rows, and the variances of errors, pair by pair
// of a row and a key. Nothing here allocates, and threads share nothing.
//
// Variances are in units of the square of float32's unit roundoff. docs/theory/reference.md derives
// them, with these names.

#include "kernels/activation.hpp"
#include "memsim/words.hpp"

namespace redblue {

inline constexpr Index kBlockRows = 48;  // rows of a block
inline constexpr Index kKeyMultiple =
    48;  // of keys: any panel's width and any tile's rows divide it
inline constexpr double kDeadScore = -1e30;

// Words of a row of a panel: two vectors.
Index panel_width();

// C = A B, or C += A B, of a panel B: `depth` rows of panel_width() words, one after the other.
// Word (i, k) of A is A[i * row_step + k * depth_step]. Requires: rows is a multiple of 12.
struct PanelProduct {
  const double* A;
  Index row_step, depth_step, rows;
  const double* B;
  Index depth;
  double* C;
  Index C_step;
  bool adds;
};
void multiply(const PanelProduct& product);

// f = exp(s) / sum of exp(s) over a row; returns L, the logarithm of the sum. Dead pairs have the
// score kDeadScore; others have more. Requires, here and below: a multiple of kKeyMultiple keys.
double softmax(const double* s, double* f, Index keys);
// f = exp(s - L).
void exponentials(const double* s, double L, double* f, Index keys);
// f = phi(s) and slope = phi'(s) of another activation than softmax, 0 of dead pairs.
void activate(Activation activation, const double* s, double* f, double* slope, Index keys);

// What all pairs of a row share.
struct PairRow {
  // The variance of a score is s_keys kappa2 + s_others others2 + dot s^2, and likewise that of q.
  double s_keys = 0, s_others = 0, q_keys = 0, q_others = 0, dot = 0;
  double L = 0;
  double v = 0, v_error = 0;  // of a softmax: v, and its variance
  double f_error = 0;         // the variance of a factor that all f of the row have in common
  double rows2 = 0, values2 = 0, rows_error = 0;  // mean squares of S and dO; a variance of S
};

// What all pairs of a key share, by keys.
struct PairKeys {
  const double *kappa2, *others2, *nu2, *value_others2;  // squares of norms
  const double *key2, *value2;                           // large squares of words of K and V
  const double* value_mean2;                             // mean squares of words of V
};

// Sums over the keys of a row, of a softmax: with f, of f^2 times errors of f alone, and of q.
struct SoftmaxSums {
  double errors = 0, largest_error = 0, largest = 0;  // f^2 e; the largest f e, and e, e of f
  double O = 0, O_terms = 0;                          // f^2 e value2; f^2 value2
  double f2 = 0;                                      // squares of f
  double kappa2 = 0, value_mean2 = 0;                 // means by f
  double q = 0, q2 = 0, largest_q = 0;  // means by f of q and its square; and of all |q|
  double errors_q = 0, errors_q2 = 0, q_errors = 0, q_terms = 0;  // f^2 e q, f^2 e q^2, f^2 of q
};
// `q` may be null. Adds to the sums.
void add_softmax(const PairRow& row, const PairKeys& keys, const double* s, const double* f,
                 const double* q, Index first, Index end, SoftmaxSums& sums);

// Sums over the keys of a row.
struct RowSums {
  double O = 0, O_terms = 0;  // of other activations than softmax
  double W = 0, W_terms = 0;
};
// Sums over the rows of a key, by keys: variances and squares of terms of dV and dK.
struct KeySums {
  double *dV, *dV_terms, *dK, *dK_terms;
};
// p in place of q, and adds to the sums of rows and keys. `slope` is f where it is a softmax. `q`
// may be null: then there are no sums over rows.
void add_pairs(Activation activation, const PairRow& row, const PairKeys& keys, const double* s,
               const double* f, const double* slope, double* q, Index first, Index end,
               RowSums& sums, const KeySums& of_keys);

}  // namespace redblue
