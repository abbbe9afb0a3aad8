// expect: discards qualifiers|no viable conversion from
// Arithmetic does not change a tile that was read as const.
#include "memsim/machine.hpp"

#ifdef CONTROL
void change(redblue::Tile& tile) {
#else
void change(const redblue::Tile& tile) {
#endif
  redblue::View words = tile;
  words.at(0, 0)[0] = 1;
}
