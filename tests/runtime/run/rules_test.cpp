// Tests operands that a rule makes: the number and the place of a row's entries, the same on every
// platform. Tests refused rules, and the deviation of live scores.

#include "runtime/run/rules.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/run/inputs.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

constexpr Index kSizes[] = {1, 2, 3, 7, 16, 31, 64, 101};

BlockPattern made(const std::string& rule, Index rows, Index cols, std::uint64_t seed = 1) {
  return pattern_by_rule(parse_rule(rule), "A1", seed, rows, cols);
}

// Checks that columns are sorted and unique, with `count(row)` of them in each row.
template <class Count>
void expect_rows(const BlockPattern& found, const Count& count) {
  ASSERT_EQ(std::ssize(found.offsets), found.rows + 1);
  for (Index row = 0; row < found.rows; ++row) {
    const auto columns = found.row(row);
    EXPECT_EQ(std::ssize(columns), count(row)) << row;
    EXPECT_EQ(std::ranges::adjacent_find(columns, std::greater_equal<>()), columns.end());
    EXPECT_TRUE(columns.empty() || (columns.front() >= 0 && columns.back() < found.cols));
  }
}

TEST(Rules, ExactCountsOfARow) {
  for (const Index rows : kSizes) {
    for (const Index cols : kSizes) {
      for (const Index S : {1, 2, 5, 16, 200}) {
        const auto all = [&](Index) { return std::min(S, cols); };
        expect_rows(made("random:" + std::to_string(S), rows, cols), all);
        expect_rows(made("powerlaw:" + std::to_string(S), rows, cols), all);
        expect_rows(made("banded:" + std::to_string(S), rows, cols), all);
        for (const Index C : {1, 3, 7}) {
          if (C > cols) {
            continue;
          }
          const BlockPattern found =
              made("clusters:" + std::to_string(S) + ":" + std::to_string(C), rows, cols);
          const auto cluster = [&](Index row) { return row * C / rows; };
          const auto size = [&](Index row) {
            Index columns = 0;
            for (Index column = 0; column < cols; ++column) {
              columns += column * C / cols == cluster(row) ? 1 : 0;
            }
            return columns;
          };
          expect_rows(found, [&](Index row) { return std::min(S, size(row)); });
          for (Index row = 0; row < rows; ++row) {
            for (const Index column : found.row(row)) {
              EXPECT_EQ(column * C / cols, cluster(row));
            }
          }
        }
      }
    }
    expect_rows(made("identity", rows, rows), [](Index) { return 1; });
    EXPECT_EQ(made("density:1", rows, 5), full_pattern(rows, 5));
  }
}

// A band has contiguous columns. It starts in the first column, ends in the last, and deviates from
// the straight line by less than one column.
TEST(Rules, BandsFromCornerToCorner) {
  for (const Index rows : kSizes) {
    for (const Index cols : kSizes) {
      for (const Index S : {1, 2, 5, 16, 200}) {
        const BlockPattern found = made("banded:" + std::to_string(S), rows, cols);
        const Index free = cols - std::min(S, cols);
        for (Index row = 0; row < rows; ++row) {
          const auto columns = found.row(row);
          EXPECT_EQ(columns.back() - columns.front() + 1, std::min(S, cols));
          const Index beyond = row * free - columns.front() * (rows - 1);
          EXPECT_TRUE(rows == 1 ? columns.front() == 0 : beyond >= 0 && beyond < rows - 1);
        }
        EXPECT_TRUE(rows == 1 || found.row(rows - 1).back() == cols - 1);
      }
    }
  }
}

// Each row on its own equals the row of the whole. Other seeds and operands have other columns.
TEST(Rules, RowsBySeedAndName) {
  for (const std::string text : {"random:5", "powerlaw:5", "clusters:3:2", "density:1/3"}) {
    const Rule rule = parse_rule(text);
    const BlockPattern whole = made(text, 23, 19);
    for (Index row = 0; row < 23; ++row) {
      const auto columns = whole.row(row);
      EXPECT_EQ(row_by_rule(rule, "A1", 1, row, 23, 19),
                std::vector(columns.begin(), columns.end()));
    }
    EXPECT_NE(made(text, 23, 19, 2), whole);
    EXPECT_NE(pattern_by_rule(rule, "A2", 1, 23, 19), whole);
  }
}

// Returns a hash of all entries.
std::uint64_t fingerprint(const BlockPattern& pattern) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const auto& numbers : {pattern.offsets, pattern.columns}) {
    for (const Index number : numbers) {
      hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x100000001b3U;
    }
  }
  return hash;
}

TEST(Rules, TheSameOnEveryPlatform) {
  const std::pair<const char*, std::uint64_t> pins[] = {
      // Computed by an independent program.
      {"random:9", 0xdcbfd58414d5be4eU},    {"banded:12", 0xd552e668a186bcb1U},
      {"powerlaw:9", 0x6e5aff16ce130931U},  {"clusters:4:5", 0xc414799616b15570U},
      {"density:3/16", 0x57ae3ef2749c7feU}, {"random:60", 0x1fcd88b350c85acU}};
  for (const auto& [rule, hash] : pins) {
    EXPECT_EQ(fingerprint(made(rule, 97, 61, 7)), hash) << rule;
  }
}

// Within five standard deviations.
TEST(Rules, AsLikelyAsTheySay) {
  const Index n = 4000;
  const Index d = 40;
  const BlockPattern random = made("random:4", n, d);
  std::vector<Index> in_column(d);
  for (const Index column : random.columns) {
    ++in_column[static_cast<std::size_t>(column)];
  }
  for (const Index count : in_column) {
    EXPECT_NEAR(static_cast<double>(count), n / 10.0, 5 * std::sqrt(n * 0.1 * 0.9));
  }
  EXPECT_NEAR(static_cast<double>(made("density:1/8", n, d).stored()), n * d / 8.0,
              5 * std::sqrt(n * d * 7 / 64.0));
  // With one entry a row: equally many in [0, 1), [1, 3), [3, 7), ...
  std::vector<Index> octaves(6);
  for (const Index column : made("powerlaw:1", n, 63).columns) {
    ++octaves[static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(column) + 1) - 1)];
  }
  for (const Index count : octaves) {
    EXPECT_NEAR(static_cast<double>(count), n / 6.0, 5 * std::sqrt(n * 5 / 36.0));
  }
}

TEST(Rules, OfTextAndBack) {
  for (const char* text : {"identity", "random:32", "banded:1", "powerlaw:7", "clusters:32:8",
                           "density:1/32", "density:1/1"}) {
    EXPECT_EQ(to_string(parse_rule(text)), text);
  }
  EXPECT_EQ(to_string(parse_rule("random:4K")), "random:4096");
  EXPECT_EQ(to_string(parse_rule("clusters:2M:1K")), "clusters:2097152:1024");
  EXPECT_EQ(to_string(parse_rule("density:3/1G")), "density:3/1073741824");
  for (const char* text : {"random:4G", "random:K", "random:4KK", "random:4k", "density:0.5K"}) {
    EXPECT_THROW(parse_rule(text), std::invalid_argument) << text;
  }
  EXPECT_EQ(to_string(parse_rule("density:0.125")), "density:1/8");
  EXPECT_EQ(to_string(parse_rule("density:.5")), "density:1/2");
  EXPECT_EQ(to_string(parse_rule("density:1.0")), "density:1/1");
  const std::pair<const char*, const char*> bad[] = {
      {"", "expected a pattern: identity, random:S"},
      {"ones", "expected a pattern"},
      {"identity:3", "expected a pattern"},
      {"random", "S, the entries of a row, is missing"},
      {"random:0", "is 0: expected 1 to 4294967295"},
      {"random:-1", "is -1"},
      {"random:4294967296", "is 4294967296"},
      {"banded:2x", "is 2x"},
      {"clusters:3", "C, the number of clusters, is missing"},
      {"clusters:3:0", "C, the number of clusters, is 0"},
      {"clusters:3:2:1", "is 2:1"},
      {"density:0", "the density is 0: expected above 0 and at most 1"},
      {"density:1.5", "the density is 1.5"},
      {"density:3/2", "the density is 3/2"},
      {"density:1/0", "the density is 1/0"},
      {"density:-0.5", "the density is -0.5"},
      {"density:1e-3", "the density is 1e-3"},
      {"density:.", "the density is ."},
      {"density:", "the density is missing"}};
  for (const auto& [text, why] : bad) {
    const std::string said = thrown<std::invalid_argument>([&text = text] { parse_rule(text); });
    EXPECT_TRUE(said.find(why) != std::string::npos) << text << ": " << said;
  }
  EXPECT_THROW(made("identity", 3, 4), std::invalid_argument);
  EXPECT_THROW(made("clusters:1:5", 3, 4), std::invalid_argument);
}

// Live scores of random values have the requested standard deviation, whatever entries are stored.
TEST(Rules, LiveScoresOfOneDeviation) {
  const Index n = 300;
  const Index d = 24;
  for (const std::string rule : {"random:3", "random:24", "density:1/2", "clusters:4:3"}) {
    for (const std::string of_X : {"random:2", "density:1"}) {
      Problem problem(n, n, d);
      const auto pattern = [&](const char* name, const std::string& by, Index rows) {
        return pattern_by_rule(parse_rule(by), name, 3, rows, d);
      };
      problem = problem.with_sparsity(
          Sparsity(pattern("A1", rule, n), pattern("X", of_X, d), pattern("A2", rule, n)));
      const auto dense = [&](const char* name, const BlockPattern& of) {
        std::vector<float> all(static_cast<std::size_t>(of.rows * d));
        fill_input(name, problem, 3, 2.5, 0, of.rows, all);
        std::vector<double> words(all.size());
        for (Index row = 0; row < of.rows; ++row) {
          for (const Index column : of.row(row)) {
            const auto at = static_cast<std::size_t>(row * d + column);
            words[at] = all[at];
          }
        }
        return words;
      };
      const auto A1 = dense("A1", problem.sparsity.A1());
      const auto X = dense("X", problem.sparsity.X());
      const auto A2 = dense("A2", problem.sparsity.A2());
      double squares = 0;
      const auto at = [&](Index row, Index column) {
        return static_cast<std::size_t>(row * d + column);
      };
      for (Index i = 0; i < n; ++i) {
        std::vector<double> S(static_cast<std::size_t>(d));
        for (Index k = 0; k < d; ++k) {
          for (Index l = 0; l < d; ++l) {
            S[static_cast<std::size_t>(l)] += A1[at(i, k)] * X[at(k, l)];
          }
        }
        for (Index j = 0; j < n; ++j) {
          double s = 0;
          for (Index l = 0; l < d; ++l) {
            s += S[static_cast<std::size_t>(l)] * A2[at(j, l)];
          }
          squares += s * s;  // dead pairs add 0
        }
      }
      const auto pairs = static_cast<double>(problem.sparsity.pairs().value());
      EXPECT_NEAR(std::sqrt(squares / pairs), 2.5, 0.4) << rule << " " << of_X;
    }
  }
}

}  // namespace
}  // namespace redblue
