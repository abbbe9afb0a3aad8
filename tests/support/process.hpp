#pragma once
// Runs a program as a person would: with its own streams, environment and directory.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/system/sanitized.hpp"

namespace redblue {

// A program of clang 14's thread sanitizer maps a file as it starts, and ends by SIGBUS where files
// may not grow that far: `largest_file` is for others.
inline constexpr bool kFilesAreLimited = !kThreadSanitized;

// What a command line came to.
struct Outcome {
  int code = -1;  // 128 + the signal's number where a signal ended it, as in a shell
  std::string out;
  std::string err;
  double seconds = 0;
};

struct Process {
  std::vector<std::string> words;        // the program first
  std::vector<std::string> environment;  // NAME=VALUE; all that there is
  std::filesystem::path directory = ".";
  std::string standard_output = {};  // a file in place of a capture, /dev/full for example
  std::optional<long> largest_file = {};
  bool without_root = false;  // as nobody, when the test is root
  bool terminal = false;      // standard error is one, that changes nothing of what is written

  // Waits for its end. Throws: std::system_error when it cannot be started.
  [[nodiscard]] Outcome run() const;
};

// "REDBLUE_N=4 count backward/small --d ''" as a shell would take it apart: words at the
// spaces, '' an empty word, assignments at the front. Nothing else of a shell's.
struct CommandLine {
  std::vector<std::string> words;
  std::vector<std::string> assignments;
};
CommandLine split(const std::string& line);

}  // namespace redblue
