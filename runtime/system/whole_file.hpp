#pragma once
// Writes a file that appears whole or not at all.
//
// Until commit() all bytes are in a temporary file in the target's directory, and the target is
// unchanged. The destructor removes the temporary file, and so does a signal that ends the command.
// Where the file system allows it, the temporary file has no name before finish(). Elsewhere
// SIGKILL leaves it behind (.redblue-*.tmp). Failures throw std::system_error with the target's
// path. Not shared between threads.
//
// The new file takes the permissions of the file that it replaces. A symbolic link stays, and the
// file at its end is the target. "-" is standard output. Standard output, other open files of this
// process (/dev/fd/3), devices and pipes are never replaced. finish() writes all bytes to them at
// once, from a temporary file in the system's temporary directory.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "memsim/store/file.hpp"

namespace redblue {

bool is_standard_output(const std::filesystem::path& target);
// Returns whether the target is an open file of this process, a device or a pipe.
bool is_stream(const std::filesystem::path& target);
// Returns the canonical path of the file that would be written, whether or not it exists. If there
// is no canonical path, returns the path with its links followed. Used to refuse overwriting an
// input or another output.
std::filesystem::path place_of(const std::filesystem::path& target);

class WholeFile {
 public:
  // If the target is a named pipe, waits for its reader. Throws if the target is a directory, a
  // disk or a socket, or cannot be written.
  explicit WholeFile(std::filesystem::path target);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();

  // Returns the target as given, or "standard output".
  [[nodiscard]] const std::filesystem::path& target() const { return target_; }
  // Reserves disk space, so that a full disk is reported now and not after hours of computing. On a
  // file system that cannot reserve, a later write fails.
  void reserve(std::int64_t bytes);
  void append(std::span<const std::byte> bytes);
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  // Overwrites appended bytes, from `offset` on.
  void replace(std::int64_t offset, std::span<const std::byte> bytes);
  // Forces all bytes to disk and closes the file. Or writes all bytes to the device or pipe.
  void finish();
  // Removes temporary files of killed processes. Requires: no other process works in the directory.
  static void remove_left(const std::filesystem::path& directory);
  // Says what the command does after commit(). `end`: it ends soon, so a later signal no longer
  // ends it early. `go_on`: it continues, for example after a checkpoint.
  enum class Then { end, go_on };
  // Moves the file to its path by a single rename, over an older file. Throws: std::logic_error
  // unless it is finished; also if called again.
  void commit(Then then = Then::end);

 private:
  template <class Make>
  void name_temporary(Make make);
  void put(std::int64_t offset, std::span<const std::byte> bytes);
  void pour();

  std::filesystem::path target_;
  std::filesystem::path file_path_;  // links followed
  std::filesystem::path directory_;  // of the temporary file
  std::filesystem::path temporary_;  // empty if there is no named temporary file
  Descriptor file_;
  Descriptor stream_;  // a device or a pipe
  bool is_stream_ = false;
  std::int64_t offset_ = 0;
  bool complete_ = false;  // finish() has succeeded, and commit() was not called
};

// Writes `text` as a whole file. Throws: as WholeFile.
void write_whole(const std::string& target, const std::string& text);

}  // namespace redblue
