#include "runtime/ranks/rank_cost.hpp"

#include <algorithm>
#include <utility>

#include "kernels/attention.hpp"
#include "kernels/masked.hpp"
#include "runtime/observe/run_counts.hpp"
#include "runtime/ranks/ring.hpp"
#include "runtime/ranks/transfers.hpp"

namespace redblue {
namespace {

// Adds the count of a link. With many ranks, the other end becomes kOthers.
void add(const GridPlan& of, Index rank, Link link, LinkCount count, Links& links) {
  if (of.grid().ranks() > kLinksApart) {
    (link.from == rank ? link.to : link.from) = kOthers;
  }
  links[std::move(link)] += count;
}
void add(const RankPart& part, const RankTransfer& transfer, Links& links) {
  add(part.of(), part.rank(), {transfer.matrix, transfer.from, transfer.to},
      count_of(transfer.sent.size() * transfer.cols), links);
}

std::vector<PhaseCost> arena_of(const RankPart& part) {
  std::vector<PhaseCost> phases;
  const bool sums = part.split().add_partials != nullptr;
  for (const SplitStage& stage : part.split().stages) {
    if (!part.works_on(stage)) {
      continue;
    }
    const Plan& plan = part.plan_of(stage);
    if (const Index units = stage.units(plan.problem, plan.blocks); units > 0) {
      add_costs(phases, stage.part_cost(plan.problem, plan.blocks, {0, units}, sums));
    }
  }
  const std::vector<Segment>& segments = part.of().segments();
  for (std::size_t k = 0; k < segments.size(); ++k) {
    if (segments[k].rank == part.rank()) {
      const Plan& plan = part.plan_of_place();
      add_costs(phases, part.split().add_partials_cost(plan.problem, plan.blocks,
                                                       segments[k].units.size(), k > 0));
    }
  }
  for (const Signature& result : part.of().kernel().returned(part.plan().problem)) {
    add_dead_cost(phases, result, part.plan().problem,
                  size_of(part.of().dead_rows(result, part.rank())));
  }
  return phases;
}

// Returns a matrix of queries or keys with the rows `there` of its place.
HomeMatrix of_place(const RankPart& part, const Signature& matrix, Ranges there) {
  const bool queries = of_queries(matrix);
  return {std::string(matrix.name),
          queries ? part.queries() : part.keys(),
          matrix.cols_of(part.plan().problem.shape),
          std::move(there),
          queries ? part.own_queries() : part.own_keys(),
          matrix};
}

// Returns a matrix with `rows` rows, all of them stored.
HomeMatrix whole(std::string name, const Signature& matrix, const Shape& shape, Index rows) {
  return {std::move(name), rows, matrix.cols_of(shape), {{0, rows}}, {0, rows}, matrix};
}

// Adds the matrix that a stage leaves. If other ranks need its rows, the home stores all rows of
// the place. Else the home stores the copies for its key or query groups. If stages merge the
// matrix, the home also has the copies of all groups for the rank's rows.
void add_left(const RankPart& part, const Split::Copies& left, std::vector<HomeMatrix>& all) {
  const Signature& matrix = left.matrix;
  const Shape& shape = part.plan().problem.shape;
  if (part.of().brings(matrix.name)) {
    all.push_back(of_place(part, matrix, {{0, part.queries()}}));
    return;
  }
  Index copies = 0;
  if (part.computes()) {
    const Plan& plan = part.plan_of_place();
    for (const Split::Copies& here : part.split().left_of(plan.problem, plan.blocks)) {
      copies += here.matrix.name == matrix.name ? here.copies : 0;
    }
  }
  all.push_back(whole(std::string(matrix.name), matrix, shape,
                      copies * (of_queries(matrix) ? part.queries() : part.keys())));
  if (part.of().merges(matrix.name)) {
    const Index own = (of_queries(matrix) ? part.own_queries() : part.own_keys()).size();
    all.push_back(whole(merged_name(matrix.name), matrix, shape, left.copies * own));
  }
}

}  // namespace

std::vector<HomeMatrix> home_of(const RankPart& part) {
  const Kernel& kernel = part.of().kernel();
  const Plan& plan = part.plan();
  const Shape& shape = plan.problem.shape;
  std::vector<HomeMatrix> all;
  for (const Signature& operand : kernel.given(plan.problem)) {
    if (of_queries(operand)) {
      const Range all_or_own =
          part.of().brings(operand.name) ? Range{0, part.queries()} : part.own_queries();
      all.push_back(of_place(part, operand, {all_or_own}));
    } else if (of_keys(operand)) {
      const bool ring = part.of().grid().ring;
      all.push_back(of_place(part, operand, ring ? Ranges{part.own_keys()} : part.kept_keys()));
    } else {
      all.push_back(whole(std::string(operand.name), operand, shape, operand.rows_of(shape)));
    }
  }
  for (const Split::Copies& left : part.split().left_of(plan.problem, plan.blocks)) {
    add_left(part, left, all);
  }
  for (const Signature& result : kernel.returned(plan.problem)) {
    if (of_queries(result) || of_keys(result)) {
      all.push_back(
          of_place(part, result, {of_queries(result) ? part.own_queries() : part.own_keys()}));
    } else {
      all.push_back(whole(std::string(result.name), result, shape, result.rows_of(shape)));
    }
    if (const Index dead = size_of(part.of().dead_rows(result, part.rank())); dead > 0) {
      all.push_back(whole(dead_name(result.name), result, shape, dead));
    }
  }
  if (part.of().grid().ranks() > 1) {
    for (const RingPass& pass : ring_passes(part.of())) {
      for (const Signature& matrix : pass.matrices) {
        all.push_back(whole(passing_name(matrix.name), matrix, shape, pass.slots * pass.slot_rows));
      }
    }
  }
  if (part.split().add_partials != nullptr && part.computes()) {
    const Index units = std::ssize(part.of().row_blocks(part.row())) *
                        std::ssize(part.of().key_groups(part.column()));
    all.push_back(whole(std::string(kPartials), kg, shape, units * shape.d));
    all.back().of.holds = Holds::sums;
  }
  return all;
}

RankCost cost_of_rank(const RankPart& part) {
  RankCost cost{.arena = arena_of(part)};
  for (std::size_t stage = 0; stage < part.split().stages.size(); ++stage) {
    for (const RankTransfer& transfer : transfers_before(part, stage)) {
      add(part, transfer, cost.links);
    }
  }
  for (const RankTransfer& transfer : transfers_of_sum(part)) {
    add(part, transfer, cost.links);
  }
  for (const auto& [link, count] : ring_links(part.of(), part.rank())) {
    add(part.of(), part.rank(), link, count, cost.links);
  }
  for (const HomeMatrix& matrix : home_of(part)) {
    cost.home += matrix.words();
  }
  return cost;
}

RankCost cost_of_dealing(const GridPlan& plan, const GridPlan& forward, Index rank) {
  RankCost cost;
  const Shape& shape = forward.plan().problem.shape;
  for (const Signature& result : forward.kernel().returned(forward.plan().problem)) {
    const Index cols = result.cols_of(shape);
    const Ranges made = forward.own_rows(result, rank);
    for (const GridPlan::Owned& in : forward.owners(plan.own_rows(result, rank))) {
      if (in.rank != rank) {
        add(plan, rank, {std::string(result.name), in.rank, rank}, count_of(in.rows.size() * cols),
            cost.links);
      }
    }
    for (const GridPlan::Owned& out : plan.owners(made)) {
      if (out.rank != rank) {
        add(plan, rank, {std::string(result.name), rank, out.rank},
            count_of(out.rows.size() * cols), cost.links);
      }
    }
    cost.home += Words(size_of(made)) * cols;
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
