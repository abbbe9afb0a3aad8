#pragma once
// Describes a run on a grid with values: the words that each rank moved, and the words that the
// formulas predict.

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
// Returns the text that a rank sends to another.
std::string to_text(const RankCounts& counts);
// Throws: std::exception if the text has another form.
RankCounts parse_rank_counts(const std::string& text);

struct Ranks {
  // Divides `heads` heads of the plan's size among `sets` sets of ranks. Each set is a grid and
  // computes its heads one after the other. `forward` is the plan that computes O and L before on
  // the same grids, or null. Requires: `sets` divides `heads`. Throws: as check_grid().
  Ranks(const Plan& plan, const Grid& on, const Plan* forward = nullptr, Index heads = 1,
        Index sets = 1);

  Grid grid;
  Index sets;
  std::vector<RankCost> formula;
  std::vector<Words> pairs;         // pairs that each rank meets
  Words around;                     // of a ring: words on the longest chain of messages
  std::vector<RankCounts> counted;  // for all ranks, or empty

  [[nodiscard]] Index size() const { return sets * grid.ranks(); }
  [[nodiscard]] Links links(Index rank) const;
  [[nodiscard]] Words home(Index rank) const;
  // Returns the rank that receives the most words. Among equal ones it returns the one that moves
  // the most words in its arena.
  [[nodiscard]] Index largest() const;
  // Returns the words received one after the other. It sums, over phases, the maximum that one rank
  // receives, and adds all hops of the running sum of g. For a ring it is ring_path() and these
  // hops.
  [[nodiscard]] Words path() const;
  // Returns the maximum of pairs of a rank, divided by the mean.
  [[nodiscard]] double imbalance() const;
};

// Returns the sums of words and flops over all ranks, and the largest peak.
std::vector<PhaseCost> sum_of(const std::vector<RankCost>& ranks);

}  // namespace redblue
