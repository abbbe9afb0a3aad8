#pragma once
// What ranks moved beside the lower bounds on what some rank moves. docs/theory/ranks.md proves
// these.

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
  Index linked = 0;  // over its links, of what the bounds count: counted_words()
  Index arena = 0;   // reads + writes
  Index home = 0;
};

// The words of a rank's links that the bounds count: of parts of results those that it sends, of
// all else those that it receives. The running sum g is left out: it is a sum of no row and no key.
Words counted_words(const Plan& plan, const Links& links, Index rank);

// The most that a rank moved, beside what some rank moves, whatever the algorithm.
struct BesideBound {
  Index words = 0, rank = 0;
  std::optional<Bound> bound;
  std::string no_bound;  // the reason, where there is none
  Index row = 1;         // words of a row, which is what links and arenas move

  // None without a bound, or of a bound of less than a row: such a one says no more than that
  // something is moved.
  [[nodiscard]] std::optional<double> ratio() const;
};

struct BesideRankBounds {
  BesideBound links;        // whatever the size of a home
  BesideBound small_homes;  // the same words, where no rank has more than so many at a time:
  Index at_a_time = 0;      // the largest home, and M
  BesideBound arena;
  bool ring = false;  // a home is small, so that its bound is said beside the other
  // How words of links are counted, where that is not what a rank receives; for people.
  std::string counted;

  // The larger of the two bounds on words of links.
  [[nodiscard]] const BesideBound& largest_of_links() const;
};

// Requires: among `moved` are the ranks that move, and begin with, the most.
BesideRankBounds beside_rank_bounds(const Plan& plan, const Grid& grid,
                                    const std::vector<MovedByRank>& moved, Index heads = 1);
BesideRankBounds beside_rank_bounds(const PlannedGrid& on);
// Of a part on ranks: counted where it ran, else by the formulas.
BesideRankBounds beside_rank_bounds(const Part& part);

Json rank_bounds_json(const BesideRankBounds& beside);
// A line for links, and one for arenas.
std::string to_words(const BesideRankBounds& beside);

}  // namespace redblue
