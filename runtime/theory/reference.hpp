#pragma once
// The results that a kernel should have, in double precision, and how far from each word a float32
// evaluation may end: 16 times the error that roundings cause on average (root mean square), when
// they are independent and sums are made term by term. The estimate knows no kernel. It is made of
// sums over the same pairs, beside the results; docs/theory/reference.md derives it.
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

// Row-major. An `allowed` of infinity says that the scores are too large for any statement.
struct Expected {
  std::vector<double> value, allowed;
};
using ExpectedResults = std::map<std::string, Expected, std::less<>>;  // by operand

// Without X and Y, A1, A2 and A3 are Q, K and V. O and L come together, and count as exact data:
// f = exp(s - L), v = rowsum(dO o O).
struct AttentionInput {
  Shape shape;
  std::span<const float> A1, A2, A3, X, Y;  // n x d, m x d, m x dv, d x d, d x d
  std::span<const float> dO, O, L;          // n x dv, n x dv, n
  float scale = 1;
  Mask mask = {};  // all words are finite, those of dead queries and keys, too
  Activation activation = Activation::softmax;
  Sharing sharing = Sharing::none;  // dK of plain inputs, and dA2, have the gradient of values
  std::vector<std::string_view> results = {};  // L needs no A3 and no Y
  double g_terms = 0;  // sums that are added to a word of g, where these are more than n + m
  // Called now and then, by the thread that called, with the part that is done. What it throws ends
  // the evaluation.
  std::function<void(double done)> step = nullptr;
};

// Throws: ShapeMismatch if a span does not have its size, or for a result that there is not.
[[nodiscard]] ExpectedResults evaluate(const AttentionInput& input);

// O of linear attention, or g where dO is given, of which X is not read. Causal masks or none. O((n
// + m) d^2) time. Throws: as above.
[[nodiscard]] Expected evaluate_linear(const AttentionInput& input);

// A (n x d) times B (d x m).
[[nodiscard]] Expected evaluate_product(Index n, Index m, Index d, std::span<const float> A,
                                        std::span<const float> B);

// About the most memory, in bytes, that evaluate() takes, with its results.
[[nodiscard]] Words evaluation_bytes(const Shape& shape);

// The element with the largest part of what is allowed; and the whole matrix.
struct Deviation {
  double error = 0;
  double allowed = 0;
  Index index = -1;     // -1 if nothing was compared
  bool ok = false;      // there are elements, all finite, and none is further off than is allowed
  double largest = 0;   // of all |value|
  double relative = 0;  // the largest of all errors in units of `largest`; 0 without an error

  // Of what is allowed; infinite where it is infinite.
  [[nodiscard]] double part() const;
};

// Throws: ShapeMismatch when the sizes differ.
[[nodiscard]] Deviation compare(std::span<const float> computed, const Expected& exact);

}  // namespace redblue
