#pragma once
// Passes over tiles of scores in inner levels of fast memory.
//
// The products of scores are made as other products are (kernels/parts/product_levels.hpp).
// Everything else that changes scores is a pass over them. In a pass each level has a block of
// scores, with other words for each score and for each row:
//
//   for I1 in I:                 // blocks of the level
//     borrow the words of the rows I1
//     for J1 in J:
//       borrow s_I1J1, and the other words of its scores
//       the next level inward, or arithmetic
//
// So a score moves once at each level. The words of a row move once for each block of columns of
// the next level. A pass uses the columns of the level's products. If each score has t other words,
// the pass uses 1 / (1 + t) of their rows.

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/parts/levels.hpp"
#include "kernels/parts/product.hpp"
#include "kernels/plan.hpp"
#include "memsim/range.hpp"
#include "memsim/tile.hpp"
#include "memsim/words.hpp"

namespace redblue {

class Machine;

// The cost of a pass at a level.
struct PassCost {
  Index beside = 0;                     // other words of each score
  Index row_words = 0;                  // words of each row held
  Index reads = 0, writes = 0;          // words for each score
  Index row_reads = 0, row_writes = 0;  // words for each row, each time it comes
};

// The blocks that cut the columns of a pass: the columns of a product that makes the scores, or the
// depth of a product with the scores as a factor.
using PassColumns = Index ProductBlocks::*;
Levels pass_levels(const ProductLevels& levels, PassColumns columns, Index beside);

// The part of a tile that a pass borrows: a word for each pair, or a word for each row. The pass
// begins at row first_row of the tile.
inline Near of_pairs(const Tile& tile, Use use, Index first_row = 0) {
  return {tile, Axis::staying, Axis::passing, use, -first_row};
}
inline Near near_rows(const Tile& tile, Use use, Index first_row = 0) {
  return {tile, Axis::staying, Axis::whole, use, -first_row};
}

// Calls visit(rows, columns) for the rows and columns that the innermost level has together. near()
// returns the tiles to borrow. It is called only if there are levels, because it takes as long as a
// small tile.
template <class Borrowed, class Visit>
void pass_over(Machine& machine, const ProductLevels& levels, PassColumns columns, Index beside,
               Index rows, Index cols, const Borrowed& near, const Visit& visit) {
  if (levels.empty()) {
    visit(Range{0, rows}, Range{0, cols});
    return;
  }
  const Levels blocks = pass_levels(levels, columns, beside);
  LevelWalk(machine, blocks, &LevelBlocks::rows, &LevelBlocks::keys, {near()})
      .each({0, rows}, {0, cols}, visit);
}

// How to cut a tile with the columns of a product, or with its depth as columns.
inline CutEvery cut_of(const ProductLevels& levels, PassColumns columns) {
  return levels.empty() ? CutEvery{} : CutEvery{levels.front().*columns};
}

// Adds up the cost of a level over the steps of the machine.
class LevelTally {
 public:
  LevelTally(const ProductLevels& inner, std::size_t level);
  // Adds a step of a product, in which sums begin or change.
  void product(const ProductShape& of, Stays what, bool begins, const Words& times = 1);
  void pass(Index rows, Index cols, PassColumns columns, const PassCost& cost,
            const Words& times = 1);
  // Adds words of rows without scores.
  void rows(Index rows, const PassCost& cost, const Words& times = 1);
  [[nodiscard]] PhaseCost cost(std::string path) const;

 private:
  ProductLevels levels_;  // this level and the levels around it
  Words reads_, writes_, peak_;
};

// Equal blocks of an extent. A tally counts one and multiplies by `times`. Without a mask they are
// the first block, all blocks between, and the last. Under a mask each block is counted.
struct Alike {
  Range range;
  Index times;
};
std::vector<Alike> alike(Index extent, Index step, bool masked);

}  // namespace redblue
