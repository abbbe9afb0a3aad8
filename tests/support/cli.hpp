#pragma once
// The built redblue command in a fresh directory, in an environment that has only what the test
// sets.

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "runtime/system/sanitized.hpp"
#include "tests/support/json.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {

// The factor by which a command may be slower in this build.
inline constexpr double kSlowdown = kSanitized ? 20 : 1;

// An environment for a command: a machine of six cores, whose L1 has 48 KiB.
inline const std::string kSixCores =
    "HWLOC_XMLFILE=" REDBLUE_SOURCE_DIR "/tests/runtime/observe/six_cores.xml ";

class Cli : public ::testing::Test {
 protected:
  // `line` is without the command's name: "REDBLUE_SIMD=SSE4 run backward/small --n 4 --d 3".
  [[nodiscard]] Process process(const std::string& line) const;
  [[nodiscard]] Outcome redblue(const std::string& line) const { return process(line).run(); }

  // The seconds that the command takes beyond those of starting it, which are the machine's. The
  // rest of that may be in the way of one try, not of ten: the first below `enough`, or the least.
  [[nodiscard]] double seconds_after_start(const std::string& line, double enough) const;

  // Standard output of a command that succeeds with an empty standard error.
  std::string data(const std::string& line) const;
  // The same, parsed.
  [[nodiscard]] nlohmann::json json(const std::string& line) const;

  // Expects this exit code, one line on standard error that matches, nothing on standard output,
  // and an unchanged directory.
  void expect_refused(const Process& process, int code, const std::string& message) const {
    expect_refused([&] { return process.run(); }, code, message);
  }
  void expect_refused(const std::function<Outcome()>& command, int code,
                      const std::string& message) const;

  // All files below the directory, with their content.
  [[nodiscard]] std::map<std::string, std::string> files() const;

  TemporaryDirectory directory_;
};

}  // namespace redblue
