// Tests the arithmetic of a task against kernels that make each product once: their formulas give
// the same flops, for every mask, head and width. Every other kernel makes at least as many.

#include "runtime/theory/work.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

Task task_of_pass(Pass pass, Problem problem, Index heads) {
  problem.inputs = Inputs::plain;
  return {.pass = pass, .problem = std::move(problem), .memory = 20000, .heads = heads};
}

std::vector<Task> tasks(Pass pass) {
  constexpr Index kHeads = 3;
  std::vector<Task> all;
  for (const Shape& shape : {Shape{40, 56, 8, 8}, Shape{33, 17, 12, 5}, Shape{1, 90, 6, 9}}) {
    const auto [n, m, d] = shape;
    for (const Mask& mask : {Mask(), Mask::causal(n, m), Mask::window(n, m, 7, 2)}) {
      const Problem one = Problem(shape).with_mask(mask);
      all.push_back(task_of_pass(pass, one, kHeads));
      all.push_back(task_of_pass(pass, one.with_stacked(4), kHeads));
    }
  }
  return all;
}

Index flops_of(const Task& task, const std::string& kernel) {
  const Plan plan = find_kernel(kernel).plan(task.problem, task.memory);
  return total(plan.phases).flops.value() * task.heads;
}

TEST(Work, KernelsThatMakeEachProductOnce) {
  for (const Task& task : tasks(Pass::attention)) {
    const LeastWork work = work_of(task);
    EXPECT_EQ(work.flops, Words(flops_of(task, "attention/rows")));
    EXPECT_EQ(work.exps, task.problem.pairs() * task.heads);
  }
  for (const Task& task : tasks(Pass::gradients)) {
    EXPECT_EQ(work_of(task).flops, Words(flops_of(task, "gradients/flash")));
  }
}

TEST(Work, NoKernelMakesFewer) {
  for (const Pass pass : {Pass::attention, Pass::gradients}) {
    for (const Task& task : tasks(pass)) {
      const Words flops = work_of(task).flops;
      for (const Choice& choice : choices(task)) {
        EXPECT_GE(redblue::flops(choice) * task.heads, flops) << choice.plan.kernel;
      }
    }
  }
}

// Without dQ and dK, dV needs the scores alone; without dV it is left out.
TEST(Work, ResultsThatAreNotWantedCostNothing) {
  Task task = task_of_pass(Pass::gradients, Problem(Shape{20, 30, 8, 4}), 1);
  const auto flops = [&](const Wanted& wanted) {
    task.problem.wanted = wanted;
    return work_of(task).flops.value() / (2 * 20 * 30);
  };
  EXPECT_EQ(flops({}), 8 + 4 + 8 + 8 + 4);
  EXPECT_EQ(flops({"dV"}), 8 + 4);
  EXPECT_EQ(flops({"dQ"}), 8 + 4 + 8);
  EXPECT_EQ(flops({"dQ", "dK"}), 8 + 4 + 8 + 8);
}

TEST(Work, ExponentialsOfActivations) {
  Task task = task_of_pass(Pass::attention, Problem(10, 10, 4), 2);
  for (const Activation activation : kActivations) {
    task.problem.activation = activation;
    EXPECT_EQ(work_of(task).exps, Words(activation == Activation::relu ? 0 : 200));
  }
}

}  // namespace
}  // namespace redblue
