#pragma once
// The built redblue command in a directory of its own, with nothing in its environment that
// a test did not put there.

#include <filesystem>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "runtime/system/sanitized.hpp"
#include "tests/support/json.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {

// How much slower than else a command may be here.
inline constexpr double kSlowdown = kSanitized ? 20 : 1;

// For a command's environment: a machine of six cores, whose L1 has 48 KiB.
inline const std::string kSixCores =
    "HWLOC_XMLFILE=" REDBLUE_SOURCE_DIR "/tests/runtime/observe/six_cores.xml ";

class Cli : public ::testing::Test {
 protected:
  // `line` without the command's name: "REDBLUE_N=4 count backward/small --d 3".
  [[nodiscard]] Process process(const std::string& line) const;
  [[nodiscard]] Outcome redblue(const std::string& line) const { return process(line).run(); }

  // Standard output of a command that must succeed and have nothing to say.
  std::string data(const std::string& line) const;
  // The same as a document.
  [[nodiscard]] Json json(const std::string& line) const;

  // A command that ends with this code, one line on standard error that matches, nothing on
  // standard output, and the directory as it was.
  void expect_refused(const Process& process, int code, const std::string& message) const;

  // All files below the directory, with their content.
  [[nodiscard]] std::map<std::string, std::string> files() const;

  TemporaryDirectory directory_;
};

}  // namespace redblue
