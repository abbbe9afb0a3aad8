#pragma once
// Lines 2 to 4 of Algorithm 1, shared by the forward and backward kernels that keep everything in
// fast memory.

#include "kernels/kernel.hpp"
#include "kernels/plan.hpp"
#include "kernels/units.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

// Returns f of s = A1 X A2^T, from the transpose of A2. For a softmax it also writes the
// log-sum-exp of the rows if L is not null. If f is only for making p (`for_p`), other activations
// return the scores instead, with 0 for dead pairs.
Tile f_at_once(Machine& machine, const Problem& problem, const Tile& A1, const Tile& A2_t,
               const SlowMatrix& X, SlowMatrix* L, bool for_p);

// All queries as one unit. It reads the index of the mask before dead scores are set.
inline Units all_queries(const Problem& problem) {
  return Units::of_queries(problem, problem.shape.n);
}
// Sets the words of dead pairs to `value` in a tile of all scores.
void set_dead_scores(Machine& machine, const Problem& problem, Tile& scores, float value);

// The window of an operand: the whole matrix.
inline Window whole_window(const Signature& operand, const Problem& problem, const Blocks&) {
  return {operand.rows_of(problem.shape), operand.cols_of(problem.shape)};
}

// The cost of a phase that reads A1 and A2 and then makes f.
PhaseCost f_at_once_cost(const Problem& problem, bool writes_L);

}  // namespace redblue
