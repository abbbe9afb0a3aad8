#pragma once
// Finds the line of each point in the text of a suite or a recording, for CI annotations.

#include <cstddef>
#include <string_view>
#include <vector>

namespace redblue {

// Returns the line, from 1, on which each entry of the list "points" begins, in order. Requires:
// `text` is a JSON object. It may have // and /* */ comments.
std::vector<std::size_t> entry_lines(std::string_view text);

}  // namespace redblue
