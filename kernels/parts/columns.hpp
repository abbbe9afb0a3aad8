#pragma once
// Building blocks of the column-stationary kernels, for many queries and few keys.
//
// K_J = X A2_J^T and h_J = A3_J Y of a block of Bc keys stay in fast memory. Queries stream in
// blocks of Br rows of A1: s = A1_I K_J. Keys meet weights in pieces of Bw of the summed index, so
// that making a block takes hardly more fast memory than the block itself. Under a mask only
// queries that meet a block stream past it. Each query then has a first block and a last block.

#include <algorithm>
#include <string>
#include <string_view>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/fit.hpp"
#include "kernels/kernel.hpp"
#include "kernels/nest.hpp"
#include "kernels/units.hpp"
#include "memsim/machine.hpp"

namespace redblue {

// The queries that stream, summed over all blocks of keys (`all`), and without the first time of
// each query (`again`).
struct Passes {
  Words all, again;
};

// The problem, with Br, Bc and Bw. Each is at most its extent.
struct ColumnPlan {
  ColumnPlan(const Problem& of, const Blocks& blocks)
      : problem(of),
        rows(std::min(blocks["Br"], of.shape.n)),
        keys(std::min(blocks["Bc"], of.shape.m)),
        weights(blocks.contains("Bw") ? std::min(blocks["Bw"], of.shape.d) : of.shape.d) {}

  Problem problem;
  Index rows, keys, weights;

  [[nodiscard]] Units units() const { return Units::of_keys(problem, keys); }
  [[nodiscard]] Passes passes() const {
    const Words all = units().sum().met;
    return {all, all.overflowed() ? all : Words(all.value() - problem.shape.n)};
  }
};

// Opens a phase called `name`, and returns the sum of left(K) right(K) over all pieces K of the
// width.
template <class Left, class Right>
Tile product_in_pieces(Machine& machine, const ColumnPlan& by, std::string_view name, Index rows,
                       Index cols, const Left& left, const Right& right) {
  const Phase phase(machine, name);
  Tile sum = machine.initialize(name, rows, cols, Holds::operands);  // (rows, cols)
  for (const Range K : blocks(by.problem.shape.d, by.weights)) {
    const Tile a = machine.read(left(K));   // (rows, w)
    const Tile b = machine.read(right(K));  // (w, cols)
    multiply_add(a, b, sum);
  }
  return sum;
}

// Returns K_J, or c K_J for plain inputs.
Tile keys_of_scores(Machine& machine, const ColumnPlan& by, const Operands& io, Range J);
// The cost of K_J, or of h_J, over all blocks. Each key has `kept` other words in fast memory.
// Plain inputs are only read.
PhaseCost product_in_pieces_cost(std::string path, const ColumnPlan& by, Index width, Words kept);

// The window of an operand. Keys, X and g move by columns and Y by rows, as pieces of the width
// meet. The others move by row blocks. Plain keys have their whole width.
Window column_window(const Signature& operand, const Problem& problem, const Blocks& blocks);

// Return fitting blocks: their peak is at most M. The words moved depend only on the number of key
// blocks. `widest_columns` takes the largest Bc that fits with one query. `fastest_columns` gives
// up some keys for row blocks that keep the registers busy.
Blocks widest_columns(const Problem& problem, Index M, const CostOfBlocks& cost);
Blocks fastest_columns(const Problem& problem, Index M, const CostOfBlocks& cost);

}  // namespace redblue
