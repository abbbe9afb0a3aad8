// Each function of kernels/arithmetic.hpp against the same formula in double precision, on
// tiles of 1 x 1, ragged and prime sizes; what it reports as operations; what it refuses.
//
// With u = 2^-24: a sum of k products onto c, in any order, is off by at most
// (k + 1) u (|c| + sum |a||b|) (1 + small); exp and log by 4 u of their value; each single
// operation by u of its result.

#include "kernels/arithmetic.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

constexpr double kU = 0x1p-24 * (1 + 1e-4);
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// All words of a tile, in the order in which they lie.
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

  // What `work` reports.
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

// Integers whose sums stay below 2^24 units have no rounding at all.
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

// A square factor may be both: c += a^T a.
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

// ---------------------------------------------------------------------------------- refusals

// A call with tiles that do not conform throws, and neither reports nor changes anything.
TEST_F(Arithmetic, RefusesTilesThatDoNotConform) {
  Tile t43 = random_tile(4, 3);
  Tile t34 = random_tile(3, 4);
  Tile t44 = random_tile(4, 4);
  Tile t33 = random_tile(3, 3);
  Tile c4 = random_tile(4, 1, 1, 2);
  Tile c2 = random_tile(2, 1, 1, 2);
  Tile other_c2 = random_tile(2, 1, 1, 2);
  Tile neighbour = random_tile(4, 4);  // lies behind the small ones
  Tile* const all[] = {&t43, &t34, &t44, &t33, &c4, &c2, &other_c2, &neighbour};
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
