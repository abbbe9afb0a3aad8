// expect: use of deleted function|overload resolution selected deleted operator
// A tile can be assigned only from a tile that is moved.
#include "memsim/machine.hpp"

void copy(redblue::Tile& tile, redblue::Tile& other) {
#ifdef CONTROL
  other = std::move(tile);
#else
  other = tile;
#endif
}
