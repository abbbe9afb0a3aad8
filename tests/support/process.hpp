#pragma once
// Runs a program as a person would: with its streams, its environment and its directory.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace redblue {

// The OpenMP runtime of clang maps a file at the start of a program, which ends by SIGBUS if files
// may not grow that far: `largest_file` is for other builds.
#if defined(__clang__)
inline constexpr bool kFilesAreLimited = false;
#else
inline constexpr bool kFilesAreLimited = true;
#endif

// The result of a command line.
struct Outcome {
  int code = -1;  // 128 + the signal's number after a signal, as in a shell
  std::string out;
  std::string err;
  double seconds = 0;
};

struct Process {
  std::vector<std::string> words;        // the program first
  std::vector<std::string> environment;  // NAME=VALUE; the whole environment
  std::filesystem::path directory = ".";
  std::string standard_output = {};  // a file in place of a capture, such as /dev/full
  std::optional<long> largest_file = {};
  bool without_root = false;  // as nobody, if the test is root
  // Of all processes of its user, and so none that root has; for the user `nobody`.
  std::optional<unsigned> most_threads = {};
  bool terminal = false;  // standard error is one, which changes no byte

  // Waits for the program's end. Throws: std::system_error if it cannot be started.
  [[nodiscard]] Outcome run() const;
};

// "REDBLUE_SIMD=SSE4 run backward/small --d ''" in parts: words between spaces, '' for an empty
// word, assignments at the front. Nothing else of a shell.
struct CommandLine {
  std::vector<std::string> words;
  std::vector<std::string> assignments;
};
CommandLine split(const std::string& line);

}  // namespace redblue
