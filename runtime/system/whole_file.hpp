#pragma once
// A file that appears whole or not at all. Until commit() everything lies in a temporary file in
// the target's directory, which is removed when this dies; the target is untouched. It has no
// name before finish(), where the file system allows that; else a killed process leaves it behind
// (.redblue-*.tmp). Failures are std::system_error with the target's path. Not shared between
// threads.
//
// A symbolic link stays, and the file that it leads to is the target. "-" is standard output.
// Standard output, other open files of this process (/dev/fd/3), devices and pipes are written to
// as they are: by finish(), all at once, from a temporary file in the system's directory for these.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "memsim/store/file.hpp"

namespace redblue {

bool is_standard_output(const std::filesystem::path& target);
// Whether data go to an open file of this process, a device or a pipe.
bool is_stream(const std::filesystem::path& target);
// One name for each place that data go to, whether there is a file yet or not, as far as there is
// such a path.
std::filesystem::path place_of(const std::filesystem::path& target);

class WholeFile {
 public:
  // Waits for the reader of a named pipe. Fails where the target is a directory, a disk or a
  // socket, or cannot be written.
  explicit WholeFile(std::filesystem::path target);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();

  // As it was given; "standard output" for that.
  [[nodiscard]] const std::filesystem::path& target() const { return target_; }
  // Asks for the room now rather than after hours of computing. Where the file system does not
  // know how, the writes will tell.
  void reserve(std::int64_t bytes);
  void append(std::span<const std::byte> bytes);
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  // In place of bytes that were appended, from `offset` on.
  void replace(std::int64_t offset, std::span<const std::byte> bytes);
  // Forces all to disk and closes the file; or writes all to the device or pipe.
  void finish();
  // What a process left that was killed. Requires: nobody else is at work in the directory.
  static void remove_left(const std::filesystem::path& directory);
  // Puts the file in its place, over an older one, by a single rename.
  // Throws: std::logic_error unless it is finished; also when called again.
  void commit();

 private:
  template <class Make>
  void name_temporary(Make make);
  void put(std::int64_t offset, std::span<const std::byte> bytes);
  void pour();

  std::filesystem::path target_;
  std::filesystem::path file_path_;  // where links lead
  std::filesystem::path directory_;  // of the temporary file
  std::filesystem::path temporary_;  // empty where there is nothing to remove
  Descriptor file_;
  Descriptor stream_;  // a device or a pipe
  bool is_stream_ = false;
  std::int64_t offset_ = 0;
  bool complete_ = false;  // on disk and closed
};

}  // namespace redblue
