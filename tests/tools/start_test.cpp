// How long the command takes to start, in instructions, which are as many on a busy machine: it
// loads no library, makes no kernel and builds no option that the words do not ask for.

#include <string>

#include <gtest/gtest.h>

#include "tests/support/process.hpp"

namespace redblue {
namespace {

// The loader takes 2.5 million of them (for an empty main() that writes to std::cout 1.8). Choosing
// the blocks takes 5, and the kernel that makes O and L as many.
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
