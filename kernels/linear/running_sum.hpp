#pragma once
// A running sum of keys and values, and a product with it, for queries that meet the keys up to
// their own (causal mask).

#include <string>
#include <string_view>

#include "kernels/kernel.hpp"
#include "kernels/nest.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

// A running product R_i = P_i S_i, where S_i is the sum of K_j^T V_j over the keys that query i
// meets. These are the first `before` keys, which all queries meet, and one more for each query up
// to query i. A block of S is resident while queries stream. Its rows are columns of P and K, and
// its columns are columns of V and R.
struct RunningSum {
  Machine& machine;
  const SlowMatrix& K;
  const SlowMatrix& V;
  Index before;

  // Adds the keys that all queries meet, in blocks of `step`.
  void add_first(Range rows, Range cols, Index step, Tile& sum) const;
  // Processes queries I and the same number of keys: R_I += P_I S + (live P_I K_I^T) V_I, and then
  // S += K_I^T V_I. It frees P_I after the scores are computed.
  void add(Tile p, Range I, Range rows, Range cols, Tile& sum, Tile& r) const;
};
// Returns the number of scores in such blocks of n queries.
Words pairs_of_blocks(Index n, Index step);

// Block sizes of running_product(), which computes some columns of R, in whole blocks. A block of S
// with `rows` rows and `cols` columns is resident while queries stream in blocks of `piece`, once
// for each block of S. With D blocks along the rows of S and J along its columns, all of R costs
//
//   reads    (n + m) d J + m d D + n d (D - 1);   writes   n d D
//
// if sums take one word each. S is a sum, and R is a sum until the last block.
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
// Returns the block of S with the fewest words moved. Pieces take the rest of M. For least time,
// pieces are large enough that scores cost little compared with S.
RunningBlocks fit_running(const Problem& problem, Index M, Objective objective);

}  // namespace redblue
