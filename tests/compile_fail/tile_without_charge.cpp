// expect: is private within this context|calling a private constructor
// Only a machine makes tiles, because only it can charge their words.
#include "memsim/machine.hpp"

redblue::Tile make(redblue::Machine& machine) {
#ifdef CONTROL
  return machine.initialize("t", 2, 2);
#else
  return redblue::Tile(machine, nullptr, 2, 2, {});
#endif
}
