#pragma once
// Lines that survive the process that wrote them. Existing lines are read back, a line that a kill
// cut short is dropped, and new lines are appended. The file belongs to one process at a time.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/store/file.hpp"

namespace redblue {

// The lines of a text that end in a newline, without it.
std::vector<std::string> whole_lines(std::string_view text);

class Journal {
 public:
  // Creates the file if it is missing. Throws (all): std::system_error; std::runtime_error if
  // another process has the file, if it is no regular file, or if it is too large to be a journal.
  explicit Journal(std::filesystem::path path);

  // The lines at the beginning, without their newlines.
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
