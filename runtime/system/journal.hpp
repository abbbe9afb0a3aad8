#pragma once
// A file of lines that survive a killed process. Opening it reads the existing lines and drops an
// incomplete last line. New lines are appended. A lock lets only one process use the file.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/store/file.hpp"

namespace redblue {

// Returns the lines of a text without their newlines. A last line without a newline is left out.
std::vector<std::string> whole_lines(std::string_view text);

class Journal {
 public:
  // Creates the file if it is missing. All functions throw std::system_error. The constructor
  // throws std::runtime_error if another process uses the file, if it is not a regular file, or if
  // it is too large to be a journal.
  explicit Journal(std::filesystem::path path);

  // Returns the lines that the file had when it was opened, without their newlines.
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
  // Requires: `line` is one line that ends in a newline.
  void append(std::string_view line);
  // Removes all lines.
  void clear();
  // Removes the file. Requires: no append follows.
  void remove();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Descriptor file_;
  std::vector<std::string> lines_;
};

}  // namespace redblue
