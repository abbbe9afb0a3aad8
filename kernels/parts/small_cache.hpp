#pragma once
// The softmax of Algorithm 2 of the paper, shared by the small-cache forward and backward kernels.
// Blocks are square, and every n x m matrix is in slow memory.
//
// Under a mask all phases leave out tiles of scores without a live pair. Other tiles are whole,
// with words for their dead pairs, too. A mask that is data is read in each pass over the tiles of
// a strip.

#include <string>
#include <string_view>
#include <vector>

#include "kernels/fit.hpp"
#include "kernels/parts/product.hpp"
#include "kernels/plan.hpp"
#include "kernels/units.hpp"
#include "memsim/slow_matrix.hpp"

namespace redblue {

class Machine;
class Workspace;

// Returns the largest B with 4 B^2 <= M. Three blocks and two columns then fit for B >= 2, and for
// B = 1 they need M >= 5. If a sum weighs more than a word, one of the three blocks may hold sums,
// and both columns do. If the index of a mask does not fit with them, a plan takes the blocks for
// less memory.
inline Blocks small_cache_blocks(const Problem& problem, const Memory& memory, Objective) {
  return {{"B", largest(square_side(memory.M, 4), [&](Index B) {
             const Words square = Words(B) * B;
             return square * (2 + problem.sum_words) <= Words(memory.M) &&
                    3 * square + Words(2) * B * problem.row_words() <= Words(memory.M);
           })}};
}

// How often the sum of a row is rescaled: at each block of a strip but the first.
inline Words small_cache_rescales(const Problem& problem, const Blocks& blocks) {
  return ceil_div(problem.shape.m, blocks["B"]) - 1;
}

// The tiles with a live pair.
inline Units::Tiles live_tiles(const Problem& problem, Index B) {
  return Units::of_queries(problem, B).live_tiles(B);
}
// The cost of the product that makes the live tiles of scores, from an n x d matrix
// and a d x m matrix.
PhaseCost score_product_cost(std::string path, const Problem& problem, Index B);

// Computes f = softmax(S A2^T). A phase `score_phase` writes the raw scores, and a phase "f" reads
// them again. Writes the log-sum-exp of the rows if L is not null. For other activations the first
// phase writes f, and there is no second. If f is only for making p (`for_p`), it then writes the
// scores instead, with 0 for dead pairs.
void softmax(Machine& machine, const Problem& problem, Index B, std::string_view score_phase,
             const SlowMatrix& S, const SlowMatrix& A2, SlowMatrix& f, SlowMatrix* L,
             Workspace& workspace, bool for_p);

// The cost of both phases, which alternate for each strip of rows. `into` is put in front of their
// paths, as in INTO/f.
std::vector<PhaseCost> softmax_cost(const std::string& into, std::string_view score_phase,
                                    const Problem& problem, Index B, bool writes_L);

}  // namespace redblue
