// Scores up to 10^4, far above 88, where exp() overflows float32. Small integers make the scores
// exact. Every kernel stays finite and within its bound.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
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

// A maximum may lose a NaN (kernels/arithmetic), but a sum does not. A NaN in a query makes its
// rows of O, L and dQ NaN, no other rows of them, and the rows of dK and dV of the keys that it
// meets. A NaN in a key makes the rows of O, L and dQ of its queries NaN. The other scores lie
// above and below, before and after the NaN.
TEST(NaNScores, ReachEveryResultOfTheirRows) {
  constexpr Index kQuery = 20, kKey = 3;
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const Shape shape{23, 40, 4};
  int runs = 0;
  for (TestedKernel kernel : tested_kernels()) {
    const std::string queries(kernel.given.front().name), keys = queries == "Q" ? "K" : "A2";
    if ((queries != "Q" && queries != "A1") || is_linear(kernel.kernel->pass) ||
        kernel.sharing != Sharing::none || kernel.activation != Activation::softmax) {
      continue;
    }
    for (const Mask& mask : {Mask(), Mask::causal(shape.n, shape.m)}) {
      if (!kernel.kernel->takes(mask)) {
        continue;
      }
      kernel.mask = mask;
      const auto meet = [&](Index i, Index j) {
        return mask.full() || mask.hull({i, i + 1}, {j, j + 1}).size() > 0;
      };
      const TestProblem problem = make_problem(kernel, shape, 1, 1000);
      const Index least = kernel.least_M(shape);
      for (const Index M : {least, least + 300, least + 5000}) {
        const Plan plan = kernel.plan(shape, M);
        // Expects rows of results with NaN in this word of the operand.
        const auto expect_rows = [&](const std::string& operand, Index word, const auto& rows_of) {
          TestProblem with = problem;
          with.given[operand][static_cast<std::size_t>(word)] = kNaN;
          for (const auto& [name, words] : run_kernel(kernel, plan, with).returned) {
            const std::size_t rows = name == "dK" || name == "dV" ? shape.m : shape.n;
            for (std::size_t at = 0; at < words.size(); ++at) {
              const std::optional<bool> is_nan =
                  rows_of(name, static_cast<Index>(at * rows / words.size()));
              ASSERT_TRUE(!is_nan || std::isnan(words[at]) == *is_nan)
                  << name << ", word " << at << ", NaN in " << operand << ": " << to_string(plan);
              runs += is_nan ? 1 : 0;
            }
          }
        };
        using Is = std::optional<bool>;
        expect_rows(queries, kQuery * shape.d + 3, [&](const std::string& name, Index row) -> Is {
          if (name == "O" || name == "L" || name == "dQ") {
            return row == kQuery;
          }
          const bool of_keys = name == "dK" || name == "dV";
          return of_keys && meet(kQuery, row) ? Is(true) : std::nullopt;
        });
        if (!takes(kernel, "O")) {  // else L has no NaN
          expect_rows(keys, kKey * shape.d + 1, [&](const std::string& name, Index row) -> Is {
            const bool of_queries = name == "O" || name == "L" || name == "dQ";
            return of_queries && meet(row, kKey) ? Is(true) : std::nullopt;
          });
        }
      }
    }
  }
  EXPECT_GE(runs, 10'000);
}

}  // namespace
}  // namespace redblue
