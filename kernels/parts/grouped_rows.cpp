#include "kernels/parts/grouped_rows.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace redblue {
namespace {

void add(Units::Sum& sum, const Units::Sum& more) {
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
}

void add(PhaseCost& sum, PhaseCost more) {
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

}  // namespace

void GroupedUnits::each_sum(Range units, const Visit& visit) const {
  const auto visit_part = [&](Range of_groups, Range of_rows) {
    if (!full) {
      for (Index group = of_groups.begin; group < of_groups.end; ++group) {
        visit(of_group(group).sum(of_rows), group);
      }
      return;
    }
    // All at once: only their others differ.
    Units::Sum all = blocks.sum(of_rows);
    const Index others_of_all = others(of_groups.end - 1).end - others(of_groups.begin).begin;
    all.met = Words(all.units) * others_of_all;
    all.pairs = Words(all.rows) * others_of_all;
    all.longest = all.most = others(of_groups.begin).size();
    all.units *= of_groups.size();
    all.rows = (Words(all.rows) * of_groups.size()).value();
    visit(all, of_groups.begin);
  };
  if (units.size() <= 0) {
    return;
  }
  const Index T = blocks.size();
  const Index first = group(units.begin), last = group(units.end - 1);
  visit_part({first, first + 1}, {units.begin - first * T, std::min(units.end - first * T, T)});
  if (last > first + 1) {
    visit_part({first + 1, last}, {0, T});
  }
  if (last > first) {
    visit_part({last, last + 1}, {0, units.end - last * T});
  }
}

Units::Sum GroupedUnits::sum(Range units) const {
  Units::Sum sum;
  each_sum(units, [&](const Units::Sum& of, Index) { add(sum, of); });
  return sum;
}

PhaseCost GroupedUnits::cost(Range units, const CostOfSum& cost_of) const {
  std::optional<PhaseCost> sum;
  each_sum(units, [&](const Units::Sum& of, Index first) {
    PhaseCost cost = cost_of(of, others(first).size());
    if (sum) {
      add(*sum, std::move(cost));
    } else {
      sum = std::move(cost);
    }
  });
  return sum ? *sum : cost_of({}, 0);
}

GroupedUnits GroupedRows::all_units() const {
  return {.blocks = row_blocks,
          .full = by.problem.mask.full(),
          .groups = groups,
          .others = [this](Index group) { return keys(group); },
          .of_group = [this](Index group) { return of_group(group).units(); }};
}

GroupedRows::Sum GroupedRows::sum(Range units) const {
  return {.of = all_units().sum(units),
          .keys = units.size() > 0 ? keys(group(units.begin)).size() : 0};
}

GroupNest group_nest(const GroupedRows& by, const NestLoop& groups) {
  const Problem& problem = by.by.problem;
  const Units::Sum met = by.sum({0, by.units()}).of;
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
