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
  Links links;  // to and from this rank
  Words home;
};
RankCost cost_of_rank(const RankPart& part, const std::vector<Segment>& segments);
inline RankCost cost_of_rank(const RankPart& part) {
  return cost_of_rank(part, segments_of(part.kernel(), part.plan(), part.grid()));
}

// What the forward part's ranks made goes to the ranks that begin with its rows: the links, and the
// words of what this rank made.
RankCost cost_of_dealing(const RankPart& part, const Plan& forward, const Grid& grid);

// A matrix in the home of a rank, with the rows that are there.
struct HomeMatrix {
  std::string name;
  Index rows, cols;
  Range own = {0, 0};  // rows of it that the rank begins with, or ends with
  Holds holds = Holds::operands;
};
// All of them: operands and what stages leave with the rows that others send, results, partial
// sums.
std::vector<HomeMatrix> home_of(const RankPart& part);

// Names of matrices at a rank beside those of the kernel: what groups leave for the rank's rows,
// and partial sums of g.
std::string merged_name(std::string_view left);
inline constexpr std::string_view kPartials = "partial g";

// What stages leave that has a copy for each group, which the owners of its rows merge; and what
// they leave for rows, which is brought as operands are.
std::vector<Signature> left_by_groups(const RankPart& part);
std::vector<Signature> left_for_rows(const RankPart& part);

Words received(const Links& links, Index rank);
Words sent(const Links& links, Index rank);

}  // namespace redblue
