#pragma once
// Uncounted access of host programs to slow matrices, whole or by row ranges (a matrix may be
// larger than memory). Kernels must not include this header; a test checks that.

#include <span>

#include "memsim/slow_matrix.hpp"

namespace redblue {

class HostAccess {
 public:
  // Copies rows in row-major order. Throws: ShapeMismatch unless the rows lie in the matrix and
  // `words` has exactly their size.
  static void put(SlowMatrix& matrix, Range rows, std::span<const float> words);
  static void get(const SlowMatrix& matrix, Range rows, std::span<float> words);

  static void put(SlowMatrix& matrix, std::span<const float> words) {
    put(matrix, {0, matrix.rows()}, words);
  }
  static void get(const SlowMatrix& matrix, std::span<float> words) {
    get(matrix, {0, matrix.rows()}, words);
  }
};

}  // namespace redblue
