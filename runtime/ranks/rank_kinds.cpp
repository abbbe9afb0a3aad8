#include "runtime/ranks/rank_kinds.hpp"

#include <numeric>
#include <set>
#include <tuple>

#include "memsim/share.hpp"

namespace redblue {
namespace {

// What a row of ranks has of queries, or a column of keys, and whether the running sum begins or
// ends there.
struct Side {
  Index parts, size;  // row blocks and queries; groups and keys
  bool first, last;
};

Side side_of(Range parts, Range all, Index of_parts) {
  return {parts.size(), all.size(), parts.begin == 0 && parts.size() > 0,
          parts.end == of_parts && parts.size() > 0};
}

}  // namespace

std::vector<Index> ranks_of_each_kind(const Kernel& kernel, const Plan& plan, const Grid& grid) {
  std::vector<Index> ranks;
  if (!plan.problem.mask.full()) {
    ranks.resize(static_cast<std::size_t>(grid.ranks()));
    std::iota(ranks.begin(), ranks.end(), Index{0});
    return ranks;
  }
  const Index row_blocks = ceil_div(plan.problem.shape.n, plan.blocks["Br"]);
  std::vector<Side> columns;
  for (Index column = 0; column < grid.columns; ++column) {
    const RankPart part(kernel, plan, grid, column);
    columns.push_back(side_of(part.groups(column), part.keys(), key_groups_of(plan)));
  }
  using Kind = std::tuple<Index, Index, Index, Index, Index, Index, bool, bool>;
  std::set<Kind> kinds;
  for (Index row = 0; row < grid.rows; ++row) {
    const RankPart part(kernel, plan, grid, row * grid.columns);
    const Side queries = side_of(part.row_blocks(row), part.queries(), row_blocks);
    for (Index column = 0; column < grid.columns; ++column) {
      const Side& keys = columns[static_cast<std::size_t>(column)];
      const Kind kind{queries.parts,
                      queries.size,
                      share_of(queries.size, column, grid.columns).size(),
                      keys.parts,
                      keys.size,
                      share_of(keys.size, row, grid.rows).size(),
                      queries.first && keys.first,
                      queries.last && keys.last};
      if (kinds.insert(kind).second) {
        ranks.push_back(row * grid.columns + column);
      }
    }
  }
  return ranks;
}

}  // namespace redblue
