#pragma once
// Ranks in a ring: a grid of one column in which each rank sends to the next one alone. The keys
// pass every rank once for each of its row blocks, in the order of keys, as they pass the row
// blocks of one machine. In a stage of the kernel where keys stay, the queries pass in the same
// way. So all results have the bits of one machine with the same plan. A home has room for its own
// rows and a few pieces that pass.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "memsim/ranks/transport.hpp"
#include "runtime/ranks/grid.hpp"

namespace redblue {

// A rank's own rows pass in so many pieces, or in fewer where a block of the kernel is larger.
inline constexpr Index kPiecesOfARank = 4;

// The rows that pass all ranks in one stage of the kernel.
struct RingPass {
  // Rows that follow each other, by their numbers among the live rows, and the rank that begins
  // with them. The pieces are in order and have all rows.
  struct Piece {
    Range rows;
    Index rank;
  };
  std::vector<Signature> matrices;
  std::vector<Piece> pieces;
  Index laps = 0;                  // they pass so often
  Index slots = 0, slot_rows = 0;  // a home has room for so many pieces of so many rows
};
// Empty for a stage in which no rows pass.
std::optional<RingPass> ring_pass(const GridPlan& of, const SplitStage& stage);
// The passes of all stages.
std::vector<RingPass> ring_passes(const GridPlan& of);

// The links of a rank in all stages: from the rank before it, and to the one after it.
Links ring_links(const GridPlan& of, Index rank);
// The words on the longest chain of messages. A link has one message at a time, and a rank sends a
// piece on when it has come.
Words ring_path(const GridPlan& of);

// The name of the rows of a matrix that pass a home.
std::string passing_name(std::string_view matrix);

}  // namespace redblue
