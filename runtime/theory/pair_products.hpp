#pragma once
// Sums of products of a row and a key, of which one side may itself be a product of matrices, with
// what the roundings of both do to them: scores and q of runtime/theory/activation_reference.cpp.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/theory/doubles.hpp"

namespace redblue {

// What k roundings do to a term at most; and, to first order, where they are independent.
inline double rho_at_most(double k) {
  return std::expm1(k * kHalfUnit);
}
inline double rho_independent(double k) {
  return kIndependent * 0x1p-24 * std::sqrt(k);
}

inline double sum_of_products(const double* a, const double* b, Index words) {
  double sum = 0;
  for (Index k = 0; k < words; ++k) {
    sum += a[k] * b[k];
  }
  return sum;
}

inline double sum_of_sizes(const double* a, const double* b, Index words) {
  double sum = 0;
  for (Index k = 0; k < words; ++k) {
    sum += std::abs(a[k] * b[k]);
  }
  return sum;
}

// A B, or of absolute values |A| |B|.
template <class Of>
Doubles matrix_product(const Doubles& A, const Doubles& B, Of of) {
  Doubles C(A.rows, B.cols);
  for (Index i = 0; i < A.rows; ++i) {
    for (Index k = 0; k < A.cols; ++k) {
      const double a = of(A[i][k]);
      for (Index j = 0; j < B.cols; ++j) {
        C[i][j] += a * of(B[k][j]);
      }
    }
  }
  return C;
}

// A matrix that is given, without errors; or a product, whose words are off by no more than
// rho(depth) times `size`, the same of absolute values, each with separate roundings.
struct Factor {
  Factor() = default;
  explicit Factor(Doubles given) : value(std::move(given)) {}
  Factor(const Doubles& A, const Doubles& B)
      : value(matrix_product(A, B, [](double x) { return x; })),
        size(matrix_product(A, B, [](double x) { return std::abs(x); })),
        depth(static_cast<double>(A.cols)) {}

  [[nodiscard]] bool made() const { return depth > 0; }
  [[nodiscard]] double bound(Index i, Index k) const {
    return made() ? rho_at_most(depth) * size[i][k] : 0;
  }
  [[nodiscard]] double expected(Index i, Index k) const {
    return made() ? rho_independent(depth) * size[i][k] : 0;
  }

  Doubles value, size;
  double depth = 0;
};

// An error: at most; and what is expected of the roundings that a row has in common, of those that
// a key has, and of those of the pair alone.
struct PairError {
  double bound = 0, by_row = 0, by_key = 0, own = 0;
};

// Of row i and key j, left_i . right_j, summed with so many roundings. One side at most is made.
class PairProducts {
 public:
  PairProducts() = default;
  PairProducts(const Factor& left, const Factor& right, double roundings)
      : width_(left.value.cols),
        rows_(of(left, roundings, !right.made())),
        keys_(of(right, roundings, right.made())),
        own_(rho_independent(roundings)) {}

  [[nodiscard]] double value(Index i, Index j) const {
    return sum_of_products(rows_.value[i], keys_.value[j], width_);
  }
  [[nodiscard]] PairError error(Index i, Index j) const {
    const double row = rows_.norms[static_cast<std::size_t>(i)];
    const double key = keys_.norms[static_cast<std::size_t>(j)];
    return {.bound = sum_of_sizes(rows_.carried[i], keys_.carried[j], width_),
            .by_row = rows_.worst[static_cast<std::size_t>(i)] * key,
            .by_key = keys_.worst[static_cast<std::size_t>(j)] * row,
            .own = own_ * row * key};
  }

 private:
  // `carried` of both sides are factors of the bound: |x| of one, and of the other
  // e + rho(k) (|x| + e), with its own errors e and those of the sums.
  struct Side {
    Doubles value, carried;
    std::vector<double> norms, worst;
  };
  static Side of(const Factor& factor, double roundings, bool carries) {
    Side side{factor.value, factor.value, {}, {}};
    const double rounded = rho_at_most(roundings);
    for (Index i = 0; i < side.value.rows; ++i) {
      double worst = 0;
      for (Index k = 0; k < side.value.cols; ++k) {
        const double error = factor.bound(i, k);
        const double size = std::abs(factor.value[i][k]);
        side.carried[i][k] = carries ? error + rounded * (size + error) : size;
        worst = std::max(worst, factor.expected(i, k));
      }
      side.worst.push_back(worst);
      side.norms.push_back(
          std::sqrt(sum_of_products(side.value[i], side.value[i], side.value.cols)));
    }
    return side;
  }

  Index width_ = 0;
  Side rows_, keys_;
  double own_ = 0;
};

}  // namespace redblue
