#pragma once
// Lists the messages over the links of a rank. All of them are known before the run, and both ends
// have the same list in the same order.

#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "memsim/ranks/transport.hpp"
#include "runtime/ranks/grid.hpp"

namespace redblue {

// Rows of a matrix that one rank sends to another. Rows are numbered in the homes of both ends,
// where the matrix may have different names.
struct RankTransfer {
  std::string matrix;  // its name at the sender, and the name of the phase
  std::string becomes;
  Index from, to;
  Range sent, received;
  Index cols;
  Index group = 0;  // the receiver's first key group that needs it
  Index order = 0;  // all ranks run transfers of lower orders before
};

// Returns the transfers of a rank before one stage of the kernel.
std::vector<RankTransfer> transfers_before(const RankPart& part, std::size_t stage);
// Returns the transfers of the running sum of g between segments.
std::vector<RankTransfer> transfers_of_sum(const RankPart& part);

// Names of matrices that only ranks have: partial results of all groups for the rank's own rows,
// rows of a result that no live pair needs, and partial sums of g.
std::string merged_name(std::string_view left);
std::string dead_name(std::string_view result);
inline constexpr std::string_view kPartials = "partial g";

}  // namespace redblue
