// Tests plans and bounds for several levels of fast memory:
//
//   - The bounds of a level equal the bounds of one level with its M. The weighted bound is their
//     sum at the costs of the levels.
//   - The choices are the kernels that support levels, each with the words of its plan. The
//     weighted sum of the first is least, and no level moves fewer words than its bound.
//   - The blocks that the costs of words choose for a kernel have a weighted sum that is at most
//     the sum of the blocks that other costs choose.

#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

Memory levels(std::vector<Index> inner, Index M, std::vector<double> costs = {}) {
  Memory memory(M);
  memory.inner = std::move(inner);
  memory.word_costs = std::move(costs);
  return memory;
}

std::vector<Task> tasks() {
  std::vector<Task> all;
  const Memory two = levels({1200}, 9000);
  const Memory three = levels({900, 3000}, 20'000, {1, 4, 100});
  for (const Memory& memory : {two, three}) {
    for (const Pass pass : {Pass::forward, Pass::backward, Pass::attention}) {
      for (const Known known : {Known::nothing, Known::O_and_L}) {
        for (const Sharing sharing : {Sharing::none, Sharing::kv}) {
          all.push_back({.pass = pass,
                         .problem = Problem(700, 500, 16, sharing),
                         .memory = memory,
                         .known = known,
                         .heads = 3});
        }
      }
    }
    Task masked{.problem = Problem(300, 300, 16), .memory = memory};
    masked.problem.mask = Mask::causal(300, 300);
    all.push_back(masked);
  }
  return all;
}

TEST(LevelBounds, AreThoseOfOneLevelAtEachM) {
  for (const Task& task : tasks()) {
    const auto of_levels = bounds_of_levels(task);
    ASSERT_EQ(of_levels.size(), task.memory.inner.size() + 1);
    double sum = 0;
    for (std::size_t level = 0; level < of_levels.size(); ++level) {
      Task alone = task;
      alone.memory = level < task.memory.inner.size() ? task.memory.inner[level] : task.memory.M;
      const std::vector<Bound> expected = lower_bounds(alone);
      ASSERT_EQ(of_levels[level].size(), expected.size());
      for (std::size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(of_levels[level][k].name, expected[k].name);
        EXPECT_EQ(of_levels[level][k].words, expected[k].words);
      }
      const double cost = task.memory.word_costs.empty() ? static_cast<double>(alone.memory.M)
                                                         : task.memory.word_costs[level];
      sum += cost * static_cast<double>(largest(expected).words);
    }
    EXPECT_DOUBLE_EQ(weighted_bound(task.memory, of_levels), sum);
  }
}

TEST(LevelChoices, MoveTheWordsOfTheirPlansTheLeastFirst) {
  for (const Task& task : tasks()) {
    const std::vector<Choice> all = choices(task);
    ASSERT_FALSE(all.empty());
    for (const Choice& choice : all) {
      SCOPED_TRACE(to_string(choice.plan));
      EXPECT_TRUE(find_kernel(choice.plan.kernel).has_levels());
      ASSERT_EQ(choice.levels.size(), task.memory.levels());
      double sum = 0;
      for (std::size_t level = 0; level < choice.levels.size(); ++level) {
        const LevelChoice& of = choice.levels[level];
        const auto phases = [&](const Plan& plan) {
          return level < plan.inner.size() ? plan.inner[level].phases : plan.phases;
        };
        PhaseCost expected = total(phases(choice.plan));
        if (choice.forward) {
          const PhaseCost before = total(phases(*choice.forward));
          expected.reads += before.reads;
          expected.writes += before.writes;
        }
        EXPECT_EQ(of.reads, expected.reads * task.heads);
        EXPECT_EQ(of.words(), (expected.reads + expected.writes) * task.heads);
        EXPECT_LE(of.peak, Words(of.M));
        EXPECT_GE(of.words(), Words(of.bound.words));
        sum += task.memory.word_cost(level) * static_cast<double>(of.words().value());
      }
      EXPECT_EQ(choice.words, choice.levels.back().words());
      EXPECT_DOUBLE_EQ(*choice.weighted, sum);
      EXPECT_GE(*choice.weighted, *choice.weighted_bound);
      EXPECT_GE(*choice.weighted, *all.front().weighted);
    }
  }
}

TEST(LevelChoices, NameTheKernelsOfOneLevel) {
  const Task task{.problem = Problem(300, 300, 16), .memory = levels({1200}, 9000)};
  const std::vector<std::string> left_out = kernels_of_one_level(task);
  std::vector<std::string> listed;
  for (const Choice& choice : choices(task)) {
    listed.push_back(choice.plan.kernel);
  }
  Task flat = task;
  flat.memory = 9000;
  for (const Choice& choice : choices(flat)) {
    const auto among = [&](const std::vector<std::string>& names) {
      return std::ranges::find(names, choice.plan.kernel) != names.end();
    };
    EXPECT_NE(among(left_out), among(listed)) << choice.plan.kernel;
  }
}

// Among the blocks that several costs choose, the blocks of each cost are the best for it. The
// search may stop at a local best, so the test allows 1%.
TEST(LevelBlocks, AreTheBestForTheirCosts) {
  const Problem problem(3000, 3000, 32);
  const std::vector<std::vector<double>> costs = {{},       {1, 1},   {1, 4},  {1, 20},
                                                  {1, 100}, {1, 500}, {20, 1}, {500, 1}};
  for (const char* name : {"forward/rows", "backward/rows", "attention/rows"}) {
    std::vector<Plan> plans;
    for (const std::vector<double>& of : costs) {
      plans.push_back(find_kernel(name).plan(problem, levels({2048}, 32'768, of)));
    }
    for (std::size_t k = 0; k < costs.size(); ++k) {
      const Memory priced = levels({2048}, 32'768, costs[k]);
      const double own = weighted_words(plans[k], priced);
      for (const Plan& other : plans) {
        EXPECT_LE(own, 1.01 * weighted_words(other, priced)) << name << " " << k;
      }
    }
  }
}

// An exchange of two inequalities. Let blocks A and B be best for costs (1, b) and (1, c) with b <
// c. Then at the second level B moves no more words than A, and at the first level A no more than
// B.
TEST(LevelBlocks, ADearerLevelMovesNoMoreWords) {
  const Problem problem(3000, 3000, 32);
  for (const char* name : {"forward/rows", "backward/rows", "attention/rows"}) {
    double before = 0;
    for (const double cost : {0.01, 1.0, 16.0, 256.0, 4096.0}) {
      const Plan plan = find_kernel(name).plan(problem, levels({2048}, 32'768, {1, cost}));
      const PhaseCost all = total(plan.phases);
      const auto words = static_cast<double>((all.reads + all.writes).value());
      EXPECT_TRUE(before == 0 || words <= 1.001 * before) << name << " " << cost;
      before = words;
    }
  }
}

TEST(LevelTimes, AreWordsAtWhatTheyTake) {
  Rates rates = default_rates();
  rates.words = {{"L1", 4096, 0.1}, {"L2", 65'536, 0.5}, {"memory", 0, 2.0}};
  // The 900 words come from the level of 3000 words (12,000 bytes, L2). These come from the level
  // of 20,000 words (80,000 bytes, memory), and those from memory.
  const Memory memory = levels({900, 3000}, 20'000);
  EXPECT_EQ(word_nanoseconds(rates, memory), (std::vector<double>{0.5, 2.0, 2.0}));
  EXPECT_EQ(word_nanoseconds(rates, levels({10}, 1024)), (std::vector<double>{0.1, 2.0}));
  const Task task{
      .problem = Problem(700, 500, 16), .memory = memory, .known = Known::nothing, .heads = 2};
  const std::vector<Choice> timed = choices(task, {.objective = Objective::time, .rates = &rates});
  ASSERT_FALSE(timed.empty());
  for (const Choice& choice : timed) {
    const auto nanoseconds = [&](std::size_t level, double each) {
      return each * static_cast<double>(choice.levels[level].words().value());
    };
    EXPECT_NEAR(*choice.seconds,
                1e-9 * (nanoseconds(0, 0.5) + nanoseconds(1, 2.0) + nanoseconds(2, 2.0)),
                1e-9 * *choice.seconds);
    EXPECT_GE(*choice.seconds, *timed.front().seconds);
  }
  rates.words.clear();
  for (const Choice& choice : choices(task, {.objective = Objective::time, .rates = &rates})) {
    EXPECT_EQ(choice.seconds, std::nullopt) << "what a word takes is not known";
  }
}

}  // namespace
}  // namespace redblue
