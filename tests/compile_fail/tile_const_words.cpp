// expect: discards qualifiers|no viable conversion from
// A const tile does not convert to a view that arithmetic may change.
#include "memsim/machine.hpp"

#ifdef CONTROL
void change(redblue::Tile& tile) {
#else
void change(const redblue::Tile& tile) {
#endif
  redblue::View words = tile;
  words.at(0, 0)[0] = 1;
}
