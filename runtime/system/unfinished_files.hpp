#pragma once
// Lists the temporary files and directories of this process, which are removed before a signal ends
// it. There is one list, because a signal handler has no arguments. Any thread may use it.

#include <csignal>
#include <filesystem>

namespace redblue {

// Locks the list, and blocks signals in this thread, while it lives. A file and its entry can thus
// change together, as seen by signal handlers.
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
  // Called when an output has reached its path. From then on a signal no longer ends the command
  // early.
  void keep_outputs() noexcept;

 private:
  sigset_t before_{};
};

// Returns whether keep_outputs() was called.
bool outputs_are_kept() noexcept;

// Removes all files of the list and returns true. The list stays locked: other threads that use it
// wait forever, and the caller must end the process. If outputs are kept, removes no file and
// returns false, unless `at_any_rate`. For signal handlers that block SIGINT, SIGTERM and SIGHUP.
bool remove_unfinished(bool at_any_rate) noexcept;

}  // namespace redblue
