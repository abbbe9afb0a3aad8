#pragma once
// Queries that meet the keys up to their own: a running sum of keys and values, and a product with
// it.

#include <string>
#include <string_view>

#include "kernels/kernel.hpp"
#include "kernels/nest.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

// R_i = P_i S_i with S_i = the sum of K_j^T V_j over the keys that query i meets: the first
// `before`, which all meet, and one for each query up to its own. A block of S, whose rows are
// columns of P and K and whose columns are those of V and R, stays while queries pass.
struct RunningSum {
  Machine& machine;
  const SlowMatrix& K;
  const SlowMatrix& V;
  Index before;

  // The keys that all meet, `step` at a time.
  void add_first(Range rows, Range cols, Index step, Tile& sum) const;
  // The queries I, and with them as many keys: R_I += P_I S + (live P_I K_I^T) V_I, and then
  // S += K_I^T V_I. P_I is given back when scores are made.
  void add(Tile p, Range I, Range rows, Range cols, Tile& sum, Tile& r) const;
};
// The scores that such blocks make of n queries.
Words pairs_of_blocks(Index n, Index step);

// Some columns of R, in whole blocks, with a block of S of so many rows and columns that stays
// while queries pass, `piece` at a time, once for each block. With D blocks along its rows and J
// along its columns all of R is
//
//   reads    (n + m) d J + m d D + n d (D - 1);   writes   n d D
//
// where sums weigh one word: R is a sum until the last block, and S is one.
struct RunningBlocks {
  Index rows = 1, cols = 1, piece = 1;

  void put(std::string_view name, Blocks& blocks) const {
    blocks.add(std::string(name) + ".rows", rows);
    blocks.add(std::string(name) + ".cols", cols);
    blocks.add(std::string(name) + ".piece", piece);
  }
  static RunningBlocks get(std::string_view name, const Blocks& blocks) {
    const std::string prefix = std::string(name) + ".";
    return {blocks[prefix + "rows"], blocks[prefix + "cols"], blocks[prefix + "piece"]};
  }
};
void running_product(Machine& machine, const RunningBlocks& by, const SlowMatrix& P,
                     const SlowMatrix& K, const SlowMatrix& V, SlowMatrix& R, Range columns);
PhaseCost running_cost(std::string_view name, const Problem& problem, const RunningBlocks& by,
                       Range columns);
struct RunningNames {
  std::string_view result, rows, keys, values;
};
void running_nest(NestWriter& nest, const RunningNames& names, const Shape& shape,
                  const RunningBlocks& by);
// The block of S for which the fewest words move; pieces are what is left, and for least time
// such that scores in them cost little beside S.
RunningBlocks fit_running(const Problem& problem, Index M, Objective objective);

}  // namespace redblue
