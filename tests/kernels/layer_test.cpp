// Identities between the gradients of a layer, for every kernel.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

constexpr std::string_view kLayers[] = {"flash", "rows-keys", "score-rows", "tiles"};

TestedKernel layer(std::string_view name) {
  return tested_kernel("layer/" + std::string(name));
}

double sum_of_products(const Buffer& a, const Buffer& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  }
  return sum;
}

double at(const Buffer& a, Index cols, Index i, Index k) {
  return static_cast<double>(a[static_cast<std::size_t>(i * cols + k)]);
}

// Returns A W or A W^T, of d columns, computed in double precision.
Buffer rows_times(const Buffer& A, const Buffer& W, Index d, bool transposed) {
  Buffer C(A.size());
  for (Index i = 0; i < std::ssize(A) / d; ++i) {
    for (Index k = 0; k < d; ++k) {
      double sum = 0;
      for (Index l = 0; l < d; ++l) {
        sum += at(A, d, i, l) * (transposed ? at(W, d, k, l) : at(W, d, l, k));
      }
      C[static_cast<std::size_t>(i * d + k)] = static_cast<float>(sum);
    }
  }
  return C;
}

void expect_near(const Buffer& found, const Buffer& expected, const char* name) {
  ASSERT_EQ(found.size(), expected.size()) << name;
  double size = 0;
  for (const float word : expected) {
    size = std::max(size, std::abs(static_cast<double>(word)));
  }
  for (std::size_t k = 0; k < found.size(); ++k) {
    ASSERT_NEAR(found[k], expected[k], 1e-5 * size + 1e-6) << name << "[" << k << "]";
  }
}

// O depends on A1 and X only through A1 X, and on A3 and Y only through A3 Y. So s A1 and X / s
// have the same O for every s, and the same holds for A3 and Y. Hence A1 . dA1 = X . dX and A3 .
// dA3 = Y . dY. The first two are also sum p s = A2 . dA2.
TEST(Layer, GradientsOfFactorsAgree) {
  for (const std::string_view name : kLayers) {
    const TestedKernel kernel = layer(name);
    for (const Shape& shape :
         {Shape{1, 1, 1}, Shape{37, 53, 11}, Shape{64, 64, 16}, Shape{1, 9, 3}, Shape{29, 1, 2}}) {
      const Index least = kernel.least_M(shape);
      for (const Index M : {least, least + 2 * shape.d * shape.d, Index{100'000}}) {
        const Plan plan = kernel.plan(shape, M);
        SCOPED_TRACE(to_string(plan));
        const TestProblem problem = make_problem(kernel, shape, 7, 2);
        const Buffers found = run_kernel(kernel, plan, problem).returned;
        const double size = std::sqrt(static_cast<double>(shape.n * shape.m * shape.d));
        const auto side = [&](const std::string& operand) {
          return sum_of_products(problem.given.at(operand), found.at("d" + operand));
        };
        EXPECT_NEAR(side("A1"), side("X"), 1e-4 * size);
        EXPECT_NEAR(side("A1"), side("A2"), 1e-4 * size);
        EXPECT_NEAR(side("A3"), side("Y"), 1e-4 * size);
      }
    }
  }
}

// Returns the operands of all kernels of a layer, with O and L.
TestProblem layer_problem(const Shape& shape, std::uint64_t seed) {
  return make_problem(layer("flash"), shape, seed);
}

// dX equals the g of backward kernels.
TEST(Layer, GradientOfXIsG) {
  const Shape shape{61, 47, 13};
  for (const std::string_view name : kLayers) {
    const TestedKernel kernel = layer(name);
    const TestProblem problem = layer_problem(shape, 3);
    const Buffers found =
        run_kernel(kernel, kernel.plan(shape, kernel.least_M(shape) + 900), problem).returned;
    for (const char* other : {"backward/flash", "backward/rows"}) {
      const TestedKernel backward = tested_kernel(other);
      const Buffers expected = run_kernel(backward, backward.plan(shape, 3000), problem).returned;
      expect_near(found.at("dX"), expected.at("g"), other);
    }
  }
}

// The gradients of Q = A1 X, K = A2, V = A3 Y, made in double precision, and a softmax without a
// scale.
TEST(Layer, IsGradientsOfItsProducts) {
  for (const Shape& shape : {Shape{40, 31, 7}, Shape{17, 80, 16}}) {
    for (const std::string_view name : kLayers) {
      const TestedKernel kernel = layer(name);
      const TestProblem problem = layer_problem(shape, 11);
      const auto& given = problem.given;
      const Buffers found =
          run_kernel(kernel, kernel.plan(shape, 2 * kernel.least_M(shape)), problem).returned;

      const TestedKernel gradients = tested_kernel("gradients/" + std::string(name));
      TestProblem plain{shape, {}, {}};
      plain.given["Q"] = rows_times(given.at("A1"), given.at("X"), shape.d, false);
      plain.given["K"] = given.at("A2");
      plain.given["V"] = rows_times(given.at("A3"), given.at("Y"), shape.d, false);
      for (const char* same : {"dO", "O", "L"}) {
        plain.given[same] = given.at(same);
      }
      Problem unscaled = gradients.problem(shape);
      unscaled.softmax_scale = 1;
      const Buffers of_products =
          run_kernel(gradients, gradients.kernel->plan(unscaled, 3000), plain).returned;

      expect_near(found.at("dA2"), of_products.at("dK"), "dA2");
      expect_near(found.at("dA1"), rows_times(of_products.at("dQ"), given.at("X"), shape.d, true),
                  "dA1");
      expect_near(found.at("dA3"), rows_times(of_products.at("dV"), given.at("Y"), shape.d, true),
                  "dA3");
    }
  }
}

// Each gradient is the derivative of sum dO * O, tested by a central difference of the exact O.
TEST(Layer, GradientsAreDerivatives) {
  const Shape shape{6, 5, 3};
  const TestedKernel kernel = layer("flash");
  const TestProblem problem = make_problem(kernel, shape, 2);
  const Buffers found = run_kernel(kernel, kernel.plan(shape, 200), problem).returned;
  const auto loss = [&](const Buffers& given) {
    const Expected O = evaluate({.shape = shape,
                                 .A1 = given.at("A1"),
                                 .A2 = given.at("A2"),
                                 .A3 = given.at("A3"),
                                 .X = given.at("X"),
                                 .Y = given.at("Y"),
                                 .dO = {},
                                 .O = {},
                                 .L = {},
                                 .results = {"O"}})
                           .at("O");
    double sum = 0;
    for (std::size_t k = 0; k < O.value.size(); ++k) {
      sum += O.value[k] * static_cast<double>(given.at("dO")[k]);
    }
    return sum;
  };
  for (const std::string operand : {"A1", "A2", "A3", "X", "Y"}) {
    const Buffer& gradient = found.at("d" + operand);
    for (std::size_t k = 0; k < gradient.size(); ++k) {
      Buffers moved = problem.given;
      float& word = moved.at(operand)[k];
      const float before = word;
      word = before + 0x1p-10F;
      const double above = static_cast<double>(word);
      const double loss_above = loss(moved);
      word = before - 0x1p-10F;
      const double slope = (loss_above - loss(moved)) / (above - static_cast<double>(word));
      EXPECT_NEAR(static_cast<double>(gradient[k]), slope, 1e-4) << operand << "[" << k << "]";
    }
  }
}

// If W and dW fit, the rows of dC pass once for both of their products.
TEST(Layer, GradientsOfAWeightAreMadeTogetherWhereBothFit) {
  const Shape shape{100, 70, 16};
  const TestedKernel kernel = layer("tiles");
  const Index least = 2 * shape.d * (shape.d + 1);  // X, dX, a row of dQ and a row of A1
  const auto words = [&](Index M, const std::string& phase) {
    Words sum;
    for (const PhaseCost& cost : kernel.plan(shape, M).phases) {
      sum += cost.path == phase ? cost.reads + cost.writes : Words(0);
    }
    return sum.value();
  };
  const Index apart = words(least - 1, "dX") + words(least - 1, "dA1");
  EXPECT_GT(words(least - 1, "dA1"), 0);
  EXPECT_EQ(words(least, "dA1"), 0);
  EXPECT_EQ(words(least, "dX"), 3 * 100 * 16 + 2 * 16 * 16);
  EXPECT_GE(apart, words(least, "dX") + 100 * 16);
}

}  // namespace
}  // namespace redblue
