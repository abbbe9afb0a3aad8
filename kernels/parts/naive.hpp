#pragma once
// Lines 2 to 4 of Algorithm 1, shared by the forward and backward passes that keep everything
// in fast memory.

#include "kernels/kernel.hpp"
#include "kernels/plan.hpp"
#include "kernels/units.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

// s = A1 X A2^T, from the transpose of A2, and f = softmax(s), of which it writes the rows'
// log-sum-exp where L is not null; or f of another activation. Where p alone is made of f, `for_p`,
// it is the scores under another activation, with 0 for dead ones.
Tile f_at_once(Machine& machine, const Problem& problem, const Tile& A1, const Tile& A2_t,
               const SlowMatrix& X, SlowMatrix* L, bool for_p);

// All queries as one unit, which asks what it meets before dead scores are set.
inline Units all_queries(const Problem& problem) {
  return Units::of_queries(problem, problem.shape.n);
}
// The dead words of all scores become `value`.
void set_dead_scores(Machine& machine, const Problem& problem, Tile& scores, float value);

// Every operand at once.
inline Window whole_window(const Signature& operand, const Problem& problem, const Blocks&) {
  return {operand.rows_of(problem.shape), operand.cols_of(problem.shape)};
}

// Of a phase that reads A1 and A2 and then makes f.
PhaseCost f_at_once_cost(const Problem& problem, bool writes_L);
void f_at_once_nest(NestWriter& nest, const Problem& problem, bool writes_L);

}  // namespace redblue
