#pragma once
// The text of an input: of a regular file, of a pipe, or of standard input. What would never end,
// or is no text of ours by its size, is refused before it fills the memory.

#include <cstddef>
#include <string>

namespace redblue {

inline constexpr std::size_t kMostBytes = std::size_t{512} << 20;  // 100,000 points have half
inline constexpr std::size_t kNoLimit = static_cast<std::size_t>(-1);

// "-" is standard input.
bool is_standard_input(const std::string& path);
// What messages call it: the path, or "standard input".
std::string input_name(const std::string& path);

// Whole. Throws: std::system_error; InputError where it is a device or larger than `most` bytes.
std::string read_text(const std::string& path, std::size_t most = kMostBytes);

}  // namespace redblue
