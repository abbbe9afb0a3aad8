#pragma once
// Matrices of doubles in the layout that the products of double_pairs.hpp take.

#include <algorithm>
#include <span>
#include <vector>

#include "runtime/theory/double_pairs.hpp"
#include "runtime/theory/doubles.hpp"

namespace redblue {

inline Index padded(Index count, Index multiple) {
  return ceil_div(count, multiple) * multiple;
}

// A matrix cut into panels of width() columns, each stored row by row. Zeros fill the added columns
// and rows at the end.
class Panels {
 public:
  Panels() = default;
  Panels(Index depth, Index cols)
      : width_(panel_width()),
        depth_(depth),
        panels_(ceil_div(cols, width_)),
        words_(static_cast<std::size_t>(depth * panels_ * width_)) {}
  Panels(const Doubles& from, Index depth) : Panels(depth, from.cols) {
    for (Index i = 0; i < from.rows; ++i) {
      for (Index k = 0; k < from.cols; ++k) {
        at(i, k) = from[i][k];
      }
    }
  }

  [[nodiscard]] Index count() const { return panels_; }
  [[nodiscard]] Index width() const { return width_; }
  [[nodiscard]] Index columns() const { return panels_ * width_; }
  [[nodiscard]] double* row(Index panel, Index i) {
    return words_.data() + (panel * depth_ + i) * width_;
  }
  [[nodiscard]] const double* row(Index panel, Index i) const {
    return words_.data() + (panel * depth_ + i) * width_;
  }
  double& at(Index i, Index k) { return row(k / width_, i)[k % width_]; }
  [[nodiscard]] double at(Index i, Index k) const { return row(k / width_, i)[k % width_]; }
  std::vector<double>& words() { return words_; }
  [[nodiscard]] const std::vector<double>& words() const { return words_; }

 private:
  Index width_ = 1, depth_ = 0, panels_ = 0;
  std::vector<double> words_;
};

// Returns the matrix with rows of zeros added up to a multiple.
inline Doubles with_rows(std::span<const float> words, Index rows, Index cols, Index multiple) {
  Doubles result(padded(rows, multiple), cols);
  std::ranges::copy(words, result.words.begin());
  return result;
}

// Sets strip = A B for kBlockRows rows of A and some keys, the columns of B.
inline void set_product(const double* A, Index depth, const Panels& B, Range keys, double* strip,
                        Index step) {
  for (Index first = keys.begin; first < keys.end; first += B.width()) {
    multiply({.A = A,
              .row_step = depth,
              .depth_step = 1,
              .rows = kBlockRows,
              .B = B.row(first / B.width(), 0),
              .depth = depth,
              .C = strip + first,
              .C_step = step,
              .adds = false});
  }
}

}  // namespace redblue
