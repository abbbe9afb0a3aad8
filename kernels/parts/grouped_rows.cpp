#include "kernels/parts/grouped_rows.hpp"

#include <algorithm>
#include <string>

namespace redblue {

void add(Units::Sum& sum, const Units::Sum& more) {
  sum.units += more.units;
  sum.rows += more.rows;
  sum.largest = std::max(sum.largest, more.largest);
  sum.met += more.met;
  sum.longest = std::max(sum.longest, more.longest);
  sum.most = std::max(sum.most, more.most);
  for (const auto unit : {&Units::Sum::full, &Units::Sum::last}) {
    sum.*unit = {std::max((sum.*unit).rows, (more.*unit).rows),
                 std::max((sum.*unit).longest, (more.*unit).longest),
                 std::max((sum.*unit).most, (more.*unit).most)};
  }
  sum.pairs += more.pairs;
  sum.index += more.index;
  sum.index_live = std::max(sum.index_live, more.index_live);
  if (more.regrouped) {
    sum.regrouped = true;
    sum.grouping = more.grouping;
  }
}

void add(PhaseCost& sum, const PhaseCost& more) {
  sum.reads += more.reads;
  sum.writes += more.writes;
  sum.peak = std::max(sum.peak, more.peak);
  sum.flops += more.flops;
  sum.index_reads += more.index_reads;
  sum.index_writes += more.index_writes;
  for (const Grouping& grouping : more.groupings) {
    const auto same = std::ranges::find_if(
        sum.groupings, [&](const Grouping& known) { return known.same_groups(grouping); });
    if (same == sum.groupings.end()) {
      sum.groupings.push_back(grouping);
    } else {
      same->words += grouping.words;
    }
  }
}

void each_part(Range units, Index blocks,
               const std::function<void(Range groups, Range blocks)>& visit) {
  if (units.size() <= 0) {
    return;
  }
  const Index first = units.begin / blocks, last = (units.end - 1) / blocks;
  visit({first, first + 1},
        {units.begin - first * blocks, std::min(units.end - first * blocks, blocks)});
  if (last > first + 1) {
    visit({first + 1, last}, {0, blocks});
  }
  if (last > first) {
    visit({last, last + 1}, {0, units.end - last * blocks});
  }
}

Units::Sum of_all_groups(Units::Sum of_one, Index groups, Index most, Index others) {
  Units::Sum all = of_one;
  all.met = Words(of_one.units) * others;
  all.pairs = Words(of_one.rows) * others;
  all.longest = all.most = most;
  all.full = {of_one.largest, most, most};
  all.last = {of_one.last.rows, most, most};
  all.units *= groups;
  all.rows = (Words(of_one.rows) * groups).value();
  return all;
}

void GroupedRows::each_sum(Range units, const Visit& visit) const {
  each_part(units, row_blocks.size(), [&](Range of_groups, Range blocks) {
    if (by.problem.mask.full()) {
      const Range first = keys(of_groups.begin), last = keys(of_groups.end - 1);
      visit(of_all_groups(row_blocks.sum(blocks), of_groups.size(), first.size(),
                          last.end - first.begin),
            first.size());
      return;
    }
    for (Index group = of_groups.begin; group < of_groups.end; ++group) {
      visit(of_group(group).units().sum(blocks), keys(group).size());
    }
  });
}

Units::Sum GroupedRows::sum(Range units) const {
  Units::Sum sum;
  each_sum(units, [&](const Units::Sum& of, Index) { add(sum, of); });
  return sum;
}

GroupNest group_nest(const GroupedRows& by, const NestLoop& groups) {
  const Problem& problem = by.by.problem;
  const Units::Sum met = by.sum({0, by.units()});
  GroupNest nest{
      .J = groups.met("J", (problem.mask.full() ? "keys of " : "live keys of ") + groups.variable,
                      met.met.value(), met.longest, by.by.keys),
      .keys = {}};
  for (const NestTile& tile : key_tiles(problem, nest.J)) {
    nest.keys.push_back(tile.of_words(tile.moved({})));
  }
  return nest;
}

}  // namespace redblue
