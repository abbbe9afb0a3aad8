// Tests that under masks no kernel moves fewer words than the bounds for its kind, for any M. For
// windows, a kernel reaches the bound.

#include <vector>

#include <gtest/gtest.h>

#include "runtime/theory/bounds.hpp"
#include "runtime/theory/planner.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

Words words_of(const Plan& plan) {
  const PhaseCost all = total(plan.phases);
  return all.reads + all.writes;
}

void expect_above_its_bound(const TestedKernel& kernel, const Shape& shape, Index M) {
  const Plan plan = kernel.plan(shape, M);
  const Task task = task_of(kernel, plan.problem, M);
  const std::vector<Bound> bounds = lower_bounds(task);
  const Bound& bound = largest(bounds, schedule_of(kernel, plan.problem.sharing));
  EXPECT_LE(Words(bound.words), words_of(plan)) << to_string(plan) << ": " << bound.name;
}

TEST(MaskedBounds, AreBelowWhatEveryKernelMoves) {
  for (Index k = 0; k < cases(300); ++k) {
    SCOPED_TRACE(reproduced_by(k));
    RandomMasks random(static_cast<unsigned>(seed_of_case(k)));
    const Shape shape{random.any(1, 300), random.any(1, 300), random.any(1, 16)};
    const Mask mask = random.expression(shape.n, shape.m).mask;
    for (TestedKernel kernel : tested_kernels()) {
      if (!kernel.kernel->takes_masks) {
        continue;
      }
      Shape wide = kernel.shape(shape);
      kernel.mask = wide.m == shape.m ? mask : random.expression(wide.n, wide.m).mask;
      if (kernel.takes_dv()) {
        wide.dv = random.any(1, 16);
      }
      expect_above_its_bound(kernel, wide, kernel.least_M(wide) + random.any(0, 3000));
    }
  }
}

// Values have another width than keys. The bounds hold, and with room for everything the compulsory
// words are enough.
TEST(Bounds, OfValuesOfTheirOwnWidth) {
  RandomMasks random(12);
  for (int k = 0; k < 300; ++k) {
    const Shape shape{random.any(1, 300), random.any(1, 300), random.any(1, 16), random.any(1, 16)};
    for (const TestedKernel& kernel : tested_kernels()) {
      if (!kernel.takes_dv()) {
        continue;
      }
      expect_above_its_bound(kernel, shape, kernel.least_M(shape) + random.any(0, 3000));
    }
    const auto [n, m, d] = shape;
    const Index dv = shape.dv;
    Task task{.pass = Pass::attention, .problem = Problem(shape), .memory = 1'000'000};
    EXPECT_EQ(largest(lower_bounds(task)).words, n * d + m * (d + dv) + n * dv + n);
    EXPECT_EQ(choices(task).front().words, Words(largest(lower_bounds(task)).words));
    task.pass = Pass::gradients;
    EXPECT_EQ(largest(lower_bounds(task)).words, 2 * (n + m) * d + (n + 2 * m) * dv);
  }
}

// |i - j| <= 128, from scratch: 4 n d + 3 d^2 words, each moved once. This holds from an M within
// 1% of 3 d^2 + 5 d + 5 + 2 d (W - 1), with W = 257.
TEST(MaskedBounds, AreReachedByWindows) {
  constexpr Index n = 4096;
  constexpr Index d = 64;
  constexpr Index kOnce = 3 * d * d + 5 * d + 5 + 2 * d * 256;
  Task task{.pass = Pass::backward,
            .problem = Problem(n, n, d),
            .memory = kOnce + kOnce / 100,
            .known = Known::nothing};
  task.problem.mask = Mask::window(n, n, 128, 128);
  EXPECT_EQ(largest(lower_bounds(task)).words, 4 * n * d + 3 * d * d);
  EXPECT_EQ(choices(task).front().words, Words(4 * n * d + 3 * d * d));
  task.memory = kOnce - kOnce / 100;
  EXPECT_GT(choices(task).front().words, Words(4 * n * d + 3 * d * d));
}

// Without pairs, only the results move.
TEST(MaskedBounds, OfNoPairs) {
  for (const auto& [pass, words] :
       {std::pair(Pass::forward, 7 * 3 + 7), std::pair(Pass::attention, 7 * 3 + 7),
        std::pair(Pass::backward, 3 * 3), std::pair(Pass::gradients, 7 * 3 + 2 * 5 * 3),
        std::pair(Pass::layer, 7 * 3 + 2 * 5 * 3 + 2 * 3 * 3)}) {
    Task task{.pass = pass, .problem = Problem(7, 5, 3), .memory = 100};
    task.problem.mask = Mask::prefix(7, 5, 0);
    EXPECT_EQ(largest(lower_bounds(task)).words, words);
    EXPECT_EQ(choices(task).front().words, Words(words));
  }
}

}  // namespace
}  // namespace redblue
