// expect: ignoring return(ed)? value
// A tile that is read and dropped is a word moved for nothing.
#include "memsim/machine.hpp"

void drop(redblue::Machine& machine, const redblue::SlowMatrix& A) {
#ifdef CONTROL
  const redblue::Tile a = machine.read(A.whole());
#else
  machine.read(A.whole());
#endif
}
