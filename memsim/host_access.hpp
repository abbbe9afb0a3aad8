#pragma once
// The uncounted door for host programs: it fills and fetches slow matrices, whole or by row
// ranges (a matrix may be larger than memory). Kernels cannot include this header; a test
// holds them to it.

#include <span>

#include "memsim/slow_matrix.hpp"

namespace redblue {

class HostAccess {
 public:
  // Row after row. Throws: ShapeMismatch unless `words` has exactly the words of the rows.
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
