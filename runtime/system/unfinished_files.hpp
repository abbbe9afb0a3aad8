#pragma once
// The temporary files and directories of this process, which it removes before a signal ends it.
// There is one list, because a signal handler has no arguments. Any thread may use it.

#include <csignal>
#include <filesystem>

namespace redblue {

// Locks the list, and holds signals back in this thread. So a file and its entry change together,
// and no signal handler finds one without the other.
class UnfinishedFiles {
 public:
  enum class Kind { file, folder, folder_if_empty };

  // Waits for other threads.
  UnfinishedFiles();
  UnfinishedFiles(const UnfinishedFiles&) = delete;
  UnfinishedFiles& operator=(const UnfinishedFiles&) = delete;
  ~UnfinishedFiles();

  void add(const std::filesystem::path& path, Kind kind);
  // Ignores a path that is not in the list.
  void erase(const std::filesystem::path& path) noexcept;
  // An output is in its place: from now on a signal comes too late to end the command.
  void keep_outputs() noexcept;

 private:
  sigset_t before_{};
};

// Whether an output is in its place.
bool outputs_are_kept() noexcept;

// Removes all files of the list and returns true; from then on a thread that would make another
// waits for ever, so that the caller must end the process. With an output in its place it returns
// false, unless `at_any_rate`. For signal handlers that hold SIGINT, SIGTERM and SIGHUP back.
bool remove_unfinished(bool at_any_rate) noexcept;

}  // namespace redblue
