#pragma once
// Random sparse problems, with every kind of pattern that may break a schedule.

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "kernels/problem.hpp"
#include "kernels/sparsity.hpp"

namespace redblue {

using DenseWords = std::vector<float>;

class SparseCases {
 public:
  explicit SparseCases(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] Index any(Index least, Index most) {
    return std::uniform_int_distribution<Index>(least, most)(random_);
  }

  // Returns an Erdos-Renyi, banded, power-law or clustered pattern, or one with empty rows and
  // columns, with one dense row, fully stored, the identity, or without entries.
  [[nodiscard]] BlockPattern pattern(Index rows, Index cols) {
    const Index kind = any(0, 9);
    const double density = std::uniform_real_distribution<>(0, 0.7)(random_);
    const Index width = any(0, 2), dense = any(0, rows - 1), skipped = any(2, 4);
    BlockPattern found{rows, cols, 1, 1, {0}, {}};
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < cols; ++j) {
        const Index at = i * cols / rows;
        const bool drawn = std::bernoulli_distribution(density)(random_);
        const bool banded = at - width <= j && j <= at + width;
        const bool stored =
            kind == 0   ? drawn
            : kind == 1 ? banded
            : kind == 2 ? std::bernoulli_distribution(1.0 / static_cast<double>(1 + j))(random_)
            : kind == 3 ? drawn && at * 2 / cols == j * 2 / cols
            : kind == 4 ? drawn && i % skipped != 0 && j % skipped != 1
            : kind == 5 ? i == dense || (drawn && j % 3 == 0)
            : kind == 6 ? true
            : kind == 7 ? i == j
            : kind == 8 ? drawn
                        : any(0, 20) == 0;
        if (stored) {
          found.columns.push_back(j);
        }
      }
      found.offsets.push_back(found.stored());
    }
    return any(0, 30) == 0 ? empty(rows, cols) : found;
  }
  static BlockPattern empty(Index rows, Index cols) {
    return {rows, cols, 1, 1, std::vector<Index>(static_cast<std::size_t>(rows) + 1), {}};
  }

  // Returns a problem of at most `most` queries and keys.
  [[nodiscard]] Problem problem(Index most) {
    const Index n = any(0, 6) == 0 ? 1 : any(1, most);
    const Index m = any(0, 6) == 0 ? 1 : any(1, most);
    const Index d = any(0, 20) == 0 ? any(16, 40) : any(1, 12);
    return Problem(n, m, d).with_sparsity({pattern(n, d), pattern(d, d), pattern(m, d)});
  }

  // Returns random words, some of them 0.
  [[nodiscard]] DenseWords words(Index count) {
    DenseWords all(static_cast<std::size_t>(count));
    std::uniform_real_distribution<float> values(-1, 1);
    for (float& word : all) {
      word = any(0, 15) == 0 ? 0.0F : values(random_);
    }
    return all;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace redblue
