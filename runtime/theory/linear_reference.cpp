#include "runtime/theory/linear_reference.hpp"

// docs/theory/reference.md derives the bounds evaluated here.

#include <algorithm>
#include <cmath>
#include <functional>

#include "memsim/errors.hpp"
#include "runtime/theory/doubles.hpp"

namespace redblue {
namespace {

Doubles mapped(std::span<const float> from, Index rows, Index cols,
               const std::function<double(double)>& map) {
  Doubles made(from, rows, cols);
  std::ranges::transform(made.words, made.words.begin(), map);
  return made;
}

// C += the rows of A^T with the rows of B.
void add_rows(const Doubles& A, const Doubles& B, Range rows, Doubles& C) {
  for (Index i = rows.begin; i < rows.end; ++i) {
    for (Index k = 0; k < A.cols; ++k) {
      for (Index j = 0; j < B.cols; ++j) {
        C[k][j] += A[i][k] * B[i][j];
      }
    }
  }
}

// The rows of A times B.
Doubles times(const Doubles& A, Range rows, const Doubles& B) {
  Doubles C(rows.size(), B.cols);
  for (Index i = 0; i < rows.size(); ++i) {
    for (Index k = 0; k < A.cols; ++k) {
      for (Index j = 0; j < B.cols; ++j) {
        C[i][j] += A[rows.begin + i][k] * B[k][j];
      }
    }
  }
  return C;
}

Doubles flipped(const Doubles& A) {
  Doubles T(A.cols, A.rows);
  for (Index i = 0; i < A.rows; ++i) {
    for (Index j = 0; j < A.cols; ++j) {
      T[j][i] = A[i][j];
    }
  }
  return T;
}

// O, or g where dO is given, of the operands with a function of each word: without an error that
// float32 would see.
Doubles evaluate(const AttentionInput& input, const std::function<double(double)>& map) {
  const auto [n, m, d] = input.shape;
  const bool makes_g = !input.dO.empty();
  const Doubles A1 = mapped(input.A1, n, d, map);
  const Doubles A2 = mapped(input.A2, m, d, map);
  const Doubles A3 = mapped(input.A3, m, d, map);
  const Doubles Y = mapped(input.Y, d, d, map);
  const Doubles other = mapped(makes_g ? input.dO : input.X, makes_g ? n : d, d, map);
  const Range all{0, d};
  Doubles S(d, d);
  if (input.mask.full()) {
    add_rows(A2, A3, {0, m}, S);
    const Doubles T = times(S, all, Y);
    if (!makes_g) {
      return times(A1, {0, n}, times(other, all, T));
    }
    Doubles U(d, d);
    add_rows(A1, other, {0, n}, U);
    return times(U, all, flipped(T));
  }
  Doubles result(makes_g ? d : n, d);
  const Doubles Y_T = flipped(Y);
  Doubles S_T(d, d);
  for (Index i = std::max<Index>(n - m, 0); i < n; ++i) {
    const Index first = i == 0 || i == n - m ? 0 : i + m - n;
    const Range query{i, i + 1};
    const Range keys{first, i + m - n + 1};
    if (makes_g) {
      add_rows(A3, A2, keys, S_T);
      const Doubles W = times(times(other, query, Y_T), {0, 1}, S_T);
      Doubles a1(1, d);
      std::copy_n(A1[i], d, a1[0]);
      add_rows(a1, W, {0, 1}, result);
    } else {
      add_rows(A2, A3, keys, S);
      const Doubles O = times(times(times(A1, query, other), {0, 1}, S), {0, 1}, Y);
      std::copy_n(O[0], d, result[i]);
    }
  }
  return result;
}

}  // namespace

Bounded evaluate_linear(const AttentionInput& input, double further) {
  const auto [n, m, d] = input.shape;
  const bool makes_g = !input.dO.empty();
  const auto has = [](std::span<const float> words, Words count) {
    return Words(std::ssize(words)) == count;
  };
  require(has(input.A1, Words(n) * d) && has(input.A2, Words(m) * d) &&
              has(input.A3, Words(m) * d) && has(input.Y, Words(d) * d) &&
              (makes_g ? has(input.dO, Words(n) * d) : has(input.X, Words(d) * d)),
          "A1, A2, A3, Y, and X or dO have the extents of the shape");
  require(input.mask.full() || input.mask == Mask::causal(n, m), "all pairs, or the causal ones");
  const double width = static_cast<double>(d);
  const double rows = static_cast<double>(m) + (makes_g ? static_cast<double>(n) : width);
  const double roundings = rows + 2 * width + 4 + further;
  const double bound = std::expm1(roundings * kHalfUnit);
  const double expected = kIndependent * 0x1p-24 * std::sqrt(roundings);
  Bounded result;
  result.value = evaluate(input, [](double x) { return x; }).words;
  const Doubles sizes = evaluate(input, [](double x) { return std::abs(x); });
  const Doubles more = evaluate(input, [](double x) { return std::abs(x) + 1; });
  for (std::size_t k = 0; k < sizes.words.size(); ++k) {
    const double lost = 8 * kSmallest * more.words[k];
    result.bound.push_back((bound * sizes.words[k] + lost) * (1 + 1e-6));
    result.expected.push_back(
        std::min(result.bound.back(), (expected * sizes.words[k] + lost) * (1 + 1e-6)));
  }
  return result;
}

}  // namespace redblue
