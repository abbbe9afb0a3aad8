#include "runtime/ranks/rank_cost.hpp"

#include <algorithm>

#include "kernels/attention.hpp"
#include "runtime/observe/run_counts.hpp"

namespace redblue {
namespace {

// The stage on the place in the grid; after it, or before it, there may be one on own rows.
std::size_t stage_of_place(const Split& split) {
  return static_cast<std::size_t>(std::ranges::find(split.stages, false, &SplitStage::of_own_rows) -
                                  split.stages.begin());
}

std::vector<Signature> left_by_stages(const RankPart& part) {
  const Plan& plan = part.plan();
  return part.split().copies(plan.problem, plan.blocks) == 0
             ? std::vector<Signature>()
             : of_activation(part.split().left, plan.problem.activation);
}

bool leaves_groups(const RankPart& part) {
  return stage_of_place(part.split()) == 0;
}

// Of a link that has so many words in a phase. Of many ranks the other end is left open.
void add(const RankPart& part, std::string_view phase, Index from, Index to, Index words,
         Links& links) {
  const auto end = [&](Index rank) {
    return part.grid().ranks() > kLinksApart && rank != part.rank() ? kOthers : rank;
  };
  if (words > 0) {
    links[{std::string(phase), end(from), end(to)}] += count_of(words);
  }
}

// The first of so many ranks for which something holds, as it does for all after it.
template <class Holding>
Index first_of(Index ranks, const Holding& holds) {
  Index first = 0;
  while (first < ranks) {
    const Index middle = first + (ranks - first) / 2;
    if (holds(middle)) {
      ranks = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

// The rows that ranks of a row bring of one matrix; and keys, of a column.
void add_rows(const RankPart& part, const Signature& matrix, Links& links) {
  const Index cols = matrix.cols_of(part.plan().problem.shape);
  for (Index column = 0; column < part.grid().columns; ++column) {
    if (column != part.column() && part.computes()) {
      const Index other = part.rank_of(part.row(), column);
      add(part, matrix.name, other, part.rank(), part.own_queries(column).size() * cols, links);
      add(part, matrix.name, part.rank(), other, part.own_queries().size() * cols, links);
    }
  }
}

void add_keys(const RankPart& part, const Signature& matrix, Links& links) {
  const Index cols = matrix.cols_of(part.plan().problem.shape);
  for (Index row = 0; row < part.grid().rows; ++row) {
    if (row == part.row()) {
      continue;
    }
    const Index other = part.rank_of(row, part.column());
    if (part.computes()) {
      add(part, matrix.name, other, part.rank(), part.own_keys(row).size() * cols, links);
    }
    if (part.row_blocks(row).size() > 0) {
      add(part, matrix.name, part.rank(), other, part.own_keys().size() * cols, links);
    }
  }
}

// What groups leave goes to the owners of its rows, group by group.
void add_merged(const RankPart& part, const Signature& matrix, Links& links) {
  const Index cols = matrix.cols_of(part.plan().problem.shape);
  for (Index column = 0; column < part.grid().columns; ++column) {
    if (column == part.column()) {
      continue;
    }
    const Index other = part.rank_of(part.row(), column);
    for (Index group = 0; group < part.groups(column).size(); ++group) {
      add(part, matrix.name, other, part.rank(), part.own_queries().size() * cols, links);
    }
    for (Index group = 0; group < part.groups(part.column()).size(); ++group) {
      add(part, matrix.name, part.rank(), other, part.own_queries(column).size() * cols, links);
    }
  }
}

void add_relay(const RankPart& part, const std::vector<Segment>& segments, Links& links) {
  const Index d = part.plan().problem.shape.d;
  for (std::size_t k = 1; k < segments.size(); ++k) {
    if (segments[k - 1].rank == part.rank() || segments[k].rank == part.rank()) {
      add(part, kg.name, segments[k - 1].rank, segments[k].rank, d * d, links);
    }
  }
}

std::vector<PhaseCost> arena_of(const RankPart& part, const std::vector<Segment>& segments) {
  std::vector<PhaseCost> phases;
  const bool sums = part.split().add_partials != nullptr;
  for (const SplitStage& stage : part.split().stages) {
    if (!part.computes() || (stage.of_own_rows && part.own_queries().size() == 0)) {
      continue;
    }
    const Plan plan = stage.of_own_rows ? part.of_own_rows() : part.of_place();
    if (const Index units = stage.units(plan.problem, plan.blocks); units > 0) {
      add_costs(phases, stage.part_cost(plan.problem, plan.blocks, {0, units}, sums));
    }
  }
  if (!sums || !part.computes()) {
    return phases;
  }
  const Plan plan = part.of_place();
  for (std::size_t k = 0; k < segments.size(); ++k) {
    if (segments[k].rank == part.rank()) {
      add_costs(phases, part.split().add_partials_cost(plan.problem, plan.blocks,
                                                       segments[k].units.size(), k > 0));
    }
  }
  return phases;
}

}  // namespace

std::string merged_name(std::string_view left) {
  return std::string(left) + " of own rows";
}

std::vector<Signature> left_by_groups(const RankPart& part) {
  return leaves_groups(part) ? left_by_stages(part) : std::vector<Signature>();
}

std::vector<Signature> left_for_rows(const RankPart& part) {
  return leaves_groups(part) ? std::vector<Signature>() : left_by_stages(part);
}

std::vector<HomeMatrix> home_of(const RankPart& part) {
  const Plan& plan = part.plan();
  const Shape& shape = plan.problem.shape;
  std::vector<HomeMatrix> all;
  const auto add_rows_of = [&](const Signature& matrix, bool brought) {
    const Range from = brought ? part.queries() : part.own_queries();
    const Range own = part.own_queries();
    all.push_back({std::string(matrix.name),
                   from.size(),
                   matrix.cols_of(shape),
                   {own.begin - from.begin, own.end - from.begin},
                   matrix.holds});
  };
  for (const Signature& operand : part.kernel().given(plan.problem)) {
    if (of_queries(operand)) {
      add_rows_of(operand, part.brings(operand.name));
    } else if (of_keys(operand)) {
      const Range from = part.computes() ? part.keys() : part.own_keys();
      const Range own = part.own_keys();
      all.push_back({std::string(operand.name),
                     from.size(),
                     operand.cols_of(shape),
                     {own.begin - from.begin, own.end - from.begin},
                     operand.holds});
    } else {
      const Index rows = operand.rows_of(shape);
      all.push_back({std::string(operand.name), rows, operand.cols_of(shape), {0, rows}});
    }
  }
  for (const Signature& left : left_for_rows(part)) {
    add_rows_of(left, part.brings(left.name));
  }
  for (const Signature& left : left_by_groups(part)) {
    const Index its = part.groups(part.column()).size();
    const Index groups = key_groups_of(plan);
    all.push_back({std::string(left.name),
                   its * part.queries().size(),
                   left.cols_of(shape),
                   {0, 0},
                   left.holds});
    all.push_back({merged_name(left.name),
                   groups * part.own_queries().size(),
                   left.cols_of(shape),
                   {0, 0},
                   left.holds});
  }
  for (const Signature& result : part.kernel().returned(plan.problem)) {
    if (of_queries(result)) {
      add_rows_of(result, false);
    } else {
      all.push_back({std::string(result.name), result.rows_of(shape), result.cols_of(shape)});
    }
  }
  if (part.split().add_partials != nullptr && part.computes()) {
    const Index units = part.row_blocks(part.row()).size() * part.groups(part.column()).size();
    all.push_back({std::string(kPartials), units * shape.d, shape.d, {0, 0}, Holds::sums});
  }
  return all;
}

RankCost cost_of_rank(const RankPart& part, const std::vector<Segment>& segments) {
  RankCost cost;
  cost.arena = arena_of(part, segments);
  const Plan& plan = part.plan();
  for (const Signature& operand : part.kernel().given(plan.problem)) {
    if (of_queries(operand) && part.brings(operand.name)) {
      add_rows(part, operand, cost.links);
    } else if (of_keys(operand)) {
      add_keys(part, operand, cost.links);
    }
  }
  for (const Signature& left : left_for_rows(part)) {
    if (part.brings(left.name)) {
      add_rows(part, left, cost.links);
    }
  }
  for (const Signature& left : left_by_groups(part)) {
    add_merged(part, left, cost.links);
  }
  if (part.split().add_partials != nullptr) {
    add_relay(part, segments, cost.links);
  }
  for (const HomeMatrix& matrix : home_of(part)) {
    cost.home += Words(matrix.rows) * matrix.cols;
  }
  return cost;
}

RankCost cost_of_dealing(const RankPart& part, const Plan& forward, const Grid& grid) {
  const Kernel& maker = find_kernel(forward.kernel);
  const auto made_by = [&](Index rank) {
    return RankPart(maker, forward, grid, rank).own_queries();
  };
  const auto needed_by = [&](Index rank) {
    return RankPart(part.kernel(), part.plan(), part.grid(), rank).own_queries();
  };
  const auto shared = [](Range a, Range b) {
    return std::max<Index>(std::min(a.end, b.end) - std::max(a.begin, b.begin), 0);
  };
  // Ranks have rows in their order.
  const auto ranks_that_share = [&](Range rows, const auto& rows_of) {
    std::vector<Index> others;
    const Index first = first_of(grid.ranks(), [&](Index rank) {
      return rows_of(rank).end > rows.begin;
    });
    for (Index rank = first; rank < grid.ranks() && rows_of(rank).begin < rows.end; ++rank) {
      if (rank != part.rank()) {
        others.push_back(rank);
      }
    }
    return others;
  };
  RankCost cost;
  const Range made = made_by(part.rank());
  for (const Signature& result : maker.returned(forward.problem)) {
    const Index cols = result.cols_of(forward.problem.shape);
    for (const Index other : ranks_that_share(part.own_queries(), made_by)) {
      add(part, result.name, other, part.rank(),
          shared(made_by(other), part.own_queries()) * cols, cost.links);
    }
    for (const Index other : ranks_that_share(made, needed_by)) {
      add(part, result.name, part.rank(), other, shared(made, needed_by(other)) * cols, cost.links);
    }
    cost.home += Words(made.size()) * cols;
  }
  return cost;
}

Words received(const Links& links, Index rank) {
  Words words;
  for (const auto& [link, count] : links) {
    words += link.to == rank ? Words(count.words) : Words(0);
  }
  return words;
}

Words sent(const Links& links, Index rank) {
  Words words;
  for (const auto& [link, count] : links) {
    words += link.from == rank ? Words(count.words) : Words(0);
  }
  return words;
}

}  // namespace redblue
