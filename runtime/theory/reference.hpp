#pragma once
// Computes the results that a kernel should have, in double precision, and the error allowed for
// each word of a float32 evaluation. The allowed error is 16 times the average error of roundings
// (root mean square), if they are independent and sums are made term by term. The estimate does not
// depend on the kernel. It is computed together with the results, from sums over the same pairs.
// docs/theory/reference.md derives it.
//
// All cores work on an evaluation, in O(n m d) time. It takes O((n + m) d) memory, and a block of
// rows times m for each core. The same input gives the same bits, on any number of cores.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernels/problem.hpp"
#include "memsim/words.hpp"

namespace redblue {

// A result, row-major. An `allowed` of infinity means that the scores are too large to bound the
// error.
struct Expected {
  std::vector<double> value, allowed;
};
using ExpectedResults = std::map<std::string, Expected, std::less<>>;  // by operand

// Without X and Y, A1, A2 and A3 are Q, K and V. O and L come together and count as exact data: f =
// exp(s - L), v = rowsum(dO o O).
struct AttentionInput {
  Shape shape;
  std::span<const float> A1, A2, A3, X, Y;  // n x d, m x d, m x dv, d x d, d x d
  std::span<const float> dO, O, L;          // n x dv, n x dv, n
  float scale = 1;
  Mask mask = {};  // words of dead queries and keys must be finite, too
  Activation activation = Activation::softmax;
  // If keys are values, dK (of plain inputs) and dA2 include the gradient of values. If queries are
  // keys, too, dQ of plain inputs is the sum of all three gradients.
  Sharing sharing = Sharing::none;
  std::vector<std::string_view> results = {};  // results to compute; L needs no A3 and no Y
  double g_terms = 0;  // sums that are added to a word of g, if more than n + m
  // Called now and then, by the calling thread, with the part that is done (0 to 1). If it throws,
  // the evaluation ends.
  std::function<void(double done)> step = nullptr;
};

// Throws: ShapeMismatch if a span or the mask does not have its size, or if inputs do not fit
// together.
[[nodiscard]] ExpectedResults evaluate(const AttentionInput& input);

// Returns O of linear attention; or g if dO is given, and then X is not read. Takes causal masks or
// none. O((n + m) d^2) time. Throws: as above.
[[nodiscard]] Expected evaluate_linear(const AttentionInput& input);

// Returns A (n x d) times B (d x m).
[[nodiscard]] Expected evaluate_product(Index n, Index m, Index d, std::span<const float> A,
                                        std::span<const float> B);

// Returns about the largest memory, in bytes, that evaluate() takes, including its results.
[[nodiscard]] Words evaluation_bytes(const Shape& shape);

// The element with the largest error in units of the allowed error, and facts about the whole
// matrix.
struct Deviation {
  double error = 0;
  double allowed = 0;
  Index index = -1;     // -1 if no element was compared
  bool ok = false;      // there are elements; each error is at most the allowed error, a finite one
  double largest = 0;   // the largest finite |value|
  double relative = 0;  // the largest error divided by `largest`; 0 without an error

  // Returns error / allowed; infinity if `allowed` is infinite.
  [[nodiscard]] double part() const;
};

// Throws: ShapeMismatch when the sizes differ.
[[nodiscard]] Deviation compare(std::span<const float> computed, const Expected& exact);

}  // namespace redblue
