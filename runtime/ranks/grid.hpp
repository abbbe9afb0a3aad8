#pragma once
// Divides a plan among ranks in a grid of rows and columns. All ranks of a row work on the same row
// blocks, and all ranks of a column on the same key groups. Each rank owns a part of the queries of
// its row and a part of the keys of its column. Blocks and groups do not depend on the grid, so all
// grids give bit-identical results.
//
// A rank has its own rows of operands at the start, and its own rows of results at the end. The
// place of a rank is the queries of its row and the keys of its column. Both are numbered from 0 in
// their order. Under a mask, a place has only live queries and keys.

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
  bool ring = false;  // each rank sends only to the next one (ring.hpp)
  [[nodiscard]] Index ranks() const { return rows * columns; }
  friend bool operator==(const Grid&, const Grid&) = default;
};
std::string to_string(const Grid& grid);  // "4x2"; "4x1 as a ring"

// Returns whether ranks can share this kernel.
bool runs_on_grid(const Kernel& kernel);
// Throws: ShapeMismatch if the kernel or the plan does not run on this grid. The reasons are:
// - The kernel does not run on ranks.
// - The grid has more columns than key groups. Or it has more rows than query groups, for a kernel
//   that takes query groups.
// - The mask has no live pair, or the plan clusters the rows of the mask.
// - A ring has several columns, or its plan has groups or a prefetch.
// - In a ring, under the mask, some block meets rows that are not consecutive, or queries do not
//   stream in their order.
void check_grid(const Kernel& kernel, const Plan& plan, const Grid& grid);

// Returns the number of key groups of a plan.
inline Index key_groups_of(const Plan& plan) {
  return std::min(key_groups_of(plan.blocks), plan.problem.shape.m);
}
// takes_query_groups() returns whether a kernel can group its row blocks. query_groups_of() returns
// the number of query groups of a plan, or 0 if the kernel takes none.
bool takes_query_groups(const Kernel& kernel);
Index query_groups_of(const Kernel& kernel, const Plan& plan);

inline bool of_queries(const Signature& matrix) {
  return matrix.rows == &Shape::n;
}
inline bool of_keys(const Signature& matrix) {
  return matrix.rows == &Shape::m;
}

// Returns whether a stage's list of matrices, such as `brings` or `merges`, has this name.
inline bool is_among(const std::vector<std::string_view>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Consecutive partial sums of g that one rank adds: units of its place. The running sum passes from
// segment to segment.
struct Segment {
  Index rank;
  Range units;
};

// A plan on a grid: the parts of each row and of each column of ranks.
class GridPlan {
 public:
  // The ranks are numbered from `first` on. `kernel` and `plan` must outlive this. Throws: as
  // check_grid().
  GridPlan(const Kernel& kernel, const Plan& plan, const Grid& grid, Index first = 0);
  GridPlan(const Kernel& kernel, Plan&& plan, const Grid& grid, Index first = 0) = delete;

  [[nodiscard]] const Kernel& kernel() const { return *kernel_; }
  [[nodiscard]] const Plan& asked() const { return *asked_; }
  [[nodiscard]] const Grid& grid() const { return grid_; }
  [[nodiscard]] Index rank_of(Index row, Index column) const {
    return first_ + row * grid_.columns + column;
  }
  [[nodiscard]] Index row_of(Index rank) const { return (rank - first_) / grid_.columns; }
  [[nodiscard]] Index column_of(Index rank) const { return (rank - first_) % grid_.columns; }
  [[nodiscard]] Range ranks() const { return {first_, first_ + grid_.ranks()}; }
  // In a ring: the rank that sends to this one, and the rank that this one sends to.
  [[nodiscard]] Index before(Index rank) const {
    return rank_of((row_of(rank) + grid_.rows - 1) % grid_.rows, 0);
  }
  [[nodiscard]] Index after(Index rank) const {
    return rank_of((row_of(rank) + 1) % grid_.rows, 0);
  }
  // Returns whether the grid is a ring and, in this stage, own keys are resident and queries
  // stream.
  [[nodiscard]] bool keys_stay(const SplitStage& stage) const;
  // The plan of the live rows, and the kernel's stages for them.
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const Split& split() const { return *live_->schedule.split; }

  // The row blocks and query groups of a row of ranks, and the key groups of a column. They have
  // their numbers in the plan, in rising order. Query groups are empty if the plan has none.
  [[nodiscard]] const std::vector<Index>& row_blocks(Index row) const {
    return at(rows_, row).blocks;
  }
  [[nodiscard]] const std::vector<Index>& query_groups(Index row) const {
    return at(rows_, row).groups;
  }
  [[nodiscard]] const std::vector<Index>& key_groups(Index column) const {
    return at(columns_, column).groups;
  }
  // The queries of a row and the keys of a column, numbered among the live ones.
  [[nodiscard]] const Ranges& queries(Index row) const { return at(rows_, row).queries; }
  [[nodiscard]] const Ranges& keys(Index column) const { return at(columns_, column).keys; }
  // Returns whether a row has row blocks. The ranks of a row without them only hold keys.
  [[nodiscard]] bool computes(Index row) const { return !row_blocks(row).empty(); }
  // Returns the number of pairs of a place.
  [[nodiscard]] Words pairs(Index row, Index column) const;

  // The size of a place, the own queries and keys of its rank, and the keys that its queries need.
  // All ranges are numbered within the place.
  [[nodiscard]] Index queries_of_place(Index row) const { return at(rows_, row).size; }
  [[nodiscard]] Index keys_of_place(Index column) const { return at(columns_, column).size; }
  [[nodiscard]] Range own_queries(Index row, Index column) const;
  [[nodiscard]] Range own_keys(Index row, Index column) const;
  [[nodiscard]] Ranges needed_keys(Index row, Index column) const;

  // Rows of a matrix, numbered as in the whole problem. own_rows() returns the rank's own rows, or
  // all rows of a matrix that has neither rows of queries nor of keys. dead_rows() returns the rows
  // of a result that no live pair needs and this rank writes.
  [[nodiscard]] Ranges own_rows(const Signature& matrix, Index rank) const;
  [[nodiscard]] Ranges dead_rows(const Signature& matrix, Index rank) const;

  // Returns the ranks that own these queries, and the rows that each of them owns. Queries are
  // numbered as in the whole problem.
  struct Owned {
    Range rows;
    Index rank;
  };
  [[nodiscard]] std::vector<Owned> owners(const Ranges& queries) const;

  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  // brings() returns whether a stage of a place needs rows of this matrix that other ranks own.
  // merges() returns whether each rank merges the partial results of all groups for its own rows.
  [[nodiscard]] bool brings(std::string_view matrix) const;
  [[nodiscard]] bool merges(std::string_view matrix) const;

 private:
  struct Row {
    std::vector<Index> blocks, groups;
    Ranges queries;
    Ranges met;  // keys, numbered among the live ones
    Index size = 0;
  };
  struct Column {
    std::vector<Index> groups;
    Ranges keys;
    Index size = 0;
  };
  template <class Of>
  static const Of& at(const std::vector<Of>& all, Index which) {
    return all[static_cast<std::size_t>(which)];
  }
  void deal_row_blocks();
  void deal_key_groups();
  void find_segments();
  void find_owners();

  const Kernel* kernel_;
  const Kernel* live_;
  const Plan* asked_;
  Plan plan_;
  Grid grid_;
  Index first_;
  std::vector<Row> rows_;
  std::vector<Column> columns_;
  std::vector<Segment> segments_;
  std::vector<Owned> owned_;  // all live queries, in their order
};

// The part of one rank in a GridPlan.
class RankPart {
 public:
  // Requires: a rank of the grid; `of` outlives this.
  RankPart(const GridPlan& of, Index rank);

  [[nodiscard]] const GridPlan& of() const { return *of_; }
  [[nodiscard]] const Plan& plan() const { return of_->plan(); }
  [[nodiscard]] const Split& split() const { return of_->split(); }
  [[nodiscard]] Index rank() const { return of_->rank_of(row_, column_); }
  [[nodiscard]] Index row() const { return row_; }
  [[nodiscard]] Index column() const { return column_; }
  [[nodiscard]] bool computes() const { return of_->computes(row_); }
  [[nodiscard]] Index queries() const { return of_->queries_of_place(row_); }
  [[nodiscard]] Index keys() const { return of_->keys_of_place(column_); }
  [[nodiscard]] Range own_queries() const { return of_->own_queries(row_, column_); }
  [[nodiscard]] Range own_keys() const { return of_->own_keys(row_, column_); }
  // Returns the keys in the rank's home: its own keys and the keys that its queries need.
  [[nodiscard]] Ranges kept_keys() const;

  // works_on() returns whether the rank has units in this stage. plan_of() returns the plan for
  // them. plan_of() requires: works_on(stage).
  [[nodiscard]] bool works_on(const SplitStage& stage) const;
  [[nodiscard]] const Plan& plan_of(const SplitStage& stage) const;
  // Returns the plan for stages of the rank's place. Requires: computes().
  [[nodiscard]] const Plan& plan_of_place() const;

 private:
  [[nodiscard]] bool has_rows(StageRows rows) const;
  [[nodiscard]] Plan made_plan(StageRows rows) const;
  [[nodiscard]] Plan made_plan_of_keys() const;

  const GridPlan* of_;
  Index row_, column_;
  std::vector<Plan> plans_;
  Plan plan_of_keys_;  // for stages with resident keys
};

}  // namespace redblue
