// Identities between the gradients of attention, for every kernel.

#include <algorithm>
#include <cmath>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

double dot(const Buffer& a, const Buffer& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  }
  return sum;
}

double column_sum(const Buffer& words, Index cols, Index col) {
  double sum = 0;
  for (std::size_t k = static_cast<std::size_t>(col); k < words.size();
       k += static_cast<std::size_t>(cols)) {
    sum += static_cast<double>(words[k]);
  }
  return sum;
}

// Rows of f sum to 1, so the rows of dV = f^T dO have the same sum as the rows of dO. And Q . dQ =
// sum p s = K . dK, with s = c Q K^T. If V is K, dK is dK + dV, and K . dV = O . dO.
TEST(Gradients, OfTheSameScoresAgree) {
  int tried = 0;
  for (const TestedKernel& kernel : tested_kernels()) {
    if (kernel.kernel->pass != Pass::gradients || kernel.sharing == Sharing::self) {
      continue;
    }
    for (const Shape& shape :
         {Shape{1, 1, 1}, Shape{37, 53, 11}, Shape{64, 64, 16}, Shape{40, 30, 8, 5}}) {
      if (shape.dv != shape.d && !kernel.takes_dv()) {
        continue;
      }
      for (const Index M : {kernel.least_M(shape), 5 * kernel.least_M(shape), Index{100'000}}) {
        const Plan plan = kernel.plan(shape, M);
        SCOPED_TRACE(to_string(plan));
        const TestProblem problem = make_problem(kernel, shape, 7, 2);
        const Buffers found = run_kernel(kernel, plan, problem).returned;
        const auto given = [&](std::string_view name) -> const Buffer& {
          return problem.given.find(name)->second;
        };
        const auto returned = [&](std::string_view name) -> const Buffer& {
          return found.find(name)->second;
        };
        const double size = std::sqrt(static_cast<double>(shape.n * shape.m * shape.d));
        ++tried;
        if (kernel.sharing != Sharing::none) {
          if (takes(kernel, "O")) {
            EXPECT_NEAR(dot(given("Q"), returned("dQ")) + dot(given("O"), given("dO")),
                        dot(given("K"), returned("dK")), 1e-4 * size);
          }
          continue;
        }
        EXPECT_NEAR(dot(given("Q"), returned("dQ")), dot(given("K"), returned("dK")), 1e-4 * size);
        for (Index k = 0; k < shape.dv; ++k) {
          EXPECT_NEAR(column_sum(returned("dV"), shape.dv, k), column_sum(given("dO"), shape.dv, k),
                      1e-4 * size);
        }
      }
    }
  }
  EXPECT_GE(tried, 60);
}

// If Q, K and V are one source, its gradient is dQ + dK + dV of apart matrices with equal words.
TEST(Gradients, OfOneSourceAreTheSumOfAll) {
  const TestedKernel one = tested_kernel("gradients/sources");
  const TestedKernel shared = tested_kernel("gradients/rows-keys-shared");
  for (const Index n : {1, 2, 13, 64, 101}) {
    for (const char* const mask : {"", "causal", "window"}) {
      TestedKernel masked = one, apart = shared;
      masked.mask = apart.mask = mask == std::string("causal")   ? Mask::causal(n, n)
                                 : mask == std::string("window") ? Mask::window(n, n, 5, 2)
                                                                 : Mask();
      const Shape shape{n, n, 12};
      const TestProblem problem = make_problem(masked, shape, 7);
      TestProblem same = problem;
      same.given["K"] = problem.given.at("Q");
      for (const Index room : {0, 900, 100'000}) {
        const Plan plan = masked.plan(shape, masked.least_M(shape) + room);
        SCOPED_TRACE(to_string(plan));
        const Buffer sum = run_kernel(masked, plan, problem).returned.at("dQ");
        const Buffers all = run_kernel(apart, apart.plan(shape, 10'000), same).returned;
        for (std::size_t k = 0; k < sum.size(); ++k) {
          const float expected = all.at("dQ")[k] + all.at("dK")[k];
          EXPECT_NEAR(sum[k], expected, 1e-4) << k;
        }
      }
    }
  }
}

// The scale of the softmax is a part of the problem. c Q with scale 1 has the scores of Q with
// scale c. dQ with scale c is c times the dQ of c Q.
TEST(Gradients, ScaleWithTheirSoftmax) {
  for (const std::string_view name :
       {"gradients/flash", "gradients/rows-keys", "gradients/tiles", "gradients/rows-keys-onepass",
        "gradients/resident", "gradients/resident-queries", "gradients/flash-shared",
        "gradients/rows-keys-shared", "gradients/rows-keys-onepass-shared",
        "gradients/resident-shared", "gradients/resident-queries-shared"}) {
    SCOPED_TRACE(name);
    const TestedKernel kernel = tested_kernel(name);
    Problem scaled = kernel.problem({21, 34, 8});
    scaled.softmax_scale = 0.25F;  // products with it are exact
    Problem unscaled = scaled;
    unscaled.softmax_scale = 1.0F;
    TestProblem problem = make_problem(kernel, scaled.shape, 3);
    const Index M = 3 * kernel.least_M(scaled.shape);
    // Both runs get the O and L of the default scale as data.
    const Buffers with = run_kernel(kernel, kernel.kernel->plan(scaled, M), problem).returned;
    for (float& word : problem.given["Q"]) {
      word *= 0.25F;
    }
    const Buffers without = run_kernel(kernel, kernel.kernel->plan(unscaled, M), problem).returned;
    Buffer dQ = without.at("dQ");
    std::ranges::transform(dQ, dQ.begin(), [](float word) { return 0.25F * word; });
    EXPECT_EQ(with.at("dQ"), dQ);
    EXPECT_EQ(with.at("dK"), without.at("dK"));
    EXPECT_EQ(with.contains("dV"), kernel.sharing == Sharing::none);
    if (with.contains("dV")) {
      EXPECT_EQ(with.at("dV"), without.at("dV"));
    }
  }
}

}  // namespace
}  // namespace redblue
