#pragma once
// Writes a long text piece by piece to a file that appears whole or not at all
// (runtime/system/whole_file.hpp). Memory holds only a chunk of it. Not shared between threads.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/system/whole_file.hpp"

namespace redblue {

class TextFile {
 public:
  // All functions throw std::system_error, as WholeFile does.
  explicit TextFile(std::filesystem::path target);
  [[nodiscard]] const std::filesystem::path& target() const { return file_.target(); }

  void append(std::string_view text) {
    chunk_ += text;
    if (chunk_.size() >= kChunk) {
      flush();
    }
  }
  // Overwrites appended text, from `offset` on.
  void replace(std::int64_t offset, std::string_view text);

  void finish();
  void commit() { file_.commit(); }

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 20;
  void flush();

  WholeFile file_;
  std::string chunk_;
};

}  // namespace redblue
