#include "runtime/ranks/grid.hpp"

#include <algorithm>

#include "kernels/attention.hpp"
#include "memsim/errors.hpp"
#include "runtime/observe/parallel.hpp"

namespace redblue {
namespace {

Range shifted(Range range, Index by) {
  return {range.begin + by, range.end + by};
}

}  // namespace

std::string to_string(const Grid& grid) {
  return std::to_string(grid.rows) + "x" + std::to_string(grid.columns);
}

bool runs_on_grid(const Kernel& kernel) {
  return kernel.schedule.split && kernel.schedule.split->on_grid;
}

void check_grid(const Kernel& kernel, const Plan& plan, const Grid& grid) {
  require(grid.rows > 0 && grid.columns > 0, "a grid has rows and columns");
  if (!runs_on_grid(kernel)) {
    throw ShapeMismatch(std::string(kernel.name) + " does not run on ranks");
  }
  if (!plan.problem.mask.full()) {
    throw ShapeMismatch(std::string(kernel.name) + " runs on ranks without a mask");
  }
  const Index groups = key_groups_of(plan);
  if (grid.columns > groups) {
    throw ShapeMismatch("a grid of " + to_string(grid) + " has more columns than the plan has " +
                        std::string(kKeyGroups) + " of keys (" + std::to_string(groups) + ")");
  }
}

RankPart::RankPart(const Kernel& kernel, const Plan& plan, const Grid& grid, Index rank)
    : kernel_(&kernel),
      plan_(&plan),
      grid_(grid),
      row_(rank / grid.columns),
      column_(rank % grid.columns),
      all_row_blocks_(ceil_div(plan.problem.shape.n, plan.blocks["Br"])),
      queries_(queries_of(row_)),
      keys_(keys_of(column_)) {}

Range RankPart::row_blocks(Index row) const {
  return share_of(all_row_blocks_, row, grid_.rows);
}

Range RankPart::groups(Index column) const {
  return share_of(key_groups_of(*plan_), column, grid_.columns);
}

Range RankPart::queries_of(Index row) const {
  const Index n = plan_->problem.shape.n;
  const Index rows = plan_->blocks["Br"];
  const Range blocks = row_blocks(row);
  return {std::min(n, blocks.begin * rows), std::min(n, blocks.end * rows)};
}

Range RankPart::keys_of(Index column) const {
  const Range its = groups(column);
  const auto keys = [&](Index group) {
    return keys_of_group(plan_->problem.shape.m, key_groups_of(*plan_), group);
  };
  return {keys(its.begin).begin, keys(its.end - 1).end};
}

Range RankPart::own_queries(Index column) const {
  const Range all = queries();
  return shifted(share_of(all.size(), column, grid_.columns), all.begin);
}

Range RankPart::own_keys(Index row) const {
  const Range all = keys();
  return shifted(share_of(all.size(), row, grid_.rows), all.begin);
}

Range RankPart::own_rows(const Signature& matrix) const {
  return of_queries(matrix) ? own_queries()
         : of_keys(matrix)  ? own_keys()
                            : Range{0, matrix.rows_of(plan_->problem.shape)};
}

Plan RankPart::of_place() const {
  Problem problem = plan_->problem;
  problem.shape.n = queries().size();
  problem.shape.m = keys().size();
  Blocks blocks = plan_->blocks;
  if (const Index all = key_groups_of(*plan_); all > 1) {
    blocks.set(kKeyGroups, groups(column_).size());
    blocks.add(std::string(kSomeGroups), all);
  }
  return kernel_->plan(problem, plan_->M, blocks);
}

Plan RankPart::of_own_rows() const {
  Problem problem = plan_->problem;
  problem.shape.n = own_queries().size();
  return kernel_->plan(problem, plan_->M, plan_->blocks);
}

bool RankPart::brings(std::string_view matrix) const {
  return grid_.columns > 1 && std::ranges::any_of(split().stages, [&](const SplitStage& stage) {
           return std::ranges::find(stage.brings, matrix) != stage.brings.end();
         });
}

std::vector<Segment> segments_of(const Kernel& kernel, const Plan& plan, const Grid& grid) {
  std::vector<Segment> segments;
  for (Index column = 0; column < grid.columns; ++column) {
    const Index groups = RankPart(kernel, plan, grid, column).groups(column).size();
    for (Index group = 0; group < groups; ++group) {
      for (Index row = 0; row < grid.rows; ++row) {
        const RankPart part(kernel, plan, grid, row * grid.columns + column);
        const Index blocks = part.row_blocks(row).size();
        if (blocks == 0) {
          continue;
        }
        const Range units{group * blocks, (group + 1) * blocks};
        if (!segments.empty() && segments.back().rank == part.rank()) {
          segments.back().units.end = units.end;
        } else {
          segments.push_back({part.rank(), units});
        }
      }
    }
  }
  return segments;
}

}  // namespace redblue
