#pragma once
// Small matrices of doubles, for the check of results.

#include <algorithm>
#include <compare>
#include <numeric>
#include <span>
#include <vector>

#include "memsim/range.hpp"
#include "memsim/words.hpp"

namespace redblue {

struct Doubles {
  Doubles() = default;
  Doubles(Index r, Index c) : rows(r), cols(c), words(static_cast<std::size_t>(r * c)) {}
  Doubles(std::span<const float> from, Index r, Index c) : Doubles(r, c) {
    std::ranges::copy(from, words.begin());
  }
  double* operator[](Index i) { return words.data() + i * cols; }
  const double* operator[](Index i) const { return words.data() + i * cols; }

  Index rows = 0, cols = 0;
  std::vector<double> words;
};

inline double squared(double x) {
  return x * x;
}

inline Doubles squares(Doubles a) {
  std::ranges::transform(a.words, a.words.begin(), squared);
  return a;
}

inline Doubles transposed(const Doubles& a) {
  Doubles result(a.cols, a.rows);
  for (Index i = 0; i < a.rows; ++i) {
    for (Index j = 0; j < a.cols; ++j) {
      result[j][i] = a[i][j];
    }
  }
  return result;
}

inline Doubles product(const Doubles& A, const Doubles& B) {
  Doubles C(A.rows, B.cols);
  for (Index i = 0; i < A.rows; ++i) {
    for (Index k = 0; k < A.cols; ++k) {
      const double a = A[i][k];
      for (Index j = 0; j < B.cols; ++j) {
        C[i][j] += a * B[k][j];
      }
    }
  }
  return C;
}

// Adds A^T B to C, over the given rows of A and B.
inline void add_transposed(const Doubles& A, const Doubles& B, Range rows, Doubles& C) {
  for (Index i = rows.begin; i < rows.end; ++i) {
    for (Index k = 0; k < A.cols; ++k) {
      const double a = A[i][k];
      for (Index j = 0; j < B.cols; ++j) {
        C[k][j] += a * B[i][j];
      }
    }
  }
}

inline double norm2(const double* row, Index count) {
  double sum = 0;
  for (Index k = 0; k < count; ++k) {
    sum += row[k] * row[k];
  }
  return sum;
}

inline std::vector<double> row_norms2(const Doubles& a) {
  std::vector<double> norms;
  for (Index i = 0; i < a.rows; ++i) {
    norms.push_back(norm2(a[i], a.cols));
  }
  return norms;
}

// Returns, for each of the first `count` rows, how many rows equal it in both matrices. Equal
// operands have equal roundings. The other rows get 1.
inline std::vector<double> multiplicities(const Doubles& a, const Doubles& b, Index count) {
  const auto less = [&](Index i, Index k) {
    const auto compared = [&](const Doubles& of) {
      return std::lexicographical_compare_three_way(of[i], of[i] + of.cols, of[k], of[k] + of.cols);
    };
    const auto first = compared(a);
    return first != 0 ? first < 0 : compared(b) < 0;
  };
  std::vector<Index> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, less);
  std::vector<double> equal(static_cast<std::size_t>(a.rows), 1);
  for (auto first = order.begin(); first != order.end();) {
    const auto end = std::upper_bound(first, order.end(), *first, less);
    const auto alike = static_cast<double>(end - first);
    for (; first != end; ++first) {
      equal[static_cast<std::size_t>(*first)] = alike;
    }
  }
  return equal;
}

// Returns whether more than half of the first `count` rows are equal.
inline bool mostly_equal(const Doubles& a, Index count) {
  const std::vector<double> times = multiplicities(a, a, count);
  return count > 2 && *std::ranges::max_element(times) > static_cast<double>(count) / 2;
}

}  // namespace redblue
