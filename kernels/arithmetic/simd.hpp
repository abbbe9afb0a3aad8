#pragma once
// Selects the vector instructions for arithmetic on tiles. The binary contains every set that the
// compiler knows, and uses the best set of the processor unless a caller selects another. The bits
// of results may depend on the set; counts do not.

#include <string>
#include <string_view>
#include <vector>

#include "memsim/cxx20.hpp"

namespace redblue {

// Returns the sets of this binary and this processor, best first: "AVX3" (AVX-512), "AVX2", "SSE4",
// "NEON" ...
std::vector<std::string> simd_targets();
// Returns the set in use.
std::string simd_target();
// Selects a set for all threads. Returns false and changes no setting if the name is not in
// simd_targets(). Requires: no kernel is running.
bool use_simd_target(std::string_view name);

}  // namespace redblue
