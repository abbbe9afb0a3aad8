#include "runtime/ranks/ranks.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "kernels/attention.hpp"
#include "runtime/observe/run_counts.hpp"
#include "runtime/ranks/links_json.hpp"
#include "runtime/ranks/ring.hpp"
#include "runtime/text/counts_json.hpp"
#include "runtime/text/parse_json.hpp"

namespace redblue {
namespace {

// Sums the links over the other end, as formulas do for many ranks.
Links by_phase(const Links& links, Index rank) {
  Links sums;
  for (const auto& [link, count] : links) {
    sums[{link.phase, link.from == rank ? rank : kOthers, link.to == rank ? rank : kOthers}] +=
        count;
  }
  return sums;
}

// Returns the cost of `heads` heads, one after the other.
RankCost of_heads(RankCost cost, Index heads) {
  for (PhaseCost& phase : cost.arena) {
    phase = times(std::move(phase), heads);
  }
  for (auto& [_, count] : cost.links) {
    count.words *= heads;
    count.messages *= heads;
  }
  cost.home = cost.home * heads;
  return cost;
}

}  // namespace

std::string to_text(const RankCounts& counts) {
  const Json json = {{"arena", counts_json(counts.arena)},
                     {"links", counts_json(counts.links)},
                     {"home", counts.home},
                     {"seconds_in_links", counts.seconds_in_links}};
  return json.dump();
}

RankCounts parse_rank_counts(const std::string& text) {
  const Json json = parse_json(text, "counts of a rank");
  return {.arena = parse_run_counts(json.at("arena")),
          .links = parse_links(json.at("links")),
          .home = json.at("home").get<Index>(),
          .seconds_in_links = json.at("seconds_in_links").get<double>()};
}

Ranks::Ranks(const Plan& plan, const Grid& on, const Plan* forward, Index heads, Index of_sets)
    : grid(on), sets(of_sets) {
  for (Index set = 0; set < sets; ++set) {
    const Index first = set * grid.ranks();
    const GridPlan of(find_kernel(plan.kernel), plan, grid, first);
    std::optional<GridPlan> makes;
    if (forward != nullptr) {
      makes.emplace(find_kernel(forward->kernel), *forward, grid, first);
    }
    around = ring_path(of) * (heads / sets);
    for (Index rank = of.ranks().begin; rank < of.ranks().end; ++rank) {
      const RankPart part(of, rank);
      pairs.push_back(of.pairs(part.row(), part.column()) * (heads / sets));
      RankCost cost = cost_of_rank(part);
      if (makes) {
        const RankCost dealing = cost_of_dealing(of, *makes, rank);
        for (const auto& [link, count] : dealing.links) {  // `cost` may also have L
          cost.links[link] += count;
        }
        cost.home += dealing.home;
      }
      formula.push_back(of_heads(std::move(cost), heads / sets));
    }
  }
}

Links Ranks::links(Index rank) const {
  const auto at = static_cast<std::size_t>(rank);
  if (counted.empty()) {
    return formula[at].links;
  }
  return grid.ranks() > kLinksApart ? by_phase(counted[at].links, rank) : counted[at].links;
}

Words Ranks::home(Index rank) const {
  const auto at = static_cast<std::size_t>(rank);
  return counted.empty() ? formula[at].home : Words(counted[at].home);
}

Index Ranks::largest() const {
  Index largest = 0;
  std::pair<Words, Words> most;
  for (Index rank = 0; rank < size(); ++rank) {
    const PhaseCost arena = total(formula[static_cast<std::size_t>(rank)].arena);
    const std::pair its{received(links(rank), rank), arena.reads + arena.writes};
    if (rank == 0 || its > most) {
      largest = rank;
      most = its;
    }
  }
  return largest;
}

Words Ranks::path() const {
  std::map<std::string, Words> most;
  std::vector<Words> sums(static_cast<std::size_t>(sets));  // of the running sum, for each set
  for (Index rank = 0; rank < size(); ++rank) {
    std::map<std::string, Words> its;
    for (const auto& [link, count] : links(rank)) {
      if (link.to == rank) {
        its[link.phase] += count.words;
      }
    }
    for (const auto& [phase, words] : its) {
      if (phase == kg.name) {
        sums[static_cast<std::size_t>(rank / grid.ranks())] += words;
      } else {
        most[phase] = std::max(most[phase], words);
      }
    }
  }
  Words all = *std::ranges::max_element(sums);
  for (const auto& [_, words] : most) {
    all += grid.ring ? Words(0) : words;
  }
  return all + around;
}

double Ranks::imbalance() const {
  double sum = 0, most = 0;
  for (const Words& of_rank : pairs) {
    const auto its = static_cast<double>(of_rank.value());
    sum += its;
    most = std::max(most, its);
  }
  return most * static_cast<double>(pairs.size()) / sum;
}

std::vector<PhaseCost> sum_of(const std::vector<RankCost>& ranks) {
  std::vector<PhaseCost> sums;
  for (const RankCost& rank : ranks) {
    add_costs(sums, rank.arena);
  }
  return sums;
}

}  // namespace redblue
