#pragma once
// What the resident kernels share, for fast memories in which nearly everything fits. X, Y (where
// there are weights) and the first `resident` keys, with their values, are read once and stay;
// queries pass in blocks of Br rows, and each block brings the other keys in blocks of Bc. With all
// keys resident, or one block of queries, each word moves once, as few as any algorithm moves.

#include <algorithm>
#include <optional>
#include <string>

#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/rows.hpp"
#include "memsim/machine.hpp"

namespace redblue {

// Br, Bc and the resident keys with the problem around them.
struct ResidentPlan : RowPlan {
  ResidentPlan(const Problem& of, const Blocks& blocks)
      : RowPlan(of, blocks["Br"], blocks["Bc"], of.shape.d),
        resident(std::min(blocks["resident"], of.shape.m)) {}

  Index resident;

  // The resident keys in blocks of Bc, then the others.
  [[nodiscard]] BlockRanges resident_blocks() const { return {resident, keys}; }
  [[nodiscard]] BlockRanges passing_blocks() const { return {problem.shape.m - resident, keys}; }
  [[nodiscard]] Index key_blocks() const {
    return resident_blocks().size() + passing_blocks().size();
  }
  // X, Y and the resident keys with their values.
  [[nodiscard]] Words resident_words() const;
  // The keys that a block of queries brings; and as many of them as are here at a time.
  [[nodiscard]] Words passing_words() const;
  [[nodiscard]] Words block_words() const;
};

// X, Y and the resident keys, read in a phase of that name.
// Requires: weights, for X() and Y().
class Resident {
 public:
  Resident(Machine& machine, const ResidentPlan& by, const Operands& io);
  [[nodiscard]] const Tile& X() const { return X_; }
  [[nodiscard]] const Tile& Y() const { return Y_; }

  // visit(a2, a3, rows of both) for all keys in their order, some at a time.
  template <class Visit>
  void each_key_block(const Visit& visit) const {
    for (const Range J : by_.resident_blocks()) {
      visit(A2_, A3_ ? *A3_ : A2_, J);
    }
    for (const Range passing : by_.passing_blocks()) {
      const Range J = part_of({by_.resident, by_.problem.shape.m}, passing);
      const Tile a2 = machine_.read(io_.in(input_names(by_.problem).keys).row_block(J));
      const std::optional<Tile> a3 = own_values(J);
      visit(a2, a3 ? *a3 : a2, {0, J.size()});
    }
  }

 private:
  // The values of some keys, where they are not the keys themselves.
  [[nodiscard]] std::optional<Tile> own_values(Range J) const;

  Machine& machine_;
  const ResidentPlan& by_;
  const Operands& io_;
  Tile X_, Y_, A2_;
  std::optional<Tile> A3_;
};
PhaseCost resident_cost(const ResidentPlan& by);
// What stays: X, Y and the resident keys; the phase that reads it; and the loops over all keys,
// each with this step, in which `stays` stay, too.
NestWriter::Tiles resident_tiles(const ResidentPlan& by);
void resident_nest(NestWriter& nest, const ResidentPlan& by);
void each_key_block_nest(NestWriter& nest, const ResidentPlan& by, const NestWriter::Tiles& stays,
                         const std::string& text);

// The fitting blocks of fewest words, in which several keys pass at a time where some pass at all;
// for least time, all keys are resident only beside enough queries to keep the registers busy, and
// else row blocks are small: then kernels without resident keys are faster, and come first.
Blocks most_resident(const Problem& problem, Index M, Objective objective,
                     const CostOfBlocks& cost);

}  // namespace redblue
