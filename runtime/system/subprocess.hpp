#pragma once
// Runs another program to its end and captures its output. Also makes temporary directories for its
// files.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace redblue {

// Returns the directory for temporary files (environment.hpp). Throws: InputError if it is not a
// directory.
std::filesystem::path temporary_directory();

// A new directory. It is removed with its content by the destructor, or before a signal ends the
// command.
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

// Returns the program that a shell would run. `search` has the form of PATH. Returns nullopt if no
// directory in it has the program.
std::optional<std::filesystem::path> find_program(std::string_view name, std::string_view search);

// Called by a forked child: asks the system to kill the child when its parent ends. Returns false
// if that fails or if the parent has already ended; the child should then end, too. Safe in a
// signal handler.
bool dies_with(pid_t parent);

struct Ended {
  int code = 0;    // the exit code; 0 after a signal
  int signal = 0;  // the signal that ended the program, else 0
  std::string out, err;
  // The last SIGINT, SIGTERM or SIGHUP that this process received while it waited, else 0. The
  // program is then killed. The caller should clean up and end by that signal.
  int interrupted = 0;
};

// Runs a program and waits for its end. `words` begins with the program's path. `variables`
// (NAME=VALUE) are added to the environment. The child's locale is always C.UTF-8, because its
// output is parsed here. Files in `scratch` capture the output. The child does not survive this
// process. Throws: std::system_error.
Ended run_program(const std::vector<std::string>& words, const std::vector<std::string>& variables,
                  const std::filesystem::path& scratch);

}  // namespace redblue
