#pragma once
// A file that appears whole or not at all. Until commit() everything lies in a temporary file in
// the target's directory, which is removed when this dies; the target is untouched. It has no
// name before finish(), where the file system allows that; else a killed process leaves it behind
// (.redblue-*.tmp). Failures are std::system_error with the target's path. Not shared between
// threads.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "memsim/descriptor.hpp"

namespace redblue {

class WholeFile {
 public:
  // Fails where the target is a directory, a symbolic link, a device or the like, or cannot be
  // written.
  explicit WholeFile(std::filesystem::path target);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();

  [[nodiscard]] const std::filesystem::path& target() const { return target_; }
  // Asks for the room now rather than after hours of computing. Where the file system does not
  // know how, the writes will tell.
  void reserve(std::int64_t bytes);
  void append(std::span<const std::byte> bytes);
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  // In place of bytes that were appended, from `offset` on.
  void replace(std::int64_t offset, std::span<const std::byte> bytes);
  // Forces all to disk and closes the file.
  void finish();
  // What a process left that was killed. Requires: nobody else is at work in the directory.
  static void remove_left(const std::filesystem::path& directory);
  // Puts the file in its place, over an older one, by a single rename.
  // Throws: std::logic_error unless it is finished; also when called again.
  void commit();

 private:
  [[nodiscard]] std::filesystem::path directory() const;
  template <class Make>
  void name_temporary(Make make);
  void put(std::int64_t offset, std::span<const std::byte> bytes);

  std::filesystem::path target_;
  std::filesystem::path temporary_;  // empty where there is nothing to remove
  Descriptor file_;
  std::int64_t offset_ = 0;
  bool complete_ = false;  // on disk and closed
};

}  // namespace redblue
