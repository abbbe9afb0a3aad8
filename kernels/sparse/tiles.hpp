#pragma once
// Sparse A1, X and A2 in a small fast memory: tiles of r x c scores stay, and of their rows of
// S = A1 X and of their keys the entries in common columns pass.
//
// For that both are regrouped (kernels/sparse/regrouped.hpp): S in blocks of r rows, A2 in blocks
// of c keys.
//
// A tile is live where its blocks have a column in common; which are, is given, as runs of keys
// are (kernels/sparse/rows.hpp): in one word, where the block of keys begins. It reads that, the
// 2 (kS + kA) words of both blocks' headers, and of a common column both groups, in two words an
// entry: the smaller group stays, and the other passes beside it. Peak of a tile, beside v words
// for each of its rows (2 for a maximum and a sum, 1 for an L, none without a softmax):
//
//   v r + r c + 5 + 2 max_k min(nS_k, nA_k) + 2
//
// logsumexp ends there. forward and backward leave live scores, or what is made of them, in the
// slow store with their pattern (StoredScores), for passes in which other tiles stay.

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

// The score of a pair that is not live: a NaN that no arithmetic makes of others.
inline constexpr std::uint32_t kAbsentBits = 0x7fd5a5a5;

// The phases S, prepare and core: what it makes of scores goes to `scores`, and L to io where it is
// not given. Of logsumexp no scores are stored.
void over_tiles(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace,
                SlowMatrix* scores);

// Their cost and loops. In blocks, beside those of the product S: r and c.
std::vector<PhaseCost> sparse_tiles_cost(const Problem& problem, const Blocks& blocks, Pass pass);
void sparse_tiles_nest(NestWriter& nest, const Problem& problem, const Blocks& blocks, Pass pass);
// The words that intermediates take while these phases last, and after them.
Words sparse_tiles_intermediates(const Problem& problem, Pass pass);

// The blocks of fewest words, of about six r in each doubling with the most keys that fit beside
// them, and with what a pass adds: of these rows of S it sets its blocks and says what they move,
// or nothing where they do not fit. Where no r fits: the smallest.
using WordsBeside =
    std::function<std::optional<Words>(const GroupCounts& S, Index M, Blocks& blocks)>;
void fit_sparse_tiles(const Problem& problem, Index M, Pass pass, Blocks& blocks,
                      const WordsBeside& beside = nullptr);
// Adds a block, or changes it.
void set_block(Blocks& blocks, const char* name, Index size);
// S, prepare and core of a kernel in stages.
Stage sparse_tiles_stage(const Problem& problem, Pass pass, const WordsBeside& beside = nullptr);
// For Numerics: once a tile.
Words rescales_of_tiles(const Problem& problem, const Blocks& blocks);

// All that tiles take of the sparse operands, in the loops of a nest.
inline NestTile tile_words(std::string_view name, Words all) {
  return NestTile(name, 1).of_words(all);
}

}  // namespace redblue
