#pragma once
// Row blocks whose keys come in groups, for kernels that leave something for each row block and
// group, and merge it in the order of groups: several machines may then work on one row block. The
// groups are consecutive keys, of a number that the plan says.

#include <string_view>

#include "kernels/parts/rows.hpp"

namespace redblue {

// The units of several groups: all row blocks with the first group, then with the next, ...
struct GroupedRows {
  GroupedRows(const Problem& problem, const Blocks& blocks)
      : by(problem, blocks),
        row_blocks(by.units()),
        groups(std::min(key_groups_of(blocks), problem.shape.m)),
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
  // The sum over some units; and the most keys of a group among them.
  struct Sum {
    Units::Sum of;
    Index keys = 0;
  };
  [[nodiscard]] Sum sum(Range units) const;

 private:
  void add(Range of_groups, Range of_rows, Units::Sum& sum) const;
};

}  // namespace redblue
