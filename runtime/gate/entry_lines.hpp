#pragma once
// The lines of a suite, or of a recording, on which its points stand: for annotations of CI.

#include <cstddef>
#include <string_view>
#include <vector>

namespace redblue {

// The line, from 1, on which each entry of the list "points" begins, in order. Requires: `text` is
// a JSON object; // and /* */ comments are allowed.
std::vector<std::size_t> entry_lines(std::string_view text);

}  // namespace redblue
