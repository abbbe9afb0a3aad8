#pragma once
// What the column-stationary kernels share: for many queries and few keys. Of a block of Bc keys
// K_J = X A2_J^T and h_J = A3_J Y stay in fast memory, and queries pass in blocks of Br rows of
// A1: s = A1_I K_J. Keys meet weights in pieces of Bw of the summed index, so that to make a
// block takes hardly more fast memory than the block itself. Under a mask the queries that meet a
// block pass with it, and each of them has its own first block and its own last.

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

// How often queries pass, all blocks of keys together; and how often after the first time.
struct Passes {
  Words all, again;
};

// Br, Bc and Bw, each at most what there is of it, with the problem around them.
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
  [[nodiscard]] NestLoop key_loop() const { return {"J", "keys", problem.shape.m, keys}; }
};

// In a phase of its name: the sum of left(K) right(K) over all pieces K of the width.
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

// K_J; of plain inputs c K_J.
Tile keys_of_scores(Machine& machine, const ColumnPlan& by, const Operands& io, Range J);
// K_J, or h_J, of that width, of all blocks: each with `kept` words a key beside it. Of plain
// inputs they are read.
PhaseCost product_in_pieces_cost(std::string path, const ColumnPlan& by, Index width, Words kept);
// The same inside the loop J over blocks of keys: the block `name` of weights and keys, with tiles
// that stay beside it. Of plain inputs, a phase that reads `keys`.
void product_in_pieces_nest(NestWriter& nest, const ColumnPlan& by, const NestLoop& J,
                            std::string_view name, std::string_view weights, std::string_view keys,
                            const NestWriter::Tiles& beside);

// Keys and X by columns, Y by rows, as pieces of the width meet; the rest a row block; and g, where
// there is one, by columns.
Window column_window(const Signature& operand, const Problem& problem, const Blocks& blocks);

// The blocks for which the peak stays within M. Words depend on the number of key blocks alone:
// `widest_columns` has the largest Bc that fits beside one query; `fastest_columns` gives up some
// of it for row blocks that keep the registers busy.
Blocks widest_columns(const Problem& problem, Index M, const CostOfBlocks& cost);
Blocks fastest_columns(const Problem& problem, Index M, const CostOfBlocks& cost);

}  // namespace redblue
