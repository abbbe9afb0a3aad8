// expect: use of deleted function|call to implicitly-deleted copy constructor
// A slow matrix cannot be copied, because a copy would move words without counting them.
#include "memsim/slow_matrix.hpp"

void copy(redblue::SlowMatrix& A) {
#ifdef CONTROL
  const redblue::SlowMatrix other = std::move(A);
#else
  const redblue::SlowMatrix other = A;
#endif
}
