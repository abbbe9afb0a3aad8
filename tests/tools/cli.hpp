#pragma once
// The built redblue command in a directory of its own, with nothing in its environment that
// a test did not put there.

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "tests/runtime/temporary_directory.hpp"
#include "tests/tools/process.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REDBLUE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REDBLUE_SANITIZED 1
#endif
#endif

namespace redblue {

// How much slower than else a command may be here.
#ifdef REDBLUE_SANITIZED
inline constexpr double kSlowdown = 20;
#else
inline constexpr double kSlowdown = 1;
#endif

class Cli : public ::testing::Test {
 protected:
  // `line` without the command's name: "REDBLUE_N=4 count backward/small --d 3".
  [[nodiscard]] Process process(const std::string& line) const {
    const CommandLine command = split(line);
    Process process{.words = {REDBLUE_COMMAND}, .environment = command.assignments};
    process.words.insert(process.words.end(), command.words.begin(), command.words.end());
    process.directory = directory_.path();
    // What the sanitizers and a coverage build of the command need; and the instruction set
    // that the tests are to run in, unless this one says which.
    for (const char* name :
         {"ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH",
          "LLVM_PROFILE_FILE", "GCOV_PREFIX", "REDBLUE_SIMD"}) {
      if (line.find(std::string(name) + "=") != std::string::npos) {
        continue;
      }
      if (const char* value = std::getenv(name)) {
        process.environment.push_back(std::string(name) + "=" + value);
      }
    }
    return process;
  }
  [[nodiscard]] Outcome redblue(const std::string& line) const { return process(line).run(); }

  // Standard output of a command that must succeed and have nothing to say.
  std::string data(const std::string& line) const {
    const Outcome outcome = redblue(line);
    EXPECT_EQ(outcome.code, 0) << line;
    EXPECT_EQ(outcome.err, "") << line;
    return outcome.out;
  }

  // All files below the directory, with their content.
  [[nodiscard]] std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_.path())) {
      found[entry.path().lexically_relative(directory_.path()).string()] =
          entry.is_regular_file() ? content_of(entry.path()) : "";
    }
    return found;
  }

  TemporaryDirectory directory_;
};

}  // namespace redblue
