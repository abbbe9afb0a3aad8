#pragma once
// Another program, run to its end with its output caught; and a directory for its files.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace redblue {

// The directory for temporary files (environment.hpp). Throws: InputError where it is none.
std::filesystem::path temporary_directory();

// A fresh directory, removed with its content; also before a signal ends the command.
class ScratchDirectory {
 public:
  // Throws: std::system_error.
  explicit ScratchDirectory(const std::filesystem::path& parent);
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The program that a shell would run; `search` is a PATH. Nothing if the PATH does not have it.
std::optional<std::filesystem::path> find_program(std::string_view name, std::string_view search);

// For a forked child: it is killed when its parent ends. False where that cannot be arranged, or
// where the parent ended before: the child should end, too. Safe in a signal handler.
bool dies_with(pid_t parent);

struct Ended {
  int code = 0;    // the exit code; 0 after a signal
  int signal = 0;  // the signal that ended it, else 0
  std::string out, err;
  // The last SIGINT, SIGTERM or SIGHUP that this process received meanwhile and passed on, else 0.
  // The caller should clean up and end by it.
  int interrupted = 0;
};

// Waits for the program's end. `words` begins with the program's path; `variables` (NAME=VALUE) are
// added to the environment. The child's locale is C.UTF-8, whatever this process has, because its
// output is parsed here. Files in `scratch` catch the output. The child does not survive this
// process. Throws: std::system_error.
Ended run_program(const std::vector<std::string>& words, const std::vector<std::string>& variables,
                  const std::filesystem::path& scratch);

}  // namespace redblue
