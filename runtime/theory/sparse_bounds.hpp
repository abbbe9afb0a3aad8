#pragma once
// Lower bounds of problems with sparse operands (docs/theory/bounds.md, "Sparse operands"). They
// count words of values, whatever the format of indices is.

#include <optional>
#include <vector>

#include "kernels/sparsity.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {

// The work on live scores, as far as the stored entries alone determine it.
struct SparseWork {
  // The fewest products, for either order: S = A1 X first, or R = X A2^T first.
  Words products;
  // The fewest words of one row that are in fast memory when a live score is made. `of_row`: a row
  // of A1 or S. `of_column`: a row of A2 or R.
  Index of_row = 1, of_column = 1;
  // The stored entries, queries and keys that take part in live scores.
  Words entries;
  Index queries = 0, keys = 0;
};
SparseWork sparse_work(const Sparsity& sparsity);

// Returns Theorem 4.5 without its constant, rounded down. Returns nullopt if it exceeds 63 bits.
std::optional<Index> theorem_4_5(const Sparsity& sparsity, Index M);

// Requires: a task with sparse operands.
std::vector<Bound> sparse_bounds(const Task& task);

}  // namespace redblue
