// expect: lvalue required as left operand|expression is not assignable
// Nor element by element.
#include "memsim/machine.hpp"

#ifdef CONTROL
void change(redblue::Tile& tile) {
#else
void change(const redblue::Tile& tile) {
#endif
  tile(0, 0) = 1;
}
