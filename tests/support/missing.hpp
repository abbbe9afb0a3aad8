#pragma once
// Programs that a few tests need and `tools/setup --tests` alone installs. Without its program such
// a test is skipped; tools/test finds the reason in the log and prints it. The names of their
// fixtures end in Pictures, by which ctest labels the tests.

#include <string>

#include <gtest/gtest.h>

#include "runtime/system/subprocess.hpp"

namespace redblue {

// The reason to skip a test; empty if the program is installed.
inline std::string missing(const std::string& program, const std::string& package) {
  return find_program(program, "/usr/bin:/bin")
             ? std::string()
             : "label pictures: " + program + " is missing: tools/setup --tests installs " +
                   package;
}

// A fixture whose tests draw.
template <class Fixture>
class WithGnuplot : public Fixture {
 protected:
  void SetUp() override {
    Fixture::SetUp();
    if (const std::string why = missing("gnuplot", "gnuplot-nox"); !why.empty()) {
      GTEST_SKIP() << why;
    }
  }
};

}  // namespace redblue
