#pragma once
// Computes by formula the words that one rank of a grid moves and keeps. It moves words between its
// home and its arena of M words, and over its links. It keeps words in its home.

#include <string>
#include <vector>

#include "kernels/plan.hpp"
#include "memsim/ranks/transport.hpp"
#include "runtime/ranks/grid.hpp"

namespace redblue {

// With more ranks than kLinksApart, the links of a rank are sums over the other end, which is then
// kOthers.
inline constexpr Index kLinksApart = 256;
inline constexpr Index kOthers = -1;

struct RankCost {
  std::vector<PhaseCost> arena;
  Links links = {};  // to and from this rank
  Words home = {};
};
RankCost cost_of_rank(const RankPart& part);

// Returns the cost of sending forward results to the ranks that own their rows in `plan`: the links
// of this rank, and the words of the results that it computed.
RankCost cost_of_dealing(const GridPlan& plan, const GridPlan& forward, Index rank);

// A matrix in the home of a rank.
struct HomeMatrix {
  std::string name;
  Index rows, cols;    // as a stage of its place sees it
  Ranges there;        // the rows that are stored
  Range own = {0, 0};  // the rank's own rows
  Signature of = {};   // the matrix of the kernel

  [[nodiscard]] Words words() const { return Words(size_of(there)) * cols; }
};
// Returns all matrices of a home: operands, matrices that stages leave, with rows that other ranks
// send, results, and partial sums.
std::vector<HomeMatrix> home_of(const RankPart& part);

Words received(const Links& links, Index rank);
Words sent(const Links& links, Index rank);

}  // namespace redblue
