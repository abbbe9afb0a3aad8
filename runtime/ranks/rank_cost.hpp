#pragma once
// What one rank of a grid moves, by formula: between its home and its arena of M words, and over
// its links; and the words of its home.

#include <string>
#include <vector>

#include "kernels/plan.hpp"
#include "memsim/ranks/transport.hpp"
#include "runtime/ranks/grid.hpp"

namespace redblue {

// Of more ranks the links of a rank are sums over the other end, kOthers.
inline constexpr Index kLinksApart = 256;
inline constexpr Index kOthers = -1;

struct RankCost {
  std::vector<PhaseCost> arena;
  Links links = {};  // to and from this rank
  Words home = {};
};
RankCost cost_of_rank(const RankPart& part);

// What the forward part's ranks made goes to the ranks that begin with its rows: the links, and the
// words of what this rank made.
RankCost cost_of_dealing(const GridPlan& plan, const GridPlan& forward, Index rank);

// A matrix in the home of a rank.
struct HomeMatrix {
  std::string name;
  Index rows, cols;    // of what a stage of its place sees
  Ranges there;        // the rows of it that are there
  Range own = {0, 0};  // those that the rank begins with, or ends with
  Signature of = {};   // the matrix of the kernel

  [[nodiscard]] Words words() const { return Words(size_of(there)) * cols; }
};
// All of them: operands and what stages leave, with the rows that others send, results, partial
// sums.
std::vector<HomeMatrix> home_of(const RankPart& part);

Words received(const Links& links, Index rank);
Words sent(const Links& links, Index rank);

}  // namespace redblue
