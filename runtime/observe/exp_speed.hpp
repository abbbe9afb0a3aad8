#pragma once
// Measures how fast one core computes the exponentials of scores.

namespace redblue {

// Returns the exponentials in a second, on scores and results within half of a usual L1, on the
// calling thread, in the instruction set of the kernels. It is the median of short samples.
double exps_per_second();

}  // namespace redblue
