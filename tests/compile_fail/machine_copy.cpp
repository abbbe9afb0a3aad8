// expect: use of deleted function|call to deleted constructor
// A machine cannot be copied, because a copy would double M.
#include "memsim/machine.hpp"

void copy(redblue::Machine& machine) {
#ifdef CONTROL
  redblue::Machine other(machine.capacity());
#else
  redblue::Machine other(machine);
#endif
  static_cast<void>(other.live());
}
