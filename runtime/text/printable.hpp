#pragma once
// Makes text from outside safe for a terminal: names of files and kernels, messages of programs.

#include <cstddef>
#include <string>
#include <string_view>

namespace redblue {

bool is_utf8(std::string_view text);

// Returns the text with escapes such as \x1b for control characters, for newlines and for bytes
// that are not UTF-8.
std::string printable(std::string_view text);
// Like printable(), but keeps newlines.
std::string printable_lines(std::string_view text);

// Returns printable() of the text in at most `most` bytes. A longer text becomes its beginning,
// "..." and a few letters of its end.
std::string shortened(std::string_view whole, std::size_t most = 72);

}  // namespace redblue
