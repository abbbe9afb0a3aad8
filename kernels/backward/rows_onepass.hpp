#pragma once
// g from nothing in one pass over the keys: row blocks stay as in backward/rows, and with
// neither O nor L known, the two sums that make W stay, too:
//
//   W = (sum e q A2 - v sum e A2) / l,   v = (sum e q) / l,   l = sum e,   e = exp(s - maximum)
//
// Taken literally that cancels where all q of a row have much in common. So q is kept
// relative to its mean over the keys so far: U = sum e (q - mean) A2 follows the mean as it
// moves (by delta: U -= delta Z, Z = sum e A2), and at the end, where the mean is v, W = U / l.
// Four products in place of backward/rows' three; nothing goes to the slow store but g:
//
//   reads and writes   2 m d T + 4 d^2 T - d^2 + (3 d - kept) n,   T = ceil(n / Br)

#include "kernels/kernel.hpp"

namespace redblue {

Kernel backward_rows_onepass();
Kernel backward_rows_onepass_shared();  // A3 is A2, and m d T of the words less

}  // namespace redblue
