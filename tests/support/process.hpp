#pragma once
// Runs a program with chosen arguments, environment and directory, and captures its output.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace redblue {

// clang's OpenMP runtime maps a file at program start. The program ends by SIGBUS if files may not
// grow that far, so `largest_file` is for other builds.
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
  std::string standard_output = {};  // a file for the output, such as /dev/full
  std::optional<long> largest_file = {};
  bool without_root = false;  // runs as `nobody` if the test is root
  // Limit on all processes of the program's user. It does not bind root: set `without_root` too.
  std::optional<unsigned> most_threads = {};
  bool terminal = false;  // standard error is a terminal that changes no byte

  // Waits for the program's end. Throws: std::system_error if it cannot be started.
  [[nodiscard]] Outcome run() const;
};

// The parts of a line such as "REDBLUE_SIMD=SSE4 run backward/small --d ''". Spaces separate words,
// '' is an empty word, and assignments come first. Other shell syntax is not supported.
struct CommandLine {
  std::vector<std::string> words;
  std::vector<std::string> assignments;
};
CommandLine split(const std::string& line);

}  // namespace redblue
