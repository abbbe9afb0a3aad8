#pragma once
// Row blocks whose keys come in groups, for kernels that leave something for each row block and
// group, and merge it in the order of groups: several machines may then work on one row block. The
// groups are consecutive keys, of a number that the plan says.

#include <functional>
#include <string_view>

#include "kernels/parts/rows.hpp"

namespace redblue {

// Blocks of rows, of which each meets groups of others, of which none is larger than one before it.
// The units: all blocks with the first group, then with the next, ...
struct GroupedUnits {
  Units blocks;
  bool full;  // all rows meet all others
  Index groups;
  std::function<Range(Index group)> others;
  std::function<Units(Index group)> of_group;  // the same blocks with the others of a group alone

  [[nodiscard]] Index size() const { return (Words(blocks.size()) * groups).value(); }
  [[nodiscard]] Index group(Index unit) const { return unit / blocks.size(); }
  [[nodiscard]] Range rows(Index unit) const { return blocks[unit % blocks.size()]; }
  // Calls visit(sum, first) for parts of some units, with the first group of each.
  using Visit = std::function<void(const Units::Sum& of, Index first)>;
  void each_sum(Range units, const Visit& visit) const;
  [[nodiscard]] Units::Sum sum(Range units) const;
  // The cost of some units, from what a part costs in which no group has more others than these.
  using CostOfSum = std::function<PhaseCost(const Units::Sum& of, Index others)>;
  [[nodiscard]] PhaseCost cost(Range units, const CostOfSum& cost_of) const;
};

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
  // The sum over some units; and the most keys of a group among them.
  struct Sum {
    Units::Sum of;
    Index keys = 0;
  };
  [[nodiscard]] Sum sum(Range units) const;
  // Requires, of what it is asked: that these outlive it.
  [[nodiscard]] GroupedUnits all_units() const;
};

// The loop over the keys of a group inside one over groups, and their tiles.
struct GroupNest {
  NestLoop J;
  NestWriter::Tiles keys;
};
GroupNest group_nest(const GroupedRows& by, const NestLoop& groups);

}  // namespace redblue
