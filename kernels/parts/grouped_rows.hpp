#pragma once
// Row blocks whose keys come in groups, for kernels that leave something for each row block and
// group, and merge it in the order of groups: several machines may then work on one row block. The
// groups are consecutive keys, of a number that the plan says.

#include <string_view>

#include "kernels/parts/rows.hpp"

namespace redblue {

// Of a plan: so many groups of keys. A plan without it has one.
inline constexpr std::string_view kKeyGroups = "groups";

// The units of several groups: all row blocks with the first group, then with the next, ...
struct GroupedRows {
  GroupedRows(const Problem& problem, const Blocks& blocks)
      : by(problem, blocks),
        row_blocks(by.units()),
        groups(blocks.contains(kKeyGroups) ? std::min(blocks[kKeyGroups], problem.shape.m) : 1) {}

  RowPlan by;
  Units row_blocks;
  Index groups;

  [[nodiscard]] bool merges() const { return groups > 1; }
  [[nodiscard]] Index units() const { return (Words(row_blocks.size()) * groups).value(); }
  // The keys of a group, of which the first ones may have one more than the others.
  [[nodiscard]] Range keys(Index group) const { return {first_key(group), first_key(group + 1)}; }
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
  [[nodiscard]] Index first_key(Index group) const {
    const Index m = by.problem.shape.m;
    return m / groups * group + std::min(group, m % groups);
  }
  void add(Range of_groups, Range of_rows, Units::Sum& sum) const;
};

}  // namespace redblue
