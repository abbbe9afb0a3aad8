#pragma once
// The laws of sparse operands of `redblue table1`, each on a grid that is fast to run.

#include <vector>

#include "runtime/report/table1.hpp"

namespace redblue {

inline std::vector<SparseLaw> small_sparse_laws() {
  std::vector<SparseLaw> laws = sparse_laws();
  for (SparseLaw& law : laws) {
    law.grid.n = {7, 9};
    law.grid.s = {4, 8, 12};
    if (law.grid.M_in_squares) {
      law.grid.family->d = 32;
      law.grid.M = {3, 5};  // also in laws for small M, because S = A1 X needs this much
    } else {
      law.grid.M = {10, 12};
    }
  }
  return laws;
}

}  // namespace redblue
