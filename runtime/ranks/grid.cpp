#include "runtime/ranks/grid.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/attention.hpp"
#include "kernels/masked.hpp"
#include "kernels/units.hpp"
#include "memsim/errors.hpp"
#include "memsim/share.hpp"
#include "runtime/ranks/dealing.hpp"

namespace redblue {
namespace {

// The block size of resident keys.
constexpr std::string_view kKeyBlock = "dKV.Bc";

constexpr std::array kStageRows = {StageRows::place, StageRows::own_queries, StageRows::own_keys};

// Appends a range, and joins it with the last one if they are adjacent.
void append(Ranges& ranges, Range next) {
  if (next.size() == 0) {
    return;
  }
  if (!ranges.empty() && ranges.back().end == next.begin) {
    ranges.back().end = next.end;
  } else {
    ranges.push_back(next);
  }
}

// Returns the rows common to `rows` and `some`, by their numbers within `rows`.
Ranges numbers_among(const Ranges& rows, const Ranges& some) {
  const NumbersWithin numbers(rows);
  Ranges found;
  for (const Range range : common(rows, some)) {
    const Index first = numbers.below(range.begin);
    append(found, {first, first + range.size()});
  }
  return found;
}

Ranges united(const Ranges& a, const Ranges& b) {
  Ranges all = a;
  const Ranges others = without(b, a);
  all.insert(all.end(), others.begin(), others.end());
  std::ranges::sort(all, {}, &Range::begin);
  Ranges joined;
  for (const Range range : all) {
    append(joined, range);
  }
  return joined;
}

Index row_blocks_of(const Plan& plan) {
  return ceil_div(plan.problem.shape.n, plan.blocks[row_block_of(plan.blocks)]);
}

// Returns whether each block meets a single run of consecutive rows.
bool meet_in_runs(const Units& units) {
  for (Index unit = 0; unit < units.size(); ++unit) {
    if (units.met(unit).size() > 1) {
      return false;
    }
  }
  return true;
}

// Returns whether queries stream past the blocks of keys in the order of queries. Kernels stream
// the queries first that no earlier block has met.
bool pass_in_order(const Units& keys) {
  Ranges before;
  for (Index unit = 0; unit < keys.size(); ++unit) {
    const Ranges met = keys.met(unit);
    if (unit > 0 && !without(met, keys.met(unit - 1)).empty() && !common(met, before).empty()) {
      return false;
    }
    before = united(before, met);
  }
  return true;
}

void check_ring(const Plan& live, const Grid& grid, const std::string& name) {
  const auto check = [&](bool holds, const std::string& why) {
    if (!holds) {
      throw ShapeMismatch(name + " on a ring: " + why);
    }
  };
  check(grid.columns == 1, "it has one column, and this grid has " + std::to_string(grid.columns));
  for (const std::string_view groups : {kKeyGroups, kQueryGroups}) {
    check(!live.blocks.contains(groups) || live.blocks[groups] == 1,
          "rows pass one after the other: leave " + std::string(groups) + " out");
  }
  check(prefetch_of(live.blocks) == 1, "rows come as they pass: leave the prefetch out");
  if (live.problem.mask.full()) {
    return;
  }
  const Blocks& blocks = live.blocks;
  check(meet_in_runs(Units::of_queries(live.problem, blocks[row_block_of(blocks)])),
        "keys pass in one run, and under this mask some row block meets keys with others between");
  if (blocks.contains(kKeyBlock)) {
    const Units keys = Units::of_keys(live.problem, blocks[kKeyBlock]);
    check(meet_in_runs(keys) && pass_in_order(keys),
          "queries pass in their order, and under this mask some block of keys meets them in "
          "another");
  }
}

}  // namespace

std::string to_string(const Grid& grid) {
  return std::to_string(grid.rows) + "x" + std::to_string(grid.columns) +
         (grid.ring ? " as a ring" : "");
}

bool runs_on_grid(const Kernel& kernel) {
  return kernel.schedule.split && kernel.schedule.split->on_grid;
}

bool takes_query_groups(const Kernel& kernel) {
  return std::ranges::find(kernel.fitting.optional_blocks, kQueryGroups, &OptionalBlock::name) !=
         kernel.fitting.optional_blocks.end();
}

Index query_groups_of(const Kernel& kernel, const Plan& plan) {
  return !takes_query_groups(kernel)
             ? 0
             : std::min(plan.blocks.contains(kQueryGroups) ? plan.blocks[kQueryGroups] : 1,
                        row_blocks_of(plan));
}

void check_grid(const Kernel& kernel, const Plan& plan, const Grid& grid) {
  require(grid.rows > 0 && grid.columns > 0, "a grid has rows and columns");
  const std::string name(kernel.name);
  if (!runs_on_grid(kernel)) {
    throw ShapeMismatch(name + " does not run on ranks");
  }
  if (plan.problem.live_queries().empty()) {
    throw ShapeMismatch(name + " on ranks: no query meets a key under this mask");
  }
  if (!is_in_order(plan.blocks)) {
    throw ShapeMismatch(name + " on ranks: rows are in their own order, and not " +
                        std::string(kClustered));
  }
  const Plan live = live_plan(plan);
  if (grid.ring) {
    check_ring(live, grid, name);
    return;
  }
  const auto check = [&](Index has, std::string_view sides, Index groups, const std::string& of,
                         std::string_view more) {
    if (has > groups) {
      throw ShapeMismatch("a grid of " + to_string(grid) + " has more " + std::string(sides) +
                          " than the plan has " + of + " (" + std::to_string(groups) +
                          "): take one with fewer, or " + std::string(more));
    }
  };
  check(grid.columns, "columns", key_groups_of(live), std::string(kKeyGroups) + " of keys",
        "more groups");
  if (const Index groups = query_groups_of(kernel, live); groups > 0) {
    const bool blocks_are_few = groups == row_blocks_of(live);
    check(grid.rows, "rows", groups,
          blocks_are_few ? "row blocks" : std::string(kQueryGroups) + ", of queries",
          blocks_are_few ? "smaller row blocks" : "more groups");
  }
}

GridPlan::GridPlan(const Kernel& kernel, const Plan& plan, const Grid& grid, Index first)
    : kernel_(&kernel),
      live_(kernel.of_live ? kernel.of_live.get() : &kernel),
      asked_(&plan),
      grid_(grid),
      first_(first) {
  check_grid(kernel, plan, grid);
  plan_ = live_plan(plan);
  deal_row_blocks();
  deal_key_groups();
  if (split().add_partials != nullptr) {
    find_segments();
  }
  find_owners();
}

// Deals out row blocks by their numbers of pairs, in whole query groups if the plan has groups.
void GridPlan::deal_row_blocks() {
  const Problem& problem = plan_.problem;
  const BlockRanges blocks(problem.shape.n, plan_.blocks[row_block_of(plan_.blocks)]);
  const Index groups = grid_.ring ? 0 : query_groups_of(*kernel_, plan_);
  const Index things = groups > 0 ? groups : blocks.size();
  const auto blocks_of = [&](Index thing) {
    return groups > 0 ? keys_of_group(blocks.size(), groups, thing) : Range{thing, thing + 1};
  };
  const auto queries_of = [&](Index thing) {
    const Range its = blocks_of(thing);
    return Range{blocks[its.begin].begin, blocks[its.end - 1].end};
  };
  std::vector<Words> sizes;
  for (Index thing = 0; thing < things; ++thing) {
    sizes.push_back(problem.mask.full() ? Words(1)
                                        : problem.pairs(queries_of(thing), {0, problem.shape.m}));
  }
  // In a ring the running sum goes from each rank to the next. So there must be no rank without row
  // blocks between two that have some.
  const bool turns = grid_.ring && (!problem.mask.full() || things < grid_.rows);
  for (const std::vector<Index>& share :
       turns ? dealt_in_turn(things, grid_.rows) : dealt_out(sizes, grid_.rows)) {
    Row& row = rows_.emplace_back();
    for (const Index thing : share) {
      for (Index block = blocks_of(thing).begin; block < blocks_of(thing).end; ++block) {
        row.blocks.push_back(block);
      }
      append(row.queries, queries_of(thing));
    }
    if (groups > 0) {
      row.groups = share;
    }
    row.size = size_of(row.queries);
    for (const Range queries : row.queries) {
      row.met = united(row.met, problem.keys(queries));
    }
  }
}

void GridPlan::deal_key_groups() {
  const Problem& problem = plan_.problem;
  const Index groups = key_groups_of(plan_);
  const auto keys_of = [&](Index group) { return keys_of_group(problem.shape.m, groups, group); };
  std::vector<Words> sizes;
  for (Index group = 0; group < groups; ++group) {
    sizes.push_back(problem.mask.full() ? Words(1)
                                        : problem.pairs({0, problem.shape.n}, keys_of(group)));
  }
  for (std::vector<Index>& share : dealt_out(sizes, grid_.columns)) {
    Column& column = columns_.emplace_back();
    for (const Index group : share) {
      append(column.keys, keys_of(group));
    }
    column.groups = std::move(share);
    column.size = size_of(column.keys);
  }
}

void GridPlan::find_segments() {
  struct Local {
    Index holder, number;  // row or column of ranks, and the number there
  };
  const auto holders = [](const auto& all, const auto& of_one) {
    std::vector<Local> where;
    for (std::size_t holder = 0; holder < all.size(); ++holder) {
      const std::vector<Index>& things = of_one(all[holder]);
      for (std::size_t k = 0; k < things.size(); ++k) {
        where.resize(std::max(where.size(), static_cast<std::size_t>(things[k]) + 1));
        where[static_cast<std::size_t>(things[k])] = {static_cast<Index>(holder),
                                                      static_cast<Index>(k)};
      }
    }
    return where;
  };
  const std::vector<Local> of_blocks = holders(
      rows_, [](const Row& row) -> const auto& { return row.blocks; });
  const std::vector<Local> of_groups = holders(
      columns_, [](const Column& column) -> const auto& { return column.groups; });
  for (const Local& group : of_groups) {
    for (const Local& block : of_blocks) {
      const Index rank = rank_of(block.holder, group.holder);
      const Index unit = group.number * std::ssize(row_blocks(block.holder)) + block.number;
      if (!segments_.empty() && segments_.back().rank == rank) {
        segments_.back().units.end = unit + 1;
      } else {
        segments_.push_back({rank, {unit, unit + 1}});
      }
    }
  }
}

void GridPlan::find_owners() {
  const Signature queries{"", &Shape::n, nullptr};
  for (Index rank = first_; rank < ranks().end; ++rank) {
    for (const Range rows : own_rows(queries, rank)) {
      owned_.push_back({rows, rank});
    }
  }
  std::ranges::sort(owned_, {}, [](const Owned& owned) { return owned.rows.begin; });
}

std::vector<GridPlan::Owned> GridPlan::owners(const Ranges& queries) const {
  std::vector<Owned> all;
  for (const Range range : queries) {
    auto owned = std::ranges::upper_bound(owned_, range.begin, {},
                                          [](const Owned& one) { return one.rows.end; });
    for (; owned != owned_.end() && owned->rows.begin < range.end; ++owned) {
      all.push_back({common(owned->rows, range), owned->rank});
    }
  }
  return all;
}

Words GridPlan::pairs(Index row, Index column) const {
  Words pairs;
  for (const Range queries : queries(row)) {
    for (const Range keys : keys(column)) {
      pairs += plan_.problem.pairs(queries, keys);
    }
  }
  return pairs;
}

Range GridPlan::own_queries(Index row, Index column) const {
  return share_of(queries_of_place(row), column, grid_.columns);
}

// In a ring with resident keys, a rank has whole blocks of keys.
Range GridPlan::own_keys(Index row, Index column) const {
  const Index keys = keys_of_place(column);
  const Index block = grid_.ring && plan_.blocks.contains(kKeyBlock) ? plan_.blocks[kKeyBlock] : 1;
  const Range own = share_of(ceil_div(keys, block), row, grid_.rows);
  return {std::min(own.begin * block, keys), std::min(own.end * block, keys)};
}

// With resident keys, the number of units grows with the number of keys.
bool GridPlan::keys_stay(const SplitStage& stage) const {
  if (!grid_.ring || !plan_.blocks.contains(kKeyBlock) || stage.of != StageRows::place) {
    return false;
  }
  Problem more = plan_.problem.with_mask({});
  const Index units = stage.units(more, plan_.blocks);
  more.shape.m += more.shape.m + plan_.blocks[kKeyBlock];
  return stage.units(more, plan_.blocks) > units;
}

// All keys of the place if the kernel has a stage with resident keys; else the keys that the
// queries meet.
Ranges GridPlan::needed_keys(Index row, Index column) const {
  return !computes(row)                         ? Ranges()
         : query_groups_of(*kernel_, plan_) > 0 ? Ranges{{0, keys_of_place(column)}}
                                                : numbers_among(keys(column), at(rows_, row).met);
}

Ranges GridPlan::own_rows(const Signature& matrix, Index rank) const {
  const Index row = row_of(rank), column = column_of(rank);
  const Problem& problem = asked_->problem;
  if (of_queries(matrix)) {
    return picked(problem.live_queries(), picked(queries(row), {own_queries(row, column)}));
  }
  if (of_keys(matrix)) {
    return picked(problem.live_keys(), picked(keys(column), {own_keys(row, column)}));
  }
  return {{0, matrix.rows_of(problem.shape)}};
}

Ranges GridPlan::dead_rows(const Signature& matrix, Index rank) const {
  const Ranges dead = redblue::dead_rows(matrix, asked_->problem);
  return picked(dead, {share_of(size_of(dead), rank - first_, grid_.ranks())});
}

bool GridPlan::brings(std::string_view matrix) const {
  return std::ranges::any_of(
      split().stages, [&](const SplitStage& stage) { return is_among(stage.brings, matrix); });
}

bool GridPlan::merges(std::string_view matrix) const {
  return std::ranges::any_of(
      split().stages, [&](const SplitStage& stage) { return is_among(stage.merges, matrix); });
}

RankPart::RankPart(const GridPlan& of, Index rank)
    : of_(&of), row_(of.row_of(rank)), column_(of.column_of(rank)) {
  for (const StageRows rows : kStageRows) {
    plans_.push_back(has_rows(rows) ? made_plan(rows) : Plan());
  }
  if (of.grid().ring && has_rows(StageRows::own_keys)) {
    plan_of_keys_ = made_plan_of_keys();
  }
}

Ranges RankPart::kept_keys() const {
  return united(of_->needed_keys(row_, column_), {own_keys()});
}

bool RankPart::works_on(const SplitStage& stage) const {
  return has_rows(of_->keys_stay(stage) ? StageRows::own_keys : stage.of);
}

bool RankPart::has_rows(StageRows rows) const {
  return rows == StageRows::place         ? computes()
         : rows == StageRows::own_queries ? own_queries().size() > 0
                                          : own_keys().size() > 0;
}

const Plan& RankPart::plan_of(const SplitStage& stage) const {
  return of_->keys_stay(stage) ? plan_of_keys_ : plans_[static_cast<std::size_t>(stage.of)];
}

const Plan& RankPart::plan_of_place() const {
  return plans_[static_cast<std::size_t>(StageRows::place)];
}

// Returns the plan for the rank's own keys with all queries.
Plan RankPart::made_plan_of_keys() const {
  Plan made = plan();
  made.phases.clear();
  Problem& problem = made.problem;
  if (!problem.mask.full()) {
    problem.mask = problem.mask.part({{0, problem.shape.n}}, {own_keys()});
  }
  problem.shape.m = own_keys().size();
  return made;
}

Plan RankPart::made_plan(StageRows rows) const {
  const Index key_groups = key_groups_of(plan());
  const Index query_groups = query_groups_of(of_->kernel(), plan());
  Plan made = plan();
  made.phases.clear();
  Problem& problem = made.problem;
  Blocks& blocks = made.blocks;
  if (rows == StageRows::place) {
    problem.shape.n = queries();
    problem.shape.m = keys();
    if (!problem.mask.full()) {
      problem.mask = problem.mask.part(of_->queries(row_), of_->keys(column_));
    }
    if (key_groups > 1) {
      blocks.set(kKeyGroups, std::ssize(of_->key_groups(column_)));
    }
    if (query_groups > 1) {
      blocks.set(kQueryGroups, std::ssize(of_->query_groups(row_)));
    }
  } else {
    problem.mask = {};
    (rows == StageRows::own_queries ? problem.shape.n : problem.shape.m) =
        (rows == StageRows::own_queries ? own_queries() : own_keys()).size();
  }
  if (key_groups > 1) {
    blocks.add(std::string(kSomeGroups), key_groups);
  }
  if (query_groups > 1) {
    blocks.add(std::string(kSomeQueryGroups), query_groups);
  }
  return made;
}

}  // namespace redblue
