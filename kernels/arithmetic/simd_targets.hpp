#pragma once
// Which instruction sets are compiled: one for each width and register count that the
// arithmetic has a tile shape for. Vectors of a length unknown to the compiler (SVE, RISC-V)
// cannot be kept in arrays of accumulators; NEON is there for the former. To be included
// before Highway.

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
