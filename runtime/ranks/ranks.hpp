#pragma once
// A run on a grid as values: what each rank moved, and what the formulas say.

#include <string>
#include <vector>

#include "memsim/phase.hpp"
#include "memsim/ranks/transport.hpp"
#include "runtime/ranks/grid.hpp"
#include "runtime/ranks/rank_cost.hpp"

namespace redblue {

struct RankCounts {
  RunCounts arena;
  Links links;
  Index home = 0;
  double seconds_in_links = 0;
  friend bool operator==(const RankCounts&, const RankCounts&) = default;
};
// As one rank tells another of them.
std::string to_text(const RankCounts& counts);
// Throws: std::exception for a text of something else.
RankCounts parse_rank_counts(const std::string& text);

struct Ranks {
  // Of several heads, each as large as the plan says, which sets of ranks share out: each set is a
  // grid, and has some heads alone, one after the other. `forward`: the plan on the same grids that
  // makes O and L before; null: none does. Requires: so many sets have as many heads each. Throws:
  // as check_grid().
  Ranks(const Plan& plan, const Grid& on, const Plan* forward = nullptr, Index heads = 1,
        Index sets = 1);

  Grid grid;
  Index sets;
  std::vector<RankCost> formula;
  std::vector<Words> pairs;         // that each rank meets
  Words around;                     // of a ring: what passes, one message after the other
  std::vector<RankCounts> counted;  // of all ranks, or empty

  [[nodiscard]] Index size() const { return sets * grid.ranks(); }
  [[nodiscard]] Links links(Index rank) const;
  [[nodiscard]] Words home(Index rank) const;
  // The rank that receives most, and of these the one that moves most in its arena.
  [[nodiscard]] Index largest() const;
  // The sum over phases of the most words that one rank receives in them; the sum of g passes from
  // rank to rank, and all its hops count. Of a ring: ring_path(), and these hops.
  [[nodiscard]] Words path() const;
  // The most pairs that a rank meets, over the mean.
  [[nodiscard]] double imbalance() const;
};

// Of all ranks: sums of words and flops, and the largest peak.
std::vector<PhaseCost> sum_of(const std::vector<RankCost>& ranks);

}  // namespace redblue
