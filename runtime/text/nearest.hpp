#pragma once
// For "unknown kernel": the names that the person may have meant.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redblue {

// Up to three of the known names, nearest first, by the least number of letters to insert,
// delete or replace. A name that contains the word counts as nearest of all: "flash" means
// "forward/flash". Equals stay in the order given.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string_view> known);

// The one that is so near that only a slip can be between: a third of the letters at most. Empty:
// none is.
std::string near(std::string_view word, std::span<const std::string_view> known);

}  // namespace redblue
