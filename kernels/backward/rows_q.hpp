#pragma once
// g with q = dO h^T in the slow store, for fast memories near d^2: rows of S and of the sum
// W = p A2 stay while A2 and q pass, so that a word of fast memory serves two matrices and not
// three (four from nothing). S, h, q and g = A1^T W are products of their own.
//
// rows-q is given O and L, and stores q - v; rows-q-onepass is given nothing beyond dO, stores q,
// and keeps a second sum, as backward/rows-onepass does. In units of n^2, with x = d / sqrt(M) < 2
// and n = m >> d:
//
//   given O and L   3 x^2 + 2
//   from nothing    4 x^2 + 2

#include "kernels/kernel.hpp"

namespace redblue {

Kernel backward_rows_q();
Kernel backward_rows_q_onepass();

}  // namespace redblue
