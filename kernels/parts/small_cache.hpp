#pragma once
// The softmax of the paper's Algorithm 2, shared by the small-cache forward and backward
// passes: square blocks, every n x m matrix in the slow store. Under a mask tiles of scores without
// a live pair are left out of all phases; others are whole, with words for their dead pairs, too. A
// mask that is data says which tiles these are in each pass over the tiles of a strip.

#include <string>
#include <string_view>
#include <vector>

#include "kernels/fit.hpp"
#include "kernels/nest.hpp"
#include "kernels/parts/product.hpp"
#include "kernels/plan.hpp"
#include "kernels/units.hpp"
#include "memsim/slow_matrix.hpp"

namespace redblue {

class Machine;
class Workspace;

// Three blocks and two columns of one fit for B >= 2; for B = 1 they ask for M >= 5. Where sums
// weigh more than a word, one of three blocks may be of sums, and both columns are. Where words of
// indices do not fit beside them, blocks for less memory are taken.
inline Blocks small_cache_blocks(const Problem& problem, const Memory& memory, Objective) {
  return {{"B", largest(square_side(memory.M, 4), [&](Index B) {
             const Words square = Words(B) * B;
             return square * (2 + problem.sum_words) <= Words(memory.M) &&
                    3 * square + Words(2) * B * problem.row_words() <= Words(memory.M);
           })}};
}

// The first block of a strip finds no sum to rescale.
inline Words small_cache_rescales(const Problem& problem, const Blocks& blocks) {
  return ceil_div(problem.shape.m, blocks["B"]) - 1;
}

// The tiles with a live pair.
inline Units::Tiles live_tiles(const Problem& problem, Index B) {
  return Units::of_queries(problem, B).live_tiles(B);
}
// The words that meet in a product of which the tiles are the result, of scores, d deep; and the
// loops of it, from an n x d matrix and a d x m one.
PhaseCost score_product_cost(std::string path, const Problem& problem, Index B);
void score_product_nest(NestWriter& nest, const ProductNames& names, const Problem& problem,
                        Index B);

// f = softmax(S A2^T), in a phase of the given name that writes the scores raw and a phase
// "f" that reads them again. Writes the rows' log-sum-exp where L is not null. Of another
// activation the first phase writes f, and there is no second; where p alone is made of it,
// `for_p`, the scores, with 0 for dead ones.
void softmax(Machine& machine, const Problem& problem, Index B, std::string_view score_phase,
             const SlowMatrix& S, const SlowMatrix& A2, SlowMatrix& f, SlowMatrix* L,
             Workspace& workspace, bool for_p);

// Of both phases, which take turns in each strip of rows; as INTO/f and so on, where INTO/ is
// given.
std::vector<PhaseCost> softmax_cost(const std::string& into, std::string_view score_phase,
                                    const Problem& problem, Index B, bool writes_L);
void softmax_nest(NestWriter& nest, std::string_view score_phase, const Problem& problem, Index B,
                  bool writes_L, bool for_p);

}  // namespace redblue
