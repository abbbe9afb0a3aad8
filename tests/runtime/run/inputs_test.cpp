// Tests the inputs that a seed makes: the same bits on every platform, any rows on their own, and
// scores with the requested deviation.

#include "runtime/run/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace redblue {
namespace {

std::vector<float> make(std::string_view operand, const Shape& shape, Index rows, Index cols,
                        std::uint64_t seed = 1, double scale = 1) {
  std::vector<float> out(static_cast<std::size_t>(rows * cols));
  fill_input(operand, Problem(shape), seed, scale, 0, rows, out);
  return out;
}

std::vector<double> product(const std::vector<float>& a, const std::vector<double>& b, Index rows,
                            Index inner, Index cols) {
  std::vector<double> c(static_cast<std::size_t>(rows * cols));
  for (Index i = 0; i < rows; ++i) {
    for (Index k = 0; k < inner; ++k) {
      for (Index j = 0; j < cols; ++j) {
        c[static_cast<std::size_t>(i * cols + j)] +=
            static_cast<double>(a[static_cast<std::size_t>(i * inner + k)]) *
            b[static_cast<std::size_t>(k * cols + j)];
      }
    }
  }
  return c;
}

double deviation(const std::vector<double>& x) {
  double sum = 0;
  double squares = 0;
  for (const double v : x) {
    sum += v;
    squares += v * v;
  }
  const auto count = static_cast<double>(x.size());
  return std::sqrt(squares / count - sum / count * sum / count);
}

TEST(Inputs, PinnedBits) {
  const Shape shape{5, 7, 3};
  struct Pin {
    const char* operand;
    Index rows;
    Index cols;
    std::uint64_t seed;
    double scale;
    float first, second, last;  // of the row-major elements
  };
  // Computed by an independent program (Python integers and exact products, rounded once).
  const Pin pins[] = {
      {"A1", 5, 3, 0x1, 1, -0x1.74991p-2F, -0x1.ebfdacp-1F, -0x1.47888p-2F},
      {"A2", 7, 3, 0x1, 1, -0x1.49918p-4F, -0x1.abf5acp-1F, -0x1.1dccc4p-1F},
      {"A3", 7, 3, 0x1, 1, -0x1.4252p-1F, 0x1.00efp-4F, -0x1.bda008p-2F},
      {"dO", 5, 3, 0x1, 1, 0x1.4403ep-3F, -0x1.293f2p-3F, -0x1.76874p-5F},
      {"X", 3, 3, 0x1, 1, 0x1.5651e8p+0F, 0x1.7724fap+0F, 0x1.6773e8p-2F},
      {"Y", 3, 3, 0x1, 1, -0x1.e3016p-4F, -0x1.63b058p-2F, -0x1.3c99dp+0F},
      {"A", 5, 3, 0x1, 1, -0x1.960448p-2F, 0x1.510e18p-1F, -0x1.8bb05p-2F},
      {"B", 3, 7, 0x1, 1, -0x1.c7abb8p-1F, -0x1.bcbd38p-1F, 0x1.1eebc4p-1F},
      {"A1", 5, 3, 0xdeadbeefcafef00d, 2.5, -0x1.a0d2p-6F, -0x1.3997b8p-1F, -0x1.8376a4p-1F},
      {"A2", 7, 3, 0xdeadbeefcafef00d, 2.5, -0x1.1f351cp-1F, -0x1.f25ee8p-2F, 0x1.169ec8p-2F},
      {"A3", 7, 3, 0xdeadbeefcafef00d, 2.5, 0x1.a37p-8F, -0x1.6f8f9p-3F, -0x1.2b3614p-1F},
      {"dO", 5, 3, 0xdeadbeefcafef00d, 2.5, -0x1.2d4cbp-2F, 0x1.9aafe8p-1F, -0x1.555058p-1F},
      {"X", 3, 3, 0xdeadbeefcafef00d, 2.5, -0x1.b2429ap-4F, -0x1.0262e4p+2F, -0x1.833428p+0F},
      {"Y", 3, 3, 0xdeadbeefcafef00d, 2.5, -0x1.313c86p-1F, 0x1.4078ap+0F, -0x1.1ee5p+0F},
      {"A", 5, 3, 0xdeadbeefcafef00d, 2.5, 0x1.a9dba8p-2F, 0x1.019ebp-2F, -0x1.85652p-3F},
      {"B", 3, 7, 0xdeadbeefcafef00d, 2.5, 0x1.acdb7cp-1F, -0x1.4b6c04p-1F, -0x1.f53d8p-4F},
  };
  for (const Pin& pin : pins) {
    const auto x = make(pin.operand, shape, pin.rows, pin.cols, pin.seed, pin.scale);
    EXPECT_EQ(x[0], pin.first) << pin.operand;
    EXPECT_EQ(x[1], pin.second) << pin.operand;
    EXPECT_EQ(x.back(), pin.last) << pin.operand;
  }
}

TEST(Inputs, RowsOnTheirOwnEqualThoseOfTheWhole) {
  const Shape shape{13, 11, 6};
  for (const std::string operand : {"A1", "A2", "A3", "dO", "X", "Y", "A", "Q", "K", "V"}) {
    const Index rows = operand[0] == 'X' || operand[0] == 'Y' ? shape.d
                       : operand == "A2" || operand == "A3" || operand == "K" || operand == "V"
                           ? shape.m
                           : shape.n;
    const std::vector<float> whole = make(operand, shape, rows, shape.d);
    for (Index begin = 0; begin <= rows; ++begin) {
      for (Index end = begin; end <= rows; ++end) {
        std::vector<float> part(static_cast<std::size_t>((end - begin) * shape.d));
        fill_input(operand, Problem(shape), 1, 1, begin, end - begin, part);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + begin * shape.d));
      }
    }
  }
}

TEST(Inputs, UniformOnTheGrid) {
  const Shape shape{1000, 1, 100};
  const std::vector<float> a = make("A1", shape, shape.n, shape.d);
  std::vector<double> x(a.begin(), a.end());
  double sum = 0;
  std::vector<int> bins(16);
  for (const double v : x) {
    ASSERT_GE(v, -1);
    ASSERT_LT(v, 1);
    ASSERT_EQ(v * 0x1p23, std::floor(v * 0x1p23));
    sum += v;
    ++bins[static_cast<std::size_t>((v + 1) * 8)];
  }
  // Five standard deviations of each estimate from 10^5 elements.
  EXPECT_NEAR(sum / 1e5, 0, 5 * std::sqrt(1 / 3e5));
  EXPECT_NEAR(deviation(x), std::sqrt(1.0 / 3), 5 * 0.6 * std::sqrt(1 / 3e5));
  for (const int bin : bins) {
    EXPECT_NEAR(bin, 1e5 / 16, 5 * std::sqrt(1e5 / 16));
  }
}

TEST(Inputs, ScoresHaveTheDeviationAskedFor) {
  const Shape shape{300, 200, 48};
  for (const double scale : {0.25, 1.0, 8.0}) {
    const auto A1 = make("A1", shape, shape.n, shape.d, 3, scale);
    const auto X = make("X", shape, shape.d, shape.d, 3, scale);
    const auto A2 = make("A2", shape, shape.m, shape.d, 3, scale);
    std::vector<double> A2_transposed(A2.size());
    for (Index j = 0; j < shape.m; ++j) {
      for (Index k = 0; k < shape.d; ++k) {
        A2_transposed[static_cast<std::size_t>(k * shape.m + j)] =
            A2[static_cast<std::size_t>(j * shape.d + k)];
      }
    }
    const auto T = product(X, A2_transposed, shape.d, shape.d, shape.m);
    const auto scores = product(A1, T, shape.n, shape.d, shape.m);
    EXPECT_NEAR(deviation(scores) / scale, 1, 0.05);
  }
  const auto A3 = make("A3", shape, shape.m, shape.d);
  const auto Y = make("Y", shape, shape.d, shape.d);
  const auto h = product(A3, {Y.begin(), Y.end()}, shape.m, shape.d, shape.d);
  EXPECT_NEAR(deviation(h), 1, 0.05);
}

// The scores c Q K^T, for any c.
TEST(Inputs, ScoresOfQAndKHaveTheDeviationAskedFor) {
  Problem problem(300, 200, 48);
  problem.inputs = Inputs::plain;
  const auto [n, m, d] = problem.shape;
  for (const std::optional<float> c : {std::optional<float>(), std::optional(0.3F)}) {
    problem.softmax_scale = c;
    for (const double scale : {0.25, 8.0}) {
      std::vector<float> Q(static_cast<std::size_t>(n * d));
      std::vector<float> K(static_cast<std::size_t>(m * d));
      fill_input("Q", problem, 3, scale, 0, n, Q);
      fill_input("K", problem, 3, scale, 0, m, K);
      std::vector<double> K_transposed(K.size());
      for (Index j = 0; j < m; ++j) {
        for (Index k = 0; k < d; ++k) {
          K_transposed[static_cast<std::size_t>(k * m + j)] =
              static_cast<double>(K[static_cast<std::size_t>(j * d + k)]);
        }
      }
      const auto scores = product(Q, K_transposed, n, d, m);
      EXPECT_NEAR(deviation(scores) * static_cast<double>(problem.scale()) / scale, 1, 0.05);
    }
  }
}

TEST(Inputs, OperandsAndSeedsDiffer) {
  const Shape shape{4, 4, 4};
  std::set<std::vector<float>> seen;
  std::size_t made = 0;
  for (const std::uint64_t seed : {0U, 1U, 2U, 0xffffffffU}) {
    for (const std::string operand : {"A1", "A2", "A3", "dO", "X", "Y", "A", "B", "Q", "K", "V"}) {
      seen.insert(make(operand, shape, 4, 4, seed));
      ++made;
    }
  }
  EXPECT_EQ(seen.size(), made);
}

TEST(Inputs, OnlyXAndQDependOnTheScale) {
  const Shape shape{4, 4, 4};
  for (const std::string operand : {"A1", "A2", "A3", "dO", "Y", "A", "B", "K", "V"}) {
    EXPECT_EQ(make(operand, shape, 4, 4, 1, 1), make(operand, shape, 4, 4, 1, 1000));
  }
  for (const std::string operand : {"X", "Q"}) {
    const auto one = make(operand, shape, 4, 4, 1, 1);
    const auto four = make(operand, shape, 4, 4, 1, 4);
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(four[i], 4 * one[i]);
    }
  }
}

TEST(Inputs, MisuseIsRefused) {
  const Shape shape{4, 5, 2};
  std::vector<float> out(8);
  EXPECT_THROW(fill_input("R", Problem(shape), 1, 1, 0, 4, out), std::invalid_argument);
  EXPECT_THROW(fill_input("", Problem(shape), 1, 1, 0, 4, out), std::invalid_argument);
  EXPECT_THROW(fill_input("A1", Problem(shape), 1, 1, 1, 4, out), std::invalid_argument);
  EXPECT_THROW(fill_input("A1", Problem(shape), 1, 1, -1, 4, out), std::invalid_argument);
  EXPECT_THROW(fill_input("A1", Problem(shape), 1, 1, 0, 3, out), std::invalid_argument);
  EXPECT_THROW(fill_input("A1", Problem(shape), 1, 1, 0, -4, out), std::invalid_argument);
  std::vector<float> X(4);
  for (const double scale : {0.0, -1.0, std::nan(""), HUGE_VAL, 1e300, 1e-300}) {
    EXPECT_THROW(fill_input("X", Problem(shape), 1, scale, 0, 2, X), std::invalid_argument)
        << scale;
  }
  EXPECT_NO_THROW(fill_input("A1", Problem(shape), 1, 1, 0, 4, out));
  EXPECT_NO_THROW(fill_input("X", Problem(shape), 1, 1, 0, 2, X));
}

}  // namespace
}  // namespace redblue
