#include "runtime/ranks/rank_kinds.hpp"

#include <numeric>
#include <set>
#include <tuple>

namespace redblue {
namespace {

// The parts of a row of ranks (row blocks) or of a column (key groups), and whether the running sum
// begins or ends there.
struct Side {
  Index parts, size;  // row blocks and queries; groups and keys
  bool first, last;
};

Side side_of(const std::vector<Index>& parts, Index size, Index all) {
  return {std::ssize(parts), size, !parts.empty() && parts.front() == 0,
          !parts.empty() && parts.back() == all - 1};
}

}  // namespace

std::vector<Index> ranks_of_each_kind(const GridPlan& of) {
  const Grid& grid = of.grid();
  std::vector<Index> ranks;
  if (!of.asked().problem.mask.full()) {
    ranks.resize(static_cast<std::size_t>(grid.ranks()));
    std::iota(ranks.begin(), ranks.end(), Index{0});
    return ranks;
  }
  std::vector<Side> columns;
  for (Index column = 0; column < grid.columns; ++column) {
    columns.push_back(
        side_of(of.key_groups(column), of.keys_of_place(column), key_groups_of(of.plan())));
  }
  Index row_blocks = 0;
  for (Index row = 0; row < grid.rows; ++row) {
    row_blocks += std::ssize(of.row_blocks(row));
  }
  using Kind =
      std::tuple<Index, Index, Index, Index, Index, Index, Index, Index, Index, bool, bool>;
  std::set<Kind> kinds;
  for (Index row = 0; row < grid.rows; ++row) {
    const Side queries = side_of(of.row_blocks(row), of.queries_of_place(row), row_blocks);
    for (Index column = 0; column < grid.columns; ++column) {
      const Side& keys = columns[static_cast<std::size_t>(column)];
      const Index after = grid.ring ? of.row_of(of.after(of.rank_of(row, column))) : row;
      const Kind kind{queries.parts,
                      std::ssize(of.query_groups(row)),
                      queries.size,
                      of.own_queries(row, column).size(),
                      keys.parts,
                      keys.size,
                      of.own_keys(row, column).size(),
                      of.own_queries(after, column).size(),
                      of.own_keys(after, column).size(),
                      queries.first && keys.first,
                      queries.last && keys.last};
      if (kinds.insert(kind).second) {
        ranks.push_back(of.rank_of(row, column));
      }
    }
  }
  return ranks;
}

}  // namespace redblue
