// An operand that passes in a product does so in order, a few rows or columns in each step. The
// result may overwrite the words that have passed. It then has the bits of a separate result, in
// every vector instruction set.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/arithmetic/simd.hpp"
#include "memsim/errors.hpp"
#include "memsim/machine.hpp"
#include "tests/support/print.hpp"
#include "tests/support/use_simd.hpp"

namespace redblue {
namespace {

class PassingProduct : public testing::TestWithParam<std::string> {
 protected:
  Tile tile(Index rows, Index cols) {
    Tile made = machine_.initialize("t", rows, cols);
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < cols; ++j) {
        made(i, j) = static_cast<float>((7 * i + 3 * j + next_++ % 11) % 13 - 6) / 8;
      }
    }
    return made;
  }
  Tile copy_of(const Tile& of) {
    Tile made = machine_.initialize("copy", of.rows(), of.cols());
    copy(of, made);
    return made;
  }
  static void expect_same(const Tile& found, Range rows, Range cols, const Tile& expected) {
    for (Index i = 0; i < expected.rows(); ++i) {
      for (Index j = 0; j < expected.cols(); ++j) {
        ASSERT_EQ(found(rows.begin + i, cols.begin + j), expected(i, j)) << i << ", " << j;
      }
    }
  }

  Machine machine_{1 << 20};
  int next_ = 0;
  UseSimd use_{GetParam()};
};

// Row i of c lies where row i - 8 of a was.
TEST_P(PassingProduct, HasAFewRowsAtATime) {
  constexpr Index kBehind = kRegisterRows;
  for (const Index rows : {1, 8, 9, 40}) {
    for (const Index cols : {1, 16, 40, 48, 80, 112, 121}) {  // also more panels than fit a step
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
      const Tile b = tile(cols, cols), column = tile(cols, 1), registers = tile(kRegisterCharge, 1);
      const std::vector<std::function<void(const ConstView&, const View&)>> products = {
          [&](const ConstView& a, const View& c) { multiply(a, b, c, kBehind); },
          [&](const ConstView& a, const View& c) {
            exponentiated_product(a, b, column, c, kBehind);
          },
          [&](const ConstView& a, const View& c) { shifted_product(a, b, column, c, kBehind); },
          [&](const ConstView& a, const View& c) {
            softmax_gradient_product(a, b, column, c, registers, kBehind);
          },
          [&](const ConstView& a, const View& c) {
            multiplied_product(a, b, c, registers, kBehind);
          }};
      for (const auto& product : products) {
        Tile both = tile(rows + kBehind, cols);
        const Range of_a{kBehind, kBehind + rows}, of_c{0, rows};
        const Tile apart = copy_of(both);
        Tile expected = machine_.initialize("c", rows, cols);
        copy(apart.part(of_c), expected);
        product(apart.part(of_a), expected);
        product(std::as_const(both).part(of_a), both.part(of_c));
        expect_same(both, of_c, {0, cols}, expected);
      }
    }
  }
}

// Column j of c lies where column j - 32 of b was.
TEST_P(PassingProduct, HasAFewColumnsAtATime) {
  constexpr Index kBehind = 2 * kRegisterColumns;
  for (const Index depth : {1, 13, 48}) {
    for (const Index cols : {1, 16, 40, 64, 97, 130}) {
      SCOPED_TRACE(std::to_string(depth) + " x " + std::to_string(cols));
      const Tile a = tile(depth, depth);
      Tile both = tile(depth, cols + kBehind);
      const Range of_b{kBehind, kBehind + cols}, of_c{0, cols}, all{0, depth};
      const Tile apart = copy_of(both);
      Tile expected = machine_.initialize("c", depth, cols);
      copy(apart.part(all, of_c), expected);
      multiply_add(transposed(ConstView(a)), apart.part(all, of_b), expected);
      multiply_add(transposed(ConstView(a)), std::as_const(both).part(all, of_b),
                   both.part(all, of_c), kBehind);
      expect_same(both, all, of_c, expected);
    }
  }
}

TEST_P(PassingProduct, HasWhatRegistersHold) {
  const Tile t = tile(16, 16);
  Tile c = tile(16, 16);
  EXPECT_THROW(multiply(t, t, c, kRegisterRows - 1), ShapeMismatch);
  EXPECT_THROW(multiply_add(transposed(ConstView(t)), t, c, kRegisterColumns - 1), ShapeMismatch);
}

INSTANTIATE_TEST_SUITE_P(Targets, PassingProduct, testing::ValuesIn(simd_targets()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace redblue
