// expect: use of deleted function|call to implicitly-deleted copy constructor
// A copy of a slow matrix would move words that are not counted.
#include "memsim/slow_matrix.hpp"

void copy(redblue::SlowMatrix& A) {
#ifdef CONTROL
  const redblue::SlowMatrix other = std::move(A);
#else
  const redblue::SlowMatrix other = A;
#endif
}
