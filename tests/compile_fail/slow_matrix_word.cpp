// expect: no match for call to|does not provide a call operator
// A slow matrix gives no access to a word.
#include "memsim/machine.hpp"

float element(redblue::Machine& machine, const redblue::SlowMatrix& A) {
  const redblue::Tile a = machine.read(A.whole());
#ifdef CONTROL
  return a(0, 0);
#else
  return A(0, 0);
#endif
}
