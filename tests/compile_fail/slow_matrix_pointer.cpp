// expect: has no member named .?.?.?row|no member named 'row'
// Nor does it give a pointer to its words.
#include "memsim/machine.hpp"

float element(redblue::Machine& machine, const redblue::SlowMatrix& A) {
  const redblue::Tile a = machine.read(A.whole());
#ifdef CONTROL
  return a.row(0)[0];
#else
  return A.row(0)[0];
#endif
}
