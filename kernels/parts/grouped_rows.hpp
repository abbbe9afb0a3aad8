#pragma once
// Row blocks whose keys come in groups, for kernels that leave something for each row block and
// group, and merge it in the order of groups: several machines may then work on one row block. The
// groups are consecutive keys, of a number that the plan says.

#include <functional>
#include <string_view>

#include "kernels/parts/rows.hpp"

namespace redblue {

// Some of the units of several groups, of so many blocks each: all blocks with the first group,
// then with the next, ... Calls visit(groups, blocks) for parts of them in which each of some
// groups has the same blocks: three at most.
void each_part(Range units, Index blocks,
               const std::function<void(Range groups, Range blocks)>& visit);
// The sum over blocks of one group as that over these of all, where all rows meet all others: a
// group has at most `most` of these, and all have `others`.
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
  bool some;  // there are others elsewhere

  [[nodiscard]] bool merges() const { return groups > 1 || some; }
  [[nodiscard]] Index units() const { return (Words(row_blocks.size()) * groups).value(); }
  [[nodiscard]] Range keys(Index group) const {
    return keys_of_group(by.problem.shape.m, groups, group);
  }
  [[nodiscard]] Range rows(Index unit) const { return row_blocks[unit % row_blocks.size()]; }
  [[nodiscard]] Index group(Index unit) const { return unit / row_blocks.size(); }
  // Of the rows I in what the groups leave.
  [[nodiscard]] Range left(Index group, Range I) const {
    const Index first = group * by.problem.shape.n;
    return {first + I.begin, first + I.end};
  }
  // The plan in which pairs of other groups are dead: without a mask, the same.
  [[nodiscard]] RowPlan of_group(Index group) const {
    RowPlan plan = by;
    if (merges() && !plan.problem.mask.full()) {
      plan.problem.mask = plan.problem.mask.among(keys(group));
    }
    return plan;
  }
  [[nodiscard]] Units::Sum sum(Range units) const;
  // Calls visit(sum, keys) for parts of some units, with the most keys of a group in each.
  using Visit = std::function<void(const Units::Sum& of, Index keys)>;
  void each_sum(Range units, const Visit& visit) const;
};

// The loop over the keys of a group inside one over groups, and their tiles.
struct GroupNest {
  NestLoop J;
  NestWriter::Tiles keys;
};
GroupNest group_nest(const GroupedRows& by, const NestLoop& groups);

}  // namespace redblue
