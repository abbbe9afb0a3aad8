#pragma once
// O and L in a fast memory that holds X, Y and most of the keys: queries pass in row blocks. The
// sums are those of forward/rows.
//
//   reads and writes   2 n d + n + 2 m d + 2 d^2 + 2 (m - resident) d (T - 1),   T = ceil(n / Br)
//
// With all keys resident, or T = 1, that is each word once.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel forward_rows_resident();
Kernel forward_rows_resident_shared();  // A3 is A2, and the words of the keys are half as many

}  // namespace redblue
