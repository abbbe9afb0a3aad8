// expect: lvalue required as left operand|expression is not assignable
// No element of a const tile can be assigned.
#include "memsim/machine.hpp"

#ifdef CONTROL
void change(redblue::Tile& tile) {
#else
void change(const redblue::Tile& tile) {
#endif
  tile(0, 0) = 1;
}
