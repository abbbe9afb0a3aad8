#include "runtime/report/rank_bounds_report.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "kernels/attention.hpp"
#include "kernels/kernel.hpp"
#include "memsim/errors.hpp"
#include "runtime/report/context.hpp"
#include "runtime/text/table.hpp"
#include "runtime/theory/rank_bounds.hpp"

namespace redblue {
namespace {

// Results travel between ranks under their own names or as "O of groups".
bool is_part_of_result(const Plan& plan, std::string_view phase) {
  return std::ranges::any_of(
      find_kernel(plan.kernel).returned(plan.problem), [&](const Signature& result) {
        return phase == result.name || phase.starts_with(std::string(result.name) + " of ");
      });
}

RankTask task_of(const Plan& plan, const Grid& grid) {
  return {find_kernel(plan.kernel).pass, plan.problem, grid.ranks()};
}

// Returns the most words that a single rank holds at the start and at the end.
Held held_by(const Plan& plan, const Grid& grid, const std::vector<MovedByRank>& ranks) {
  const RankTask task = task_of(plan, grid);
  const GridPlan on(find_kernel(plan.kernel), plan, grid);
  Held most;
  for (const MovedByRank& of : ranks) {
    const Index row = of.rank / grid.columns, column = of.rank % grid.columns;
    const Held its =
        held_of(task, on.own_queries(row, column).size(), on.own_keys(row, column).size());
    most.sources = std::max(most.sources, its.sources);
    most.results = std::max(most.results, its.results);
  }
  return most;
}

// Returns why the bounds on small homes and arenas do not hold, or "". Their proofs assume, only
// for a forward pass with weights, that a rank begins the sum of each row once.
std::string makes_a_sum_again(const Plan& plan, const Grid& grid) {
  return find_kernel(plan.kernel).pass == Pass::forward && key_groups_of(plan) > grid.columns
             ? "a rank begins the sum of a row anew for each of its groups of keys: the proof "
               "takes "
               "one"
             : "";
}

std::string counted_as(const Plan& plan, const Grid& grid) {
  const std::vector<Signature> results = find_kernel(plan.kernel).returned(plan.problem);
  if (grid.ranks() > 1 && find_operand(results, kg.name) != nullptr) {
    return ", without the running sum of g";
  }
  const bool parts = !grid.ring && std::ranges::any_of(results, [&](const Signature& result) {
    return (of_queries(result) && grid.columns > 1) || (of_keys(result) && grid.rows > 1);
  });
  return parts ? ", parts of results where they are sent" : "";
}

template <class Evaluate>
void evaluate(BesideBound& beside, std::string_view name, const std::string& condition,
              const Evaluate& words) {
  beside.no_bound = condition;
  if (!condition.empty()) {
    return;
  }
  try {
    beside.bound = Bound{.name = name, .words = words()};
  } catch (const ShapeMismatch& none) {
    beside.no_bound = none.what();
  }
}

Json json_of_bound(const BesideBound& beside) {
  Json json = {{"words", beside.words},
               {"rank", beside.rank},
               {"lower_bound", beside.bound ? bound_json(*beside.bound) : Json()},
               {"ratio", beside.ratio()}};
  if (!beside.bound) {
    json["no_bound"] = beside.no_bound;
  }
  return json;
}

std::string line_of(const char* what, const char* moves, const BesideBound& beside,
                    const std::string& counted = "") {
  if (!beside.bound) {
    return fmt::format("no bound on the {} of a rank: {}\n", what, beside.no_bound);
  }
  const auto ratio = beside.ratio();
  return fmt::format(
      "the {} of some rank {} at least {} words (bound: {}); here {} of rank {}{}{}\n", what, moves,
      grouped(beside.bound->words), beside.bound->name, grouped(beside.words), beside.rank, counted,
      ratio ? fmt::format("; ratio {:.3f}", *ratio) : "");
}

}  // namespace

Words counted_words(const Plan& plan, const Links& links, Index rank) {
  Words words;
  for (const auto& [link, count] : links) {
    const bool sent = is_part_of_result(plan, link.phase);
    if (link.phase != kg.name && (sent ? link.from : link.to) == rank) {
      words += count.words;
    }
  }
  return words;
}

std::optional<double> BesideBound::ratio() const {
  return bound && bound->words >= row ? quotient(words, bound->words) : std::nullopt;
}

const BesideBound& BesideRankBounds::largest_of_links() const {
  const bool small =
      small_homes.bound && (!links.bound || small_homes.bound->words > links.bound->words);
  return small ? small_homes : links;
}

BesideRankBounds beside_rank_bounds(const Plan& plan, const Grid& grid,
                                    const std::vector<MovedByRank>& moved, Index heads) {
  BesideRankBounds beside;
  beside.links.row = beside.arena.row = plan.problem.shape.d;
  beside.counted = counted_as(plan, grid);
  beside.ring = grid.ring;
  for (const MovedByRank& of : moved) {
    if (of.linked > beside.links.words) {
      beside.links.words = of.linked;
      beside.links.rank = of.rank;
    }
    if (of.arena > beside.arena.words) {
      beside.arena.words = of.arena;
      beside.arena.rank = of.rank;
    }
    beside.at_a_time = std::max(beside.at_a_time, (Words(of.home) + plan.M).value());
  }
  beside.small_homes = beside.links;
  const RankTask task = task_of(plan, grid);
  const std::string several = heads > 1 ? "the proofs are of one head" : "";
  const std::string again = heads > 1 ? several : makes_a_sum_again(plan, grid);
  evaluate(beside.links, "links", several,
           [&] { return link_bound(task, held_by(plan, grid, moved)); });
  evaluate(beside.small_homes, "small homes", again,
           [&] { return small_home_bound(task, held_by(plan, grid, moved), beside.at_a_time); });
  evaluate(beside.arena, "arena", again, [&] { return arena_bound(task, plan.M); });
  return beside;
}

BesideRankBounds beside_rank_bounds(const PlannedGrid& on) {
  std::vector<MovedByRank> moved;
  for (std::size_t k = 0; k < on.ranks.size(); ++k) {
    const RankCost& cost = on.costs[k];
    const PhaseCost arena = total(cost.arena);
    moved.push_back({.rank = on.ranks[k],
                     .linked = counted_words(on.plan, cost.links, on.ranks[k]).value(),
                     .arena = (arena.reads + arena.writes).value(),
                     .home = cost.home.value()});
  }
  return beside_rank_bounds(on.plan, on.grid, moved);
}

BesideRankBounds beside_rank_bounds(const Part& part) {
  const Ranks& ranks = *part.ranks;
  std::vector<MovedByRank> moved;
  for (Index rank = 0; rank < ranks.size(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const PhaseCost arena = total(ranks.formula[at].arena);
    moved.push_back({.rank = rank,
                     .linked = counted_words(part.plan, ranks.links(rank), rank).value(),
                     .arena = ranks.counted.empty() ? (arena.reads + arena.writes).value()
                                                    : ranks.counted[at].arena.total.io.io(),
                     .home = ranks.home(rank).value()});
  }
  return beside_rank_bounds(part.plan, ranks.grid, moved, part.team.heads);
}

Json rank_bounds_json(const BesideRankBounds& beside) {
  Json json = {{"links", json_of_bound(beside.links)},
               {"small_homes", json_of_bound(beside.small_homes)},
               {"arena", json_of_bound(beside.arena)}};
  json["small_homes"]["at_a_time"] = beside.at_a_time;
  return json;
}

std::string to_words(const BesideRankBounds& beside) {
  const BesideBound& largest = beside.largest_of_links();
  std::string text = line_of("links", "move", largest, beside.counted);
  if (beside.ring && beside.small_homes.bound) {
    const bool small = &largest == &beside.small_homes;
    text += line_of("links", "move", small ? beside.links : beside.small_homes, beside.counted);
    text += fmt::format("small homes: at most {} words at a time, at home and in an arena\n",
                        grouped(beside.at_a_time));
  }
  return text + line_of("arena", "moves", beside.arena);
}

}  // namespace redblue
