#pragma once
// Ranks in a grid of rows and columns. The ranks of a row have the same row blocks of the plan, and
// those of a column the same groups of keys; each has a part of their queries, and of their keys,
// from the first on. Neither blocks nor groups depend on the grid, and so no bit of a result does.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/plan.hpp"
#include "memsim/range.hpp"

namespace redblue {

struct Grid {
  Index rows = 1, columns = 1;
  [[nodiscard]] Index ranks() const { return rows * columns; }
  friend bool operator==(const Grid&, const Grid&) = default;
};
std::string to_string(const Grid& grid);  // "4x2"

// Whether ranks may work on this kernel.
bool runs_on_grid(const Kernel& kernel);
// Throws: ShapeMismatch for a kernel or a plan that does not run on this grid: more columns than
// groups of keys, or a mask.
void check_grid(const Kernel& kernel, const Plan& plan, const Grid& grid);

// The groups of keys of a plan.
inline Index key_groups_of(const Plan& plan) {
  return std::min(key_groups_of(plan.blocks), plan.problem.shape.m);
}

inline bool of_queries(const Signature& matrix) {
  return matrix.rows == &Shape::n;
}
inline bool of_keys(const Signature& matrix) {
  return matrix.rows == &Shape::m;
}

// What one rank has of a plan.
class RankPart {
 public:
  // Requires: what check_grid() lets pass; a rank of the grid.
  RankPart(const Kernel& kernel, const Plan& plan, const Grid& grid, Index rank);

  [[nodiscard]] const Kernel& kernel() const { return *kernel_; }
  [[nodiscard]] const Split& split() const { return *kernel_->schedule.split; }
  [[nodiscard]] const Plan& plan() const { return *plan_; }
  [[nodiscard]] const Grid& grid() const { return grid_; }
  [[nodiscard]] Index rank() const { return rank_of(row_, column_); }
  [[nodiscard]] Index row() const { return row_; }
  [[nodiscard]] Index column() const { return column_; }
  [[nodiscard]] Index rank_of(Index row, Index column) const {
    return row * grid_.columns + column;
  }

  // Of the plan: the row blocks of a row of ranks, the groups of a column, and their queries and
  // keys.
  [[nodiscard]] Range row_blocks(Index row) const;
  [[nodiscard]] Range groups(Index column) const;
  [[nodiscard]] Range queries() const { return queries_; }
  [[nodiscard]] Range keys() const { return keys_; }
  // And of these what a rank of the row, or of the column, begins with.
  [[nodiscard]] Range own_queries(Index column) const;
  [[nodiscard]] Range own_queries() const { return own_queries(column_); }
  [[nodiscard]] Range own_keys(Index row) const;
  [[nodiscard]] Range own_keys() const { return own_keys(row_); }
  // The rows that it begins with, of an operand, or ends with, of a result; of what has neither
  // rows of queries nor of keys, all.
  [[nodiscard]] Range own_rows(const Signature& matrix) const;
  // A rank without row blocks has keys, and computes nothing with them.
  [[nodiscard]] bool computes() const { return queries().size() > 0; }

  // The plan of the row blocks and groups, and of the rows that it begins with. Require: there are
  // queries.
  [[nodiscard]] Plan of_place() const;
  [[nodiscard]] Plan of_own_rows() const;

  // Whether stages of its place need rows of this matrix that other ranks begin with.
  [[nodiscard]] bool brings(std::string_view matrix) const;

 private:
  [[nodiscard]] Range queries_of(Index row) const;
  [[nodiscard]] Range keys_of(Index column) const;

  const Kernel* kernel_;
  const Plan* plan_;
  Grid grid_;
  Index row_, column_;
  Index all_row_blocks_;  // of the plan
  Range queries_, keys_;
};

// Partial sums of g that one rank adds, one after the other: units of its place. The running sum
// passes from one to the next.
struct Segment {
  Index rank;
  Range units;
};
std::vector<Segment> segments_of(const Kernel& kernel, const Plan& plan, const Grid& grid);

}  // namespace redblue
