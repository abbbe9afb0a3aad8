#pragma once
// The result that a float32 kernel should have computed, and how far from it any order of its
// operations may end: a double-precision evaluation of attention and of its gradient, each element
// with a forward error bound that is derived, not measured.
//
// The bound holds for every kernel of the following kind. It forms S = A1 X, s = S A2^T, h = A3 Y
// and q = dO h^T in these associations, and sums in any order. It keeps the row maximum (at once or
// online, with rescaling). It has f as exp(s - L) or as e / l; v as rowsum(f o q) or as
// rowsum(dO o O); p as f o (q - v) or as f o q - f o v; g in either association. Chains describes
// other kernels: Y may meet the rows, X the keys, and a running mean of q may replace v. The bound
// assumes round to nearest, exp and log of relative error at most 2^-22, and no overflow; underflow
// may be gradual or flushed. docs/theory/reference.md has the derivation.
//
// A bound may be infinite (scores of an error beyond what exp can carry). Nothing is then stated
// about the element, and compare() does not accept it.
//
// `expected` is the error that independent roundings explain. The bound adds up roundings as if all
// conspired, and for g of some thousand rows it says little. `expected` takes each rounding as
// u xi, with independent xi of mean zero, |xi| <= 1, to first order in u. An error then exceeds
// 8 u ||c||_2, c its sensitivities to the single roundings, with probability below 3e-14
// (Hoeffding; see Higham and Mary, SIAM J. Sci. Comput. 41 (2019) A2815). For g it also assumes
// that kernels pass through rows and keys in order. It is no theorem about a kernel: equal rows,
// constant matrices or words that are all rounded the same way make roundings depend on each other.
// An error above `expected` is a warning; an error above `bound` is a verdict.
//
// O(n m d) time on one thread, O((n + m) d) memory.

#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "kernels/problem.hpp"
#include "memsim/words.hpp"

namespace redblue {

// All row-major. dO, O and L may be empty. O and L come together, and count as exact data:
// f = exp(s - L), v = rowsum(dO o O). They are for kernels that use them, and for no others.
// Without X and Y, A1, A2 and A3 are Q, K and V: s = scale Q K^T, and dQ = scale p K; there is no
// g.
struct AttentionInput {
  Shape shape;
  std::span<const float> A1, A2, A3, X, Y;  // n x d, m x d, m x dv, d x d, d x d
  std::span<const float> dO, O, L;          // n x dv, n x dv, n
  float scale = 1;
  // f = p = 0 of dead pairs; of a query without a key, O = 0 and L = -inf. All words are finite,
  // those of dead queries and keys, too.
  Mask mask = {};
  // Of another than softmax there is no L, neither O nor L is given, and of Chains `g` alone
  // counts.
  Activation activation = Activation::softmax;
  // Called now and then; what it throws ends the evaluation.
  std::function<void()> stop = nullptr;
};

// |computed - value| <= bound, element by element; row-major. expected <= bound is what
// independent roundings explain. Neither is ever NaN.
struct Bounded {
  std::vector<double> value, bound, expected;
};

struct Reference {
  Bounded O, L;           // empty if O and L are given
  Bounded g, dQ, dK, dV;  // empty if dO is not given
};

// dK of it becomes dK + dV, which is no result then.
void join_dK_and_dV(Reference& reference);

// The lengths of a kernel's chains of roundings that the shape does not determine.
struct Chains {
  // The most roundings between one p_ij and one word of g, where these are more than the n + m of
  // (A1^T p) A2 and A1^T (p A2): where partial products are added into g.
  double g = 0;
  // The most rescales of a row's sum and accumulators: the number of key blocks less one, 0 if the
  // maximum is known first. m - 1 is always enough.
  double rescales = std::numeric_limits<double>::infinity();
  // If more than 1, so many groups of keys each leave O and L, rounded to words, from which the
  // row's are made. Rescales of the merge, one less, are in `rescales`. With a running mean they
  // leave U, Z, maximum, sum and mean, and moves of the merge, one less, are in `recentred_blocks`.
  double key_groups = 1;
  // X meets the keys, and S = A1 X is never formed: s = A1 (X A2^T).
  bool X_meets_keys = false;
  // Y meets the rows, and h = A3 Y is never formed: q = (dO Y^T) A3^T and O = (f A3) Y, or O from
  // sums of e A3 that l divides before Y or after.
  bool Y_meets_rows = false;
  // If not 0, the kernel is one pass over at most this many blocks of keys with a running mean of
  // q, see "A running mean" in docs/theory/reference.md: W = U / l, g = A1^T W, dQ = W. It takes no
  // O and L. With weights it gives no dK and dV, which stay empty; without, a second pass makes
  // them with L and v of the first. `g` then counts from a word of W to one of g. `rescales` is not
  // read: it is the blocks less one.
  double recentred_blocks = 0;
  // Values are keys, and there is one sum for dK + dV, of p^T S and f^T dO in any order: it is in
  // `dK` of the reference, and `dV` stays empty. Without weights.
  bool joins_dK_and_dV = false;
};

// Throws: ShapeMismatch if a span does not have its size, or if O and L are given where q is
// recentred.
[[nodiscard]] Reference evaluate(const AttentionInput& input, Chains chains);

// The gradients of a layer beside dX, which is g, and dA2, which is dK. Products are summed in any
// order.
struct LayerReference {
  Bounded dA1, dA3, dY;  // dQ X^T, dV Y^T, A3^T dV
  // Where A3 is A2: dK + dV Y^T, of which dK is a matrix that the product is added to. Then there
  // is no dA3.
  Bounded dA2;
};
// Throws: ShapeMismatch unless it is a reference of this input, which has X and Y, with dQ and dV.
[[nodiscard]] LayerReference evaluate_layer(const AttentionInput& input, const Reference& reference,
                                            Sharing sharing = Sharing::none);

// About the most memory, in bytes, that evaluate() takes for its matrices and the reference.
[[nodiscard]] Words evaluation_bytes(const Shape& shape);

// A (n x d) times B (d x m), summed in any order.
[[nodiscard]] Bounded evaluate_product(Index n, Index m, Index d, std::span<const float> A,
                                       std::span<const float> B);

// The element that comes closest to its bound, or exceeds it most; and the whole matrix.
struct Deviation {
  double error = 0;
  double bound = 0;
  double expected = 0;
  Index index = -1;  // -1 if nothing was compared
  // True if there are elements, and each is finite, has a finite bound and keeps it.
  bool ok = false;
  // The same for `expected`: false without a false `ok` is a warning.
  bool explained = false;
  double largest = 0;   // of all |value|
  double relative = 0;  // the largest of all errors in units of `largest`; 0 without an error
};

// Throws: ShapeMismatch when the sizes differ.
[[nodiscard]] Deviation compare(std::span<const float> computed, const Bounded& exact);

}  // namespace redblue
