// Tests which trials are timed, with made-up caches and rates. Times themselves are not tested.

#include "runtime/run/tuning.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "runtime/run/mask_spec.hpp"
#include "runtime/text/sizes.hpp"

namespace redblue {
namespace {

Topology small_machine() {
  Topology topology;
  topology.source = "made up";
  topology.cores = {{0}, {1}};
  const std::uint64_t bytes[] = {8192, 65'536, 1 << 19};
  for (std::size_t level = 0; level < 3; ++level) {
    topology.caches[level] = {{.bytes = bytes[level], .line = 64, .ways = {}, .cores = {0, 1}}};
  }
  return topology;
}

Task task_of(Pass pass, const Shape& shape, const std::string& mask = "full", Index heads = 1) {
  Task task{.pass = pass};
  task.problem = all_kernel_names_of(pass).front().kernel->with_inputs(
      Problem(shape).with_mask(parse_mask(mask, shape, "mask")));
  task.heads = heads;
  return task;
}

// Rates by which all kernels take as long for a flop, but the kernel `slow` a million times as
// long.
Rates rates_with(const std::string& slow) {
  Rates rates{.origin = "made up"};
  for (const KernelName& name : kernel_names()) {
    rates.kernels.push_back({name.text(), {{0.01, name.text() == slow ? 1e-4 : 1e-10}}});
  }
  return rates;
}

const Tuning::Show kSilent = [](std::string_view) {};

TEST(Tuning, PlansAreDistinctAndFitTheirShare) {
  const Topology topology = small_machine();
  const Rates rates = rates_with("");
  for (const Index threads : {1, 2}) {
    const Tuning tuning(task_of(Pass::attention, {200, 200, 16}), threads, topology, rates);
    std::set<std::string> plans;
    for (const Trial& trial : tuning.trials()) {
      EXPECT_EQ(trial.plan.M,
                fast_memory(topology, trial.part, static_cast<std::size_t>(threads))->words);
      EXPECT_LE(total(trial.plan.phases).peak, Words(trial.plan.M));
      EXPECT_EQ(trial.team.workers, threads);
      EXPECT_TRUE(threads == 1 || find_kernel(trial.plan.kernel).schedule.split.has_value())
          << "two threads cannot share " << trial.plan.kernel;
      Plan alike = trial.plan;
      alike.M = 1;
      EXPECT_TRUE(plans.insert(to_string(alike)).second) << to_string(trial.plan);
    }
    EXPECT_GT(plans.size(), 5U);
    EXPECT_TRUE(std::ranges::is_sorted(tuning.trials(), {}, &Trial::predicted));
  }
}

TEST(Tuning, WhatIsPredictedTwiceAsSlowDoesNotRun) {
  const Topology topology = small_machine();
  const Rates rates = rates_with("attention/rows");
  Tuning tuning(task_of(Pass::attention, {64, 64, 8}), 1, topology, rates);
  tuning.run(0, kSilent);
  Index left_out = 0;
  for (const Trial& trial : tuning.trials()) {
    const bool slow = trial.plan.kernel == "attention/rows";
    left_out += slow ? 1 : 0;
    EXPECT_FALSE(slow && trial.timed());
  }
  EXPECT_GT(left_out, 0);
  EXPECT_TRUE(tuning.trials().front().timed());
  EXPECT_EQ(tuning.rounds(), 1) << "no time for a second";
}

// Each round times each trial once, until others are faster.
TEST(Tuning, RoundsAreInterleaved) {
  const Topology topology = small_machine();
  const Rates rates = rates_with("");
  Tuning tuning(task_of(Pass::gradients, {48, 48, 8}, "causal", 2), 1, topology, rates);
  std::vector<std::string> lines;
  tuning.run(60, [&](std::string_view line) { lines.emplace_back(line); });
  EXPECT_EQ(tuning.rounds(), Tuning::kRounds);
  EXPECT_TRUE(std::ranges::is_sorted(lines, {}, [](const std::string& line) {
    return line.substr(0, line.find(':'));
  })) << "a round ends before the next begins";
  std::size_t all = 0;
  for (const Trial& trial : tuning.trials()) {
    EXPECT_LE(std::ssize(trial.seconds), tuning.rounds());
    all = std::max(all, trial.seconds.size());
    if (!trial.timed()) {
      continue;
    }
    EXPECT_GT(trial.least(), 0);
    EXPECT_LE(trial.least(), trial.middle());
    EXPECT_GT(tuning.of_peak(trial), 0);
    const Trial* const forward = tuning.forward_of(trial);
    EXPECT_EQ(forward != nullptr, find_kernel(trial.plan.kernel).needs_forward());
    EXPECT_EQ(tuning.from_scratch(trial),
              trial.middle() + (forward == nullptr ? 0 : forward->middle()));
  }
  EXPECT_EQ(static_cast<Index>(all), Tuning::kRounds) << "the best one ran in each round";
}

TEST(Tuning, EndsWhenAsked) {
  const Topology topology = small_machine();
  const Rates rates = rates_with("");
  Tuning tuning(task_of(Pass::attention, {64, 64, 8}), 1, topology, rates);
  int runs = 0;
  EXPECT_THROW(tuning.run(60,
                          [&](std::string_view) {
                            if (++runs == 3) {
                              throw std::runtime_error("enough");
                            }
                          }),
               std::runtime_error);
  EXPECT_EQ(runs, 3);
}

TEST(Tuning, NothingToTry) {
  const Rates rates = rates_with("");
  EXPECT_THROW(Tuning(task_of(Pass::attention, {64, 64, 8}), 1, Topology(), rates),
               std::runtime_error);
  Topology tiny = small_machine();
  tiny.caches = {std::vector<Cache>{{.bytes = 8, .line = {}, .ways = {}, .cores = {0, 1}}}, {}, {}};
  EXPECT_THROW(Tuning(task_of(Pass::attention, {64, 64, 8}), 1, tiny, rates), FastMemoryTooSmall)
      << "M is one word";
}

}  // namespace
}  // namespace redblue
