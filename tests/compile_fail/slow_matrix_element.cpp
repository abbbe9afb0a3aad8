// expect: no match for call|does not provide a call operator
// A slow matrix gives no access to an element. A tile that was read, and counted, does.
#include "memsim/machine.hpp"

float element(redblue::Machine& machine, const redblue::SlowMatrix& A) {
#ifdef CONTROL
  return machine.read(A.whole())(0, 0);
#else
  static_cast<void>(machine);
  return A(0, 0);
#endif
}
