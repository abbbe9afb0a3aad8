#pragma once

#include <string>
#include <string_view>

#include "kernels/mask.hpp"

namespace redblue::fuzz {

// The most queries, and the most keys. Both come from the command line, and memory is taken for
// them.
inline constexpr Index kMostOfPatterns = 4096;

// Throws: Broken unless it is a pattern of n queries and m keys, in order.
void demand_well_formed(const BlockPattern& pattern, Index n, Index m);

// Returns the text of a pattern with blocks of one pair, in the form that parse_smtx() takes.
std::string smtx_of(const BlockPattern& pattern);

}  // namespace redblue::fuzz
