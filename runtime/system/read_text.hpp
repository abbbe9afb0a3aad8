#pragma once
// Reads the text of an input: a regular file, a pipe or standard input. An endless or too large
// input is refused before it fills the memory.

#include <cstddef>
#include <filesystem>
#include <string>

namespace redblue {

inline constexpr std::size_t kMostBytes = std::size_t{512} << 20;  // 100,000 points take half
inline constexpr std::size_t kNoLimit = static_cast<std::size_t>(-1);

// Returns true for "-".
bool is_standard_input(const std::string& path);
// Returns the name for messages: the path, or "standard input".
std::string input_name(const std::string& path);

// Returns the whole text. Throws: std::system_error; InputError for a device or for more than
// `most` bytes.
std::string read_text(const std::string& path, std::size_t most = kMostBytes);
// Returns the content of a file, or "" if it cannot be read. For files that another program may
// have failed to write.
std::string content_if_any(const std::filesystem::path& path);
// Appends to `text` the bytes of an open file from its position on. Stops when `text` has more than
// `most` bytes. Returns 0 or the errno of read(2).
int read_to_end(int file, std::string& text, std::size_t most = kNoLimit);

}  // namespace redblue
