#pragma once
// Results that are summed up in the slow store, some of their terms at a time. What more terms come
// to is a partial result, and moves as a sum; what none comes to is written as what it is in its
// matrix.

#include "kernels/mask.hpp"
#include "memsim/layout.hpp"
#include "memsim/range.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

// To some rows, or columns of a transposed tile, of which `later` ones are to be added to.
void write_sums(Machine& machine, const Tile& sums, SlowMatrix& to, Range rows, const Ranges& later,
                Orientation orientation = Orientation::straight);

}  // namespace redblue
