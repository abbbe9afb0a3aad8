#pragma once
// Lower bounds on the words of one of P ranks, each of which has a home, an arena and links to the
// others: whatever the algorithm, some rank moves no fewer. docs/theory/ranks.md proves them.
//
//   const RankTask task{Pass::backward, {n, m, d}, P};
//   link_bound(task, equal_shares(task));            // whatever a rank can keep
//   small_home_bound(task, equal_shares(task), H + M);  // where it can keep so many words
//   arena_bound(task, M);                            // reads + writes of the arena
//
// Bounds are rounded up: words are whole. Words of links are the words of sources and of pairs that
// a rank receives, and the words of partial sums of results that it sends. A pair is a query and a
// key that meet.
//
// Functions of values: safe to use from any thread. All throw ShapeMismatch for extents or ranks
// below 1, and for what has no bound here: other passes, `self`, sparse operands, some of the
// results alone; and CountOverflow.

#include "kernels/problem.hpp"

namespace redblue {

// Passes: forward, attention, backward, gradients. All ranks have X and Y. The bounds hold whether
// O and L are given or not, and for every mask, by the number of its live pairs.
struct RankTask {
  Pass pass = Pass::backward;
  Problem problem = {};
  Index ranks = 1;
};

// The most words that any rank has: of sources (rows of A1 and dO, keys of A2 and A3) at the start,
// and of results (O, dQ, dK, dV, but not g) in the end.
struct Held {
  Index sources = 0;
  Index results = 0;
};
// Of ranks that have as many words as each other, rounded up.
Held equal_shares(const RankTask& task);
// Of ranks that begin with so many queries and keys at most, and end with their results.
Held held_of(const RankTask& task, Index queries, Index keys);

// The words that some rank's links move, whatever the size of its home.
Index link_bound(const RankTask& task, const Held& held);

// The same where no rank has more than `words` words at a time, home and arena together. Forward:
// of ranks that each finish their sum Z_i before it meets Y.
Index small_home_bound(const RankTask& task, const Held& held, Index words);

// Reads + writes of some rank's arena of M words, which is empty at the start. Forward: as above.
Index arena_bound(const RankTask& task, Index M);

}  // namespace redblue
