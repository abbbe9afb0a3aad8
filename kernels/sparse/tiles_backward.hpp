#pragma once
// backward/sparse-tiles: f = exp(s - L) of live pairs is made in tiles and left in the slow store,
// and G = dO Y^T and v = rowsum(dO * O) are. Then
//
//   p     tiles of q, r x c of other keys, stay; h columns at a time pass of G, of the queries that
//         are live in the tile, and of A3, of the keys; p = f (q - v) takes the place of f:
//           reads   pairs + pattern + n + d (sum over blocks of |keys| + over tiles of |queries|)
//           writes  pairs;   peak  r + r c + r h + h + 1
//   W, g  a tile of W = p A2 stays: a block I of queries and a section K of w columns. The keys
//         that I meets and that have entries in K pass, each with its p and these entries. Three
//         words for each key say where its p begins, where its entries begin, and how many entries
//         there are. Then, while W_IK stays, A1_I passes column by column, and each column k that
//         it has adds g_kK += A1_Ik^T W_IK. A part of g is read where it was written before; parts
//         to which nothing is added are written as 0:
//           peak    r w + r + 5 + 3, and r w + w + 4   (a bit for each query: 2 for 3)
//
// A tile of W without such keys is none: it costs nothing.

#include <memory>
#include <vector>

#include "kernels/sparse/tiles.hpp"

namespace redblue {

struct BackwardTileBlocks {
  Index cols, depth, width;  // c and h of p, w of W

  static BackwardTileBlocks get(const Problem& problem, const Blocks& blocks);
};

// The queries that each key meets, and whether a query meets any.
struct LiveCounts {
  explicit LiveCounts(const Sparsity& of);

  std::vector<Index> queries_of_key;
  std::vector<bool> live_query;
};

// The phases p, W and g.
PhaseCost score_gradient_cost(const Problem& problem, const StoredScores& stored,
                              const BackwardTileBlocks& by);
std::vector<PhaseCost> folded_gradient_cost(const Problem& problem, const GroupCounts& S,
                                            const StoredScores& stored, const LiveCounts& live,
                                            const BackwardTileBlocks& by);
// These in one stage, after the others.
Stage backward_tiles_stage(const Problem& problem);
WordsBeside beside_gradients(const Problem& problem);

}  // namespace redblue
