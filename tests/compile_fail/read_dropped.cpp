// expect: ignoring return(ed)? value
// Dropping a tile after a read is refused, because its words would move without use.
#include "memsim/machine.hpp"

void drop(redblue::Machine& machine, const redblue::SlowMatrix& A) {
#ifdef CONTROL
  const redblue::Tile a = machine.read(A.whole());
#else
  machine.read(A.whole());
#endif
}
