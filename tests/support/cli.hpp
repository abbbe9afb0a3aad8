#pragma once
// Runs the built redblue command in a fresh directory. Only the test sets its environment.

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "memsim/sanitized.hpp"
#include "tests/support/json.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {

// How many times slower a command may be in this build.
inline constexpr double kSlowdown = kSanitized ? 20 : 1;

// An environment for a command: a machine with six cores and an L1 of 48 KiB.
inline const std::string kSixCores =
    "HWLOC_XMLFILE=" REDBLUE_SOURCE_DIR "/tests/runtime/observe/six_cores.xml ";

// Passes on the variables that sanitizers and a coverage build of the command need, and the
// instruction set of the tests, unless the line sets them.
void inherit(Process& process, const std::string& line);

// The directory is in memory, because outputs and stores are forced to disk, which takes most of
// the time of many tests. A suite whose subject is a disk gives `::testing::TempDir()`.
class Cli : public ::testing::Test {
 protected:
  explicit Cli(const std::filesystem::path& parent = TemporaryDirectory::in_memory())
      : directory_(parent) {}

  // `line` omits the command's name: "REDBLUE_SIMD=SSE4 run backward/small --n 4 --d 3".
  [[nodiscard]] Process process(const std::string& line) const;
  [[nodiscard]] Outcome redblue(const std::string& line) const { return process(line).run(); }

  // Runs a process and sends it a signal as soon as `now` holds.
  [[nodiscard]] Outcome signalled(const Process& process, int signal,
                                  const std::function<bool()>& now) const;

  // Returns the seconds that the command takes beyond the machine's time to start it. Other load
  // may disturb one try, but hardly all. It returns the first difference below `enough`, or else
  // the least in ten tries.
  [[nodiscard]] double seconds_after_start(const std::string& line, double enough) const;

  // Returns the standard output of a command that succeeds with an empty standard error.
  std::string data(const std::string& line) const;
  // Returns the same, parsed as JSON.
  [[nodiscard]] nlohmann::json json(const std::string& line) const;

  // Expects this exit code, one matching line on standard error, an empty standard output, and an
  // unchanged directory.
  void expect_refused(const Process& process, int code, const std::string& message) const {
    expect_refused([&] { return process.run(); }, code, message);
  }
  void expect_refused(const std::function<Outcome()>& command, int code,
                      const std::string& message) const;

  // Returns all files below the directory, with their content.
  [[nodiscard]] std::map<std::string, std::string> files() const;

  TemporaryDirectory directory_;
};

}  // namespace redblue
