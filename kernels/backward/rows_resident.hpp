#pragma once
// g from nothing in a fast memory that holds X, Y, g and most of the keys: queries pass in row
// blocks, of which A1_I stays until W_I has met it, so that no operand but the keys that do not
// stay is read twice. The sums are those of backward/rows-onepass.
//
//   reads and writes   2 n d + 2 m d + 3 d^2 + 2 (m - resident) d (T - 1),   T = ceil(n / Br)
//
// With all keys resident, or T = 1, that is each word once.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel backward_rows_resident();
Kernel backward_rows_resident_shared();  // A3 is A2, and the words of the keys are half as many

}  // namespace redblue
