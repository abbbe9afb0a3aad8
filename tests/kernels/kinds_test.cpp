// Words by kind, for every kernel. They add up to all words moved, and no kind's peak exceeds the
// total peak. Scores move only where a plan stores them.

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/holds.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

bool stores_scores(const std::string& kernel) {
  for (const char* part : {"/small", "/tiles", "/rows-q"}) {
    if (kernel.find(part) != std::string::npos) {
      return true;
    }
  }
  return false;
}

TEST(Kinds, AddUpAndScoresStayWhereTheyAreMade) {
  for (const TestedKernel& kernel : tested_kernels()) {
    for (const Shape& shape : {Shape{50, 37, 11}, Shape{1, 1, 1}, Shape{23, 64, 16}}) {
      const Index least = kernel.least_M(shape);
      for (const Index M : {least, 3 * least}) {
        const Plan plan = kernel.plan(shape, M);
        SCOPED_TRACE(to_string(plan));
        const Result result = run_kernel(kernel, plan, make_problem(kernel, shape, 1));
        IoCount io;
        Index peaks = 0;
        for (const Holds holds : kHolds) {
          io += result.kinds[holds].io;
          peaks += result.kinds[holds].peak;
          EXPECT_LE(result.kinds[holds].peak, result.all.peak) << to_string(holds);
        }
        EXPECT_EQ(io, result.all.io);
        EXPECT_GE(peaks, result.all.peak);
        EXPECT_EQ(result.kinds[Holds::indices], KindCounts{});
        EXPECT_EQ(result.kinds[Holds::scores].io.io() > 0, stores_scores(kernel.name));
        EXPECT_EQ(result.kinds[Holds::scores].peak > 0,
                  !kernel.name.starts_with("matmul/") && !is_linear(kernel.kernel->pass));
      }
    }
  }
}

// Kinds in backward/rows. Sums are W, L, v and pieces of g. Scores are a strip and its charge for
// registers. L is read once. g is a sum until the last of T row blocks completes it, so its sum is
// read T - 1 times and written T - 1 times.
TEST(Kinds, OfTheRowBlocksAreThoseOfItsFormula) {
  const TestedKernel kernel = tested_kernel("backward/rows");
  const Shape shape{96, 80, 16};
  const auto [n, m, d] = shape;
  const Index r = 20;
  const Index c = 5;
  const Plan plan = kernel.plan(shape, 4096, Blocks{{"Br", r}, {"Bc", c}, {"Bw", 1}});
  const Result result = run_kernel(kernel, plan, make_problem(kernel, shape, 1));
  const Index T = 5;
  EXPECT_EQ(result.kinds[Holds::sums].io, (IoCount{n + d * d * (T - 1), d * d * (T - 1)}));
  EXPECT_EQ(result.kinds[Holds::operands].io.writes, d * d);
  EXPECT_EQ(result.kinds[Holds::operands].io.reads, 4 * n * d + 2 * m * d * T + 2 * d * d * T);
  EXPECT_EQ(result.kinds[Holds::scores].peak, c * r + std::min(c * r, kRegisterCharge));
  EXPECT_EQ(result.kinds[Holds::sums].peak, r * d + 2 * r);
}

}  // namespace
}  // namespace redblue
