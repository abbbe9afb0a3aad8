// expect: use of deleted function|call to deleted constructor
// A copy of a machine would double its M.
#include "memsim/machine.hpp"

void copy(redblue::Machine& machine) {
#ifdef CONTROL
  redblue::Machine other(machine.capacity());
#else
  redblue::Machine other(machine);
#endif
  static_cast<void>(other.live());
}
