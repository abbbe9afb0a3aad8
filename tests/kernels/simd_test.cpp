// Each instruction set can be chosen and reports its name. In each, kernels return results within
// the bound of the double-precision evaluation, and move, hold and count exactly the same words.

#include "kernels/arithmetic/simd.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/sanitized.hpp"
#include "tests/support/print.hpp"
#include "tests/support/run_kernel.hpp"
#include "tests/support/use_simd.hpp"

namespace redblue {
namespace {

TEST(Simd, TargetsAreNamedOnceAndOneIsInUse) {
  const std::vector<std::string> targets = simd_targets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(std::set<std::string>(targets.begin(), targets.end()).size(), targets.size());
  EXPECT_NE(std::ranges::find(targets, simd_target()), targets.end()) << simd_target();
  for (const std::string& target : targets) {
    EXPECT_FALSE(target.empty());
    EXPECT_NE(target, "Unknown");
  }
}

TEST(Simd, EachTargetCanBeChosenInAllThreads) {
  const std::string before = simd_target();
  {
    const UseSimd restored;
    const std::vector<std::string> targets = simd_targets();
    for (const std::string& target : targets) {
      EXPECT_TRUE(use_simd_target(target));
      EXPECT_EQ(simd_target(), target);
      EXPECT_EQ(simd_targets(), targets) << "what there is does not depend on what is chosen";
      std::string elsewhere;
      std::thread([&] { elsewhere = simd_target(); }).join();
      EXPECT_EQ(elsewhere, target);
    }
  }
  EXPECT_EQ(simd_target(), before);
}

TEST(Simd, AnUnknownNameChangesNothing) {
  const UseSimd restored;
  for (const std::string& target : simd_targets()) {
    ASSERT_TRUE(use_simd_target(target));
    for (const char* name : {"", "avx2", "AVX", "AVX9", "SSE4 ", " SSE4", "SSE4,AVX2", "Unknown",
                             "AVX3_DL", "SSSE3"}) {
      EXPECT_FALSE(use_simd_target(name)) << name;
      EXPECT_EQ(simd_target(), target);
    }
  }
}

// Elementwise operations have no formula, so the best target gives the expected counts.
TEST(SimdKernels, ComputeAndCountTheSame) {
  const UseSimd restored;
  for (const TestedKernel& kernel : tested_kernels()) {
    for (const Shape& shape : {Shape{37, 23, 11}, Shape{50, 67, 35}}) {
      if (kSanitized && shape.n > 37) {
        continue;
      }
      const TestProblem problem = make_problem(kernel, shape, 7);
      for (const bool least : {true, false}) {
        const Index M = kernel.least_M(shape);
        const Plan plan = kernel.plan(shape, least ? M : 2 * M + 777);
        std::vector<PhaseCounts> of_best;
        for (const std::string& target : simd_targets()) {
          SCOPED_TRACE(to_string(plan) + " in " + target);
          ASSERT_TRUE(use_simd_target(target));
          const Result result = run_kernel(kernel, plan, problem);
          EXPECT_EQ(simd_target(), target);
          const Verified verdict = verify(kernel, plan, problem, result.returned);
          EXPECT_TRUE(verdict.ok) << verdict.text;
          if (target == simd_targets().front()) {
            of_best = result.phases;
          }
          EXPECT_EQ(result.phases, of_best);
        }
      }
    }
  }
}

}  // namespace
}  // namespace redblue
