// Clustered queries: queries in an order in which each group of rows meets few keys.
//
//   - The order is a permutation of all queries, and the mask keeps their pairs. It depends on the
//     keys that queries meet, not on positions: reordered rows give the same mask and words.
//   - A kernel moves the words of its formulas and returns the same results in any order. A plan
//     never moves more words than a plan with rows in their original order.
//   - The note on masks states key reads for groups of 81 queries: 28.6 times fewer for strided
//     rows, and 12.3 times fewer for the rows of a shuffled window.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/masked.hpp"
#include "memsim/errors.hpp"
#include "memsim/sanitized.hpp"
#include "runtime/report/nest_report.hpp"
#include "tests/support/print.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

std::vector<Index> shuffled(Index n, unsigned seed) {
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::shuffle(order, std::mt19937(seed));
  return order;
}

// Returns a mask with its rows in another order.
Mask with_rows(const Mask& mask, const std::vector<Index>& order) {
  std::vector<MaskRun> runs;
  for (const Index row : order) {
    MaskRun& run = runs.emplace_back(MaskRun{{std::ssize(runs), std::ssize(runs) + 1}, {}});
    for (const Range keys : mask.keys({row, row + 1})) {
      run.live.push_back({{keys.begin}, {keys.end}});
    }
  }
  return {mask.queries(), mask.keys(), std::move(runs)};
}

double key_reads(const Mask& mask, Index size) {
  return static_cast<double>(mask.met_by_groups({0, mask.queries()}, size).keys.value());
}

double gain(const Mask& mask, Index size) {
  return key_reads(mask, size) / key_reads(mask.clustered(size)->mask, size);
}

Mask random_blocks(Index rows, Index side, double share, unsigned seed) {
  std::mt19937 random(seed);
  BlockPattern blocks{rows * side, rows * side, side, side, {0}, {}};
  for (Index row = 0; row < rows; ++row) {
    for (Index col = 0; col < rows; ++col) {
      if (static_cast<double>(random() % 1000) < 1000 * share) {
        blocks.columns.push_back(col);
      }
    }
    blocks.offsets.push_back(std::ssize(blocks.columns));
  }
  return Mask::pattern(blocks);
}

Mask strided(Index n, Index step) {
  std::vector<MaskRun> runs;
  for (Index i = 0; i < n; ++i) {
    MaskRun& run = runs.emplace_back(MaskRun{{i, i + 1}, {}});
    for (Index j = i % step; j < n; j += step) {
      run.live.push_back({{j}, {j + 1}});
    }
  }
  return {n, n, std::move(runs)};
}

TEST(Clustered, IsAnOrderOfAllQueries) {
  RandomMasks random(31);
  for (int k = 0; k < 300; ++k) {
    const Index n = random.any(1, 60);
    const Mask mask = random.expression(n, random.any(1, 60)).mask;
    const Index size = random.any(1, n + 3);
    const auto clustered = mask.clustered(size);
    EXPECT_EQ(clustered->mask.pairs({0, n}, {0, mask.keys()}),
              mask.pairs({0, n}, {0, mask.keys()}));
    std::vector<Index> order;
    for (const Range range : clustered->order) {
      for (Index i = range.begin; i < range.end; ++i) {
        const Index at = std::ssize(order);
        EXPECT_EQ(clustered->mask.keys({at, at + 1}), mask.keys({i, i + 1}));
        order.push_back(i);
      }
    }
    std::ranges::sort(order);
    EXPECT_EQ(order.size(), static_cast<std::size_t>(n));
    EXPECT_TRUE(std::adjacent_find(order.begin(), order.end()) == order.end());
    EXPECT_EQ(mask.clustered(size), clustered) << "made once";

    const Mask same = with_rows(mask, shuffled(n, static_cast<unsigned>(k)));
    EXPECT_EQ(same.clustered(size)->mask, clustered->mask) << "groups of " << size;
  }
}

// If groups are as large as classes of equal rows, each group is one class and reads each of its
// keys once.
TEST(Clustered, EqualRowsAreOneGroup) {
  for (const Index size : {1, 7, 16, 33}) {
    const Index classes = 12;
    std::vector<MaskRun> runs;
    for (const Index row : shuffled(classes * size, 3)) {
      const Index begin = 5 * (row % classes);
      runs.push_back({{std::ssize(runs), std::ssize(runs) + 1}, {{{begin}, {begin + 9}}}});
    }
    const Mask mask(classes * size, 5 * classes + 4, std::move(runs));
    EXPECT_EQ(key_reads(mask.clustered(size)->mask, size), 9.0 * static_cast<double>(classes));
  }
}

TEST(Clustered, FewerKeysAreRead) {
  const Index n = 4096, size = 81;
  EXPECT_NEAR(gain(strided(n, 64), size), 28.6, 0.02 * 28.6);
  EXPECT_NEAR(gain(with_rows(Mask::window(n, n, 128, 128), shuffled(n, 5)), size), 12.3,
              0.02 * 12.3);
  // Layouts of random blocks, with groups of some rows of blocks.
  for (const unsigned seed : {1U, 2U, 3U}) {
    for (const double share : {0.25, 0.1}) {
      for (const Index rows : {81, 128, 256}) {
        const double less = gain(random_blocks(64, 64, share, seed), rows);
        EXPECT_GT(less, 1.05) << share << ", groups of " << rows;
        EXPECT_LT(less, 1.5) << share << ", groups of " << rows;
      }
    }
  }
}

// Masks of few formulas keep their order, however large they are.
TEST(Clustered, FormulasAreNot) {
  const Index n = 10'000'000;
  const Mask formula =
      (Mask::window(n, n, 512, 0) | Mask::global(n, n, {0, 4})) & Mask::causal(n, n);
  EXPECT_FALSE(formula.irregular());
  EXPECT_TRUE(strided(512, 64).irregular() || strided(1024, 64).irregular());
  EXPECT_FALSE(formula.clusters_soon());
}

std::vector<std::string> clustered_names() {
  std::vector<std::string> names;
  for (const TestedKernel& kernel : tested_kernels_of_any_shape()) {  // a source keeps its place
    if (kernel.kernel->takes_masks &&
        has_row_block(kernel.blocks({9, 9, 3}, 1 << 16, Objective::words))) {
      names.push_back(kernel.name);
    }
  }
  return names;
}

class ClusteredKernel : public testing::TestWithParam<std::string> {};

// Groups of any size, and blocks that were fitted to rows in their original order.
TEST_P(ClusteredKernel, MovesAndReturnsWhatItSays) {
  RandomMasks random(32);
  for (int k = 0; k < (kSanitized ? 60 : 400) && !HasFailure(); ++k) {
    const Shape shape{random.any(1, 40), random.any(1, 40), random.any(1, 9)};
    TestedKernel kernel = tested_kernel(GetParam());
    kernel.mask = random.expression(shape.n, shape.m).mask;
    if (kernel.mask.full()) {
      continue;
    }
    const Index M = kernel.least_M(shape) + random.any(0, 40 * (shape.d + 4));
    Blocks blocks = kernel.blocks(shape, M, Objective::words);
    if (!blocks.contains(kClustered)) {
      blocks.add(std::string(kClustered), 1);
    }
    blocks.set(kClustered, random.any(1, shape.n + 2));
    const Index peak = total(kernel.cost(shape, blocks)).peak.value();
    const Plan plan = kernel.plan(shape, std::max(M, peak), blocks);
    SCOPED_TRACE(to_string(plan) + " case " + std::to_string(k));
    const TestProblem problem = make_problem(kernel, shape, 1 + static_cast<std::uint64_t>(k), 2);
    const Result result = run_kernel(kernel, plan, problem);
    for (const PhaseCost& phase : plan.phases) {
      const auto found = std::ranges::find(result.phases, phase.path, &PhaseCounts::path);
      if (found == result.phases.end()) {
        EXPECT_EQ(phase.reads + phase.writes, Words(0)) << phase.path;
        continue;
      }
      EXPECT_EQ(found->io.reads, phase.reads.value()) << phase.path;
      EXPECT_EQ(found->io.writes, phase.writes.value()) << phase.path;
      EXPECT_LE(found->peak, phase.peak.value()) << phase.path;
    }
    Words moved;
    for (const NestLine& line : report_nest(plan).lines) {
      moved += line.reads + line.writes;
    }
    const PhaseCost all = total(plan.phases);
    EXPECT_EQ(moved, all.reads + all.writes);
    const Verified verdict = verify(kernel, plan, problem, result.returned);
    EXPECT_TRUE(verdict.ok) << verdict.text;
  }
}

// Rows in another order move the same words in every phase.
TEST_P(ClusteredKernel, RowsMayBeInAnyOrder) {
  RandomMasks random(33);
  for (int k = 0; k < 40; ++k) {
    const Shape shape{random.any(2, 40), random.any(1, 40), 3};
    TestedKernel kernel = tested_kernel(GetParam());
    kernel.mask = random.expression(shape.n, shape.m).mask;
    if (kernel.mask.full()) {
      continue;
    }
    kernel.mask = Mask(shape.n, shape.m, kernel.mask.runs());  // without a file's indices
    Blocks blocks = kernel.blocks(shape, kernel.least_M(shape) + 300, Objective::words);
    if (!blocks.contains(kClustered)) {
      blocks.add(std::string(kClustered), 1);
    }
    blocks.set(kClustered, random.any(2, shape.n));
    const std::vector<PhaseCost> before = kernel.cost(shape, blocks);
    kernel.mask = with_rows(kernel.mask, shuffled(shape.n, static_cast<unsigned>(k)));
    if (kernel.mask.called("").full()) {
      continue;
    }
    const std::vector<PhaseCost> after = kernel.cost(shape, blocks);
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t phase = 0; phase < before.size(); ++phase) {
      EXPECT_EQ(before[phase].reads, after[phase].reads) << before[phase].path;
      EXPECT_EQ(before[phase].writes, after[phase].writes) << before[phase].path;
      EXPECT_EQ(before[phase].peak, after[phase].peak) << before[phase].path;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, ClusteredKernel, testing::ValuesIn(clustered_names()),
                         [](const auto& tested) { return test_name(tested.param); });

// No fitting row block that cuts the rows evenly, in their original order, moves fewer words.
TEST(ClusteredPlans, NeverMoveMore) {
  RandomMasks random(34);
  Index clustered = 0;
  for (int k = 0; k < 400; ++k) {
    const Shape shape{random.any(1, 60), random.any(1, 60), random.any(1, 6)};
    TestedKernel kernel = tested_kernel(k % 2 == 0 ? "forward/rows" : "backward/rows");
    kernel.mask = random.blocks(shape.n, shape.m, false).mask;
    const Index M = kernel.least_M(shape) + random.any(0, 200 * shape.d);
    const Plan plan = kernel.plan(shape, M);
    const auto words = [](const Plan& of) {
      const PhaseCost all = total(of.phases);
      return all.reads + all.writes;
    };
    for (Index r = 1; r <= shape.n; ++r) {
      const Index live = std::max<Index>(size_of(kernel.mask.live_queries()), 1);
      const Plan other =
          kernel.plan(shape, M, {{"Br", even(live, std::min(r, live))}, {"Bc", 1}, {"Bw", 1}});
      EXPECT_TRUE(total(other.phases).peak > Words(M) || words(plan) <= words(other))
          << to_string(plan) << " and " << to_string(other);
    }
    clustered += plan.blocks.contains(kClustered) ? 1 : 0;
  }
  EXPECT_GT(clustered, 20);
}

TEST(ClusteredPlans, OfStridedRows) {
  TestedKernel kernel = tested_kernel("attention/rows");
  const Shape shape{1024, 1024, 16};
  kernel.mask = strided(1024, 32);
  const Plan plan = kernel.plan(shape, 4096);
  ASSERT_TRUE(plan.blocks.contains(kClustered)) << to_string(plan);
  EXPECT_EQ(plan.blocks["Br"] % 32, 0) << to_string(plan);
  // Each key is read once for its 32 queries.
  EXPECT_EQ(total(plan.phases).reads, Words(16) * (1024 + 2 * 1024));
}

TEST(ClusteredPlans, NeedAMask) {
  const TestedKernel kernel = tested_kernel("attention/rows");
  EXPECT_THROW(
      static_cast<void>(kernel.plan({8, 8, 2}, 4096, {{"Br", 4}, {"Bc", 2}, {"clustered", 4}})),
      ShapeMismatch);
}

}  // namespace
}  // namespace redblue
