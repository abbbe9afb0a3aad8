#pragma once
// Lower bounds on the words that some rank moves, out of P ranks, for any algorithm. Each rank has
// a home, an arena and links to the others. docs/theory/ranks.md proves the bounds.
//
//   const RankTask task{Pass::backward, {n, m, d}, P};
//   link_bound(task, equal_shares(task));               // for a home of any size
//   small_home_bound(task, equal_shares(task), H + M);  // for a rank that keeps at most H + M
//   words arena_bound(task, M);                               // reads + writes of the arena
//
// Bounds are rounded up, because words are whole. The words of links are the words of sources and
// of pairs that a rank receives, and the words of partial sums of results that it sends. A pair is
// a query and a key that meet.
//
// Functions of values: safe to use from any thread. All throw CountOverflow, and ShapeMismatch for
// extents or ranks below 1 and for tasks without a proven bound: other passes, `self`, sparse
// operands, or some of the results alone.

#include "kernels/problem.hpp"

namespace redblue {

// Passes: forward, attention, backward, gradients. All ranks have X and Y. The bounds hold with or
// without O and L as inputs. They hold for every mask and depend on its number of live pairs.
struct RankTask {
  Pass pass = Pass::backward;
  Problem problem = {};
  Index ranks = 1;
};

// The most words that any rank holds. Sources are counted at the start: rows of A1 and dO, keys of
// A2 and A3. Results are counted at the end: O, dQ, dK, dV, but not g.
struct Held {
  Index sources = 0;
  Index results = 0;
};
// Returns the holdings if all ranks hold the same number of words, rounded up.
Held equal_shares(const RankTask& task);
// Returns the holdings of ranks that start with at most these queries and keys and end with their
// results.
Held held_of(const RankTask& task, Index queries, Index keys);

// Returns the words that some rank's links move at least, for a home of any size.
Index link_bound(const RankTask& task, const Held& held);

// Returns the same if no rank ever holds more than `words` words, home and arena together. Forward:
// assumes that each rank finishes its sum Z_i before multiplying it by Y.
Index small_home_bound(const RankTask& task, const Held& held, Index words);

// Returns the fewest reads + writes of some rank's arena of M words, which is empty at the start.
// Forward: with the assumption of small_home_bound().
Index arena_bound(const RankTask& task, Index M);

}  // namespace redblue
