#pragma once
// Matrix products in inner levels of fast memory (memsim/level.hpp).
//
// One step of the machine makes some rows and columns of C = A B over some of the depth. Each level
// has smaller blocks of them. The matrix that stays in the machine also stays in each level, in
// smaller blocks, while blocks of the others stream past:
//
//   C stays   for I1 in I, J1 in J:         // blocks of the level
//               borrow C_I1J1
//               for K1 in K:
//                 borrow A_I1K1, B_K1J1
//                 the next level inward, or arithmetic
//               C_I1J1 goes back
//   A stays   for I1 in I, K1 in K: borrow A_I1K1; for J1 in J: B_K1J1 and C_I1J1 pass
//   B stays   is A stays for C^T = B^T A^T.
//
// A level cuts rows, columns and depth into R, C and D pieces, and the next level into R', C' and
// D'. Each matrix moves once for each piece of the extent that it does not have. For a streaming
// matrix these are pieces of this level, for the resident matrix pieces of the next level:
//
//   C stays   reads   rows depth C + depth cols R + rows cols (D' - 1);   writes  rows cols D'
//   A stays   reads   rows depth C' + depth cols R + rows cols (D - 1);   writes  rows cols D
//   peak      r c + r s + s c,   of a block of r rows, c columns and s of the depth

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "kernels/parts/product.hpp"
#include "memsim/machine.hpp"
#include "memsim/range.hpp"
#include "memsim/tile.hpp"

namespace redblue {

// A tile of a product, or of its transpose, with the row and column of the whole matrix at which it
// begins.
template <class AnyTile>
struct Placed {
  AnyTile& tile;
  Index row, column;
  bool transposed = false;

  [[nodiscard]] Range rows(Range of_rows, Range of_columns) const {
    return transposed ? shifted(of_columns, column) : shifted(of_rows, row);
  }
  [[nodiscard]] Range columns(Range of_rows, Range of_columns) const {
    return transposed ? shifted(of_rows, row) : shifted(of_columns, column);
  }
  [[nodiscard]] auto part(Range of_rows, Range of_columns) const {
    return tile.part(rows(of_rows, of_columns), columns(of_rows, of_columns));
  }

 private:
  static Range shifted(Range range, Index first) {
    return {range.begin - first, range.end - first};
  }
};

// Computes c_IJ += a_IK b_KJ in the inner levels. If the sums begin here, levels make them anew at
// first. Requires: C or A stays.
void add_product(Machine& machine, const ProductLevels& levels, Stays what,
                 const Placed<const Tile>& a, const Placed<const Tile>& b, const Placed<Tile>& c,
                 Range I, Range J, Range K, bool begins);

// Returns the cost of a level. `blocks` has its blocks and the blocks of the levels around it, the
// machine last. For one step of the machine in which sums begin, `blocks` has inner levels only.
PhaseCost product_level_cost(std::string path, const ProductShape& of, const ProductLevels& blocks,
                             Stays what);

}  // namespace redblue
