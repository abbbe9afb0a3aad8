// Scores up to 10^4, far above 88, where exp() overflows float32. Small integers make the scores
// exact. Every kernel stays finite and within its bound.

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

Buffer integers(std::mt19937& random, Index count, int largest) {
  Buffer words(static_cast<std::size_t>(count));
  for (float& word : words) {
    word = static_cast<float>(static_cast<int>(random() % static_cast<unsigned>(2 * largest + 1)) -
                              largest);
  }
  return words;
}

// X = 25 everywhere and d = 4, so s_ij = 25 (sum of A1_i) (sum of A2_j). Row 0 of A1 and rows 0 and
// 1 of A2 are all 5, 5 and -5, so s_00 = 10^4 and s_01 = -10^4. If one-sided, A2 is positive and
// row 1 of A1 is all -5. Then every score is at least 2000 in row 0, and at most -2000 in row 1. A
// maximum that started at 0 would leave a sum of 0 in row 1.
TestProblem large_scores(const TestedKernel& kernel, const Shape& shape, unsigned seed,
                         bool one_sided) {
  const auto [n, m, d] = shape;
  std::mt19937 random(seed);
  TestProblem problem{shape, {}};
  Buffers& given = problem.given;
  given["A1"] = integers(random, n * d, 5);
  given["A2"] = integers(random, m * d, 5);
  given["A3"] = integers(random, m * d, 3);
  given["X"] = Buffer(static_cast<std::size_t>(d * d), 25.0F);
  given["Y"] = integers(random, d * d, 3);
  given["dO"] = integers(random, n * d, 3);
  std::fill_n(given["A1"].begin(), d, 5.0F);
  std::fill_n(given["A2"].begin(), d, 5.0F);
  if (one_sided) {
    for (float& word : given["A2"]) {
      word = std::max(1.0F, std::abs(word));
    }
    std::fill_n(given["A1"].begin() + d, d, -5.0F);
  } else {
    std::fill_n(given["A2"].begin() + d, d, -5.0F);
  }
  if (!takes(kernel, "A3")) {
    given.erase("A3");  // it is A2
  }
  if (takes(kernel, "O")) {
    add_forward(problem);
  }
  return problem;
}

double largest_score(const TestProblem& problem) {
  const auto [n, m, d] = problem.shape;
  const auto row_sum = [width = d](const Buffer& words, Index i) {
    double sum = 0;
    for (Index k = 0; k < width; ++k) {
      sum += static_cast<double>(words[static_cast<std::size_t>(i * width + k)]);
    }
    return sum;
  };
  double largest = 0;
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) {
      largest = std::max(largest, std::abs(25 * row_sum(problem.given.at("A1"), i) *
                                           row_sum(problem.given.at("A2"), j)));
    }
  }
  return largest;
}

TEST(LargeScores, GiveFiniteVerifiedResultsInEveryKernel) {
  int kernels_run = 0;
  for (const TestedKernel& kernel : tested_kernels()) {
    if (kernel.given.front().name != "A1" || is_linear(kernel.kernel->pass)) {
      continue;  // no scores
    }
    ++kernels_run;
    for (unsigned seed = 1; seed <= 4; ++seed) {
      for (const Shape& shape : {Shape{23, 17, 4}, Shape{12, 30, 4}}) {
        const TestProblem problem = large_scores(kernel, shape, seed, seed % 2 == 0);
        ASSERT_EQ(largest_score(problem), 10000);
        const Index least = kernel.least_M(shape);
        for (const Index M : {least, least + 40, least + 300, least + 5000}) {
          const Plan plan = kernel.plan(shape, M);
          const Result result = run_kernel(kernel, plan, problem);
          for (const auto& [name, words] : result.returned) {
            EXPECT_TRUE(std::ranges::all_of(words, [](float word) { return std::isfinite(word); }))
                << name << " of " << to_string(plan);
          }
          const Verified verdict = verify(kernel, plan, problem, result.returned);
          EXPECT_TRUE(verdict.ok) << to_string(plan) << ": " << verdict.text;
        }
      }
    }
  }
  EXPECT_GE(kernels_run, 7);
}

}  // namespace
}  // namespace redblue
