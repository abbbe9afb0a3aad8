// Tests `redblue count` and `run` with several levels of fast memory.

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

constexpr const char* kLeveled[] = {"forward/rows", "attention/rows", "backward/rows",
                                    "backward/rows-onepass", "backward/rows-shared"};
constexpr const char* kOfLevels = " --n 61 --m 43 --d 7 --M 300,900,4K";

class LevelsCommand : public Cli {
 protected:
  // Returns the words that each level moves and holds, without its bound.
  static Json words(const Json& report) {
    Json all = Json::array();
    for (const Json& level : report["levels"]) {
      all.push_back({level["M"], level["total"], level["phases"]});
    }
    return all;
  }
};

// At each level, the counted words equal the formulas, the phases add up to the total, and at most
// M words live at the same time. The last level is the machine itself, which the report also has
// outside the list of levels.
TEST_F(LevelsCommand, MovesWhatCountSaysAtEachLevel) {
  for (const std::string kernel : kLeveled) {
    for (const char* const more : {"", " --threads 2", " --mask causal", " --objective time"}) {
      SCOPED_TRACE(kernel + more);
      const Json ran = json("run " + kernel + kOfLevels + more + " --verify");
      EXPECT_EQ(words(ran), words(json("count " + kernel + kOfLevels + more)));
      EXPECT_TRUE(ran["error"]["ok"].get<bool>());
      ASSERT_EQ(ran["levels"].size(), 3U);
      for (const Json& level : ran["levels"]) {
        Index reads = 0, writes = 0, peak = 0;
        for (const Json& phase : level["phases"]) {
          reads += phase["reads"].get<Index>();
          writes += phase["writes"].get<Index>();
          peak = std::max(peak, phase["peak"].get<Index>());
          EXPECT_EQ(phase["reads"], phase["formula"]["reads"]) << phase["path"];
          EXPECT_EQ(phase["writes"], phase["formula"]["writes"]) << phase["path"];
        }
        EXPECT_EQ(level["total"]["reads"], reads);
        EXPECT_EQ(level["total"]["writes"], writes);
        EXPECT_EQ(level["total"]["peak"], peak);
        EXPECT_LE(peak, level["M"].get<Index>());
      }
      EXPECT_EQ(ran["M"], 4096);
      const Json& machine = ran["levels"].back();
      EXPECT_EQ(machine["M"], ran["M"]);
      EXPECT_EQ(machine["total"]["io"], ran["total"]["io"]);
      EXPECT_EQ(machine["ratio"], ran["ratio"]);
    }
  }
}

// Each bound equals the bound of a one-level machine with the same M. The ratio is the words of the
// level over that bound.
TEST_F(LevelsCommand, HoldsEachLevelAgainstTheBoundOfItsOwnM) {
  const Json nested = json("count backward/rows-onepass --n 500 --d 16 --M 1K,8K");
  for (const Json& level : nested["levels"]) {
    const Json flat = json(
        fmt::format("count backward/rows-onepass --n 500 --d 16 --M {}", level["M"].get<Index>()));
    EXPECT_EQ(level["lower_bound"], flat["lower_bound"]);
    EXPECT_DOUBLE_EQ(level["ratio"].get<double>(), level["total"]["io"].get<double>() /
                                                       level["lower_bound"]["words"].get<double>());
    EXPECT_GE(level["ratio"].get<double>(), 1);
  }
}

// Equal levels act as one: each has the words of a one-level machine of this size.
TEST_F(LevelsCommand, TakesEqualLevelsForOne) {
  const Json flat = json("count backward/columns --n 61 --d 7 --M 4K");
  const Json equal = json("count backward/columns --n 61 --d 7 --M 4K,4K,16KiB");
  ASSERT_EQ(equal["levels"].size(), 3U);
  for (const Json& level : equal["levels"]) {
    EXPECT_EQ(level["M"], 4096);
    EXPECT_EQ(level["total"]["io"], flat["total"]["io"]);
    EXPECT_EQ(level["total"]["peak"], flat["total"]["peak"]);
  }
  EXPECT_EQ(equal["phases"], flat["phases"]);
}

// With slow memory on disk, each level moves the same words and the result has the same bits as
// with main memory.
TEST_F(LevelsCommand, HasADiskBelow) {
  const std::string run = "run backward/rows --n 300 --d 16 --M 1K,4K,16K --seed 3";
  const Json in_memory = json(run + " --out g=a.npy");
  const Json on_disk = json(run + " --out g=b.npy --store file:st");
  EXPECT_EQ(words(on_disk), words(in_memory));
  EXPECT_EQ(content_of(directory_.path() / "a.npy"), content_of(directory_.path() / "b.npy"));
  EXPECT_GE(on_disk["store"]["bytes"]["kernel"]["read"]["words"].get<Index>(),
            4 * on_disk["levels"].back()["total"]["reads"].get<Index>());
}

// `auto` takes the kernel that moves the fewest words, weighted by level, among kernels that
// support levels.
TEST_F(LevelsCommand, ChoosesAmongKernelsWithLevels) {
  const std::string problem = " --n 500 --d 16 --M 1K,8K";
  const Json chosen = json("count backward/auto" + problem);
  const auto weight = [](const Json& report) {
    double sum = 0;
    for (const Json* part : {&report, report.contains("forward") ? &report["forward"] : nullptr}) {
      for (const Json& level : part == nullptr ? Json::array() : (*part)["levels"]) {
        sum += level["M"].get<double>() * level["total"]["io"].get<double>();
      }
    }
    return sum;
  };
  EXPECT_EQ(chosen["asked"], "backward/auto");
  for (const char* const kernel : {"backward/rows", "backward/rows-onepass"}) {
    EXPECT_LE(weight(chosen), weight(json(fmt::format("count {}{}", kernel, problem)))) << kernel;
  }
}

TEST_F(LevelsCommand, PrintsATableOfEachLevelAndItsColumnsInCsv) {
  const std::string line = "count backward/rows-onepass --n 61 --d 7 --M 300,4K";
  const std::string table = data(line);
  EXPECT_NE(table.find("M=300,4096: Br="), std::string::npos) << table;
  EXPECT_NE(table.find("\nlevel 1, M = 300 words\n"), std::string::npos) << table;
  EXPECT_NE(table.find("\nlower bound of level 1 ("), std::string::npos) << table;
  const std::string csv = data(line + " --format csv");
  EXPECT_NE(csv.find("M_levels,level\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",300/4096,1\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",300/4096,2\n"), std::string::npos) << csv;
}

TEST_F(LevelsCommand, RefusesWhatNoLevelsAre) {
  const auto refused = [&](const std::string& line, const std::string& message) {
    SCOPED_TRACE(line);
    expect_refused(process("count " + line), 2, message);
  };
  const std::string rows = "backward/rows --n 61 --d 7 ";
  refused(rows + "--M 4K,1K",
          "--M 4K,1K: level 1 has 4096 words, and the next 1024: give the inner level first, each "
          "smaller than the next, or all equal");
  refused(rows + "--M 1K,1K,4K", "--M 1K,1K,4K: level 1 has 1024 words, and the next 1024: .*");
  refused(rows + "--M 1K,", "--M: \"\" is not a positive whole number of words");
  refused(rows + "--M 1K,,4K", "--M: \"\" is not a positive whole number of words");
  refused(rows + "--M auto,4K", "--M: auto is one level: .*");
  refused("backward/columns --n 61 --d 7 --M 1K,4K",
          "--M 1024,4096: backward/columns has one level of fast memory; backward/rows, .* have "
          "several");
  refused(rows + "--M 1K,4K --prefetch 2", "--prefetch 2: with several levels, --M 1024,4096, .*");
  refused(rows + "--M 1K,4K --grid 2x1", "--M 1024,4096: ranks have one level .*");
  refused(rows + "--M 1K,4K --blocks groups=2", "--blocks groups=2: with several levels it is 1");
  refused(rows + "--M 1K,4K --blocks kept=3", "--blocks kept=3: with several levels it is 0");
  refused(rows + "--M 1K,4K --blocks L1.apart=2", "--blocks L1.apart=2: it is 1 or 0");
  refused(rows + "--M 4K --blocks L1.apart=1",
          "--blocks L1.apart: it is of several levels: give a --M as 8K,256K");
  refused(rows + "--M 512,1K,4K --blocks L1.Br=2,L2.Br=3",
          "--blocks L2.Br=3: a multiple of L1.Br=2");
  refused(rows + "--M 1K,4K --blocks L1.Br=60",
          "--blocks: these take [0-9]+ words more than M = 1024 of level 1, in the phase [^ ]+: "
          "take smaller ones, or "
          "a larger --M");
  refused(rows + "--M 20,4K",
          "backward/rows does not fit in M = 20 words of level 1: .* it needs M of at least "
          "[0-9]+");
}

}  // namespace
}  // namespace redblue
