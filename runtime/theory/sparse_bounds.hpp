#pragma once
// Lower bounds of problems with sparse operands (docs/theory/bounds.md, "Sparse operands"). They
// speak of the words of values, whatever the format of indices is.

#include <optional>
#include <vector>

#include "kernels/sparsity.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {

// What the stored entries alone say of the work on live scores.
struct SparseWork {
  // No fewer products are made, in whichever order S = A1 X or R = X A2^T is made.
  Words products;
  // What a live score charges its row, and its column, at least: words of one row of A1 or S, of
  // A2 or R, which are at hand where the score is made.
  Index of_row = 1, of_column = 1;
  // The stored entries that take part in a live score; and the queries and the keys of one.
  Words entries;
  Index queries = 0, keys = 0;
};
SparseWork sparse_work(const Sparsity& sparsity);

// Theorem 4.5 without its constant, rounded down; nothing where it passes 63 bits.
std::optional<Index> theorem_4_5(const Sparsity& sparsity, Index M);

// Requires: a task with sparse operands.
std::vector<Bound> sparse_bounds(const Task& task);

}  // namespace redblue
