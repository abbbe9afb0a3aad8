// expect: no known conversion|no matching
// The block of an event or a sequence can be read, but not written.
#include "memsim/machine.hpp"

void put(redblue::Machine& machine, const redblue::Tile& tile, redblue::SlowMatrix& A) {
#ifdef CONTROL
  machine.write(tile, A.row_block({0, 1}));
#else
  machine.write(tile, A.row_blocks(1)[0]);
#endif
}
