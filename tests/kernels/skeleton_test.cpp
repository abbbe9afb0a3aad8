// A kernel outside the registry meets the same conditions as registered kernels. Its counts match
// its formula, and a second version of the formula here. Its peak is within M, and its result is
// within the derived bound of the double-precision result.

#include "tests/kernels/skeleton.hpp"

#include <gtest/gtest.h>

#include "tests/support/print.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

TEST(Skeleton, MovesAndComputesWhatItSays) {
  const Kernel own = skeleton();
  const TestedKernel kernel = KernelName{&own};
  for (const Shape& shape :
       {Shape{1, 1, 1}, Shape{7, 5, 3}, Shape{31, 17, 40}, Shape{64, 100, 16}, Shape{3, 90, 11}}) {
    const auto [n, m, d] = shape;
    const Index least = kernel.least_M(shape);
    EXPECT_EQ(least, 2 * d + 1) << "a row of A, a column of B and a word of C";
    EXPECT_THROW(static_cast<void>(kernel.plan(shape, least - 1)), FastMemoryTooSmall);
    for (const Index M : {least, least + 1, 4 * least + 7, 3 * n * m + n * d + m * d}) {
      const Plan plan = kernel.plan(shape, M);
      const TestProblem problem = make_problem(kernel, shape, 1);
      const Result result = run_kernel(kernel, plan, problem);
      EXPECT_EQ(result.phases, as_counted(plan.phases)) << to_string(plan);
      const Index T = ceil_div(n, plan.blocks["Br"]);
      EXPECT_EQ(result.all.io, (IoCount{n * d + d * m * T, n * m})) << to_string(plan);
      EXPECT_LE(result.all.peak, M) << to_string(plan);
      Words reads;
      Words writes;
      for (const NestLine& line : own.formula.nest(plan.problem, plan.blocks)) {
        reads += line.reads;
        writes += line.writes;
      }
      EXPECT_EQ(result.all.io, (IoCount{reads.value(), writes.value()})) << to_string(plan);
      EXPECT_EQ(result.live, 0);
      const Verified verdict = verify(kernel, plan, problem, result.returned);
      EXPECT_TRUE(verdict.ok) << verdict.text;
    }
  }
}

}  // namespace
}  // namespace redblue
