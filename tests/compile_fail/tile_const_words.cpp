// expect: discards qualifiers|no viable conversion from
// What was read as const is not changed by arithmetic.
#include "memsim/machine.hpp"

#ifdef CONTROL
void change(redblue::Tile& tile) {
#else
void change(const redblue::Tile& tile) {
#endif
  redblue::View words = tile;
  words.at(0, 0)[0] = 1;
}
