#include "kernels/parts/grouped_rows.hpp"

#include <algorithm>

namespace redblue {

GroupedRows::Sum GroupedRows::sum(Range units) const {
  Sum sum;
  if (units.size() <= 0) {
    return sum;
  }
  const Index T = row_blocks.size();
  const Index first = group(units.begin), last = group(units.end - 1);
  const Range begin{units.begin - first * T, std::min(units.end - first * T, T)};
  add({first, first + 1}, begin, sum.of);
  if (last > first) {
    add({first + 1, last}, {0, T}, sum.of);
    add({last, last + 1}, {0, units.end - last * T}, sum.of);
  }
  sum.keys = keys(first).size();
  return sum;
}

void GroupedRows::add(Range of_groups, Range of_rows, Units::Sum& sum) const {
  const auto add = [&](const Units::Sum& more) {
    sum.units += more.units;
    sum.rows += more.rows;
    sum.largest = std::max(sum.largest, more.largest);
    sum.met += more.met;
    sum.longest = std::max(sum.longest, more.longest);
    sum.most = std::max(sum.most, more.most);
    sum.pairs += more.pairs;
    sum.index += more.index;
    sum.index_live = std::max(sum.index_live, more.index_live);
    if (more.regrouped) {
      sum.regrouped = true;
      sum.grouping = more.grouping;
    }
  };
  if (by.problem.mask.full() && of_groups.size() > 0) {  // all at once: only their keys differ
    Units::Sum all = row_blocks.sum(of_rows);
    const Index keys_of_all = keys(of_groups.end - 1).end - keys(of_groups.begin).begin;
    all.met = Words(all.units) * keys_of_all;
    all.pairs = Words(all.rows) * keys_of_all;
    all.longest = all.most = keys(of_groups.begin).size();
    all.units *= of_groups.size();
    all.rows = (Words(all.rows) * of_groups.size()).value();
    add(all);
    return;
  }
  for (Index group = of_groups.begin; group < of_groups.end; ++group) {
    add(of_group(group).units().sum(of_rows));
  }
}

}  // namespace redblue
