// Counts are 64-bit and exact, or refused. They are compared with 128-bit arithmetic, up to n =
// 10^12.

#include <chrono>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "memsim/sanitized.hpp"
#include "tests/kernels/contract.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

__extension__ using Wide = unsigned __int128;  // NOLINT(modernize-use-using)
constexpr auto kMost = static_cast<Wide>(std::numeric_limits<Index>::max());

void expect_exact(Words computed, Wide expected, int& exact, int& refused,
                  const std::string& what) {
  if (expected > kMost) {
    ++refused;
    EXPECT_TRUE(computed.overflowed()) << what;
    EXPECT_THROW(static_cast<void>(computed.value()), CountOverflow) << what;
  } else {
    ++exact;
    ASSERT_FALSE(computed.overflowed()) << what;
    EXPECT_EQ(static_cast<Wide>(computed.value()), expected) << what;
  }
}

TEST(HugeShapes, AreCountedExactlyOrRefused) {
  int exact = 0;
  int refused = 0;
  for (const TestedKernel& kernel : some_tested_kernels()) {
    for (const Index n : {Index{10'000'000}, Index{1'000'000'000}, Index{1'000'000'000'000}}) {
      for (const Index m : {n, n / 7 + 1, Index{1000}}) {
        for (const Index d : {Index{1}, Index{128}, Index{1000}}) {
          for (const Index M : {Index{65536}, Index{1} << 24, Index{1} << 40}) {
            const Shape shape{n, m, d};
            const Blocks blocks =
                kernel.kernel->fitting.fit(kernel.problem(shape), M, Objective::words);
            const PhaseCost cost = total(kernel.cost(shape, blocks));
            const auto expected = moved_by_contract<Wide>(kernel.name, shape, blocks);
            const std::string what = to_string(Plan{.kernel = kernel.name,
                                                    .problem = Problem(shape),
                                                    .M = M,
                                                    .blocks = blocks,
                                                    .phases = {}});
            expect_exact(cost.reads, expected.reads, exact, refused, what);
            expect_exact(cost.writes, expected.writes, exact, refused, what);
          }
        }
      }
    }
  }
  EXPECT_GT(exact, kSanitized ? 60 : 300);
  EXPECT_GT(refused, kSanitized ? 60 : 300);
}

TEST(HugeShapes, ArePlannedOrRefusedWithoutAWrongNumber) {
  const Shape shape{1'000'000'000'000, 1'000'000'000'000, 1'000'000};
  for (const TestedKernel& kernel : tested_kernels()) {
    // The least M overflows, or M is below the least M, or the plan's count overflows. No count is
    // a number that wrapped.
    try {
      const Plan plan = kernel.plan(shape, 1000);
      EXPECT_THROW(static_cast<void>(total(plan.phases).reads.value()), CountOverflow)
          << kernel.name;
    } catch (const FastMemoryTooSmall&) {
      EXPECT_GT(kernel.least_M(shape), 1000);
    } catch (const CountOverflow&) {
      EXPECT_THROW(static_cast<void>(kernel.least_M(shape)), CountOverflow) << kernel.name;
    }
  }
}

// "count" answers at once for n = 10^7 and beyond, because a plan does not walk over the problem.
TEST(PerfOfHugeShapes, ArePlannedAtOnce) {
  const Shape huge{10'000'000, 10'000'000, 128};
  std::chrono::duration<double> least{1};
  // Other load may disturb some tries, but hardly all.
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (const TestedKernel& kernel : tested_kernels()) {
      if (kernel.least_M(huge) <= 65536) {
        static_cast<void>(kernel.plan(huge, 65536));
      }
    }
    least =
        std::min<std::chrono::duration<double>>(least, std::chrono::steady_clock::now() - start);
  }
  EXPECT_LT(least, std::chrono::seconds(1));
}

}  // namespace
}  // namespace redblue
