#pragma once
// Masks as users write them:
//
//   full   causal   window:L,R   prefix:P   global:A-B
//
// joined by & and |, of which & binds closer, with brackets. L and R may be inf, or -1: no limit.
// Numbers may end in K, M or G, as sizes do.

#include <span>
#include <string>

#include "kernels/mask.hpp"
#include "kernels/problem.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

inline constexpr const char* kMaskSyntax =
    "full, causal, window:L,R, prefix:P or global:A-B, joined by & and |, with brackets";

// Whether the request asks for other pairs than all, as far as its text says.
inline bool has_mask(const Request& request) {
  return !request.mask.empty() && request.mask != "full";
}

// Throws: InputError for -inf in these rows of L, where a query meets a key.
void check_live_sums(const Problem& problem, Index first_row, std::span<const float> L,
                     const std::string& who);

// The mask of that name; full() where all pairs live. `said` begins messages: "--mask 'causal'".
// Throws: RequestError.
Mask parse_mask(const std::string& spec, const Shape& shape, const std::string& said);

}  // namespace redblue
