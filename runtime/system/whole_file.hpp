#pragma once
// A file that appears whole or not at all. Until commit() all bytes lie in a temporary file in the
// target's directory; the target is untouched, and the destructor removes the temporary file. A
// signal that ends the command removes it, too. The file has no name before finish(), where the
// file system allows it; elsewhere SIGKILL leaves it behind (.redblue-*.tmp). Failures are
// std::system_error with the target's path. Not shared between threads.
//
// A file that is replaced leaves its permissions to the new one. A symbolic link stays, and the
// file at its end is the target. "-" is standard output. Standard
// output, other open files of this process (/dev/fd/3), devices and pipes are never replaced:
// finish() writes to them, all at once, from a temporary file in the system's directory for these.

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
// The canonical path of the place that data go to, whether or not the file exists; where none can
// be found, the path with its links followed. Used to refuse overwriting an input or another
// output.
std::filesystem::path place_of(const std::filesystem::path& target);

class WholeFile {
 public:
  // Waits for the reader of a named pipe. Fails if the target is a directory, a disk or a socket,
  // or cannot be written.
  explicit WholeFile(std::filesystem::path target);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();

  // As given, or "standard output".
  [[nodiscard]] const std::filesystem::path& target() const { return target_; }
  // Reserves room now, rather than failing after hours of computing. On a file system that cannot
  // reserve, a full disk shows at a write.
  void reserve(std::int64_t bytes);
  void append(std::span<const std::byte> bytes);
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  // Overwrites appended bytes, from `offset` on.
  void replace(std::int64_t offset, std::span<const std::byte> bytes);
  // Forces all bytes to disk and closes the file; or writes all to the device or pipe.
  void finish();
  // Removes the files that killed processes left. Requires: no other process works in the
  // directory.
  static void remove_left(const std::filesystem::path& directory);
  // Whether the command ends soon after, so that a signal is too late to end it before; or goes on,
  // as after a checkpoint.
  enum class Then { end, go_on };
  // Puts the file in its place, over an older one, by a single rename.
  // Throws: std::logic_error unless it is finished; also when called again.
  void commit(Then then = Then::end);

 private:
  template <class Make>
  void name_temporary(Make make);
  void put(std::int64_t offset, std::span<const std::byte> bytes);
  void pour();

  std::filesystem::path target_;
  std::filesystem::path file_path_;  // links followed
  std::filesystem::path directory_;  // of the temporary file
  std::filesystem::path temporary_;  // empty if nothing is to be removed
  Descriptor file_;
  Descriptor stream_;  // a device or a pipe
  bool is_stream_ = false;
  std::int64_t offset_ = 0;
  bool complete_ = false;  // on disk and closed
};

// Writes a file of this text. Throws: as WholeFile.
void write_whole(const std::string& target, const std::string& text);

}  // namespace redblue
