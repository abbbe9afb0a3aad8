// Tests `redblue replay` from the outside.

#include <algorithm>
#include <filesystem>
#include <list>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

using ReplayCommand = Cli;

// The moves of a kernel become accesses. A cache that holds all words reads each input matrix once
// and writes the result once.
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

// Three words in turn: a b c a b c, with a write of b first. An LRU cache of two words never hits.
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
  refused("replay", 2, "name a kernel of `redblue list`, or --from FILE");
  refused("replay --from bad --n 3", 2, "--n beside --from: a trace is of no kernel");
  refused("replay matmul/blocked --from bad", 2, "kernel beside --from");
  refused("replay --from bad", 1, "bad: line 2: label '3': expected 0 .read. or 1 .write.");
  refused("replay --from none", 1, "none");
  refused("replay --from bad --at 0", 2, "--at");
  refused("replay --from bad --at 4,", 2, "--at");
}

// Each line of the trace for libCacheSim is one access. A hand-written LRU cache of 60 words misses
// as often as the report says that LRU reads, plus once for each new sum, which is not a read.
TEST_F(ReplayCommand, WritesWhatLibCacheSimReads) {
  const Json all =
      json("replay matmul/blocked --n 12 --m 9 --d 7 --M 60 --at 60 --cachesim touched.txt");
  std::istringstream lines(content_of(directory_ / "touched.txt"));
  std::list<Index> cache;
  std::set<Index> words;
  Index missed = 0, accesses = 0;
  for (Index word = 0; lines >> word; ++accesses) {
    words.insert(word);
    missed += std::erase(cache, word) > 0 ? 0 : 1;
    cache.push_front(word);
    cache.resize(std::min<std::size_t>(cache.size(), 60));
  }
  EXPECT_EQ(std::ssize(words), all["addresses"]);
  EXPECT_EQ(accesses, all["accesses"]);  // no scratch is dropped
  EXPECT_EQ(missed, all["curve"][0]["lru"]["reads"].get<Index>() + 12 * 9);
}

TEST_F(ReplayCommand, OfAKernelBesideItsOwnWords) {
  const std::string kernel = "backward/rows --n 32 --d 8 --M 240";
  const Json all = json("replay " + kernel + " --per-phase --at 240,480");
  const Json count = json("count " + kernel);
  EXPECT_EQ(all["schedule"]["reads"], count["total"]["reads"]);
  EXPECT_EQ(all["schedule"]["peak"], count["total"]["peak"]);
  EXPECT_EQ(all["curve"][0]["lower_bound"], count["lower_bound"]["words"]);
  Index opt = 0;
  for (const Json& phase : all["phases"]) {
    opt += phase["M"] == 480 ? phase["opt"]["reads"].get<Index>() : 0;
  }
  EXPECT_EQ(opt, all["curve"][1]["opt"]["reads"]);
}

// Each level of a run moves the words that `count` reports for it.
TEST_F(ReplayCommand, OfLevels) {
  const std::string kernel = "backward/rows --n 32 --d 8 --M 150,400";
  const Json all = json("replay " + kernel + " --per-phase --at 400");
  const Json count = json("count " + kernel);
  ASSERT_EQ(all["levels"].size(), 2U);
  EXPECT_EQ(all["M"], 400);
  for (std::size_t level = 0; level < 2; ++level) {
    const Json &here = all["levels"][level], &counted = count["levels"][level];
    EXPECT_EQ(keys(here), (Keys{"M", "total", "phases"}));
    EXPECT_EQ(here["M"], counted["M"]);
    for (const char* key : {"reads", "writes", "peak"}) {
      EXPECT_EQ(here["total"][key], counted["total"][key]) << key;
      ASSERT_EQ(here["phases"].size(), counted["phases"].size());
      for (std::size_t phase = 0; phase < here["phases"].size(); ++phase) {
        EXPECT_EQ(here["phases"][phase][key], counted["phases"][phase][key]) << key;
      }
    }
  }
  EXPECT_FALSE(json("replay backward/rows --n 32 --d 8 --M 400 --at 400").contains("levels"));
  const std::string at = " --per-phase --at 400";
  EXPECT_NE(data("replay " + kernel + at).find("\nlevel 1 reads "), std::string::npos);
  EXPECT_NE(data("replay " + kernel + at + " --format csv").find("level_1_reads"),
            std::string::npos);
}

TEST_F(ReplayCommand, OfRows) {
  const std::string kernel = "backward/rows --n 32 --d 8 --M 240 --at 240,480";
  const Json words = json("replay " + kernel), rows = json("replay " + kernel + " --unit row");
  EXPECT_EQ(words["unit"], "word");
  EXPECT_FALSE(words.contains("rows"));
  EXPECT_EQ(rows["unit"], "row");
  EXPECT_EQ(rows["rows"]["widest"], 8);
  EXPECT_EQ(rows["schedule"], words["schedule"]);
  EXPECT_LE(rows["curve"][0]["opt"]["reads"], rows["schedule"]["reads"]);
  // With d = 1, a row is one word.
  const std::string narrow = "forward/flash --n 20 --d 1 --M 60 --at 1,30,60,200";
  EXPECT_EQ(json("replay " + narrow)["curve"], json("replay " + narrow + " --unit row")["curve"]);
}

TEST_F(ReplayCommand, RefusesRowsWhereThereAreNone) {
  const std::string kernel = "backward/rows --n 32 --d 8 --M 240 ";
  const auto refused = [&](const std::string& line, const std::string& why) {
    expect_refused(process(line), 2, why);
  };
  refused("replay " + kernel + "--unit column", "--unit 'column': expected word or row");
  refused("plot replay " + kernel + "--unit column", "--unit 'column': expected word or row");
  refused("replay --from t --unit row", "--unit beside --from: a trace is of no kernel");
  refused("replay " + kernel + "--unit row --cachesim all.txt",
          "--cachesim beside --unit row: the format has no sizes; take words");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "all.txt"));
  refused("replay " + kernel + "--unit row --at 7,8", "--at 7: the widest row has 8 words");
  refused("replay backward/rows --n 8K --d 8 --M 4K --unit row",
          "more than 268,435,456 accesses: take smaller extents");
}

TEST_F(ReplayCommand, RefusesRunsThatItCannotFollow) {
  const auto refused = [&](const std::string& line, int status, const std::string& why) {
    expect_refused(process(line), status, why);
  };
  refused("replay backward/rows --n 40 --d 8 --M 400 --threads 2", 2, "--threads");
  refused("replay backward/rows --n 40 --d 8", 2, "--M");
  refused("replay backward/rows --n 300 --d 128 --M 90000 --cachesim all.txt", 2,
          "more than 67,108,864 accesses: take smaller extents");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "all.txt"));
}

}  // namespace
}  // namespace redblue
