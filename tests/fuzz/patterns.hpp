#pragma once

#include <string>
#include <string_view>

#include "kernels/mask.hpp"

namespace redblue::fuzz {

// Of queries and of keys: they come from the command line, and memory for them is warranted.
inline constexpr Index kMostOfPatterns = 4096;

// Throws: Broken unless it is one of n queries and m keys, in order.
void demand_well_formed(const BlockPattern& pattern, Index n, Index m);

// The text of a pattern of blocks of one pair, as parse_smtx() takes it.
std::string smtx_of(const BlockPattern& pattern);

}  // namespace redblue::fuzz
