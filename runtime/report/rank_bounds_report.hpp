#pragma once
// Compares the words that ranks moved with lower bounds. A bound says that some rank moves at least
// this many words. docs/theory/ranks.md has the proofs.

#include <optional>
#include <string>
#include <vector>

#include "kernels/plan.hpp"
#include "memsim/ranks/transport.hpp"
#include "runtime/ranks/grid.hpp"
#include "runtime/ranks/plan_on_grid.hpp"
#include "runtime/run/outcome.hpp"
#include "runtime/text/json.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {

// The words of one rank.
struct MovedByRank {
  Index rank = 0;
  Index linked = 0;  // words over its links, as counted_words() counts them
  Index arena = 0;   // reads + writes
  Index home = 0;
};

// Returns the words of a rank's links that the bounds count. These are the parts of results that it
// sends, and all other words that it receives. The running sum g is left out, because it is not the
// sum of a row or a key.
Words counted_words(const Plan& plan, const Links& links, Index rank);

// The most words that a rank moved, and a lower bound on the words of some rank in any algorithm.
struct BesideBound {
  Index words = 0, rank = 0;
  std::optional<Bound> bound;
  std::string no_bound;  // the reason if `bound` is not set
  Index row = 1;         // words of a row, the least that a link or arena moves

  // Returns `words` divided by the bound. Returns nullopt without a bound, or if the bound is less
  // than a row: then it only says that some words move.
  [[nodiscard]] std::optional<double> ratio() const;
};

struct BesideRankBounds {
  BesideBound links;        // holds for homes of any size
  BesideBound small_homes;  // the same words, if no rank ever holds more than at_a_time
  Index at_a_time = 0;      // words of the largest home, plus M
  BesideBound arena;
  bool ring = false;  // homes are small, so the text gives both bounds on links
  // For people: how the words of links are counted, if they are not simply the words received.
  std::string counted;

  // Returns the larger of the two bounds on words of links.
  [[nodiscard]] const BesideBound& largest_of_links() const;
};

// Requires: `moved` includes the ranks that move the most words and the ranks that start with the
// most words.
BesideRankBounds beside_rank_bounds(const Plan& plan, const Grid& grid,
                                    const std::vector<MovedByRank>& moved, Index heads = 1);
BesideRankBounds beside_rank_bounds(const PlannedGrid& on);
// For a part that was computed on ranks. Uses the counts of a run, or the formulas if it did not
// run.
BesideRankBounds beside_rank_bounds(const Part& part);

Json rank_bounds_json(const BesideRankBounds& beside);
// Returns a line on links and a line on arenas. A ring has a second bound on links.
std::string to_words(const BesideRankBounds& beside);

}  // namespace redblue
