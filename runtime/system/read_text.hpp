#pragma once
// The text of an input: a regular file, a pipe or standard input. An input without an end, or too
// large to be a text of redblue, is refused before it fills the memory.

#include <cstddef>
#include <filesystem>
#include <string>

namespace redblue {

inline constexpr std::size_t kMostBytes = std::size_t{512} << 20;  // 100,000 points take half of it
inline constexpr std::size_t kNoLimit = static_cast<std::size_t>(-1);

// "-" is standard input.
bool is_standard_input(const std::string& path);
// The name in messages: the path, or "standard input".
std::string input_name(const std::string& path);

// The whole text. Throws: std::system_error; InputError for a device or for more than `most` bytes.
std::string read_text(const std::string& path, std::size_t most = kMostBytes);
// The content of a file that another program was to write; empty if it did not.
std::string content_if_any(const std::filesystem::path& path);
// Appends what an open file has from its position on, and stops once `text` has more than `most`.
// Returns 0 or the errno of read(2).
int read_to_end(int file, std::string& text, std::size_t most = kNoLimit);

}  // namespace redblue
