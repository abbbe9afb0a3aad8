#pragma once
// backward/sparse-tiles: tiles compute f = exp(s - L) of live pairs and write it to slow memory.
// G = dO Y^T and v = rowsum(dO * O) are written too. The remaining phases are:
//
//   p     Tiles of q, r x c, stay, with blocks of keys of another size. h columns of G (for queries
//         that are live in the tile) and of A3 (for its keys) stream. p = f (q - v) overwrites f.
//           reads   pairs + pattern + n + d (sum over blocks of |keys| + over tiles of |queries|)
//           writes  pairs;   peak  r + r c + r h + h + 1
//   W, g  A tile of W = p A2 stays: a block I of queries and a section K of w columns. The
//         keys that I meets and that have entries in K stream, each with its p and these entries.
//         Three words for each key give the beginning of its p, the beginning of its entries, and
//         their number. Then, while W_IK stays, A1_I streams column by column. Each of its columns
//         k adds g_kK += A1_Ik^T W_IK. A part of g is read if it was written before. Parts without
//         any term are written as 0.
//           peak    r w + r + 5 + 3, and r w + w + 4   (with a bit for each query: 2 instead of 3)
//
// A tile of W without such keys is skipped, and moves no words.

#include <memory>
#include <vector>

#include "kernels/sparse/tiles.hpp"

namespace redblue {

struct BackwardTileBlocks {
  Index cols, depth, width;  // c and h of the phase p, w of the phase W

  static BackwardTileBlocks get(const Problem& problem, const Blocks& blocks);
};

// The number of queries that each key meets, and whether each query meets a key.
struct LiveCounts {
  explicit LiveCounts(const Sparsity& of);

  std::vector<Index> queries_of_key;
  std::vector<bool> live_query;
};

// The costs of the phase p, and of W and g.
PhaseCost score_gradient_cost(const Problem& problem, const StoredScores& stored,
                              const BackwardTileBlocks& by);
std::vector<PhaseCost> folded_gradient_cost(const Problem& problem, const GroupCounts& S,
                                            const StoredScores& stored, const LiveCounts& live,
                                            const BackwardTileBlocks& by);
// These phases as one stage, after the others.
Stage backward_tiles_stage(const Problem& problem);
WordsBeside beside_gradients(const Problem& problem);

}  // namespace redblue
