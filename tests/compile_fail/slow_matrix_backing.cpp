// expect: is private within this context|is a private member of
// The store behind a slow matrix is private, because it reads without counting.
#include <vector>

#include "memsim/machine.hpp"

void peek(redblue::Machine& machine, const redblue::SlowMatrix& A) {
#ifdef CONTROL
  const redblue::Tile a = machine.read(A.block({0, 1}, {0, 1}));
#else
  std::vector<float> words(1);
  A.backing_->read({0, 1}, {0, 1}, words);
  static_cast<void>(machine);
#endif
}
