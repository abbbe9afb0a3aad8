#pragma once
// Lines that survive the process that wrote them: what is there is read back, a line that a kill
// cut is forgotten, and new ones go to the end. The file belongs to one process at a time.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/store/file.hpp"

namespace redblue {

class Journal {
 public:
  // A new file where there is none. Throws (all): std::system_error; std::runtime_error where
  // another process has it.
  explicit Journal(std::filesystem::path path);

  // What was there at the beginning, without the ends of lines.
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
  // Requires: one line, with its end.
  void append(std::string_view line);
  // Forgets all lines.
  void clear();
  // The file is no more. Requires: nobody appends any more.
  void remove();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Descriptor file_;
  std::vector<std::string> lines_;
};

}  // namespace redblue
