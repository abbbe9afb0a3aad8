#pragma once
// Plans rings of ranks. A ring is a grid of one column in which each rank sends only to the next
// one. The keys stream past every rank once for each of its row blocks, in the order of keys, as on
// one machine. In a stage with resident keys, the queries stream in the same way. So results are
// bit-identical to the results of one machine with the same plan. A home has room for its own rows
// and a few streaming pieces.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "memsim/ranks/transport.hpp"
#include "runtime/ranks/grid.hpp"

namespace redblue {

// The number of pieces in which a rank's own rows stream. There are fewer if a block of the kernel
// is larger than a piece.
inline constexpr Index kPiecesOfARank = 4;

// The rows that stream past all ranks in one stage of the kernel.
struct RingPass {
  // Consecutive rows, numbered among the live rows, and the rank that owns them. The pieces are in
  // order and cover all rows.
  struct Piece {
    Range rows;
    Index rank;
  };
  std::vector<Signature> matrices;
  std::vector<Piece> pieces;
  Index laps = 0;                  // how often the rows stream past each rank
  Index slots = 0, slot_rows = 0;  // room in a home: pieces, and rows in each
};
// Returns the pass of a stage, or nullopt if no rows stream in it.
std::optional<RingPass> ring_pass(const GridPlan& of, const SplitStage& stage);
// Returns the passes of all stages.
std::vector<RingPass> ring_passes(const GridPlan& of);

// Returns the links of a rank in all stages: from the rank before it, and to the rank after it.
Links ring_links(const GridPlan& of, Index rank);
// Returns the words on the longest chain of messages. A link carries one message after the other,
// and a rank sends a piece on when it has received it.
Words ring_path(const GridPlan& of);

// Returns the name of the streaming rows of a matrix in a home.
std::string passing_name(std::string_view matrix);

}  // namespace redblue
