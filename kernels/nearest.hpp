#pragma once
// Finds the names that a user may have meant, for messages such as "unknown kernel".

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redblue {

// Returns up to three of the known names, nearest first. The distance is the least number of
// letters to insert, delete or replace, where "q" and "Q" are the same letter. A name that contains
// the word has distance 0: "flash" means "forward/flash". Names with equal distances stay in the
// given order.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string_view> known);

// Returns the nearest name if it is near enough to be a slip: its distance is at most a third of
// the word's letters. Otherwise, and for very long words, returns "".
std::string near(std::string_view word, std::span<const std::string_view> known);

}  // namespace redblue
