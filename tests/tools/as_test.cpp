// Schedules of other attention kernels: their words are those of the kernel with the same loops and
// these blocks, and, of attention, n d (queries) + 2 m d ceil(n / Br) + n d + n (O and L).

#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

class CountAs : public Cli {
 protected:
  [[nodiscard]] Json row(const std::string& name, const std::string& line) const {
    return json("count --as " + name + " " + line)["as"][0];
  }
};

TEST_F(CountAs, TilesAreThoseOfTheShape) {
  const auto expect = [&](const char* name, const std::string& line, const char* blocks) {
    EXPECT_EQ(blocks_of(row(name, line + " --M 1M")), blocks) << name << " " << line;
  };
  expect("flash-attention-2", "--n 999 --d 64", "Bc=128,Br=128");
  expect("flash-attention-2", "--n 999 --d 65", "Bc=64,Br=128");
  expect("flash-attention-2", "--n 999 --d 64 --problem gradients",
         "core.Bc=128,core.Br=128,v.Br=128");
  expect("flash-attention-2", "--n 999 --d 128 --problem gradients",
         "core.Bc=128,core.Br=64,v.Br=64");
  expect("flash-attention-3", "--n 999 --d 128", "Bc=176,Br=128");
  expect("flash-attention-3", "--n 999 --d 128 --mask causal", "Bc=128,Br=128");
  expect("flash-attention-3", "--n 999 --d 128 --problem gradients",
         "core.Bc=128,core.Br=80,v.Br=80");
  expect("flash-attention-3", "--n 999 --d 128 --problem gradients --mask causal",
         "core.Bc=128,core.Br=64,v.Br=64");
  expect("xformers", "--n 999 --d 100", "Bc=128,Br=64");
  expect("pytorch-cpu", "--n 767 --d 300", "Bc=512,Br=64");
  expect("pytorch-cpu", "--n 768 --d 8", "Bc=512,Br=256");
  expect("triton-tutorial", "--n 99 --d 32 --problem gradients",
         "dKV.Bc=128,dKV.Br=32,dQ.Bc=32,dQ.Br=128");
}

TEST_F(CountAs, WordsAreThoseOfTheLoops) {
  for (const auto& [name, n, d, rows] :
       {std::tuple("flash-attention-2", 8192, 64, 128),
        std::tuple("flash-attention-3", 1001, 96, 192), std::tuple("pytorch-cpu", 3000, 40, 256),
        std::tuple("triton-tutorial", 777, 128, 128)}) {
    const Index words = row(name, fmt::format("--n {} --d {} --M 1M", n, d))["words"].get<Index>();
    const Index blocks = (n + rows - 1) / rows;
    EXPECT_EQ(words, 2 * n * d + n + 2 * n * d * blocks) << name;
  }
  for (const char* line :
       {"--n 700 --d 64 --M 200K", "--n 700 --m 300 --d 64 --M 200K --heads 6",
        "--n 700 --d 64 --M 200K --mask causal", "--n 700 --d 64 --M 200K --problem gradients",
        "--n 700 --d 64 --M 200K --problem gradients --mask window:50,3"}) {
    SCOPED_TRACE(line);
    for (const Json& its : json(fmt::format("count --as all {}", line))["as"]) {
      if (its["kernel"].is_null()) {
        EXPECT_TRUE(its.contains("missing"));
        continue;
      }
      std::string kernel_line(line);
      if (const auto at = kernel_line.find("--problem gradients"); at != std::string::npos) {
        kernel_line.erase(at, std::string("--problem gradients").size());
      }
      const std::string kernel = its["kernel"].get<std::string>() + " " + kernel_line;
      const Json counted = json(fmt::format("count {} --blocks {}", kernel, blocks_of(its)));
      EXPECT_EQ(its["words"], counted["total"]["io"]);
      EXPECT_EQ(its["peak"], counted["total"]["peak"]);
      EXPECT_EQ(its["too_many"], 0);
      EXPECT_EQ(its["planned"]["words"], json("count " + kernel)["total"]["io"]);
      EXPECT_LE(its["planned"]["words"], its["words"]);
    }
  }
}

// Words do not depend on M, nor do those that are missing hide.
TEST_F(CountAs, TilesThatDoNotFitAreCounted) {
  const Json fits = row("pytorch-cpu", "--n 900 --d 64 --M 1M");
  const Index peak = fits["peak"].get<Index>();
  const Json misses = row("pytorch-cpu", "--n 900 --d 64 --M 48K");
  EXPECT_EQ(misses["words"], fits["words"]);
  EXPECT_EQ(misses["peak"], peak);
  EXPECT_EQ(misses["too_many"], peak - 48 * 1024);
  const Json least = row("pytorch-cpu", fmt::format("--n 900 --d 64 --M {}", peak));
  EXPECT_EQ(misses["ratio"], least["ratio"]);
  EXPECT_EQ(misses["planned"], least["planned"]);
  const Json none = row("flash-attention-2", "--n 90 --d 257 --M 1M");
  EXPECT_EQ(none["missing"], "it has no tiles for d = 257");
}

TEST_F(CountAs, IsRefusedWhereItHasNoMeaning) {
  const auto refused = [&](const std::string& line, const std::string& message) {
    expect_refused(process("count " + line), 2, message);
  };
  const std::string size = " --n 90 --d 8 --M 4K";
  refused("--as cudnn" + size,
          "--as 'cudnn': expected flash-attention-2, flash-attention-3, pytorch-cpu, "
          "triton-tutorial, xformers or all");
  refused("--as all --problem backward" + size,
          "--problem 'backward': expected attention or gradients");
  refused("attention/rows --as all" + size, "attention/rows: --as all names the schedule");
  refused("--as all --blocks Br=4" + size, "--blocks 'Br=4': --as all has its tiles");
  refused("attention/rows --problem attention" + size,
          "--problem 'attention': a kernel has one problem; it is of --as");
  refused("--as all --n 90 --d 8 --M 1K,4K", "--as all: tiles are of one level");
  refused("--as all --ranks 2" + size, "--as all: tiles are of one level");
  refused(size, "kernel is required");
  expect_refused(process("list --as --devices"), 2, "--as: --devices lists devices");
}

TEST_F(CountAs, AreListedWithTheirSources) {
  const Json all = json("list --as")["as"];
  EXPECT_GE(all.size(), 15U);
  for (const Json& tiles : all) {
    EXPECT_NE(tiles["source"].get<std::string>().find(" at "), std::string::npos);
    EXPECT_EQ(redblue("count " + tiles["kernel"].get<std::string>() + " --n 9 --d 2 --M 4K").code,
              0);
  }
}

}  // namespace
}  // namespace redblue
