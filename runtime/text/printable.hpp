#pragma once
// Text from outside, made safe for a terminal: names of files and kernels, messages of programs.

#include <cstddef>
#include <string>
#include <string_view>

namespace redblue {

bool is_utf8(std::string_view text);

// Control characters, newlines among them, and bytes that are not UTF-8 become escapes as \x1b.
std::string printable(std::string_view text);
// The same for a text of several lines: newlines stay.
std::string printable_lines(std::string_view text);

// printable() in at most `most` bytes: a longer text becomes its beginning, "..." and a few letters
// of its end.
std::string shortened(std::string_view whole, std::size_t most = 72);

}  // namespace redblue
