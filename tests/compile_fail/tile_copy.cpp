// expect: use of deleted function|call to deleted constructor
// A copy of a tile would take fast memory that nobody asked for.
#include "memsim/machine.hpp"

void copy(redblue::Machine& machine) {
  redblue::Tile tile = machine.initialize("t", 2, 2);
#ifdef CONTROL
  const redblue::Tile other = std::move(tile);
#else
  const redblue::Tile other = tile;
#endif
}
