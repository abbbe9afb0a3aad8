#pragma once
// Measures the peak speed of multiply-adds on registers, in the instruction set of the kernels. A
// kernel's flops are reported as a percentage of this peak.

#include "memsim/words.hpp"
#include "runtime/observe/topology.hpp"

namespace redblue {

// Returns the GF/s of `threads` concurrent threads, placed as workers are. It is the best of
// several measurements of about 0.2 ms. Clock rates drift, so measure the peak close to the run
// that is compared with it.
double fma_peak(Index threads, const Topology& topology);

}  // namespace redblue
