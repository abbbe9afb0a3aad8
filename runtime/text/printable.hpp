#pragma once
// Text from outside, made fit for a person's terminal: names in files, of files, of kernels.

#include <cstddef>
#include <string>
#include <string_view>

namespace redblue {

bool is_utf8(std::string_view text);

// With \x1b for a control character, a newline too, and for each byte that is no UTF-8.
std::string printable(std::string_view text);
// The same, but newlines stay: of a text that is made of lines.
std::string printable_lines(std::string_view text);

// The same as printable(), and not longer than `most` bytes: of a longer one its beginning, "..."
// and a few letters of its end.
std::string shortened(std::string_view whole, std::size_t most = 72);

}  // namespace redblue
