#pragma once
// What goes over the links of a rank, each message known before the run: both ends have the same
// list, in the same order.

#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "memsim/ranks/transport.hpp"
#include "runtime/ranks/grid.hpp"

namespace redblue {

// Rows of a matrix, by their numbers in the homes of both ends, where it may have other names.
struct RankTransfer {
  std::string matrix;  // at the sender; and the phase
  std::string becomes;
  Index from, to;
  Range sent, received;
  Index cols;
  Index group = 0;  // of the receiver's keys, the first that needs it
  Index order = 0;  // all ranks have those of a lower one before
};

// Those of one rank before one stage of the kernel.
std::vector<RankTransfer> transfers_before(const RankPart& part, std::size_t stage);
// The running sum of g, as it comes to a segment.
std::vector<RankTransfer> transfers_of_sum(const RankPart& part);

// Names of matrices at a rank beside those of the kernel: what all groups left for the rank's rows,
// rows of a result that no pair needs, and partial sums of g.
std::string merged_name(std::string_view left);
std::string dead_name(std::string_view result);
inline constexpr std::string_view kPartials = "partial g";

}  // namespace redblue
