#include "runtime/theory/sparse_bounds.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/attention.hpp"

namespace redblue {
namespace {

using Marks = std::vector<bool>;

bool meets_any(const BlockPattern& pattern, Index row, const Marks& columns) {
  return std::ranges::any_of(
      pattern.row(row), [&](Index column) { return columns[static_cast<std::size_t>(column)]; });
}

// The columns that have an entry, in some of the rows.
Marks columns_of(const BlockPattern& pattern, const Marks& rows) {
  Marks found(static_cast<std::size_t>(pattern.cols));
  for (Index row = 0; row < pattern.rows; ++row) {
    if (rows[static_cast<std::size_t>(row)]) {
      for (const Index column : pattern.row(row)) {
        found[static_cast<std::size_t>(column)] = true;
      }
    }
  }
  return found;
}
Marks columns_of(const BlockPattern& pattern) {
  return columns_of(pattern, Marks(static_cast<std::size_t>(pattern.rows), true));
}

// The rows that have an entry in some of the columns.
Marks rows_of(const BlockPattern& pattern, const Marks& columns) {
  Marks found(static_cast<std::size_t>(pattern.rows));
  for (Index row = 0; row < pattern.rows; ++row) {
    found[static_cast<std::size_t>(row)] = meets_any(pattern, row, columns);
  }
  return found;
}

// The entries in some columns, of some rows.
Words entries(const BlockPattern& pattern, const Marks& rows, const Marks& columns) {
  Index sum = 0;
  for (Index row = 0; row < pattern.rows; ++row) {
    if (rows[static_cast<std::size_t>(row)]) {
      sum += std::ranges::count_if(pattern.row(row), [&](Index column) {
        return columns[static_cast<std::size_t>(column)];
      });
    }
  }
  return sum;
}
Words size_of(const Marks& marks) {
  return static_cast<Index>(std::ranges::count(marks, true));
}

Words compulsory_product(const Sparsity& of) {
  const Marks all_rows(static_cast<std::size_t>(of.A1().rows), true);
  const Marks met = columns_of(of.A1());
  const Marks all_columns(static_cast<std::size_t>(of.X().cols), true);
  return entries(of.A1(), all_rows, rows_of(of.X(), all_columns)) +
         entries(of.X(), met, all_columns) + of.S().stored();
}

// The entries that take part in a live score; what the pass must read of dense matrices, of live
// queries and keys; and all words of its results.
Words compulsory(const Task& task) {
  const Sparsity& of = task.problem.sparsity;
  if (task.pass == Pass::product) {
    return compulsory_product(of);
  }
  const Index d = task.problem.shape.d;
  const Marks of_keys = columns_of(of.A2());             // columns of X that meet a key
  const Marks of_queries = columns_of(of.A1());          // rows of X that meet a query
  const Marks reaching = rows_of(of.X(), of_keys);       // rows of X that reach a key
  const Marks reached = columns_of(of.X(), of_queries);  // columns that a query reaches
  const Marks queries = rows_of(of.A1(), reaching);
  const Marks keys = rows_of(of.A2(), reached);
  Words words = entries(of.A1(), queries, reaching) + entries(of.X(), of_queries, of_keys) +
                entries(of.A2(), keys, reached);
  const Wanted& wanted = task.problem.wanted;
  const bool any = size_of(queries) > Words(0);
  const bool backward = task.pass == Pass::backward;
  if (any && (backward || (task.pass == Pass::forward && wanted.contains(kO.name)))) {
    words += size_of(keys) * d + Words(d) * d;  // A3 and Y
  }
  if (backward) {
    words += size_of(queries) * d;  // dO
  }
  for (const Signature& result : results_of(task.pass)) {
    if (wanted.contains(result.name)) {
      words += Words(result.rows_of(task.problem.shape)) * result.cols_of(task.problem.shape);
    }
  }
  return words;
}

// With Z_A entries of A1 and A2, the geometric mean, and Z_QK live pairs:
// min(Z_A^2 / M, Z_A sqrt(Z_QK) / sqrt(M)), with constant 1.
Bound theorem_4_5(const Task& task) {
  const Sparsity& of = task.problem.sparsity;
  const auto Z_A1 = static_cast<double>(of.A1().stored());
  const auto Z_A2 = static_cast<double>(of.A2().stored());
  const auto pairs = static_cast<double>(of.pairs().value());
  const auto M = static_cast<double>(task.memory.M);
  return {.name = "Theorem 4.5",
          .words = static_cast<Index>(
              std::min(Z_A1 * Z_A2 / M, std::sqrt(Z_A1 * Z_A2) * std::sqrt(pairs / M))),
          .status = Status::asymptotic,
          .regime = "any M"};
}

}  // namespace

std::vector<Bound> sparse_bounds(const Task& task) {
  std::vector<Bound> bounds = {{"compulsory", compulsory(task).value()}};
  if (task.pass != Pass::product) {
    bounds.push_back(theorem_4_5(task));
  }
  return bounds;
}

}  // namespace redblue
