#pragma once
// Tiles of scores in inner levels of fast memory. Their products are made there as others are
// (kernels/parts/product_levels.hpp). What else becomes of scores is a pass over them: each level
// has a block of scores, with what is beside it and with the words of its rows.
//
//   for I1 in I:                 // blocks of the level
//     borrow the words of the rows I1
//     for J1 in J:
//       borrow s_I1J1, and what is beside it
//       the next level inward, or arithmetic
//
// So a score moves once at each level, and the words of a row once for each block of columns of
// the next level. A pass has the columns of the level's products; where t words are beside each
// score, one in 1 + t of their rows.

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

// What a pass costs at a level.
struct PassCost {
  Index beside = 0;                     // words beside each score
  Index of_rows = 0;                    // words of each row
  Index reads = 0, writes = 0;          // for each score
  Index row_reads = 0, row_writes = 0;  // for each row that comes
};

// The columns of a pass: those of scores, or the depth of a product of which they are a factor.
using PassColumns = Index ProductBlocks::*;
Levels pass_levels(const ProductLevels& levels, PassColumns columns, Index beside);

// What a pass borrows of a tile: a word for each pair, or for each row. The pass begins at this row
// of the tile.
inline Near of_pairs(const Tile& tile, Use use, Index first_row = 0) {
  return {tile, Axis::staying, Axis::passing, use, -first_row};
}
inline Near of_rows(const Tile& tile, Use use, Index first_row = 0) {
  return {tile, Axis::staying, Axis::whole, use, -first_row};
}

// Calls visit(rows, columns) for what the innermost level has at a time, of so many. What a pass
// borrows, near(), is asked for where there are levels: small tiles take no longer than it does.
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

// A tile of which the columns are those of a product, or its depth.
inline CutEvery cut_of(const ProductLevels& levels, PassColumns columns) {
  return levels.empty() ? CutEvery{} : CutEvery{levels.front().*columns};
}

// The words of a level, step by step of the machine.
class LevelTally {
 public:
  LevelTally(const ProductLevels& inner, std::size_t level);
  // A step of a product, in which sums begin, or change.
  void product(const ProductShape& of, Stays what, bool begins, const Words& times = 1);
  void pass(Index rows, Index cols, PassColumns columns, const PassCost& cost,
            const Words& times = 1);
  // Words of rows alone.
  void rows(Index rows, const PassCost& cost, const Words& times = 1);
  [[nodiscard]] PhaseCost cost(std::string path) const;

 private:
  ProductLevels levels_;  // from this one out
  Words reads_, writes_, peak_;
};

// Blocks of an extent of which a tally counts one and multiplies it: without a mask the first, all
// in between, and the last; else each.
struct Alike {
  Range range;
  Index times;
};
std::vector<Alike> alike(Index extent, Index step, bool masked);

}  // namespace redblue
