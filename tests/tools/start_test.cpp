// Tests how long the command takes to start, in instructions, which do not depend on the load of
// the machine. It must load no library, make no kernel and build no option that the command line
// does not need.

#include <string>

#include <gtest/gtest.h>

#include "tests/support/process.hpp"

namespace redblue {
namespace {

// The loader takes 2.5 million instructions (1.8 million for an empty main() that writes to
// std::cout). Choosing the blocks takes 5 million, and so does the kernel that computes O and L.
TEST(Start, OfACountTakesFewInstructions) {
  const Process process{
      .words = {"/bin/sh", "-c",
                "exec valgrind --tool=callgrind --callgrind-out-file=/dev/null \"$0\" \"$@\"",
                REDBLUE_COMMAND, "count", "backward/rows", "--n", "1000", "--d", "64", "--M",
                "16K"},
      .environment = {"PATH=/usr/bin:/bin"}};
  const Outcome outcome = process.run();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string label = "Collected : ";
  const std::size_t at = outcome.err.find(label);
  ASSERT_NE(at, std::string::npos) << outcome.err;
  EXPECT_LT(std::stoll(outcome.err.substr(at + label.size())), 16'000'000) << outcome.err;
}

}  // namespace
}  // namespace redblue
