// Blocks between the fewest words and the least time, and blocks in multiples. This test uses
// formulas alone. property_test.cpp runs kernels with such blocks.

#include "kernels/balanced.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "memsim/sanitized.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

double words_of(const Plan& plan) {
  const PhaseCost all = total(plan.phases);
  return static_cast<double>((all.reads + all.writes).value());
}

// A kernel, a problem (with a mask if the kernel takes masks), and an M between its least M and
// room for everything.
struct Case {
  TestedKernel kernel;
  Shape shape;
  Index M;

  [[nodiscard]] Plan plan(Objective objective) const { return kernel.plan(shape, M, objective); }
};

template <class Check>
void for_each_case(int trials, const Check& check) {
  std::mt19937_64 random(11);
  const auto below = [&](Index limit) {
    return static_cast<Index>(random() % static_cast<std::uint64_t>(limit));
  };
  for (TestedKernel kernel : some_tested_kernels()) {
    for (int trial = 0; trial < trials; ++trial) {
      const Index n = 1 + below(600), m = 1 + below(600), d = 1 + below(80);
      const Shape shape{n, m, d};
      kernel.mask = !kernel.kernel->takes_masks || trial % 3 == 0 ? Mask()
                    : trial % 3 == 1                              ? Mask::causal(n, m)
                                                                  : Mask::window(n, m, 20, 5);
      const Index least = kernel.least_M(shape);
      const Index M = least << below(9);
      check(Case{kernel, shape, M + below(M)});
    }
  }
}

constexpr int kTrials = 12;

// The words are at most 1.05 times the fewest. If the blocks of least time satisfy this, they are
// chosen.
TEST(Balanced, MovesAtMostFivePercentMore) {
  int between = 0;
  for_each_case(kTrials, [&](const Case& of) {
    const Plan fewest = of.plan(Objective::words);
    const Plan fastest = of.plan(Objective::time);
    const Plan balanced = of.plan(Objective::balanced);
    EXPECT_LE(total(balanced.phases).peak.value(), of.M) << to_string(balanced);
    EXPECT_LE(words_of(balanced), 1.05 * words_of(fewest)) << to_string(balanced);
    if (words_of(fastest) <= 1.05 * words_of(fewest)) {
      EXPECT_EQ(balanced.blocks, fastest.blocks) << to_string(fastest);
    } else if (balanced.blocks != fewest.blocks) {
      ++between;
    }
  });
  EXPECT_GT(between, kSanitized ? 5 : 100);
}

// Allowing more words never makes tiles of scores that are narrower than 48 narrower by more than
// an eighth. A size may lose an eighth if that part would only fill the last lanes of a vector.
TEST(Balanced, WidensTiles) {
  const auto narrowest = [](const Blocks& blocks) {
    Index size = 48;
    for (const auto& [name, its] : blocks) {
      if (name.ends_with("Br") || name.ends_with("Bc")) {
        size = std::min(size, its);
      }
    }
    return size;
  };
  for (const char* const name :
       {"attention/rows", "forward/rows", "backward/rows", "gradients/rows-keys",
        "gradients/rows-keys-onepass", "backward/rows-onepass", "attention/rows-resident"}) {
    const TestedKernel kernel = tested_kernel(name);
    for (Index M = 1 << 13; M <= 1 << 19; M *= 2) {
      const auto blocks = [&](double share) {
        return kernel.kernel->blocks(kernel.problem({4096, 4096, 64}), M, Objective::balanced,
                                     share);
      };
      const Index fewest = narrowest(kernel.blocks({4096, 4096, 64}, M, Objective::words));
      EXPECT_GE(8 * narrowest(blocks(1.05)), 7 * fewest) << name << " " << M;
      EXPECT_GE(8 * narrowest(blocks(1.5)), 7 * narrowest(blocks(1.05))) << name << " " << M;
    }
  }
}

// Resident keys give their room to the keys that stream: they save less than 5% of the words here.
TEST(Balanced, StreamsMoreKeysThanStay) {
  const TestedKernel kernel = tested_kernel("attention/rows-resident");
  const Blocks blocks = kernel.blocks({4096, 4096, 64}, 1 << 16, Objective::balanced);
  EXPECT_EQ(blocks["resident"], 1);
  EXPECT_GE(blocks["Bc"], 32);
}

TEST(Balanced, NarrownessCountsEmptyLanes) {
  EXPECT_DOUBLE_EQ(narrowness({{"Br", 32}, {"Bc", 48}}), 1);
  EXPECT_DOUBLE_EQ(narrowness({{"Br", 16}, {"Bc", 1}}), (1 + 16) / 2.0);
  EXPECT_DOUBLE_EQ(narrowness({{"dQ.Br", 24}, {"dQ.Bc", 16}}), (4 / 3.0 + 1) / 2);
  EXPECT_DOUBLE_EQ(narrowness({{"B", 7}}), 1);
}

// The additional words go where tiles are narrowest: neither phase keeps tiles of 14 rows or less
// while the other has 32.
TEST(Balanced, SharesWordsAmongPhases) {
  const TestedKernel kernel = tested_kernel("gradients/rows-keys-onepass");
  const Blocks blocks = kernel.blocks({4096, 4096, 64}, 1 << 16, Objective::balanced);
  EXPECT_GT(std::min(blocks["dQ.Bc"], blocks["dKV.Br"]), 14);
}

// Each side of a tile is a multiple, or an extent. A side below one multiple is as large as with
// room for everything. The plan fits from the least M on and is refused below it. No side of a tile
// of scores can grow by one multiple alone and fit, up to its size in a plan without multiples.
TEST(Multiples, DivideBlocksThatFit) {
  const auto is_size = [](const std::string& name) {
    const std::string last = name.substr(name.rfind('.') + 1);
    return last.starts_with('B') || last == "rows" || last == "cols" || last == "depth" ||
           last == "piece";
  };
  for_each_case(kTrials, [&](const Case& of) {
    const Kernel& kernel = *of.kernel.kernel;
    const Problem problem = of.kernel.problem(of.shape);
    const Blocks whole = kernel.blocks(problem, Index{1} << 50, Objective::words);
    for (const Index multiple : {4, 16}) {
      Memory memory(of.M);
      memory.multiple = multiple;
      const Index least = kernel.least_M(problem, 1, multiple);
      memory.M = std::max(of.M, least);
      const Plan plan = kernel.plan(problem, memory, Objective::words);
      EXPECT_LE(total(plan.phases).peak.value(), memory.M) << to_string(plan);
      const Blocks any = kernel.blocks(problem, memory.M, Objective::words);
      for (const auto& [name, size] : plan.blocks) {
        if (!is_size(name)) {
          continue;
        }
        const Shape live = problem.live_part().shape;
        const bool is_extent = size == live.n || size == live.m || size == live.d;
        EXPECT_TRUE(size % multiple == 0 ||
                    (whole.contains(name) && size == whole[name] && (size < multiple || is_extent)))
            << to_string(plan);
        const bool of_scores = name.ends_with("Br") || name.ends_with("Bc");
        if (of_scores && any.contains(name) && size + multiple <= any[name]) {
          Blocks larger = plan.blocks;
          larger.set(name, size + multiple);
          EXPECT_GT(total(kernel.plan(problem, memory, larger).phases).peak.value(), memory.M)
              << to_string(plan) << ", " << name;
        }
      }
      EXPECT_LE(words_of(kernel.plan(problem, memory, Objective::balanced)), 1.05 * words_of(plan))
          << to_string(plan);
      if (least > 1) {
        memory.M = least - 1;
        EXPECT_THROW(static_cast<void>(kernel.plan(problem, memory, Objective::words)),
                     FastMemoryTooSmall)
            << to_string(plan);
      }
    }
  });
}

}  // namespace
}  // namespace redblue
