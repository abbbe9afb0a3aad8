#pragma once
// Double-precision arithmetic for the check of results (reference.cpp), compiled for each
// instruction set. It multiplies panels, takes softmaxes of rows, and sums the variances of errors
// over pairs of a row and a key. No function allocates memory, and threads share no data.
//
// Variances are in units of the square of float32's unit roundoff. docs/theory/reference.md derives
// them under the same names.

#include "kernels/activation.hpp"
#include "memsim/words.hpp"

namespace redblue {

inline constexpr Index kBlockRows = 48;  // rows in a block
inline constexpr Index kKeyMultiple =
    48;  // keys are padded to it; every panel width and tile height divides it
inline constexpr double kDeadScore = -1e30;

// Returns the words in a row of a panel: two vectors.
Index panel_width();

// C = A B, or C += A B if `adds`. B is one panel: `depth` consecutive rows of panel_width() words.
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

// Sets f = exp(s) / sum of exp(s) over the row, and returns L, the logarithm of the sum. Dead pairs
// have the score kDeadScore and live pairs a larger one. Requires, here and below: `keys` is a
// multiple of kKeyMultiple.
double softmax(const double* s, double* f, Index keys);
// Sets f = exp(s - L), and 0 for dead pairs.
void exponentials(const double* s, double L, double* f, Index keys);
// Sets f = phi(s) and slope = phi'(s) for an activation other than softmax, and 0 for dead pairs.
void activate(Activation activation, const double* s, double* f, double* slope, Index keys);

// Values that all pairs of a row share.
struct PairRow {
  // The variance of a score is s_keys kappa2 + s_others others2 + dot s^2. The variance of q is
  // q_keys nu2 + q_others value_others2 + dot q^2.
  double s_keys = 0, s_others = 0, q_keys = 0, q_others = 0, dot = 0;
  double L = 0;
  double v = 0, v_error = 0;  // softmax only: v, and its variance
  double f_error = 0;         // the variance of a factor that all f of the row share
  // Large mean squares of a row of S (or A1) and of dO, and a variance of the row of S (or A1).
  double rows2 = 0, values2 = 0, rows_error = 0;
};

// Values that all pairs of a key share, indexed by key.
struct PairKeys {
  // kappa2 and nu2 are the squared norms of K and V. The others are for the other order of
  // products, X A2^T and A3 Y first: a tenth of the squared norm plus a variance.
  const double *kappa2, *others2, *nu2, *value_others2;
  const double *key2, *value2;  // large mean squares of words of K and V
  const double* value_mean2;    // mean squares of words of V
};

// Sums over the keys of a row, for softmax. e is the variance of f in units of f^2.
struct SoftmaxSums {
  double errors = 0, largest_error = 0, largest = 0;  // sum of f^2 e; largest f e; largest e
  double O = 0, O_terms = 0;                          // sums of f^2 e value2 and f^2 value2
  double f2 = 0;                                      // sum of f^2
  double kappa2 = 0, value_mean2 = 0;                 // means weighted by f
  double q = 0, q2 = 0, largest_q = 0;  // means of q and q^2 weighted by f; largest |q|
  // Sums of f^2 e q, f^2 e q^2, f^2 times the variance of q, and f^2 q^2.
  double errors_q = 0, errors_q2 = 0, q_errors = 0, q_terms = 0;
};
// Adds the keys from `first` to `end` (exclusive) to the sums. `q` may be null.
void add_softmax(const PairRow& row, const PairKeys& keys, const double* s, const double* f,
                 const double* q, Index first, Index end, SoftmaxSums& sums);

// Sums over the keys of a row: variances, and squares of terms.
struct RowSums {
  double O = 0, O_terms = 0;  // only for activations other than softmax
  double W = 0, W_terms = 0;
};
// Sums over the rows of each key, indexed by key: variances and squares of terms of dV and dK.
struct KeySums {
  double *dV, *dV_terms, *dK, *dK_terms;
};
// Replaces q by p and adds the keys from `first` to `end` (exclusive) to the sums of the row and of
// the keys. Softmax reads f, not `slope`. If `q` is null, only O and O_terms change.
void add_pairs(Activation activation, const PairRow& row, const PairKeys& keys, const double* s,
               const double* f, const double* slope, double* q, Index first, Index end,
               RowSums& sums, const KeySums& of_keys);

}  // namespace redblue
