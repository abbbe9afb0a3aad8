// expect: no known conversion|no matching
// The blocks of a const matrix are read-only, and write takes none of them.
#include "memsim/machine.hpp"

#ifdef CONTROL
void put(redblue::Machine& machine, const redblue::Tile& tile, redblue::SlowMatrix& A) {
#else
void put(redblue::Machine& machine, const redblue::Tile& tile, const redblue::SlowMatrix& A) {
#endif
  machine.write(tile, A.block({0, 1}, {0, 1}));
}
