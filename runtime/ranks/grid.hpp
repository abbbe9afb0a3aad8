#pragma once
// Ranks in a grid of rows and columns. The ranks of a row have the same row blocks of the plan, and
// those of a column the same groups of keys; each has a part of their queries, and of their keys,
// from the first on. Neither blocks nor groups depend on the grid, and so no bit of a result does.
//
// The place of a rank is the queries of its row and the keys of its column, each numbered from 0 in
// their order. Under a mask they are those that live.

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
  bool ring = false;  // a rank sends to the next one alone (ring.hpp)
  [[nodiscard]] Index ranks() const { return rows * columns; }
  friend bool operator==(const Grid&, const Grid&) = default;
};
std::string to_string(const Grid& grid);  // "4x2"; "4x1 as a ring"

// Whether ranks may work on this kernel.
bool runs_on_grid(const Kernel& kernel);
// Throws: ShapeMismatch for a kernel or a plan that does not run on this grid: more columns than
// groups of keys, or more rows than groups of queries where the plan has such; a mask of which no
// pair lives, or under which rows are clustered. A ring has one column, a plan without groups and
// without a prefetch, and a mask under which each block meets rows that follow each other.
void check_grid(const Kernel& kernel, const Plan& plan, const Grid& grid);

// The groups of keys of a plan.
inline Index key_groups_of(const Plan& plan) {
  return std::min(key_groups_of(plan.blocks), plan.problem.shape.m);
}
// Whether a kernel takes groups of row blocks; and those of a plan, 0 where it takes none.
bool takes_query_groups(const Kernel& kernel);
Index query_groups_of(const Kernel& kernel, const Plan& plan);

inline bool of_queries(const Signature& matrix) {
  return matrix.rows == &Shape::n;
}
inline bool of_keys(const Signature& matrix) {
  return matrix.rows == &Shape::m;
}

// Whether a stage names a matrix among those that it brings, or merges.
inline bool is_among(const std::vector<std::string_view>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Partial sums of g that one rank adds, one after the other: units of its place. The running sum
// passes from one to the next.
struct Segment {
  Index rank;
  Range units;
};

// A plan on a grid: what each row, and each column, has of it.
class GridPlan {
 public:
  // Of ranks from `first` on. `kernel` and `plan` must outlive this. Throws: as check_grid().
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
  // In a ring: the rank from which a rank receives, and the one to which it sends.
  [[nodiscard]] Index before(Index rank) const {
    return rank_of((row_of(rank) + grid_.rows - 1) % grid_.rows, 0);
  }
  [[nodiscard]] Index after(Index rank) const {
    return rank_of((row_of(rank) + 1) % grid_.rows, 0);
  }
  // Whether it is a ring and, in this stage, each rank has its own keys, and queries pass.
  [[nodiscard]] bool keys_stay(const SplitStage& stage) const;
  // Of what lives: the plan, and the kernel's stages.
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const Split& split() const { return *live_->schedule.split; }

  // The row blocks of a row of ranks, the groups of its queries, where the plan has such, and the
  // groups of keys of a column; by their numbers in the plan, in their order.
  [[nodiscard]] const std::vector<Index>& row_blocks(Index row) const {
    return at(rows_, row).blocks;
  }
  [[nodiscard]] const std::vector<Index>& query_groups(Index row) const {
    return at(rows_, row).groups;
  }
  [[nodiscard]] const std::vector<Index>& key_groups(Index column) const {
    return at(columns_, column).groups;
  }
  // Their queries and keys, by their numbers among those that live.
  [[nodiscard]] const Ranges& queries(Index row) const { return at(rows_, row).queries; }
  [[nodiscard]] const Ranges& keys(Index column) const { return at(columns_, column).keys; }
  // A row without row blocks has keys, and computes nothing with them.
  [[nodiscard]] bool computes(Index row) const { return !row_blocks(row).empty(); }
  // The pairs of a place.
  [[nodiscard]] Words pairs(Index row, Index column) const;

  // In a place: how many queries and keys; those that a rank of the row, or of the column, begins
  // with; and the keys that the queries need.
  [[nodiscard]] Index queries_of_place(Index row) const { return at(rows_, row).size; }
  [[nodiscard]] Index keys_of_place(Index column) const { return at(columns_, column).size; }
  [[nodiscard]] Range own_queries(Index row, Index column) const;
  [[nodiscard]] Range own_keys(Index row, Index column) const;
  [[nodiscard]] Ranges needed_keys(Index row, Index column) const;

  // By their numbers in the problem: the rows of a matrix that a rank begins with, or ends with;
  // and those of a result that no pair needs and this rank writes. Of what has neither rows of
  // queries nor of keys, all.
  [[nodiscard]] Ranges own_rows(const Signature& matrix, Index rank) const;
  [[nodiscard]] Ranges dead_rows(const Signature& matrix, Index rank) const;

  // The ranks that begin with some rows of queries, by their numbers in the problem, and which of
  // them.
  struct Owned {
    Range rows;
    Index rank;
  };
  [[nodiscard]] std::vector<Owned> owners(const Ranges& queries) const;

  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  // Whether stages of a place need rows of this matrix that other ranks begin with; and whether
  // each rank merges what groups left of it.
  [[nodiscard]] bool brings(std::string_view matrix) const;
  [[nodiscard]] bool merges(std::string_view matrix) const;

 private:
  struct Row {
    std::vector<Index> blocks, groups;
    Ranges queries;
    Ranges met;  // keys, by their numbers among those that live
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
  std::vector<Owned> owned_;  // all queries that live, in their order
};

// What one rank has of it.
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
  // The keys that are in its home: those that its queries need, and those that it begins with.
  [[nodiscard]] Ranges kept_keys() const;

  // Whether it has something to do in such a stage; and the plan for it. Requires: it has.
  [[nodiscard]] bool works_on(const SplitStage& stage) const;
  [[nodiscard]] const Plan& plan_of(const SplitStage& stage) const;
  // The plan of the stages of its place. Requires: it computes.
  [[nodiscard]] const Plan& plan_of_place() const;

 private:
  [[nodiscard]] bool has_rows(StageRows rows) const;
  [[nodiscard]] Plan made_plan(StageRows rows) const;
  [[nodiscard]] Plan made_plan_of_keys() const;

  const GridPlan* of_;
  Index row_, column_;
  std::vector<Plan> plans_;
  Plan plan_of_keys_;  // of stages in which its keys stay
};

}  // namespace redblue
