// expect: use of deleted function|call to deleted constructor
// A tile cannot be copied, because a copy would take fast memory without a request.
#include "memsim/machine.hpp"

void copy(redblue::Machine& machine) {
  redblue::Tile tile = machine.initialize("t", 2, 2);
#ifdef CONTROL
  const redblue::Tile other = std::move(tile);
#else
  const redblue::Tile other = tile;
#endif
}
