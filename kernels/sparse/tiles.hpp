#pragma once
// Sparse A1, X and A2 in a small fast memory. Tiles of r x c scores stay. The entries of their rows
// of S = A1 X and of their keys stream, in the columns that both have.
//
// Both matrices are regrouped for that (kernels/sparse/regrouped.hpp): S in blocks of r rows, and
// A2 in blocks of c keys.
//
// A tile is live if its two blocks have a column in common. One index word for each live tile gives
// the beginning of its block of keys (similar to runs of keys in kernels/sparse/rows.hpp). The tile
// then reads the 2 (kS + kA) words of both blocks' headers. For each common column it reads both
// groups, two words per entry: the smaller group stays, and the other streams past it. Each row of
// a tile has v more words: 2 for a maximum and a sum, 1 for an L, or 0 without a softmax. The peak
// of a tile is
//
//   v r + r c + 5 + 2 max_k min(nS_k, nA_k) + 2
//
// The kernel logsumexp ends there. forward and backward write live scores, or values computed from
// them, to slow memory with their pattern (StoredScores). Later passes with other resident tiles
// read them.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/parts/stages.hpp"
#include "kernels/sparse/regrouped.hpp"
#include "kernels/sparse/tile_counts.hpp"
#include "kernels/sparsity.hpp"

namespace redblue {

// The score of a pair that is not live: a NaN that no arithmetic produces.
inline constexpr std::uint32_t kAbsentBits = 0x7fd5a5a5;

// The phases S, prepare and core. The core writes scores, or values computed from them, to
// `scores`, and L to io unless L is an input. logsumexp stores no scores.
void over_tiles(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace,
                SlowMatrix* scores);

// Their cost and loops. The blocks are r and c, in addition to the blocks of the product S.
std::vector<PhaseCost> sparse_tiles_cost(const Problem& problem, const Blocks& blocks, Pass pass);
void sparse_tiles_nest(NestWriter& nest, const Problem& problem, const Blocks& blocks, Pass pass);
// The most words that intermediates take in slow memory, during these phases and after them.
Words sparse_tiles_intermediates(const Problem& problem, Pass pass);

// Adds the blocks with the fewest words. It tries about six values of r in each doubling, each with
// the most keys that fit. If no r fits, it takes the smallest blocks. A pass with more phases gives
// `beside`: it sets the blocks of these phases for the given rows of S, and returns the words that
// they move, or no value if they do not fit.
using WordsBeside =
    std::function<std::optional<Words>(const GroupCounts& S, Index M, Blocks& blocks)>;
void fit_sparse_tiles(const Problem& problem, Index M, Pass pass, Blocks& blocks,
                      const WordsBeside& beside = nullptr);
// Adds a block, or changes it if present.
void set_block(Blocks& blocks, const char* name, Index size);
// The phases S, prepare and core as one stage.
Stage sparse_tiles_stage(const Problem& problem, Pass pass, const WordsBeside& beside = nullptr);
// For Numerics: one rescaling for each tile of a row.
Words rescales_of_tiles(const Problem& problem, const Blocks& blocks);

// All words that tiles read of a sparse operand, for a loop nest.
inline NestTile tile_words(std::string_view name, Words all) {
  return NestTile(name, 1).of_words(all);
}

}  // namespace redblue
