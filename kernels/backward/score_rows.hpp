#pragma once
// g from nothing in three products: for a row block I the scores of all keys stay, e and q, so
// that each is made once; only then are the sums of a row known, and p and W_I = p_I A2 follow
// while the keys of A2 pass again. The first block of them is read last and is still here when
// they do. For M far above m, a large cache; backward/rows-onepass moves fewer words where less
// fits, with a fourth product.
//
//   reads and writes   (3 m - Bc) d T + 4 d^2 T - d^2 + 3 n d,   T = ceil(n / Br), Bc <= m

#include "kernels/kernel.hpp"

namespace redblue {

Kernel backward_score_rows();

}  // namespace redblue
