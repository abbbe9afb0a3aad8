#pragma once
// Results that are summed in slow memory, some terms after others. A row that still waits for terms
// is a partial result, and moves as sums. A finished row is written as words of its matrix.

#include "kernels/mask.hpp"
#include "memsim/layout.hpp"
#include "memsim/range.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

// Writes sums to some rows of a matrix. The rows `later` still wait for terms. If the tile is
// transposed, its columns are these rows.
void write_sums(Machine& machine, const Tile& sums, SlowMatrix& to, Range rows, const Ranges& later,
                Orientation orientation = Orientation::straight);

}  // namespace redblue
