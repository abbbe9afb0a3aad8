#pragma once
// Selects the instruction sets to compile: one for each width and register count for which the
// arithmetic has a tile shape. Vectors with a length unknown to the compiler (SVE, RISC-V) cannot
// be elements of arrays of accumulators. ARM processors with SVE use NEON. Include this header
// before Highway.

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
