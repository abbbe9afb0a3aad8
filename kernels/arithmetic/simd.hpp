#pragma once
// The vector instructions that arithmetic on tiles uses. Every set that the compiler knows is
// in the binary; the best one that the processor has is taken, unless another is asked for.
// Bits of results may differ from set to set; counts do not.

#include <string>
#include <string_view>
#include <vector>

#include "memsim/cxx20.hpp"

namespace redblue {

// Of this binary and this processor, best first: "AVX3" (AVX-512), "AVX2", "SSE4", "NEON" ...
std::vector<std::string> simd_targets();
// The one in use.
std::string simd_target();
// From now on, in all threads. False, and nothing changes, unless it is one of simd_targets().
// Not while a kernel runs.
bool use_simd_target(std::string_view name);

}  // namespace redblue
