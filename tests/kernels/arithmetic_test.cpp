// Each function of kernels/arithmetic/arithmetic.hpp against the same formula in double precision,
// on tiles of 1 x 1, ragged and prime sizes. The test also checks the operations that each function
// reports and the arguments that it refuses.
//
// Error bounds, with u = 2^-24:
//   a sum of k products onto c, in any order: (k + 1) u (|c| + sum |a||b|) (1 + small)
//   exp and log: 4 u of their value
//   each single operation: u of its result

#include "kernels/arithmetic/arithmetic.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/arithmetic/register_tile.hpp"
#include "memsim/errors.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

constexpr double kU = 0x1p-24 * (1 + 1e-4);
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Returns all words of a tile, in memory order.
float* words(Tile& tile) {
  return View(tile).at(0, 0);
}
const float* words(const Tile& tile) {
  return ConstView(tile).at(0, 0);
}

float largest_of_row(const Tile& tile, Index i) {
  float largest = kLowest;
  for (Index j = 0; j < tile.cols(); ++j) {
    largest = std::max(largest, tile(i, j));
  }
  return largest;
}

// The rows x panels of a product's register tile, from the number of registers and of vectors in a
// row of a panel. The sums, a row of one factor and a word of the other fit the registers.
TEST(RegisterTile, FillsTheRegistersOfEachInstructionSet) {
  struct Case {
    RegisterTile tile;
    int panels, rows, rows_of_one;
  };
  constexpr Case kCases[] = {
      {{.registers = 32, .vectors = 1}, 4, 6, 8},   // AVX-512: 16 floats to a vector
      {{.registers = 16, .vectors = 2}, 1, 6, 6},   // AVX2
      {{.registers = 32, .vectors = 4}, 1, 6, 6},   // NEON of 64 bits
      {{.registers = 16, .vectors = 4}, 1, 2, 2},   // SSE4
      {{.registers = 16, .vectors = 16}, 1, 1, 1},  // no vectors: registers hold no row
  };
  for (const Case& is : kCases) {
    const RegisterTile& tile = is.tile;
    SCOPED_TRACE(testing::Message() << tile.registers << ", " << tile.vectors);
    EXPECT_EQ(tile.panels(), is.panels);
    EXPECT_EQ(tile.rows(is.panels), is.rows);
    EXPECT_EQ(tile.rows(1), is.rows_of_one);
    for (int panels = 1; panels <= tile.panels() && tile.vectors < tile.registers; ++panels) {
      const int wide = panels * tile.vectors;
      EXPECT_LE((tile.rows(panels) + 1) * wide + 1, tile.registers);
      EXPECT_LE(tile.rows(panels) * panels * kPanel, kRegisterCharge);
    }
  }
}

class Arithmetic : public testing::Test {
 protected:
  // Uniform in [-scale, scale), or [low, high).
  Tile random_tile(Index rows, Index cols, double scale = 1) {
    return random_tile(rows, cols, -scale, scale);
  }
  Tile random_tile(Index rows, Index cols, double low, double high) {
    Tile tile = machine_.initialize("t", rows, cols);
    for (Index i = 0; i < tile.words(); ++i) {
      words(tile)[i] =
          static_cast<float>(low + (high - low) * static_cast<double>(random_()) * 0x1p-32);
    }
    return tile;
  }
  Tile copy_of(const Tile& tile) {
    Tile copy = machine_.initialize("copy", tile.rows(), tile.cols());
    std::copy_n(words(tile), tile.words(), words(copy));
    return copy;
  }

  // Returns the operations that `work` reports.
  Operations operations_of(const std::function<void()>& work) {
    const Operations before = total(machine_.phases()).operations;
    work();
    const Operations after = total(machine_.phases()).operations;
    return {after.flops - before.flops, after.elementwise - before.elementwise};
  }

  template <class Value, class Bound>
  static void expect_close(const Tile& computed, Value value, Bound bound) {
    for (Index i = 0; i < computed.rows(); ++i) {
      for (Index j = 0; j < computed.cols(); ++j) {
        const double exact = value(i, j);
        ASSERT_LE(std::abs(static_cast<double>(computed(i, j)) - exact), bound(i, j, exact))
            << "at " << i << ", " << j << " of " << computed.rows() << " x " << computed.cols();
      }
    }
  }

  Machine machine_{Index{1} << 20};
  std::mt19937 random_{4};
};

const std::vector<std::pair<Index, Index>> kSizes = {{1, 1},  {1, 7},  {7, 1},   {2, 3},  {5, 5},
                                                     {3, 16}, {17, 8}, {31, 13}, {64, 3}, {61, 67}};

// ------------------------------------------------------------------------------- products

TEST_F(Arithmetic, ProductsAddToWhatIsThere) {
  for (const auto& [rows, cols] : kSizes) {
    for (const Index depth : {Index{1}, Index{2}, Index{5}, Index{13}, Index{16}, Index{67}}) {
      const Tile a = random_tile(rows, depth);
      const Tile b = random_tile(depth, cols);
      const Tile c = random_tile(rows, cols);
      Tile at = machine_.initialize("at", depth, rows);
      for (Index k = 0; k < depth; ++k) {
        for (Index i = 0; i < rows; ++i) {
          at(k, i) = a(i, k);
        }
      }
      const auto sum = [&](Index i, Index j, auto of) {
        double s = of(static_cast<double>(c(i, j)));
        for (Index k = 0; k < a.cols(); ++k) {
          s += of(static_cast<double>(a(i, k)) * static_cast<double>(b(k, j)));
        }
        return s;
      };
      const auto value = [&](Index i, Index j) { return sum(i, j, [](double x) { return x; }); };
      const auto bound = [&](Index i, Index j, double) {
        return static_cast<double>(a.cols() + 1) * kU *
               sum(i, j, [](double x) { return std::abs(x); });
      };
      const Operations expected{2 * rows * cols * depth, 0};
      Tile r = copy_of(c);
      EXPECT_EQ(operations_of([&] { multiply_add(a, b, r); }), expected);
      expect_close(r, value, bound);
      r = copy_of(c);
      EXPECT_EQ(operations_of([&] { multiply_add(transposed(at), b, r); }), expected);
      expect_close(r, value, bound);
    }
  }
}

// Sums of small integers stay below 2^24 units, so they are exact.
TEST_F(Arithmetic, ProductsOfSmallIntegersAreExact) {
  Tile a = random_tile(13, 17, 40);
  Tile b = random_tile(17, 11, 40);
  for (Tile* tile : {&a, &b}) {
    for (Index i = 0; i < tile->words(); ++i) {
      words(*tile)[i] = std::round(words(*tile)[i]);
    }
  }
  Tile c = machine_.initialize("c", 13, 11, 3);
  multiply_add(a, b, c);
  for (Index i = 0; i < 13; ++i) {
    for (Index j = 0; j < 11; ++j) {
      double exact = 3;
      for (Index k = 0; k < 17; ++k) {
        exact += static_cast<double>(a(i, k)) * static_cast<double>(b(k, j));
      }
      EXPECT_EQ(static_cast<double>(c(i, j)), exact);
    }
  }
}

// One square tile may be both factors: c += a^T a.
TEST_F(Arithmetic, ProductsMayUseOneTileTwice) {
  const Tile a = random_tile(5, 5);
  const Tile twin = copy_of(a);
  Tile c = machine_.initialize("c", 5, 5);
  Tile expected = machine_.initialize("expected", 5, 5);
  multiply_add(transposed(a), a, c);
  multiply_add(transposed(a), twin, expected);
  EXPECT_TRUE(std::equal(words(c), words(c) + 25, words(expected)));
}

// ------------------------------------------------------------------------------------ rows

TEST_F(Arithmetic, RaisesMaxima) {
  for (const auto& [rows, cols] : kSizes) {
    const Tile s = random_tile(rows, cols, 10);
    for (const float start : {kLowest, 0.0F, 100.0F}) {
      Tile maximum = machine_.initialize("max", rows, 1, start);
      EXPECT_EQ(operations_of([&] { raise_maximum(s, maximum); }), (Operations{0, s.words()}));
      for (Index i = 0; i < s.rows(); ++i) {
        EXPECT_EQ(maximum(i, 0), std::max(start, largest_of_row(s, i)));
      }
    }
  }
}

// rescale = exp(old - new): 0 at the first block, 1 where the maximum did not rise.
TEST_F(Arithmetic, RaisesMaximaAndTellsTheFactor) {
  for (const auto& [rows, cols] : kSizes) {
    const Tile s = random_tile(rows, cols, 10);
    for (const float start : {kLowest, 0.0F, 100.0F}) {
      Tile maximum = machine_.initialize("max", rows, 1, start);
      Tile rescale = machine_.initialize("rescale", rows, 1, 77);
      EXPECT_EQ(operations_of([&] { raise_maximum(s, maximum, rescale); }),
                (Operations{0, s.words() + 2 * s.rows()}));
      for (Index i = 0; i < s.rows(); ++i) {
        const float top = std::max(start, largest_of_row(s, i));
        EXPECT_EQ(maximum(i, 0), top);
        const double argument = static_cast<double>(start) - static_cast<double>(top);
        const double exact = std::exp(argument);
        const double slack = exact == 0 ? 0 : exact * kU * (4 + std::abs(argument));
        EXPECT_LE(std::abs(static_cast<double>(rescale(i, 0)) - exact), slack);
        if (start == 100) {
          EXPECT_EQ(rescale(i, 0), 1);
        }
        if (start == kLowest) {
          EXPECT_EQ(rescale(i, 0), 0);
        }
      }
    }
  }
}

TEST_F(Arithmetic, ExponentiatesInPlaceAndAside) {
  for (const auto& [rows, cols] : kSizes) {
    const Tile s = random_tile(rows, cols, 20);
    const Tile row = random_tile(rows, 1, 20);
    const auto argument = [&](Index i, Index j) {
      return static_cast<double>(s(i, j)) - static_cast<double>(row(i, 0));
    };
    const auto value = [&](Index i, Index j) { return std::exp(argument(i, j)); };
    const auto bound = [&](Index i, Index j, double exact) {
      return exact * std::expm1(kU * (4 + std::abs(argument(i, j))));
    };
    Tile f = machine_.initialize("f", rows, cols);
    EXPECT_EQ(operations_of([&] { exponentiate(s, row, f); }), (Operations{0, 2 * s.words()}));
    expect_close(f, value, bound);
    Tile in_place = copy_of(s);
    EXPECT_EQ(operations_of([&] { exponentiate(in_place, row, in_place); }),
              (Operations{0, 2 * s.words()}));
    EXPECT_TRUE(std::equal(words(f), words(f) + f.words(), words(in_place)));
  }
}

TEST_F(Arithmetic, AddsRowSumsAndRowDots) {
  for (const auto& [rows, cols] : kSizes) {
    const Tile a = random_tile(rows, cols);
    const Tile b = random_tile(rows, cols);
    const Tile start = random_tile(rows, 1);
    const auto sum = [&](Index i, auto term, auto of) {
      double s = of(static_cast<double>(start(i, 0)));
      for (Index j = 0; j < a.cols(); ++j) {
        s += of(term(i, j));
      }
      return s;
    };
    const auto check = [&](const Tile& computed, auto term) {
      expect_close(
          computed, [&](Index i, Index) { return sum(i, term, [](double x) { return x; }); },
          [&](Index i, Index, double) {
            return static_cast<double>(a.cols() + 1) * kU *
                   sum(i, term, [](double x) { return std::abs(x); });
          });
    };
    Tile sums = copy_of(start);
    EXPECT_EQ(operations_of([&] { add_row_sums(a, sums); }), (Operations{0, a.words()}));
    check(sums, [&](Index i, Index j) { return static_cast<double>(a(i, j)); });
    Tile dots = copy_of(start);
    EXPECT_EQ(operations_of([&] { add_row_dots(a, b, dots); }), (Operations{0, 2 * a.words()}));
    check(dots, [&](Index i, Index j) {
      return static_cast<double>(a(i, j)) * static_cast<double>(b(i, j));
    });
  }
}

TEST_F(Arithmetic, ScalesAndDividesRows) {
  for (const auto& [rows, cols] : kSizes) {
    const Tile a = random_tile(rows, cols);
    const Tile by = random_tile(rows, 1, 0.5, 3);
    const auto once = [](Index, Index, double exact) { return kU * std::abs(exact); };
    Tile scaled = copy_of(a);
    EXPECT_EQ(operations_of([&] { scale_rows(scaled, by); }), (Operations{0, a.words()}));
    expect_close(
        scaled,
        [&](Index i, Index j) {
          return static_cast<double>(a(i, j)) * static_cast<double>(by(i, 0));
        },
        once);
    const auto quotient = [&](Index i, Index j) {
      return static_cast<double>(a(i, j)) / static_cast<double>(by(i, 0));
    };
    Tile f = machine_.initialize("f", rows, cols);
    EXPECT_EQ(operations_of([&] { divide_rows(a, by, f); }), (Operations{0, a.words()}));
    expect_close(f, quotient, once);
    Tile in_place = copy_of(a);  // f may be a
    EXPECT_EQ(operations_of([&] { divide_rows(in_place, by, in_place); }),
              (Operations{0, a.words()}));
    EXPECT_TRUE(std::equal(words(f), words(f) + f.words(), words(in_place)));
  }
}

TEST_F(Arithmetic, AddsLogarithms) {
  for (const Index rows : {Index{1}, Index{2}, Index{31}, Index{64}}) {
    const Tile sum = random_tile(rows, 1, 1, 1000);
    const Tile start = random_tile(rows, 1, 50);
    Tile maximum = copy_of(start);
    EXPECT_EQ(operations_of([&] { add_logarithm(maximum, sum); }), (Operations{0, 2 * rows}));
    expect_close(
        maximum,
        [&](Index i, Index) {
          return static_cast<double>(start(i, 0)) + std::log(static_cast<double>(sum(i, 0)));
        },
        [&](Index i, Index, double exact) {
          return kU * (std::abs(exact) + 5 * std::log(static_cast<double>(sum(i, 0))));
        });
  }
}

TEST_F(Arithmetic, MakesTheGradientOfTheScores) {
  for (const auto& [rows, cols] : kSizes) {
    const Tile f = random_tile(rows, cols, 0, 1);
    const Tile q = random_tile(rows, cols, 5);
    const Tile v = random_tile(rows, 1, 5);
    Tile p = machine_.initialize("p", rows, cols);
    EXPECT_EQ(operations_of([&] { softmax_gradient(f, q, v, p); }), (Operations{0, 2 * p.words()}));
    expect_close(
        p,
        [&](Index i, Index j) {
          return static_cast<double>(f(i, j)) *
                 (static_cast<double>(q(i, j)) - static_cast<double>(v(i, 0)));
        },
        [&](Index, Index, double exact) { return 2 * kU * std::abs(exact); });
    Tile in_place = copy_of(q);  // p may be q
    softmax_gradient(f, in_place, v, in_place);
    EXPECT_TRUE(std::equal(words(p), words(p) + p.words(), words(in_place)));
  }
}

// The online softmax of the kernels: any number of blocks gives the sum of the whole row.
TEST_F(Arithmetic, RescalingByBlocksGivesTheWholeRowsSum) {
  const Tile s = random_tile(7, 60, 30);
  for (const Index block : {Index{1}, Index{7}, Index{60}}) {
    Tile maximum = machine_.initialize("max", 7, 1, kLowest);
    Tile sum = machine_.initialize("sum", 7);
    for (const Range J : blocks(60, block)) {
      Tile part = machine_.initialize("part", 7, J.size());
      for (Index i = 0; i < 7; ++i) {
        for (Index j = 0; j < J.size(); ++j) {
          part(i, j) = s(i, J.begin + j);
        }
      }
      Tile rescale = machine_.initialize("rescale", 7);
      raise_maximum(part, maximum, rescale);
      scale_rows(sum, rescale);
      exponentiate(part, maximum, part);
      add_row_sums(part, sum);
    }
    add_logarithm(maximum, sum);
    expect_close(
        maximum,
        [&](Index i, Index) {
          double whole = 0;
          for (Index j = 0; j < 60; ++j) {
            whole += std::exp(static_cast<double>(s(i, j)));
          }
          return std::log(whole);
        },
        [](Index, Index, double) { return 1e-4; });
  }
}

// ------------------------------------------------------------- parts, and every function's bound

// A whole tile, or a part of a tile with other words around it.
enum class Frame { whole, inside, narrow };

class Operand {
 public:
  Operand(Tile tile, Range rows, Range columns)
      : tile_(std::move(tile)), rows_(rows), columns_(columns) {}

  [[nodiscard]] Index rows() const { return rows_.size(); }
  [[nodiscard]] Index cols() const { return columns_.size(); }
  [[nodiscard]] ConstView in() const { return tile_.part(rows_, columns_); }
  [[nodiscard]] View out() { return tile_.part(rows_, columns_); }
  [[nodiscard]] float& operator()(Index i, Index j) {
    return tile_(rows_.begin + i, columns_.begin + j);
  }
  [[nodiscard]] double operator()(Index i, Index j) const {
    return static_cast<double>(tile_(rows_.begin + i, columns_.begin + j));
  }

  // Returns the bits of the whole tile, with 0 for the words of the part if it may change.
  [[nodiscard]] std::vector<std::uint32_t> bits(bool changes) const {
    std::vector<std::uint32_t> all;
    for (Index i = 0; i < tile_.rows(); ++i) {
      for (Index j = 0; j < tile_.cols(); ++j) {
        const bool inside =
            rows_.begin <= i && i < rows_.end && columns_.begin <= j && j < columns_.end;
        all.push_back(changes && inside ? 0 : std::bit_cast<std::uint32_t>(tile_(i, j)));
      }
    }
    return all;
  }

 private:
  Tile tile_;
  Range rows_, columns_;
};

// A copy of the part's present words, for formulas that need them later.
class Values {
 public:
  explicit Values(const Operand& of) : cols_(of.cols()) {
    for (Index i = 0; i < of.rows(); ++i) {
      for (Index j = 0; j < of.cols(); ++j) {
        words_.push_back(of(i, j));
      }
    }
  }
  [[nodiscard]] double operator()(Index i, Index j) const {
    return words_[static_cast<std::size_t>(i * cols_ + j)];
  }

 private:
  Index cols_;
  std::vector<double> words_;
};

// The expected value of a word, and its largest allowed error.
struct Expected {
  double value;
  double bound;
};

// Ragged for panels of 16 and for every register tile (1, 2, 4, 6, 8 or 12 rows of 1 to 4 panels).
constexpr Index kRagged[] = {1, 5, 15, 16, 17, 31, 33, 48, 61, 80, 112};
constexpr Index kDepths[] = {1, 5, 16, 17, 33, 61};

class ArithmeticOnParts : public Arithmetic {
 protected:
  Operand operand(Frame frame, Index rows, Index cols, double low = -1, double high = 1) {
    if (frame == Frame::whole) {
      return {random_tile(rows, cols, low, high), {0, rows}, {0, cols}};
    }
    if (const Index lane = 3; frame == Frame::narrow && cols + lane < kPanel) {  // in a last panel
      return {random_tile(rows + 5, kPanel + lane + cols, low, high),
              {2, 2 + rows},
              {kPanel + lane, kPanel + lane + cols}};
    }
    // Columns from the second panel on. A few columns begin in the middle of it. Other columns
    // follow, so that the last panel's rows are longer than the part's.
    const Index begin = cols > kPanel / 2 ? kPanel : kPanel + kPanel / 2;
    return {
        random_tile(rows + 5, begin + cols + 7, low, high), {2, 2 + rows}, {begin, begin + cols}};
  }
  // One word per row: all rows of a tile, or some of them.
  Operand column(Frame frame, Index rows, double low = -1, double high = 1) {
    const Index above = frame == Frame::whole ? 0 : 3;
    return {random_tile(rows + 2 * above, 1, low, high), {above, above + rows}, {0, 1}};
  }

  // Expects that `work` reports `operations` and changes only words of `changed`.
  void expect_changes_only(const std::vector<Operand*>& changed,
                           const std::vector<const Operand*>& others, Operations operations,
                           const std::function<void()>& work) {
    const auto contents = [&] {
      std::vector<std::vector<std::uint32_t>> all;
      for (const Operand* operand : changed) {
        all.push_back(operand->bits(true));
      }
      for (const Operand* operand : others) {
        all.push_back(operand->bits(false));
      }
      return all;
    };
    const auto before = contents();
    EXPECT_EQ(operations_of(work), operations);
    EXPECT_TRUE(contents() == before) << "a word outside the part, or of an operand, changed";
  }

  template <class Formula>
  static void expect_words(const Operand& computed, const Formula& formula) {
    for (Index i = 0; i < computed.rows(); ++i) {
      for (Index j = 0; j < computed.cols(); ++j) {
        const Expected expected = formula(i, j);
        ASSERT_LE(std::abs(computed(i, j) - expected.value), expected.bound)
            << computed(i, j) << " for " << expected.value << " at " << i << ", " << j << " of "
            << computed.rows() << " x " << computed.cols();
      }
    }
  }

  // Tests all shapes, as whole tiles and as parts.
  template <class Case>
  static void for_shapes(const Case& test) {
    for (const Frame frame : {Frame::whole, Frame::inside, Frame::narrow}) {
      for (const Index rows : kRagged) {
        for (const Index cols : kRagged) {
          SCOPED_TRACE(std::string(frame == Frame::whole    ? "whole "
                                   : frame == Frame::inside ? "part "
                                                            : "narrow ") +
                       std::to_string(rows) + " x " + std::to_string(cols));
          test(frame, rows, cols);
          if (testing::Test::HasFatalFailure()) {
            return;
          }
        }
      }
    }
  }
};

// sum_k a_ik b_kj, and the sum of the absolute values. The error is at most k u sum |a||b|: u for
// each term and u for each sum, in any order, with or without fused multiply-adds.
struct Sum {
  double value = 0;
  double magnitude = 0;
  [[nodiscard]] double error(Index depth) const {
    return static_cast<double>(depth) * kU * magnitude;
  }
};
template <class Left>
Sum product_of(const Left& a, const Operand& b, Index i, Index j) {
  Sum sum;
  for (Index k = 0; k < b.rows(); ++k) {
    const double term = a(i, k) * b(k, j);
    sum.value += term;
    sum.magnitude += std::abs(term);
  }
  return sum;
}

// c += a b, c = a b, and both with a transposed, on whole tiles and on parts.
TEST_F(ArithmeticOnParts, Products) {
  for_shapes([&](Frame frame, Index rows, Index cols) {
    for (const Index depth : kDepths) {
      const Operand a = operand(frame, rows, depth);
      const Operand a_t = operand(frame, depth, rows);
      const Operand b = operand(frame, depth, cols);
      Operand c = operand(frame, rows, cols);
      const Operations operations{2 * rows * cols * depth, 0};
      const auto straight = [&](Index i, Index k) { return a(i, k); };
      const auto turned = [&](Index i, Index k) { return a_t(k, i); };

      const auto expect_product = [&](const auto& left, bool adds, const auto& work) {
        const Values before(c);
        expect_changes_only({&c}, {&a, &a_t, &b}, operations, work);
        expect_words(c, [&](Index i, Index j) {
          const Sum sum = product_of(left, b, i, j);
          const double start = adds ? before(i, j) : 0;
          return Expected{start + sum.value,
                          static_cast<double>(depth + 1) * kU * (std::abs(start) + sum.magnitude)};
        });
      };
      expect_product(straight, true, [&] { multiply_add(a.in(), b.in(), c.out()); });
      expect_product(turned, true, [&] { multiply_add(transposed(a_t.in()), b.in(), c.out()); });
      // The old words of c are overwritten, even if they are NaN.
      for (Index i = 0; i < rows; ++i) {
        c(i, (7 * i) % cols) = std::numeric_limits<float>::quiet_NaN();
      }
      expect_product(straight, false, [&] { multiply(a.in(), b.in(), c.out()); });
      c(rows - 1, cols - 1) = kLowest;
      expect_product(turned, false, [&] { multiply(transposed(a_t.in()), b.in(), c.out()); });
    }
  });
}

// f^T = exp(a b - L), c = a b - shift, p^T = f^T (a b - v), with one word of L, shift and v for
// each column. A sum is off by e = k u sum |a||b|. The difference adds u of itself, exp adds 4 u,
// and the last product adds u.
TEST_F(ArithmeticOnParts, ProductsThroughAFunction) {
  for_shapes([&](Frame frame, Index rows, Index cols) {
    for (const Index depth : kDepths) {
      const Operand a = operand(frame, rows, depth);
      const Operand b = operand(frame, depth, cols);
      const Operand shift = column(frame, cols, -2, 5);
      Operand c = operand(frame, rows, cols);
      const Tile registers =
          machine_.initialize("registers", std::min(kRegisterCharge, rows * cols), 1, 77);
      const Index area = rows * cols;
      const auto difference = [&](Index i, Index j) {
        const Sum sum = product_of(a, b, i, j);
        const double value = sum.value - shift(j, 0);
        const double error = sum.error(depth);
        return Expected{value, error + kU * (std::abs(value) + error)};
      };

      expect_changes_only({&c}, {&a, &b, &shift}, {2 * area * depth, 2 * area},
                          [&] { exponentiated_product(a.in(), b.in(), shift.in(), c.out()); });
      expect_words(c, [&](Index i, Index j) {
        const auto [argument, error] = difference(i, j);
        const double value = std::exp(argument);
        return Expected{value, value * std::expm1(error + 4 * kU)};
      });

      const Values f(c);
      expect_changes_only({&c}, {&a, &b, &shift}, {2 * area * depth, 2 * area}, [&] {
        softmax_gradient_product(a.in(), b.in(), shift.in(), c.out(), registers);
      });
      expect_words(c, [&](Index i, Index j) {
        const auto [value, error] = difference(i, j);
        return Expected{f(i, j) * value, f(i, j) * (error + kU * (std::abs(value) + error))};
      });
      EXPECT_TRUE(std::all_of(words(registers), words(registers) + registers.words(),
                              [](float word) { return word == 77; }))
          << "the tile is charged, not used";

      expect_changes_only({&c}, {&a, &b, &shift}, {2 * area * depth, area},
                          [&] { shifted_product(a.in(), b.in(), shift.in(), c.out()); });
      expect_words(c, difference);
    }
  });
}

// max(old, max_j s_ij) has no rounding. exp(old - new) has the roundings of a difference and of
// exp.
TEST_F(ArithmeticOnParts, RaisesMaxima) {
  for_shapes([&](Frame frame, Index rows, Index cols) {
    const Operand s = operand(frame, rows, cols, -10, 10);
    const Operand s_t = operand(frame, cols, rows, -10, 10);
    const auto expect_raised = [&](const auto& score, bool rescales, const auto& work) {
      Operand maximum = column(frame, rows, -10, 20);
      maximum(rows / 2, 0) = kLowest;
      Operand rescale = column(frame, rows);
      const Values old(maximum);
      const Operations operations{0, rows * cols + (rescales ? 2 * rows : 0)};
      expect_changes_only({&maximum, &rescale}, {&s, &s_t}, operations,
                          [&] { work(maximum.out(), rescale.out()); });
      const auto raised = [&](Index i) {
        double top = old(i, 0);
        for (Index j = 0; j < cols; ++j) {
          top = std::max(top, score(i, j));
        }
        return top;
      };
      expect_words(maximum, [&](Index i, Index) { return Expected{raised(i), 0}; });
      if (rescales) {
        expect_words(rescale, [&](Index i, Index) {
          const double argument = old(i, 0) - raised(i);
          const double value = std::exp(argument);
          return Expected{value, argument == 0 || value == 0
                                     ? 0
                                     : value * std::expm1(kU * (4 + std::abs(argument)))};
        });
      }
    };
    const auto straight = [&](Index i, Index j) { return s(i, j); };
    const auto turned = [&](Index i, Index j) { return s_t(j, i); };
    expect_raised(straight, false,
                  [&](const View& maximum, const View&) { raise_maximum(s.in(), maximum); });
    expect_raised(straight, true, [&](const View& maximum, const View& rescale) {
      raise_maximum(s.in(), maximum, rescale);
    });
    expect_raised(turned, false, [&](const View& maximum, const View&) {
      raise_maximum(transposed(s_t.in()), maximum);
    });
    expect_raised(turned, true, [&](const View& maximum, const View& rescale) {
      raise_maximum(transposed(s_t.in()), maximum, rescale);
    });
  });
}

// exp(s - row): the roundings of a difference and of exp.
TEST_F(ArithmeticOnParts, Exponentiates) {
  for_shapes([&](Frame frame, Index rows, Index cols) {
    const Operand row = column(frame, rows, -20, 20);
    const auto expect_exponentials = [&](const Operand& f, const auto& argument_of) {
      expect_words(f, [&](Index i, Index j) {
        const double argument = argument_of(i, j);
        const double value = std::exp(argument);
        return Expected{value, value * std::expm1(kU * (4 + std::abs(argument)))};
      });
    };
    const Operations operations{0, 2 * rows * cols};

    Operand s = operand(frame, rows, cols, -20, 20);
    Operand f = operand(frame, rows, cols);
    const Values score(s);
    const auto straight = [&](Index i, Index j) { return score(i, j) - row(i, 0); };
    expect_changes_only({&f}, {&s, &row}, operations,
                        [&] { exponentiate(s.in(), row.in(), f.out()); });
    expect_exponentials(f, straight);
    expect_changes_only({&s}, {&f, &row}, operations,
                        [&] { exponentiate(s.in(), row.in(), s.out()); });
    expect_exponentials(s, straight);

    // Transposed, in place.
    Operand alone = operand(frame, cols, rows, -20, 20);
    const Values alone_before(alone);
    expect_changes_only({&alone}, {&row}, {0, 2 * rows * cols},
                        [&] { exponentiate(transposed(alone.out()), row.in()); });
    expect_exponentials(alone, [&](Index j, Index i) { return alone_before(j, i) - row(i, 0); });

    // The same with the sums of the results and of their products with q. Each term
    // has the error of its exponential, and is rounded at most once for each addition.
    const Operand q_t = operand(frame, cols, rows);
    for (const bool with_q : {false, true}) {
      Operand s_t = operand(frame, cols, rows, -20, 20);
      Operand sum = column(frame, rows);
      Operand dots = column(frame, rows);
      const Values score_t(s_t);
      const Values sum_before(sum);
      const Values dots_before(dots);
      const auto turned = [&](Index j, Index i) { return score_t(j, i) - row(i, 0); };
      if (with_q) {
        expect_changes_only({&s_t, &sum, &dots}, {&row, &q_t}, {0, 5 * rows * cols}, [&] {
          exponentiate(transposed(s_t.out()), row.in(), sum.out(), transposed(q_t.in()),
                       dots.out());
        });
      } else {
        expect_changes_only({&s_t, &sum}, {&row, &q_t, &dots}, {0, 3 * rows * cols},
                            [&] { exponentiate(transposed(s_t.out()), row.in(), sum.out()); });
      }
      expect_exponentials(s_t, turned);
      const auto expect_sum = [&](const Operand& found, const Values& before, const auto& weight) {
        expect_words(found, [&](Index i, Index) {
          double value = before(i, 0);
          double size = std::abs(value);
          double off = 0;
          for (Index j = 0; j < cols; ++j) {
            const double term = std::exp(turned(j, i)) * weight(j, i);
            value += term;
            size += std::abs(term);
            off += std::abs(term) * std::expm1(kU * (4 + std::abs(turned(j, i))));
          }
          return Expected{value, off + static_cast<double>(cols + 1) * kU * (size + off)};
        });
      };
      expect_sum(sum, sum_before, [](Index, Index) { return 1.0; });
      if (with_q) {
        expect_sum(dots, dots_before, [&](Index j, Index i) { return q_t(j, i); });
      }
    }
  });
}

// sum_i += sum_j a_ij, or a_ij b_ij: at most one rounding for each term, and one for each addition.
TEST_F(ArithmeticOnParts, AddsRowSumsAndRowDots) {
  for_shapes([&](Frame frame, Index rows, Index cols) {
    const Operand a = operand(frame, rows, cols);
    const Operand b = operand(frame, rows, cols);
    const Operand a_t = operand(frame, cols, rows);
    const Operand b_t = operand(frame, cols, rows);
    Operand sum = column(frame, rows);
    const auto expect_sums = [&](Index operations, const auto& term, const auto& work) {
      const Values start(sum);
      expect_changes_only({&sum}, {&a, &b, &a_t, &b_t}, {0, operations}, work);
      expect_words(sum, [&](Index i, Index) {
        double value = start(i, 0);
        double magnitude = std::abs(value);
        for (Index j = 0; j < cols; ++j) {
          value += term(i, j);
          magnitude += std::abs(term(i, j));
        }
        return Expected{value, static_cast<double>(cols + 1) * kU * magnitude};
      });
    };
    expect_sums(
        rows * cols, [&](Index i, Index j) { return a(i, j); },
        [&] { add_row_sums(a.in(), sum.out()); });
    expect_sums(
        2 * rows * cols, [&](Index i, Index j) { return a(i, j) * b(i, j); },
        [&] { add_row_dots(a.in(), b.in(), sum.out()); });
    expect_sums(
        2 * rows * cols, [&](Index i, Index j) { return a_t(j, i) * b_t(j, i); },
        [&] { add_row_dots(transposed(a_t.in()), transposed(b_t.in()), sum.out()); });
  });
}

// One rounding: a *= factor, a / divisor, a += b. Two roundings: a -= factor b.
TEST_F(ArithmeticOnParts, ScalesDividesAddsAndSubtracts) {
  for_shapes([&](Frame frame, Index rows, Index cols) {
    const Operand factor = column(frame, rows, 0.5, 3);
    const Operand b = operand(frame, rows, cols);
    Operand a = operand(frame, rows, cols);
    Operand f = operand(frame, rows, cols);
    const auto once = [](double value) { return Expected{value, kU * std::abs(value)}; };
    const Index area = rows * cols;

    expect_changes_only({&f}, {&a, &factor}, {0, area},
                        [&] { divide_rows(a.in(), factor.in(), f.out()); });
    expect_words(f, [&](Index i, Index j) { return once(a(i, j) / factor(i, 0)); });
    Values old(a);
    expect_changes_only({&a}, {&b, &factor}, {0, area},
                        [&] { divide_rows(a.in(), factor.in(), a.out()); });
    expect_words(a, [&](Index i, Index j) { return once(old(i, j) / factor(i, 0)); });
    old = Values(a);
    expect_changes_only({&a}, {&b, &factor}, {0, area}, [&] { scale_rows(a.out(), factor.in()); });
    expect_words(a, [&](Index i, Index j) { return once(old(i, j) * factor(i, 0)); });
    old = Values(a);
    expect_changes_only({&a}, {&b, &factor}, {0, area}, [&] { scale(a.out(), 0.7F); });
    expect_words(a, [&](Index i, Index j) { return once(old(i, j) * 0.7F); });
    old = Values(a);
    expect_changes_only({&a}, {&b, &factor}, {0, area}, [&] { add(a.out(), b.in()); });
    expect_words(a, [&](Index i, Index j) { return once(old(i, j) + b(i, j)); });
    old = Values(a);
    expect_changes_only({&a}, {&b, &factor}, {0, 2 * area},
                        [&] { subtract_scaled_rows(a.out(), factor.in(), b.in()); });
    expect_words(a, [&](Index i, Index j) {
      const double product = factor(i, 0) * b(i, j);
      const double value = old(i, j) - product;
      return Expected{value, kU * (std::abs(value) + (1 + kU) * std::abs(product))};
    });
    old = Values(a);
    expect_changes_only({&a}, {&b, &factor}, {0, area}, [&] { multiply_words(a.out(), b.in()); });
    expect_words(a, [&](Index i, Index j) { return once(old(i, j) * b(i, j)); });
    old = Values(a);
    expect_changes_only({&a}, {&b, &factor}, {0, area},
                        [&] { subtract_rows(a.out(), factor.in()); });
    expect_words(a, [&](Index i, Index j) { return once(old(i, j) - factor(i, 0)); });
    Operand a_t = operand(frame, cols, rows);
    old = Values(a_t);
    expect_changes_only({&a_t}, {&b, &factor}, {0, area},
                        [&] { subtract_rows(transposed(a_t.out()), factor.in()); });
    expect_words(a_t, [&](Index j, Index i) { return once(old(j, i) - factor(i, 0)); });
  });
}

// f (q - v): two roundings, each relative.
TEST_F(ArithmeticOnParts, MakesTheGradientOfTheScores) {
  for_shapes([&](Frame frame, Index rows, Index cols) {
    const Operand v = column(frame, rows, -5, 5);
    const Operations operations{0, 2 * rows * cols};
    const auto twice = [](double value) { return Expected{value, 2 * kU * std::abs(value)}; };

    Operand f = operand(frame, rows, cols, 0, 1);
    Operand q = operand(frame, rows, cols, -5, 5);
    Operand p = operand(frame, rows, cols);
    const Values old_f(f);
    const Values old_q(q);
    const auto gradient = [&](Index i, Index j) {
      return twice(old_f(i, j) * (old_q(i, j) - v(i, 0)));
    };
    expect_changes_only({&p}, {&f, &q, &v}, operations,
                        [&] { softmax_gradient(f.in(), q.in(), v.in(), p.out()); });
    expect_words(p, gradient);
    Operand in_place = operand(frame, rows, cols, 0, 1);
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < cols; ++j) {
        in_place(i, j) = static_cast<float>(f(i, j));
      }
    }
    expect_changes_only({&in_place}, {&f, &q, &v}, operations, [&] {  // p may be f
      softmax_gradient(in_place.in(), q.in(), v.in(), in_place.out());
    });
    expect_words(in_place, gradient);
    expect_changes_only({&q}, {&f, &p, &v}, operations, [&] {  // p may be q
      softmax_gradient(f.in(), q.in(), v.in(), q.out());
    });
    expect_words(q, gradient);

    const Operand f_t = operand(frame, cols, rows, 0, 1);
    Operand q_t = operand(frame, cols, rows, -5, 5);
    const Values old_q_t(q_t);
    expect_changes_only({&q_t}, {&f_t, &v}, operations, [&] {
      softmax_gradient(transposed(f_t.in()), v.in(), transposed(q_t.out()));
    });
    expect_words(q_t,
                 [&](Index j, Index i) { return twice(f_t(j, i) * (old_q_t(j, i) - v(i, 0))); });
  });
}

// maximum += log(sum): log is off by 4 u of its value, and the sum by u of itself.
TEST_F(ArithmeticOnParts, AddsLogarithms) {
  for (const Frame frame : {Frame::whole, Frame::inside, Frame::narrow}) {
    for (const Index rows : kRagged) {
      const Operand sum = column(frame, rows, 1, 1000);
      Operand maximum = column(frame, rows, -50, 50);
      const Values old(maximum);
      expect_changes_only({&maximum}, {&sum}, {0, 2 * rows},
                          [&] { add_logarithm(maximum.out(), sum.in()); });
      expect_words(maximum, [&](Index i, Index) {
        const double logarithm = std::log(sum(i, 0));
        const double value = old(i, 0) + logarithm;
        return Expected{value, kU * (std::abs(value) + 5 * logarithm)};
      });
    }
  }
}

// t = a^T copies bits, including NaNs, infinities and both zeros. It reports no operations.
TEST_F(ArithmeticOnParts, Transposes) {
  for_shapes([&](Frame frame, Index rows, Index cols) {
    Operand a = operand(frame, rows, cols);
    a(rows - 1, 0) = std::bit_cast<float>(0x7fc12345U);
    a(0, cols - 1) = -0.0F;
    a(rows / 2, cols / 2) = kLowest;
    Operand t = operand(frame, cols, rows);
    expect_changes_only({&t}, {&a}, {}, [&] { transpose(a.in(), t.out()); });
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < cols; ++j) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(t(j, i)), std::bit_cast<std::uint32_t>(a(i, j)));
      }
    }
  });
}

// x * 1 = x to the bit, including signalling NaNs and subnormals, because rows with factor 1 are
// not multiplied.
TEST_F(ArithmeticOnParts, LeavesTheBitsOfRowsWhoseFactorIsOne) {
  constexpr std::uint32_t kStrange[] = {0x80000000, 0x00000001, 0x807fffff, 0x7f800000,
                                        0xff800000, 0x7fc12345, 0xffc00001, 0x7f812345};
  for_shapes([&](Frame frame, Index rows, Index cols) {
    Operand a = operand(frame, rows, cols);
    Operand factor = column(frame, rows);
    for (Index i = 0; i < rows; ++i) {
      factor(i, 0) = i % 3 == 1 ? 2.0F : 1.0F;
      for (Index j = 0; j < cols && i % 3 != 1; ++j) {
        a(i, j) = std::bit_cast<float>(kStrange[static_cast<std::size_t>(i + j) % 8]);
      }
    }
    const Values old(a);
    expect_changes_only({&a}, {&factor}, {0, rows * cols},
                        [&] { scale_rows(a.out(), factor.in()); });
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < cols; ++j) {
        if (i % 3 == 1) {
          ASSERT_EQ(a(i, j), static_cast<float>(2 * old(i, j)));
        } else {
          ASSERT_EQ(std::bit_cast<std::uint32_t>(a(i, j)),
                    kStrange[static_cast<std::size_t>(i + j) % 8]);
        }
      }
    }
  });
}

// ----------------------------------------------------------------------------------- NaN

// A NaN in any word of any operand makes NaN of exactly the result words with that word in their
// formula.
struct Dependence {
  const char* what;
  std::vector<std::pair<Index, Index>> shapes;  // of the operands
  std::size_t result;                           // index of the operand that holds the result
  std::function<void(std::vector<Operand>&)> work;
  // Whether word (x, y) of the result has word (i, j) of operand k in its formula.
  std::function<bool(std::size_t k, Index i, Index j, Index x, Index y)> has;
};

TEST_F(ArithmeticOnParts, NaNInIsNaNOut) {
  constexpr Index kRows = 17;
  constexpr Index kCols = 35;
  constexpr Index kDepth = 18;
  const std::pair<Index, Index> whole{kRows, kCols};
  const std::pair<Index, Index> per_row{kRows, 1};
  const std::pair<Index, Index> per_column{kCols, 1};
  const std::pair<Index, Index> left{kRows, kDepth};
  const std::pair<Index, Index> left_t{kDepth, kRows};
  const std::pair<Index, Index> right{kDepth, kCols};
  using Operands = std::vector<Operand>;

  // Operands: one factor, the other, [one word per column,] the result.
  const auto product = [](std::size_t k, Index i, Index j, Index x, Index y) {
    return k == 0 ? i == x : j == y;
  };
  const auto product_and_result = [=](std::size_t k, Index i, Index j, Index x, Index y) {
    return k == 2 ? i == x && j == y : product(k, i, j, x, y);
  };
  const auto turned_product = [](std::size_t k, Index, Index j, Index x, Index y) {
    return k == 0 ? j == x : k == 1 && j == y;
  };
  const auto turned_product_and_result = [=](std::size_t k, Index i, Index j, Index x, Index y) {
    return k == 2 ? i == x && j == y : turned_product(k, i, j, x, y);
  };
  const auto product_by_column = [=](std::size_t k, Index i, Index j, Index x, Index y) {
    return k == 2 ? i == y : k < 2 && product(k, i, j, x, y);
  };
  // An operand of the result's shape: the same word. A column: the word of its row, or of its
  // column.
  const auto elementwise = [](std::size_t column, bool turned) {
    return [=](std::size_t k, Index i, Index j, Index x, Index y) {
      return k == column ? i == (turned ? y : x) : i == x && j == y;
    };
  };
  // The result has a word for each row, or column, of the first `wide` operands.
  const auto folded = [](bool turned, std::size_t wide) {
    return [=](std::size_t k, Index i, Index j, Index x, Index) {
      return k < wide ? (turned ? j : i) == x : i == x;
    };
  };
  // The words of the operands count, but the old words of the result do not.
  const auto without = [](std::size_t result, auto has) {
    return [=](std::size_t k, Index i, Index j, Index x, Index y) {
      return k != result && has(k, i, j, x, y);
    };
  };

  const Dependence functions[] = {
      {"c += a b",
       {left, right, whole},
       2,
       [](Operands& of) { multiply_add(of[0].in(), of[1].in(), of[2].out()); },
       product_and_result},
      {"c += a^T b",
       {left_t, right, whole},
       2,
       [](Operands& of) { multiply_add(transposed(of[0].in()), of[1].in(), of[2].out()); },
       turned_product_and_result},
      {"c = a b",
       {left, right, whole},
       2,
       [](Operands& of) { multiply(of[0].in(), of[1].in(), of[2].out()); },
       without(2, product)},
      {"c = a^T b",
       {left_t, right, whole},
       2,
       [](Operands& of) { multiply(transposed(of[0].in()), of[1].in(), of[2].out()); },
       without(2, turned_product)},
      {"exp(a b - L)",
       {left, right, per_column, whole},
       3,
       [](Operands& of) { exponentiated_product(of[0].in(), of[1].in(), of[2].in(), of[3].out()); },
       product_by_column},
      {"a b - shift",
       {left, right, per_column, whole},
       3,
       [](Operands& of) { shifted_product(of[0].in(), of[1].in(), of[2].in(), of[3].out()); },
       product_by_column},
      {"f^T (a b - v)",
       {left, right, per_column, whole},
       3,
       [this](Operands& of) {
         const Tile registers = machine_.initialize("registers", kRegisterCharge);
         softmax_gradient_product(of[0].in(), of[1].in(), of[2].in(), of[3].out(), registers);
       },
       [=](std::size_t k, Index i, Index j, Index x, Index y) {
         return k == 3 ? i == x && j == y : product_by_column(k, i, j, x, y);
       }},
      {"sums after maxima",
       {whole, per_row},
       1,
       [this](Operands& of) {
         Tile maximum = machine_.initialize("max", kRows, 1, kNoMaximum);
         raise_maximum(of[0].in(), maximum);
         exponentiate(of[0].in(), maximum, of[0].out());
         add_row_sums(of[0].in(), of[1].out());
       },
       folded(false, 1)},
      {"sums after maxima^T",
       {{kCols, kRows}, per_row},
       1,
       [this](Operands& of) {
         Tile maximum = machine_.initialize("max", kRows, 1, kNoMaximum);
         raise_maximum(transposed(of[0].in()), maximum);
         exponentiate(transposed(of[0].out()), maximum, of[1].out());
       },
       folded(true, 1)},
      {"exp",
       {whole, per_row, whole},
       2,
       [](Operands& of) { exponentiate(of[0].in(), of[1].in(), of[2].out()); },
       without(2, elementwise(1, false))},
      {"exp in place",
       {whole, per_row},
       0,
       [](Operands& of) { exponentiate(of[0].in(), of[1].in(), of[0].out()); },
       elementwise(1, false)},
      {"exp^T alone",
       {whole, per_column},
       0,
       [](Operands& of) { exponentiate(transposed(of[0].out()), of[1].in()); },
       elementwise(1, true)},
      {"exp^T",
       {whole, per_column, per_column},
       0,
       [](Operands& of) { exponentiate(transposed(of[0].out()), of[1].in(), of[2].out()); },
       without(2, elementwise(1, true))},
      {"exp^T: sums",
       {whole, per_column, per_column},
       2,
       [](Operands& of) { exponentiate(transposed(of[0].out()), of[1].in(), of[2].out()); },
       folded(true, 1)},
      {"exp^T: dots",
       {whole, per_column, per_column, whole, per_column},
       4,
       [](Operands& of) {
         exponentiate(transposed(of[0].out()), of[1].in(), of[2].out(), transposed(of[3].in()),
                      of[4].out());
       },
       [](std::size_t k, Index i, Index j, Index x, Index) {
         return k != 2 && (k == 0 || k == 3 ? j == x : i == x);
       }},
      {"row sums",
       {whole, per_row},
       1,
       [](Operands& of) { add_row_sums(of[0].in(), of[1].out()); },
       folded(false, 1)},
      {"row dots",
       {whole, whole, per_row},
       2,
       [](Operands& of) { add_row_dots(of[0].in(), of[1].in(), of[2].out()); },
       folded(false, 2)},
      {"row dots^T",
       {whole, whole, per_column},
       2,
       [](Operands& of) {
         add_row_dots(transposed(of[0].in()), transposed(of[1].in()), of[2].out());
       },
       folded(true, 2)},
      {"scale",
       {whole, per_row},
       0,
       [](Operands& of) { scale_rows(of[0].out(), of[1].in()); },
       elementwise(1, false)},
      {"scale by one factor",
       {whole},
       0,
       [](Operands& of) { scale(of[0].out(), 0.7F); },
       elementwise(1, false)},
      {"a -= factor b",
       {whole, per_row, whole},
       0,
       [](Operands& of) { subtract_scaled_rows(of[0].out(), of[1].in(), of[2].in()); },
       elementwise(1, false)},
      {"a / divisor",
       {whole, per_row, whole},
       2,
       [](Operands& of) { divide_rows(of[0].in(), of[1].in(), of[2].out()); },
       without(2, elementwise(1, false))},
      {"a += b",
       {whole, whole},
       0,
       [](Operands& of) { add(of[0].out(), of[1].in()); },
       elementwise(9, false)},
      {"a *= b",
       {whole, whole},
       0,
       [](Operands& of) { multiply_words(of[0].out(), of[1].in()); },
       elementwise(9, false)},
      {"a -= row",
       {whole, per_row},
       0,
       [](Operands& of) { subtract_rows(of[0].out(), of[1].in()); },
       elementwise(1, false)},
      {"a^T -= row",
       {whole, per_column},
       0,
       [](Operands& of) { subtract_rows(transposed(of[0].out()), of[1].in()); },
       elementwise(1, true)},
      {"log",
       {per_row, per_row},
       0,
       [](Operands& of) { add_logarithm(of[0].out(), of[1].in()); },
       elementwise(9, false)},
      {"gradient",
       {whole, per_row, whole, whole},
       3,
       [](Operands& of) { softmax_gradient(of[0].in(), of[2].in(), of[1].in(), of[3].out()); },
       without(3, elementwise(1, false))},
      {"gradient^T",
       {whole, per_column, whole},
       2,
       [](Operands& of) {
         softmax_gradient(transposed(of[0].in()), of[1].in(), transposed(of[2].out()));
       },
       elementwise(1, true)},
  };
  for (const Dependence& function : functions) {
    SCOPED_TRACE(function.what);
    for (std::size_t k = 0; k < function.shapes.size(); ++k) {
      const auto [rows, cols] = function.shapes[k];
      std::string wrong;
      // Visits every panel and lane of the operand, on a diagonal that wraps around.
      for (Index step = 0; step < std::max(rows, cols) && wrong.empty(); ++step) {
        const Index i = step % rows;
        const Index j = step % cols;
        Operands of;
        for (const auto& [height, width] : function.shapes) {
          of.push_back(operand(width == 1 ? Frame::whole : Frame::inside, height, width, 0.5, 2));
        }
        of[k](i, j) = std::numeric_limits<float>::quiet_NaN();
        function.work(of);
        const Operand& result = of[function.result];
        for (Index x = 0; x < result.rows(); ++x) {
          for (Index y = 0; y < result.cols(); ++y) {
            if (std::isnan(result(x, y)) != function.has(k, i, j, x, y)) {
              wrong = "word " + std::to_string(x) + ", " + std::to_string(y) + " is " +
                      std::to_string(result(x, y)) + " with a NaN at " + std::to_string(i) + ", " +
                      std::to_string(j) + " of operand " + std::to_string(k);
            }
          }
        }
      }
      EXPECT_EQ(wrong, "");
    }
  }
}

// ---------------------------------------------------------------------------------- refusals

// A call with tiles that do not conform throws. It reports no operations and changes no words.
TEST_F(Arithmetic, RefusesTilesThatDoNotConform) {
  Tile t43 = random_tile(4, 3);
  Tile t34 = random_tile(3, 4);
  Tile t44 = random_tile(4, 4);
  Tile t33 = random_tile(3, 3);
  Tile wide = random_tile(4, kPanel + 4);
  Tile c4 = random_tile(4, 1, 1, 2);
  Tile c2 = random_tile(2, 1, 1, 2);
  Tile other_c2 = random_tile(2, 1, 1, 2);
  Tile neighbour = random_tile(4, 4);  // lies behind the small tiles
  Tile* const all[] = {&t43, &t34, &t44, &t33, &wide, &c4, &c2, &other_c2, &neighbour};
  const auto contents = [&] {
    std::vector<float> all_words;
    for (const Tile* tile : all) {
      all_words.insert(all_words.end(), words(*tile), words(*tile) + tile->words());
    }
    return all_words;
  };

  const std::pair<const char*, std::function<void()>> calls[] = {
      {"a b: depth", [&] { multiply_add(t43, t43, t44); }},
      {"a b: rows", [&] { multiply_add(t43, t34, t34); }},
      {"a b: columns", [&] { multiply_add(t43, t33, t44); }},
      {"a^T b: depth", [&] { multiply_add(transposed(t43), t34, t33); }},
      {"a^T b: rows", [&] { multiply_add(transposed(t43), t44, t44); }},
      {"a^T b: columns", [&] { multiply_add(transposed(t43), t44, t33); }},
      {"maximum: rows", [&] { raise_maximum(t43, c2); }},
      {"maximum: not a column", [&] { raise_maximum(t43, t44); }},
      {"rescale: rows", [&] { raise_maximum(t43, c4, c2); }},
      {"rescale: both short", [&] { raise_maximum(t43, c2, other_c2); }},
      {"rescale: both long", [&] { raise_maximum(t34, c4, c4); }},
      {"exp: rows", [&] { exponentiate(t43, c2, t43); }},
      {"exp aside: rows", [&] { exponentiate(t43, c2, t43); }},
      {"exp aside: result", [&] { exponentiate(t43, c4, t44); }},
      {"sums: rows", [&] { add_row_sums(t43, c2); }},
      {"sums: not a column", [&] { add_row_sums(t43, t44); }},
      {"dots: operands", [&] { add_row_dots(t43, t44, c4); }},
      {"dots: rows", [&] { add_row_dots(t43, t43, c2); }},
      {"scale", [&] { scale_rows(t43, c2); }},
      {"divide: rows", [&] { divide_rows(t43, c2, t43); }},
      {"divide: result", [&] { divide_rows(t43, c4, t44); }},
      {"log", [&] { add_logarithm(c4, c2); }},
      {"log: not columns", [&] { add_logarithm(t43, t43); }},
      {"gradient: q", [&] { softmax_gradient(t43, t44, c4, t43); }},
      {"gradient: v", [&] { softmax_gradient(t43, t43, c2, t43); }},
      {"gradient: p", [&] { softmax_gradient(t43, t43, c4, t44); }},
      {"c = a b: depth", [&] { multiply(t43, t43, t44); }},
      {"c = a b: rows", [&] { multiply(t43, t34, t34); }},
      {"c = a b: columns", [&] { multiply(t43, t33, t44); }},
      {"c = a^T b: depth", [&] { multiply(transposed(t43), t34, t33); }},
      {"c = a^T b: rows", [&] { multiply(transposed(t43), t44, t44); }},
      {"c = a^T b: columns", [&] { multiply(transposed(t43), t44, t33); }},
      {"exp of product: depth", [&] { exponentiated_product(t43, t43, c4, t44); }},
      {"exp of product: rows", [&] { exponentiated_product(t43, t34, c4, t34); }},
      {"exp of product: a word a row", [&] { exponentiated_product(t34, t43, c4, t33); }},
      {"exp of product: not a column", [&] { exponentiated_product(t43, t34, t44, t44); }},
      {"shifted product: depth", [&] { shifted_product(t43, t43, c4, t44); }},
      {"shifted product: columns", [&] { shifted_product(t43, t33, c4, t44); }},
      {"shifted product: a word a row", [&] { shifted_product(t34, t43, c4, t33); }},
      {"gradient product: depth", [&] { softmax_gradient_product(t43, t43, c4, t44, t44); }},
      {"gradient product: rows", [&] { softmax_gradient_product(t43, t34, c4, t34, t44); }},
      {"gradient product: v", [&] { softmax_gradient_product(t43, t34, c2, t44, t44); }},
      {"gradient product: registers", [&] { softmax_gradient_product(t43, t34, c4, t44, t43); }},
      {"maximum^T alone: a word a row", [&] { raise_maximum(transposed(t43), c4); }},
      {"maximum^T: a word a row", [&] { raise_maximum(transposed(t43), c4, c4); }},
      {"maximum^T: rescale", [&] { raise_maximum(transposed(t34), c4, c2); }},
      {"exp^T alone: a word a row", [&] { exponentiate(transposed(t43), c4); }},
      {"exp^T: a word a row", [&] { exponentiate(transposed(t43), c4, c4); }},
      {"exp^T: not a column", [&] { exponentiate(transposed(t34), t44, c4); }},
      {"exp^T: sum", [&] { exponentiate(transposed(t34), c4, c2); }},
      {"exp^T: q", [&] { exponentiate(transposed(t34), c4, c4, transposed(t44), c4); }},
      {"exp^T: dots", [&] { exponentiate(transposed(t34), c4, c4, transposed(t34), c2); }},
      {"dots^T: operands", [&] { add_row_dots(transposed(t34), transposed(t44), c4); }},
      {"dots^T: a word a row", [&] { add_row_dots(transposed(t43), transposed(t43), c4); }},
      {"subtract: rows", [&] { subtract_scaled_rows(t43, c2, t43); }},
      {"subtract: b", [&] { subtract_scaled_rows(t43, c4, t44); }},
      {"add", [&] { add(t43, t34); }},
      {"multiply words", [&] { multiply_words(t43, t34); }},
      {"subtract rows", [&] { subtract_rows(t43, c2); }},
      {"subtract rows: not a column", [&] { subtract_rows(t43, t44); }},
      {"subtract rows^T: a word a row", [&] { subtract_rows(transposed(t43), c4); }},
      {"gradient^T: q", [&] { softmax_gradient(transposed(t34), c4, transposed(t44)); }},
      {"gradient^T: v", [&] { softmax_gradient(transposed(t43), c4, transposed(t43)); }},
      {"transpose: rows", [&] { transpose(t43, t33); }},
      {"transpose: columns", [&] { transpose(t43, t44); }},
      // Parts: a column inside a wider panel has strided words, but a column tile has contiguous
      // words.
      {"maximum: a part of a panel",
       [&] {
         raise_maximum(t43, t44.part({0, 4}, {0, 1}));
       }},
      {"scale: a part of a panel",
       [&] {
         scale_rows(t43, t44.part({0, 4}, {0, 1}));
       }},
      {"shift: a part of a panel",
       [&] {
         shifted_product(t43, t34, t44.part({0, 4}, {0, 1}), t44);
       }},
      {"log: a part of a panel",
       [&] {
         add_logarithm(t44.part({0, 4}, {0, 1}), c4);
       }},
      {"a part: rows",
       [&] {
         add(t43.part({1, 4}), t43);
       }},
      {"a part outside",
       [&] {
         add(t43.part({1, 5}), t43);
       }},
      {"a part from within a panel to the next",
       [&] {
         add(wide.part({0, 4}, {15, 18}), t43);
       }},
      {"no part",
       [&] {
         add(t44.part({2, 2}), t43);
       }},
  };
  for (const auto& refused : calls) {
    const char* what = refused.first;
    const std::vector<float> before = contents();
    EXPECT_EQ(operations_of([&] { EXPECT_THROW(refused.second(), ShapeMismatch) << what; }),
              Operations{})
        << what;
    EXPECT_TRUE(contents() == before) << what << " changed a tile before it was refused";
  }
}

}  // namespace
}  // namespace redblue
