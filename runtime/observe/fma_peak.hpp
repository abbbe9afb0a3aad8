#pragma once
// The speed of multiply-adds out of registers on this machine, in the instruction set of the
// arithmetic: the 100% that a kernel's flops are held against.

#include "memsim/words.hpp"
#include "runtime/observe/topology.hpp"

namespace redblue {

// GF/s of that many threads at the same time, placed as workers are: the best of several
// measurements of some 0.2 ms. Clocks drift, so the peak is measured beside the run that is
// compared.
double fma_peak(Index threads, const Topology& topology);

}  // namespace redblue
