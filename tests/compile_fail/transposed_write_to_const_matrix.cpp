// expect: no known conversion|no matching
#include "memsim/machine.hpp"

// A const matrix cannot be written through a block's transpose.
#ifdef CONTROL
void put(redblue::Machine& machine, const redblue::Tile& tile, redblue::SlowMatrix& A) {
#else
void put(redblue::Machine& machine, const redblue::Tile& tile, const redblue::SlowMatrix& A) {
#endif
  machine.write(tile, redblue::transposed(A.block({0, 1}, {0, 1})));
}
