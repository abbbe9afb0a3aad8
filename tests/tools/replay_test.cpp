// redblue replay from outside.

#include <string>

#include <gtest/gtest.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

using ReplayCommand = Cli;

// The moves of a kernel, as accesses: a cache that holds all words reads each matrix that the
// kernel reads once, and writes each that it writes once.
TEST_F(ReplayCommand, OfTheMovesOfAKernel) {
  ASSERT_EQ(redblue("trace matmul/blocked --n 12 --m 9 --d 7 --M 60 --din moves.din").code, 0);
  const Json all = json("replay --from moves.din");
  const Json run = json("count matmul/blocked --n 12 --m 9 --d 7 --M 60");
  EXPECT_EQ(all["accesses"],
            run["total"]["reads"].get<Index>() + run["total"]["writes"].get<Index>());
  EXPECT_EQ(all["addresses"], 12 * 7 + 7 * 9 + 12 * 9);
  const Json& last = all["curve"].back();
  EXPECT_EQ(last["M"], all["addresses"]);
  EXPECT_EQ(last["lru"]["reads"], 12 * 7 + 7 * 9);
  EXPECT_EQ(last["opt"]["reads"], 12 * 7 + 7 * 9);
  EXPECT_EQ(last["lru"]["writes"], 12 * 9);
  for (const Json& point : all["curve"]) {
    EXPECT_LE(point["opt"]["reads"], point["lru"]["reads"]) << point.dump();
  }
}

// Three words in turn, of which the second is written: a b c a b c. LRU of two words misses all.
TEST_F(ReplayCommand, ASmallTraceByHand) {
  directory_.write("t", "0 0\n1 4\n0 8\n0 0\n0 4\n0 8\n");
  const Json all = json("replay --from t --at 3,2,2,100");
  ASSERT_EQ(all["curve"].size(), 3U);
  const Json two = {{"M", 2},
                    {"lru", {{"reads", 5}, {"writes", 1}}},
                    {"opt", {{"reads", 3}}},
                    {"belady", {{"writes", 1}}}};
  EXPECT_EQ(all["curve"][0], two);
  EXPECT_EQ(all["curve"][1]["lru"]["reads"], 2);
  EXPECT_EQ(all["curve"][2]["lru"]["reads"], 2);
  EXPECT_EQ(all["curve"][2]["M"], 100);
}

TEST_F(ReplayCommand, RefusesWhatIsNoTrace) {
  directory_.write("bad", "0 10\n3 14\n");
  const auto refused = [&](const std::string& line, int status, const std::string& why) {
    expect_refused(process(line), status, why);
  };
  refused("replay", 2, "--from is missing");
  refused("replay --from bad", 1, "bad: line 2: label '3': expected 0 .read. or 1 .write.");
  refused("replay --from none", 1, "none");
  refused("replay --from bad --at 0", 2, "--at");
  refused("replay --from bad --at 4,", 2, "--at");
}

}  // namespace
}  // namespace redblue
