// Tests the planner against all its choices. Its first choice moves no more words than any kernel
// that solves the task and fits, and no fewer than the bound. A run of it moves the words of the
// plan within M, and its result is right.

#include "runtime/theory/planner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "kernels/balanced.hpp"
#include "memsim/errors.hpp"
#include "memsim/sanitized.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

Index io(const Plan& plan) {
  const PhaseCost cost = total(plan.phases);
  return (cost.reads + cost.writes).value();
}

// Returns the words of a kernel for this task, by the rules of planner.hpp written again. Returns
// the largest Index if the kernel does not solve the task or does not fit.
Index words_for(const TestedKernel& kernel, const Task& task, Index forward) {
  constexpr Index kNever = std::numeric_limits<Index>::max();
  const bool solves = kernel.name.starts_with(
      task.pass == Pass::product ? "matmul/" : std::string(to_string(task.pass)) + "/");
  const bool makes_forward = takes(kernel, "O") && task.known == Known::nothing;
  const bool one_source =
      (takes(kernel, "A2") && !takes(kernel, "A3")) || (takes(kernel, "K") && !takes(kernel, "V"));
  if (!solves || kernel.sharing == Sharing::self ||
      (one_source && task.problem.sharing == Sharing::none) ||
      task.memory.M < kernel.least_M(task.problem.shape) || (makes_forward && forward == kNever)) {
    return kNever;
  }
  return io(kernel.plan(task.problem.shape, task.memory.M)) + (makes_forward ? forward : 0);
}

Index fewest(const Task& task) {
  Index forward = 0;
  if (is_backward(task.pass)) {
    Task before = task;
    before.pass = task.pass == Pass::gradients ? Pass::attention : Pass::forward;
    forward = fewest(before);
  }
  Index least = std::numeric_limits<Index>::max();
  for (const TestedKernel& kernel : tested_kernels()) {
    least = std::min(least, words_for(kernel, task, forward));
  }
  return least;
}

Task random_task(std::mt19937_64& random, double largest) {
  const auto size = [&](double most) {  // of any magnitude
    std::uniform_real_distribution<double> exponent(0, std::log(most));
    return static_cast<Index>(std::exp(exponent(random)));
  };
  constexpr Pass kPlanned[] = {Pass::product, Pass::forward, Pass::backward, Pass::attention,
                               Pass::gradients};
  return {.pass = kPlanned[random() % 5],
          .problem = {size(largest), size(largest), size(std::sqrt(largest)),
                      random() % 2 == 0 ? Sharing::none : Sharing::kv},
          .memory = 1 + size(largest * largest),
          .known = random() % 2 == 0 ? Known::nothing : Known::O_and_L};
}

TEST(Planner, ChoosesFewestWordsAboveTheBound) {
  std::mt19937_64 random(4);
  int planned = 0;
  for (int trial = 0; trial < (kSanitized ? 2000 : 10'000); ++trial) {
    const Task task = random_task(random, 3000);
    const std::vector<Choice> found = choices(task);
    const Index least = fewest(task);
    ASSERT_EQ(found.empty(), least == std::numeric_limits<Index>::max());
    if (found.empty()) {
      continue;
    }
    ++planned;
    const Choice& best = found.front();
    EXPECT_EQ(best.words.value(), least) << to_string(best.plan);
    EXPECT_LE(total(best.plan.phases).peak.value(), task.memory.M) << to_string(best.plan);
    EXPECT_LE(largest(lower_bounds(task), {.sharing = task.problem.sharing}).words,
              best.words.value())
        << to_string(best.plan);
    EXPECT_TRUE(std::ranges::is_sorted(found, {}, &Choice::words)) << to_string(best.plan);
  }
  EXPECT_GT(planned, kSanitized ? 1600 : 8000);
}

TEST(Planner, WhatItChoseMovesThatAndIsRight) {
  std::mt19937_64 random(5);
  int runs = 0;
  for (int trial = 0; runs < 300; ++trial) {
    const Task task = random_task(random, 80);
    const std::vector<Choice> found = choices(task);
    if (found.empty()) {
      continue;
    }
    ++runs;
    const Choice& best = found.front();
    Index moved = 0;
    for (const Plan& plan :
         best.forward ? std::vector{*best.forward, best.plan} : std::vector{best.plan}) {
      const TestedKernel kernel = tested_kernel(spelled(plan));
      const TestProblem problem =
          make_problem(kernel, plan.problem.shape, static_cast<std::uint64_t>(trial));
      const Result result = run_kernel(kernel, plan, problem);
      moved += result.all.io.io();
      EXPECT_LE(result.all.peak, task.memory.M) << to_string(plan);
      EXPECT_EQ(result.live, 0) << to_string(plan);
      const Verified verdict = verify(kernel, plan, problem, result.returned);
      EXPECT_TRUE(verdict.ok) << to_string(plan) << ": " << verdict.text;
    }
    EXPECT_EQ(moved, best.words.value()) << to_string(best.plan);
  }
}

// M goes from d^2 / 8 to 8 d^2 in 40 steps by 64^(1/39) = 1.11, over all changes of regime. The
// words never rise. They fall no faster than a schedule of one regime, 1 / (M - 2 d^2) at 6 d^2.
TEST(Planner, WordsFallWithMAndDoNotJump) {
  for (const Known known : {Known::nothing, Known::O_and_L}) {
    for (const Index d : {Index{64}, Index{128}, Index{256}}) {
      double before = 0;
      for (int step = 0; step < 40; ++step) {
        const double M = static_cast<double>(d * d) / 8 * std::pow(64, step / 39.0);
        const Task task{.pass = Pass::backward,
                        .problem = {4096, 4096, d},
                        .memory = std::llround(M),
                        .known = known};
        const auto words = static_cast<double>(choices(task).front().words.value());
        if (before > 0) {
          EXPECT_LE(words, before) << "d = " << d << ", M = " << task.memory.M;
          EXPECT_GE(words, 0.82 * before) << "d = " << d << ", M = " << task.memory.M;
        }
        before = words;
      }
    }
  }
}

// Near the end of the range, each word moves once if X, Y, g and the keys fit. They share fast
// memory with a few queries, or with one row block and its resident A1_I.
TEST(Planner, MovesEachWordOnceWhereThatFits) {
  const Task task{.problem = {564, 564, 64}, .memory = 201543, .known = Known::O_and_L};
  const std::vector<Choice> found = choices(task);
  EXPECT_EQ(found.front().words.value(), 156'672);
  EXPECT_EQ(found.front().words.value(), found.front().bound.words);
  for (const char* const name : {"backward/rows-onepass", "backward/rows-resident"}) {
    const auto choice =
        std::ranges::find(found, name, [](const Choice& c) { return c.plan.kernel; });
    EXPECT_EQ(choice->words.value(), 156'672) << to_string(choice->plan);
  }
  // This holds from the M that X, Y, g, the keys and one query need, for any given and shared
  // operands.
  for (const auto& [n, m, d] :
       {Shape{564, 564, 64}, Shape{1000, 1000, 8}, Shape{1000, 300, 33}, Shape{300, 1000, 33}}) {
    for (const Sharing sharing : {Sharing::none, Sharing::kv}) {
      const Index keys = (sharing == Sharing::none ? 2 : 1) * m * d;
      for (const Known known : {Known::nothing, Known::O_and_L}) {
        const Task backward{.problem = {n, m, d, sharing},
                            .memory = keys + 3 * d * d + 5 * d + 3 + 4,
                            .known = known};
        EXPECT_EQ(choices(backward).front().words.value(), 2 * n * d + keys + 3 * d * d);
      }
      const Task forward{.pass = Pass::forward,
                         .problem = {n, m, d, sharing},
                         .memory = keys + 2 * d * d + 2 * d + 2 + 2};
      EXPECT_EQ(choices(forward).front().words.value(), 2 * n * d + n + keys + 2 * d * d);
    }
  }
}

// Two plans that would move fewer words without a safe softmax. They lack a word for each row, the
// maximum, and L for the q phase of tiles.
TEST(Planner, ChargesTheMaximaOfRows) {
  {
    const Shape shape{6027, 6027, 64};
    constexpr Index kM = 43541;
    const Plan best =
        choices({.problem = Problem(shape), .memory = kM, .known = Known::nothing}).front().plan;
    EXPECT_EQ(best.kernel, "backward/rows-onepass");
    EXPECT_EQ(best.blocks["Br"], 163);
    EXPECT_EQ(io(best), 30'303'168);
    const Plan fewer =
        tested_kernel(best.kernel).plan(shape, kM, {{"Br", 168}, {"Bc", 1}, {"Bw", 1}});
    EXPECT_EQ(io(fewer), 29'515'328);
    // The peak has S, G, U and Z, the maximum, sum and mean of each row, two keys, and four strips
    // of 8 queries and one key.
    constexpr Index kPeak = 4 * 168 * 64 + 3 * 168 + 2 * 64 + 4 * 8;
    EXPECT_EQ(total(fewer.phases).peak.value(), kPeak);
    // Without the maxima, and with two words instead of strips, it would fit. With them it does not
    // fit, even next to A2_j alone.
    EXPECT_EQ(kPeak - 168 - 4 * 8 + 2, 43'474);
    EXPECT_GT(kPeak - 4 * 8 - 64, kM);
  }
  {
    const Shape shape{4648, 4648, 33};
    constexpr Index kM = 532;
    const Plan best =
        choices({.problem = Problem(shape), .memory = kM, .known = Known::nothing}).front().plan;
    EXPECT_EQ(best.kernel, "backward/tiles-sq");
    EXPECT_EQ(io(best), 263'117'251);
    Blocks blocks = best.blocks;
    for (const char* const phase : {"s", "q"}) {
      EXPECT_EQ(blocks[std::string(phase) + ".rows"], 14);
      blocks.set(std::string(phase) + ".rows", 15);
      blocks.set(std::string(phase) + ".cols", 1);
      blocks.set(std::string(phase) + ".piece", 1);
    }
    const Plan fewer = tested_kernel(best.kernel).plan(shape, kM, blocks);
    // S or dO, two words for each row and a score of each, and one word that streams. If e were
    // stored without a safe softmax, a row would need one word, and q would not read L.
    for (const char* const phase : {"s", "q"}) {
      const auto cost = std::ranges::find(fewer.phases, phase, &PhaseCost::path);
      EXPECT_EQ(cost->peak.value(), 15 * 33 + 2 * 15 + 15 + 1);
      EXPECT_EQ(cost->peak.value() - 15, 526);
    }
    EXPECT_EQ(io(fewer) - shape.n, 256'363'707);
  }
}

// Two row blocks in fast memory move at most 5 percent more than any algorithm must. If everything
// fits, each word moves once.
TEST(Planner, ComesNearTheBound) {
  const Task task{.problem = {1 << 20, 1 << 20, 64}, .memory = 1 << 20};
  const Index bound = largest(lower_bounds(task)).words;
  EXPECT_LE(static_cast<double>(choices(task).front().words.value()),
            1.05 * static_cast<double>(bound));
  const Task small{.problem = {16, 16, 8}, .memory = 4096};
  EXPECT_EQ(choices(small).front().words.value(), largest(lower_bounds(small)).words);
}

// The same kernels as for words, each with its blocks of least time, in the order of the rates. A
// kernel that needs O and L follows the forward kernel that comes first.
TEST(Planner, LeastTimeByTheRates) {
  const Rates& rates = default_rates();
  std::mt19937_64 random(6);
  for (int trial = 0; trial < (kSanitized ? 200 : 1000); ++trial) {
    const Task task = random_task(random, 3000);
    const std::vector<Choice> found =
        choices(task, {.objective = Objective::time, .rates = &rates});
    EXPECT_EQ(found.size(), choices(task).size());
    EXPECT_TRUE(std::ranges::is_sorted(found, {}, &Choice::seconds));
    Task before = task;
    before.pass = forward_of(task.pass);
    const std::vector<Choice> makers =
        choices(before, {.objective = Objective::time, .rates = &rates});
    for (const Choice& choice : found) {
      const Plan& plan = choice.plan;
      EXPECT_EQ(
          plan.blocks,
          tested_kernel(spelled(plan)).blocks(task.problem.shape, task.memory.M, Objective::time));
      EXPECT_LE(total(plan.phases).peak.value(), task.memory.M) << to_string(plan);
      double expected = seconds(plan, rates);
      Index words = io(plan);
      if (choice.forward) {
        EXPECT_EQ(choice.forward->kernel, makers.front().plan.kernel);
        expected += *makers.front().seconds;
        words += io(*choice.forward);
      }
      EXPECT_DOUBLE_EQ(*choice.seconds, expected) << to_string(plan);
      EXPECT_EQ(choice.words.value(), words) << to_string(plan);
    }
  }
}

// With `balanced`, the choices with at most 5% more words than the fewest come first, the fastest
// in front. Each has the words of its plan, and the others follow. The kernels are the same as for
// words, and the forward pass is balanced, too. More words are allowed if this makes wide blocks
// out of narrow ones, and only then.
TEST(Planner, BalancedIsFastWithinFivePercent) {
  const Rates& rates = default_rates();
  std::mt19937_64 random(7);
  int faster = 0, wider = 0;
  for (int trial = 0; trial < (kSanitized ? 200 : 1000); ++trial) {
    const Task task = random_task(random, 3000);
    const std::vector<Choice> fewest = choices(task);
    const std::vector<Choice> found =
        choices(task, {.objective = Objective::balanced, .rates = &rates});
    ASSERT_EQ(found.size(), fewest.size());
    if (found.empty()) {
      continue;
    }
    const double share = found.front().share;
    if (share > kBalancedShare) {
      EXPECT_LE(narrowness(found.front().plan.blocks), 2);
      ++wider;
    }
    const auto near = [&](const Choice& choice) {
      return static_cast<double>(choice.words.value()) <=
             share * static_cast<double>(fewest.front().words.value());
    };
    EXPECT_TRUE(near(found.front()));
    EXPECT_TRUE(std::ranges::is_partitioned(found, near));
    const auto others = std::ranges::find_if_not(found, near);
    EXPECT_TRUE(std::ranges::is_sorted(found.begin(), others, {}, &Choice::seconds));
    EXPECT_GE(others - found.begin(), std::ranges::count_if(fewest, near));
    for (const Choice& choice : found) {
      EXPECT_LE(total(choice.plan.phases).peak.value(), task.memory.M) << to_string(choice.plan);
      const Index words = io(choice.plan) + (choice.forward ? io(*choice.forward) : 0);
      EXPECT_EQ(choice.words.value(), words * task.heads) << to_string(choice.plan);
    }
    faster += found.front().plan.blocks == fewest.front().plan.blocks ? 0 : 1;
  }
  EXPECT_GT(faster, kSanitized ? 20 : 100);
  EXPECT_GT(wider, kSanitized ? 1 : 10);
}

// score-rows moves the fewest words, but one query at a time. The next kernels move 1.6 times as
// many, in wide blocks.
TEST(Planner, BalancedPlansAreNotNarrow) {
  Task task{.pass = Pass::gradients, .problem = {2048, 2048, 64}, .memory = 524288};
  task.problem = task.problem.with_mask(Mask::causal(2048, 2048));
  task.known = Known::nothing;
  const Goal goal{.objective = Objective::balanced, .rates = &default_rates()};
  EXPECT_EQ(choices(task).front().plan.kernel, "gradients/score-rows");
  const std::vector<Choice> found = choices(task, goal);
  EXPECT_EQ(found.front().plan.kernel, "gradients/resident");
  EXPECT_EQ(found.front().share, 1.6);
  EXPECT_LE(narrowness(found.front().plan.blocks), 1.1);
  Goal kept = goal;
  kept.widens = false;
  EXPECT_EQ(choices(task, kept).front().plan.kernel, "gradients/score-rows");
  // A small problem has no wide blocks.
  const Task small{.pass = Pass::backward, .problem = {3, 3, 16}, .memory = 268784};
  EXPECT_EQ(choices(small, goal).front().share, kBalancedShare);
  // With twice the memory, score-rows has wide blocks.
  task.memory.M *= 2;
  EXPECT_EQ(choices(task, goal).front().plan.kernel, "gradients/score-rows");
  EXPECT_EQ(choices(task, goal).front().share, kBalancedShare);
}

// A kernel that is far faster than the others comes first. Several workers share its time, and that
// of the forward pass if its kernel splits.
TEST(Planner, RatesDecide) {
  const Task task{.problem = {500, 500, 32}, .memory = 20000, .known = Known::nothing};
  for (const char* const fast : {"backward/small", "backward/flash", "backward/rows"}) {
    Rates rates{.origin = "made up", .kernels = {}};
    for (const TestedKernel& kernel : tested_kernels()) {
      rates.kernels.push_back({std::string(kernel.name), {{0.01, kernel.name == fast ? 1 : 100.}}});
    }
    const Choice alone = choices(task, {.objective = Objective::time, .rates = &rates}).front();
    EXPECT_EQ(alone.plan.kernel, fast);
    double shared = seconds(alone.plan, rates);
    if (alone.forward && find_kernel(alone.forward->kernel).schedule.split) {
      shared += seconds(*alone.forward, rates);
    }
    const auto all = choices(task, {.objective = Objective::time, .rates = &rates, .workers = 2});
    const auto two = std::ranges::find(all, fast, [](const Choice& c) { return c.plan.kernel; });
    EXPECT_DOUBLE_EQ(*alone.seconds - *two->seconds, shared / 2);
  }
}

TEST(Planner, RefusesNoShapeQuietly) {
  EXPECT_THROW(static_cast<void>(choices({.problem = {0, 1, 1}, .memory = 100})), ShapeMismatch);
}

}  // namespace
}  // namespace redblue
