// The time of a plan by rates made up for it: along a kernel's curve, beyond its ends, and for
// kernels that were not measured. The default rates are those of existing kernels.

#include "runtime/theory/rates.hpp"

#include <gtest/gtest.h>

#include "kernels/kernel.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

Plan plan(const char* kernel, Index words, Index flops, Blocks blocks = {}) {
  return {.kernel = kernel,
          .problem = {100, 100, 40},
          .M = 1000,
          .blocks = std::move(blocks),
          .phases = {{.path = "a", .reads = words, .writes = 0, .peak = 9, .flops = flops / 2},
                     {.path = "b", .reads = 0, .writes = words, .peak = 9, .flops = flops / 2}}};
}

const Rates kRates{.origin = "made up",
                   .granule = 16,
                   .kernels = {{"fast", {{0.1, 1}, {0.2, 3}}}, {"slow", {{0.1, 50}}}}};

TEST(Rates, BetweenTwoSamplesALine) {
  EXPECT_DOUBLE_EQ(seconds(plan("fast", 50, 1000), kRates), 1000 * 1);
  EXPECT_DOUBLE_EQ(seconds(plan("fast", 75, 1000), kRates), 1000 * 2);
  EXPECT_DOUBLE_EQ(seconds(plan("fast", 100, 1000), kRates), 1000 * 3);
}

TEST(Rates, BelowThemAFlopAndAboveAWordTakesAsLong) {
  EXPECT_DOUBLE_EQ(seconds(plan("fast", 1, 1000), kRates), 1000 * 1);
  EXPECT_DOUBLE_EQ(seconds(plan("fast", 1000, 1000), kRates), 10 * 1000 * 3);
  EXPECT_DOUBLE_EQ(seconds(plan("slow", 100, 1000), kRates), 2 * 1000 * 50);
}

TEST(Rates, WhoIsUnmeasuredTakesTheMedian) {
  EXPECT_TRUE(kRates.measured("slow"));
  EXPECT_FALSE(kRates.measured("new"));
  EXPECT_DOUBLE_EQ(seconds(plan("new", 75, 1000), kRates), 1000 * (2 + 75.) / 2);
}

// Pieces of 24 words take two granules of 16; of 40, the whole width, three.
TEST(Rates, SquareBlocksAskForWholeGranules) {
  EXPECT_DOUBLE_EQ(words_per_flop(plan("fast", 50, 1000), 16), 0.1);
  EXPECT_DOUBLE_EQ(words_per_flop(plan("fast", 50, 1000, {{"Br", 3}}), 16), 0.1);
  EXPECT_DOUBLE_EQ(words_per_flop(plan("fast", 50, 1000, {{"B", 32}}), 16), 0.1);
  EXPECT_DOUBLE_EQ(words_per_flop(plan("fast", 50, 1000, {{"B", 24}}), 16), 0.1 * 32 / 24);
  EXPECT_DOUBLE_EQ(words_per_flop(plan("fast", 50, 1000, {{"B", 90}}), 16), 0.1 * 48 / 40);
  EXPECT_DOUBLE_EQ(words_per_flop(plan("fast", 50, 1000, {{"B", 1}}), 16), 0.1 * 16);
}

TEST(Rates, SamplesComeInOrder) {
  KernelRates rates{"any", {}};
  for (const RateSample& sample : {RateSample{2, 20}, {1, 10}, {3, 30}, {2, 21}}) {
    add_sample(rates, sample);
  }
  EXPECT_EQ(rates.samples, (std::vector<RateSample>{{1, 10}, {2, 21}, {3, 30}}));
}

// Renaming a kernel must not leave it without rates, silently.
TEST(Rates, TheDefaultsAreOfTheKernelsThatThereAre) {
  EXPECT_EQ(default_rates().kernels.size(), tested_kernels().size());
  for (const auto& [kernel, samples] : default_rates().kernels) {
    EXPECT_EQ(tested_kernel(kernel).name, kernel);
    ASSERT_FALSE(samples.empty());
    for (std::size_t k = 0; k < samples.size(); ++k) {
      EXPECT_GT(samples[k].seconds_per_flop, 0);
      EXPECT_GT(samples[k].words_per_flop, k == 0 ? 0 : samples[k - 1].words_per_flop);
    }
  }
}

TEST(Rates, Median) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

}  // namespace
}  // namespace redblue
