// Tests bounds, optima and kernels of the same task: each is at most the next. If a search is too
// long, its range of words stands for the optimum.

#include <vector>

#include <gtest/gtest.h>

#include "runtime/pebble/optimum.hpp"
#include "runtime/theory/bounds.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

struct Tried {
  Index instances = 0, exact = 0, beside_kernels = 0, above_bounds = 0, of_kernels = 0;
};

// A game computes each vertex once, and completes the sums p A2, or A1^T p.
constexpr Schedule kOfGames{.order = Order::two_step, .recomputes = false};

void compare(const Task& of, Index more, Tried& seen) {
  Task task = of;
  const Index first = least_M(task).value_or(3);
  const Optima all =
      optima(task, first, first + more, {.seconds = 1000, .bytes = std::size_t{1} << 18U});
  for (const Optimum& optimum : all.each) {
    task.memory = optimum.M;
    SCOPED_TRACE(testing::Message()
                 << to_string(task.pass) << " n=" << task.problem.shape.n << " m="
                 << task.problem.shape.m << " d=" << task.problem.shape.d << " M=" << optimum.M
                 << " given " << to_string(task.known) << " wanted " << task.problem.wanted.text());
    ++seen.instances;
    seen.exact += optimum.exact() ? 1 : 0;
    for (const Bound& bound : lower_bounds(task)) {
      if (bound.status == Status::proven && meets(kOfGames, bound) && optimum.upper) {
        EXPECT_LE(bound.words, *optimum.upper) << bound.name;
        seen.above_bounds += optimum.exact() && bound.words < optimum.lower ? 1 : 0;
      }
    }
    for (const Choice& kernel : choices(task)) {
      const Schedule schedule = schedule_of(kernel.plan);
      // A forward pass before the kernel would compute the scores twice.
      if (schedule.order == kOfGames.order && !schedule.recomputes && !kernel.forward) {
        EXPECT_LE(optimum.lower, kernel.words.value()) << spelled(kernel.plan);
        ++seen.of_kernels;
      }
    }
  }
}

Tried compare_all(Index pairs, Index more, const std::vector<Task>& tasks) {
  Tried seen;
  for (const Task& task : tasks) {
    for (Index n = 1; n <= 3; ++n) {
      for (Index m = 1; m <= 3; ++m) {
        for (Index d = 1; d <= 2; ++d) {
          if (n * m * d <= pairs) {
            Task of = task;
            of.problem.shape = {n, m, d, d};
            compare(of, more, seen);
          }
        }
      }
    }
  }
  return seen;
}

Task task_of(Pass pass, Known known = Known::O_and_L) {
  Task task{.pass = pass, .known = known};
  task.problem.inputs = inputs_of(pass);
  return task;
}

TEST(Optima, OfProductsAndForwardAreBetweenBoundsAndKernels) {
  Task only_O = task_of(Pass::attention);
  only_O.problem.wanted.add("O");
  const Tried seen = compare_all(
      6, 8, {task_of(Pass::product), task_of(Pass::attention), only_O, task_of(Pass::forward)});
  EXPECT_GE(seen.instances, 400);
  EXPECT_GE(seen.exact, 200);
  EXPECT_GE(seen.above_bounds, 100);
  EXPECT_GE(seen.of_kernels, 500);
}

TEST(Optima, OfGradientsAreBetweenBoundsAndKernels) {
  const Tried seen =
      compare_all(2, 8,
                  {task_of(Pass::gradients), task_of(Pass::gradients, Known::nothing),
                   task_of(Pass::backward), task_of(Pass::backward, Known::nothing)});
  EXPECT_GE(seen.instances, 100);
  EXPECT_GE(seen.exact, 50);
  EXPECT_GE(seen.of_kernels, 100);
}

// By hand: attention of one query and one key moves Q, K, V, O and L. Without L, it is one word
// less.
TEST(Optima, WriteWhatIsWanted) {
  Task task = task_of(Pass::attention);
  task.problem.shape = {1, 1, 1, 1};
  EXPECT_EQ(optima(task, 4, 4, {}).each.front().upper, 5);
  task.problem.wanted.add("O");
  EXPECT_EQ(optima(task, 4, 4, {}).each.front().upper, 4);
}

// A task with given O and L need not read them. With room for everything else, it moves no more
// words than from scratch.
TEST(Optima, MayLeaveOutOAndL) {
  for (const Pass pass : {Pass::backward, Pass::gradients}) {
    Task task = task_of(pass);
    task.problem.shape = {1, 2, 1, 1};
    task.memory = 12;
    const Optimum given = optima(task, 12, 12, {}).each.front();
    EXPECT_EQ(given.upper, lower_bounds(task).front().words);
    task.known = Known::nothing;
    EXPECT_EQ(optima(task, 12, 12, {}).each.front().upper, given.upper);
  }
}

}  // namespace
}  // namespace redblue
