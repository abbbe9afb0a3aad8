// Tests --word 2 --sums 4. Running sums and maxima, L, v and partial results weigh two words,
// operands and scores one. Formulas and counts agree. The bounds assume that each word weighs one,
// except "pairs, wide sums" of gradients.

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "memsim/range.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

using WideSums = Cli;

// Every dense kernel, on one worker and on two; a kernel that takes O and L starts from scratch.
// The counts equal the formulas, because a run with other counts fails.
TEST_F(WideSums, AreCountedAsFormulasSay) {
  for (const TestedKernel& kernel : tested_kernels()) {
    for (const char* rest : {"", " --threads 2 --heads 2", " --threads 2"}) {
      if (std::string_view(rest) == " --threads 2" && !kernel.split()) {
        continue;
      }
      SCOPED_TRACE(kernel.name + rest);
      const Json run =
          json(fmt::format("run {} --n 45 --m {} --d 6 --M 16KiB --word 2 --sums 4 --seed 3{}",
                           kernel.name, kernel.shape({45, 37, 6}).m, rest));
      EXPECT_EQ(run["sum_bytes"], 4);
      for (const char* count : {"reads", "writes", "peak"}) {
        EXPECT_EQ(run["total"][count], run["formula"][count]) << count;
      }
    }
  }
}

// attention/rows reads Q once, and K and V once for each row block. It writes O with d words a row,
// and L with two.
TEST_F(WideSums, OfRowsByHand) {
  const Index n = 100, m = 80, d = 8;
  const Json count = json(
      fmt::format("count attention/rows --n {} --m {} --d {} --M 1KiB --word 2 --sums 4", n, m, d));
  EXPECT_EQ(count["M"], 512);
  const Index T = ceil_div(n, count["blocks"]["Br"].get<Index>());
  EXPECT_EQ(count["formula"]["reads"], n * d + 2 * m * d * T);
  EXPECT_EQ(count["formula"]["writes"], n * d + 2 * n);
  EXPECT_LE(count["formula"]["peak"], 512);
}

// In gradients/flash, each block of keys except the first reads dQ again as a partial sum.
TEST_F(WideSums, OfPartialResultsByHand) {
  const Index n = 96, m = 96, d = 8;
  const std::string line = fmt::format(
      "count gradients/flash --n {} --m {} --d {} --M 2K --blocks core.Br=8,core.Bc=8", n, m, d);
  const Json narrow = json(line)["formula"], wide = json(line + " --word 2 --sums 4")["formula"];
  const Index blocks = m / 8, v = n, L = n;
  // L and v are read once for each block of keys. v is written once, computed from dO and O. dQ is
  // a partial sum in all passes but the last.
  const Index more_reads = (L + v) * blocks + n * d * (blocks - 1);
  const Index more_writes = v + n * d * (blocks - 1);
  EXPECT_EQ(wide["reads"].get<Index>() - narrow["reads"].get<Index>(), more_reads);
  EXPECT_EQ(wide["writes"].get<Index>() - narrow["writes"].get<Index>(), more_writes);
}

// Bounds are stated for words that weigh one, and do not change. Only gradients have one bound
// more, which is larger. Plans fit, and move no fewer words.
TEST_F(WideSums, BoundsAreOfWordsThatWeighOne) {
  for (const char* problem : {"attention", "gradients", "backward", "product", "layer"}) {
    SCOPED_TRACE(problem);
    const std::string rest = fmt::format(" --n 300 --d 16 --M 8KiB --problem {} --word 2", problem);
    const Json narrow = json("plan" + rest), wide = json("plan" + rest + " --sums 4");
    const Json bounds = json("bounds" + rest)["bounds"];
    Json of_wide = json("bounds" + rest + " --sums 4")["bounds"];
    if (problem == std::string("gradients")) {
      EXPECT_GT(wide["lower_bound"]["words"], narrow["lower_bound"]["words"]);
      EXPECT_EQ(wide["lower_bound"]["term"], "pairs, wide sums");
      EXPECT_EQ(of_wide.size(), bounds.size() + 1);
      of_wide.erase(of_wide.size() - 2);
    } else {
      EXPECT_EQ(narrow["lower_bound"], wide["lower_bound"]);
    }
    EXPECT_EQ(bounds, of_wide);
    EXPECT_GE(wide["plan"]["words"], narrow["plan"]["words"]);
    const Json count =
        json(fmt::format("count {} --n 300 --d 16 --M 8KiB --word 2 --sums 4 --objective words",
                         wide["plan"]["kernel"].get<std::string>()));
    EXPECT_EQ(count["formula"]["io"], wide["plan"]["words"]);
    EXPECT_LE(count["formula"]["peak"], 4096);
    EXPECT_NE(data("bounds" + rest + " --sums 4")
                  .find("a sum counts as 2 words, and as 1 in most bounds"),
              std::string::npos);
  }
}

// Other projects' tiles need more of M, and L moves twice as many words.
TEST_F(WideSums, OfTilesOfOthers) {
  const std::string line = "count --as flash-attention-2 --n 8192 --d 64 --M 192KiB --word 2";
  const Json narrow = json(line)["as"][0], wide = json(line + " --sums 4")["as"][0];
  EXPECT_EQ(wide["words"].get<Index>() - narrow["words"].get<Index>(), 8192);
  EXPECT_GT(wide["peak"], narrow["peak"]);
}

// Sums of two bytes make no difference.
TEST_F(WideSums, OfAWordAreAsNone) {
  const std::string line = "count backward/rows --n 100 --d 8 --M 4KiB --word 2";
  EXPECT_EQ(data(line), data(line + " --sums 2"));
}

TEST_F(WideSums, Refusals) {
  const auto refused = [&](const std::string& line, const std::string& message) {
    SCOPED_TRACE(line);
    expect_refused(process(line), 2, message);
  };
  const std::string count = "count backward/rows --n 90 --d 8 --M 1K";
  for (const char* width : {"3", "0", "8", "four"}) {
    refused(fmt::format("{} --word 2 --sums {}", count, width),
            fmt::format("--sums '{}': expected 2 or 4 bytes", width));
  }
  refused(count + " --sums 2", "--sums 2: a word has 4 bytes, and a sum no fewer: give --word 2");
  const std::string wide = " --word 2 --sums 4";
  refused("count backward/rows --n 90 --d 8 --M 500,1K" + wide,
          "--M 500,1024: words of several levels weigh one each: leave --sums out");
  refused("plan --n 90 --d 8 --M 500,1K" + wide, "words of several levels weigh one each");
  refused(count + wide + " --ranks 2", "--ranks: words of links weigh one each");
  refused("run backward/rows --n 90 --d 8 --M 1K --seed 1 --store file:s" + wide,
          "--store: it does not work with a store: leave --sums out");
  refused("plan --loops backward/rows --n 90 --d 8 --M 1K" + wide,
          "--loops: lines of loops have words of one width: leave --sums out");
}

}  // namespace
}  // namespace redblue
