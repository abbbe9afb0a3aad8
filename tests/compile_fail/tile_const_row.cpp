// expect: invalid conversion from|cannot initialize a variable of type
// What was read as const is not changed through a pointer to its rows.
#include "memsim/machine.hpp"

#ifdef CONTROL
void change(redblue::Tile& tile) {
#else
void change(const redblue::Tile& tile) {
#endif
  float* row = tile.row(0);
  row[0] = 1;
}
