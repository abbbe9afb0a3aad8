#pragma once
// Row blocks with keys in groups, so that several machines can work on one row block. A kernel
// writes a partial result for each row block and group, and merges them in the order of the groups.
// A group is a range of consecutive keys. The plan gives the number of groups.

#include <functional>
#include <string_view>

#include "kernels/parts/rows.hpp"

namespace redblue {

// A unit is a row block of a group. Units are numbered through all `blocks` of the first group,
// then through all `blocks` of the next. Calls visit(groups, blocks) for at most three parts of
// `units`. In a part, each group has the same blocks.
void each_part(Range units, Index blocks,
               const std::function<void(Range groups, Range blocks)>& visit);
// Returns the sum over some blocks of all groups, from the sum over the same blocks of one group.
// Requires: no mask. A group has at most `most` keys, and all groups together have `others`.
Units::Sum of_all_groups(Units::Sum of_one, Index groups, Index most, Index others);
void add(Units::Sum& sum, const Units::Sum& more);
void add(PhaseCost& sum, const PhaseCost& more);

// The units of several groups of keys.
struct GroupedRows {
  GroupedRows(const Problem& problem, const Blocks& blocks)
      : GroupedRows(RowPlan(problem, blocks), blocks) {}
  GroupedRows(const RowPlan& rows, const Blocks& blocks)
      : by(rows),
        row_blocks(by.units()),
        groups(std::min(key_groups_of(blocks), by.problem.shape.m)),
        some(blocks.contains(kSomeGroups)) {}

  RowPlan by;
  Units row_blocks;
  Index groups;
  bool some;  // other ranks have more groups

  [[nodiscard]] bool merges() const { return groups > 1 || some; }
  [[nodiscard]] Index units() const { return (Words(row_blocks.size()) * groups).value(); }
  [[nodiscard]] Range keys(Index group) const {
    return keys_of_group(by.problem.shape.m, groups, group);
  }
  [[nodiscard]] Range rows(Index unit) const { return row_blocks[unit % row_blocks.size()]; }
  [[nodiscard]] Index group(Index unit) const { return unit / row_blocks.size(); }
  // The rows of the partial results in which a group leaves the rows I.
  [[nodiscard]] Range left(Index group, Range I) const {
    const Index first = group * by.problem.shape.n;
    return {first + I.begin, first + I.end};
  }
  // Returns the plan with the pairs of other groups dead. Without a mask it is the same plan.
  [[nodiscard]] RowPlan of_group(Index group) const {
    RowPlan plan = by;
    if (merges() && !plan.problem.mask.full()) {
      plan.problem.mask = plan.problem.mask.among(keys(group));
    }
    return plan;
  }
  [[nodiscard]] Units::Sum sum(Range units) const;
  // Calls visit(sum, keys) for parts of some units. `keys` is the most keys of a group in the part.
  using Visit = std::function<void(const Units::Sum& of, Index keys)>;
  void each_sum(Range units, const Visit& visit) const;
};

// The loop over the keys of a group, inside a loop over groups, and the tiles of the keys.
struct GroupNest {
  NestLoop J;
  NestWriter::Tiles keys;
};
GroupNest group_nest(const GroupedRows& by, const NestLoop& groups);

}  // namespace redblue
