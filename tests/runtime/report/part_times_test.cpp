// Tests whether a report says that the traffic matters, with made-up speeds.

#include "runtime/report/part_times.hpp"

#include <gtest/gtest.h>

#include "runtime/text/description.hpp"

namespace redblue {
namespace {

Plan plan_of(const char* kernel, const Problem& problem) {
  return find_kernel(kernel).plan(problem, 2000);
}

// A word takes 1 ns from L1, 10 ns from memory; a core computes 1 GF/s and 0.1 G/s of exp.
Rates rates() {
  Rates rates;
  rates.origin = "calibrated by hand";
  rates.words = {{"L1", 32'768, 1}, {"memory", 0, 10}};
  rates.core = CoreSpeed{1e9, 1e8};
  return rates;
}

TEST(PartTimes, AreCountsOverSpeeds) {
  const Work work{.moved = {{1000}}, .flops = 4e6, .exps = 5e5, .workers = 1};
  const PartTimes times = *part_times(work, rates(), 8192);
  EXPECT_DOUBLE_EQ(times.words, 1e-5);
  EXPECT_DOUBLE_EQ(times.flops, 4e-3);
  EXPECT_DOUBLE_EQ(*times.exps, 5e-3);
  EXPECT_EQ(times.from, "calibrated by hand");
}

// Workers share flops and exp. The bandwidth belongs to one core.
TEST(PartTimes, OfTwoWorkers) {
  const Work work{.moved = {{1000}}, .flops = 4e6, .exps = 5e5, .workers = 2};
  const PartTimes times = *part_times(work, rates(), 8192);
  EXPECT_DOUBLE_EQ(times.words, 1e-5);
  EXPECT_DOUBLE_EQ(times.flops, 2e-3);
  EXPECT_DOUBLE_EQ(*times.exps, 2.5e-3);
}

// Words of the inner level come from L1, which holds the next one; the slower level counts. Words
// of two bytes take half the time.
TEST(PartTimes, TheSlowestLevelCounts) {
  Memory memory(8192);
  memory.inner = {512};
  const auto words = [&](std::vector<Index> moved, Index bytes) {
    return part_times({.moved = {std::move(moved), bytes}}, rates(), memory)->words;
  };
  EXPECT_DOUBLE_EQ(words({3000, 200}, 4), 3000e-9);
  EXPECT_DOUBLE_EQ(words({3000, 400}, 4), 4000e-9);
  EXPECT_DOUBLE_EQ(words({3000, 400}, 2), 2000e-9);
}

TEST(PartTimes, OfADevice) {
  Device device{.name = "mine", .source = "a manual"};
  device.levels = {{.name = "L1", .bytes = 4096, .bytes_per_second = 4e9}};
  const Work work{.moved = {{1000}}, .flops = 4e6, .exps = 5e5, .workers = 2};
  EXPECT_FALSE(part_times(work, device)) << "its flops are not known";
  device.flops_per_second = 1e9;
  const PartTimes times = *part_times(work, device);
  EXPECT_DOUBLE_EQ(times.words, 1e-6);
  EXPECT_DOUBLE_EQ(times.flops, 2e-3);
  EXPECT_FALSE(times.exps);
  device.exps_per_second = 1e8;
  EXPECT_DOUBLE_EQ(*part_times(work, device)->exps, 2.5e-3);
  device.levels[0].bytes_per_second.reset();
  EXPECT_FALSE(part_times(work, device)) << "its bandwidth is not known";
}

// A calibration does not hold for another device.
TEST(PartTimes, SpeedsAreThoseOfTheMachineInQuestion) {
  const Work work{.moved = {{1000}}, .flops = 4e6};
  Device device{.name = "mine", .source = "a manual"};
  device.levels = {{.name = "L1", .bytes = 4096}};
  EXPECT_FALSE(part_times(work, device, rates(), 1024));
  EXPECT_TRUE(part_times(work, std::nullopt, rates(), 1024));
  EXPECT_FALSE(part_times(work, std::nullopt, std::nullopt, 1024));
  device.name = "this";
  EXPECT_TRUE(part_times(work, device, rates(), 1024));
  Rates older = rates();
  older.core.reset();
  EXPECT_FALSE(part_times(work, std::nullopt, older, 1024));
}

// A kernel that computes p twice has two exponentials for each live pair.
TEST(PartTimes, OneExponentialForEachLivePair) {
  const auto exps = [](const char* kernel, const Problem& problem, Index heads = 1) {
    Work work;
    add_operations(work, plan_of(kernel, problem), heads);
    return work.exps;
  };
  const Problem all(Shape{20, 30, 4});
  const Problem causal = all.with_mask(Mask::causal(20, 30));
  EXPECT_EQ(exps("attention/rows", all), 20 * 30);
  EXPECT_EQ(exps("attention/rows", all, 3), 3 * 20 * 30);
  EXPECT_EQ(exps("attention/rows", causal), 20 * 10 + 20 * 21 / 2);
  EXPECT_EQ(exps("backward/rows", all), 20 * 30);
  EXPECT_EQ(exps("gradients/flash", all), 20 * 30);
  EXPECT_EQ(exps("gradients/rows-keys", all), 2 * 20 * 30);
  EXPECT_EQ(exps("matmul/blocked", all), 0);
  Problem relu = all;
  relu.activation = Activation::relu;
  EXPECT_EQ(exps("attention/rows", relu), 0);
}

TEST(PartTimes, TheLineNamesTheLongestPart) {
  const auto line = [](double words, double flops, std::optional<double> exps) {
    return to_table(describe(
        PartTimes{.words = words, .flops = flops, .exps = exps, .from = "calibrated by hand"}));
  };
  EXPECT_EQ(line(1e-3, 0.0123456, 2e-3),
            "alone, words take 1 ms, flops 12.3 ms, exp 2 ms (calibrated by hand): the flops "
            "dominate\n");
  EXPECT_NE(line(1, 0.5, 0.9).find(": the traffic dominates"), std::string::npos);
  EXPECT_NE(line(1, 0.5, 1.1).find(": exp dominates"), std::string::npos);
  EXPECT_NE(line(1, 0.5, std::nullopt).find("exp an unknown time"), std::string::npos);
}

}  // namespace
}  // namespace redblue
