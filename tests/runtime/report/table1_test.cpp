// Tests the paper's Table 1. Every dense cell and each verdict is computed again, from the closed
// forms below and from slopes between the ends of a grid. Sparse rows must be the laws of the words
// that kernels move.

#include "runtime/report/table1.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "kernels/kernel.hpp"
#include "runtime/run/rules.hpp"
#include "runtime/text/description.hpp"
#include "runtime/theory/bounds.hpp"
#include "tests/kernels/contract.hpp"
#include "tests/support/small_table1.hpp"

namespace redblue {
namespace {

using Form = std::function<double(double n, double d, double M)>;

double moved(std::string_view kernel, double n, double d, const Blocks& blocks) {
  const Shape shape{static_cast<Index>(n), static_cast<Index>(n), static_cast<Index>(d)};
  const auto [reads, writes] = moved_by_contract<Index>(kernel, shape, blocks);
  return static_cast<double>(reads) + static_cast<double>(writes);
}

Index whole(double size) {
  return static_cast<Index>(size);
}

Blocks square(double M) {
  return {{"B", whole(std::sqrt(M / 4))}};
}

// The block side of a product with a resident result: r x r words of the result, r words of a
// vector, and one word.
double side(double M) {
  return std::sqrt(M) - 0.5;
}

// Closed forms of the words, by their key in "words of". For the paper's algorithms they are exact
// in n, d and the blocks, and the blocks are exact. The other forms keep only the terms that
// dominate at large sizes.
const std::map<std::string, Form>& forms() {
  static const std::map<std::string, Form> all = {
      {"forward/flash",
       [](double n, double d, double M) {
         const Index strip = whole((M - d) / (d + 1));
         return moved("forward/flash", n, d,
                      {{"S.Br", strip}, {"h.Br", strip}, {"core.Br", whole(M / (2 * d + 4))}});
       }},
      {"forward/small",
       [](double n, double d, double M) { return moved("forward/small", n, d, square(M)); }},
      {"backward/small",
       [](double n, double d, double M) { return moved("backward/small", n, d, square(M)); }},
      {"backward/small, phase 3", [](double n, double, double) { return 5 * n * n; }},
      {"backward/large",
       [](double n, double d, double M) {
         return moved("backward/large", n, d,
                      {{"phase1.Br", whole((M - d) / (2 * d + 1))},
                       {"phase2.Br", whole((M - d * d) / (4 * d + 2))}});
       }},
      {"backward/large, printed",
       [](double n, double d, double M) {
         const Index Br = whole(std::min(std::ceil(M / (4 * d)), d));
         return moved("backward/large", n, d, {{"phase1.Br", Br}, {"phase2.Br", Br}});
       }},
      {"backward/flash",
       [](double n, double d, double M) {
         const Index strip = whole((M - d) / (d + 1));
         const Index all_of_g = whole(d);
         return moved("backward/flash", n, d,
                      {{"S.Br", strip},
                       {"h.Br", strip},
                       {"core.Bc", whole((M - 2 * d - 3) / (4 * d + 1))},
                       {"g.rows", all_of_g},
                       {"g.cols", all_of_g}});
       }},
      {"fewest: forward/rows",
       [](double n, double d, double M) { return 4 * n * n * d * (d + 1.5) / M; }},
      {"fewest: backward/rows-xg",
       [](double n, double d, double M) { return 4 * n * n * d * d / (M - 2 * d * d); }},
      {"fewest: forward/tiles",
       [](double n, double d, double M) {
         return 4 * n * n * d / side(M) + n * n + 4 * n * d * d / side(M);
       }},
      {"fewest: backward/tiles-sqp",
       [](double n, double d, double M) {
         return 6 * n * n * d / side(M) + 6 * n * n + 6 * n * d * d / side(M);
       }},
      {"bound: pairs", [](double n, double d, double M) { return 4 * n * n * d * d / M; }},
      {"bound: two products",
       [](double n, double d, double M) { return 4 * n * n * d / std::sqrt(M) - n * n; }},
      {"bound: scores",
       [](double n, double d, double M) { return 4 * n * n * d / std::sqrt(M) - 2 * n * n; }},
      {"bound: weights",
       [](double n, double d, double M) { return 4 * n * d * d / std::sqrt(M) - 2 * n * d; }},
  };
  return all;
}

// Returns the exponents of the form between the ends of the grid.
Exponents slopes(const Form& form, const FitPoints& grid) {
  const auto words = [&](int log2_n, int log2_d, int log2_M) {
    const double d = std::exp2(log2_d);
    return std::log2(
        form(std::exp2(log2_n), d, std::exp2(log2_M) * (grid.M_in_squares ? d * d : 1)));
  };
  const auto octaves = [](FitPoints::Octaves range) { return range.to - range.from; };
  const FitPoints::Octaves n = grid.n, d = grid.d, M = grid.M;
  const double from = words(n.from, d.from, M.from);
  const double of_M = (words(n.from, d.from, M.to) - from) / octaves(M);
  return {
      .n = (words(n.to, d.from, M.from) - from) / octaves(n),
      .d = (words(n.from, d.to, M.from) - from) / octaves(d) - (grid.M_in_squares ? 2 * of_M : 0),
      .M = of_M};
}

double predicted(const PowerLaw& law, const Sample& at) {
  return std::log2(law.constant) + law.exponents.n * std::log2(static_cast<double>(at.n)) +
         law.exponents.d * std::log2(static_cast<double>(at.d)) +
         law.exponents.M * std::log2(static_cast<double>(at.M));
}

TEST(Table1, EveryVerdictOnceMore) {
  const Table1 table = report_table1({});
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> dense;
  std::multiset<std::string> not_as_claimed;
  for (const Row& row : table.rows) {
    SCOPED_TRACE(std::string(row.claim.from) + ": " + row.by);
    dense.insert({row.claim.pass, row.claim.bound, row.claim.cache});
    EXPECT_EQ(row.by.starts_with("bound: "), row.claim.bound == "lower");
    EXPECT_EQ(row.fit.peak_over_M.has_value(), row.claim.bound == "upper");
    ASSERT_TRUE(forms().contains(row.by));
    const Form& form = forms().at(row.by);
    const FitPoints& grid = row.fit.grid;
    const PowerLaw& law = row.fit.law;

    // The law fits the words at every point of the grid.
    EXPECT_LT(law.residual, 0.05);
    for (const Sample& at : grid.points()) {
      const auto n = static_cast<double>(at.n);
      const auto d = static_cast<double>(at.d);
      const auto M = static_cast<double>(at.M);
      EXPECT_TRUE((row.claim.cache == "large") == (d * d <= M)) << d << " " << M;
      EXPECT_GE(n * d, M);
      EXPECT_NEAR(predicted(law, at), std::log2(form(n, d, M)), law.residual + 0.03)
          << n << " " << d << " " << M;
    }

    // Its exponents equal the paper's if the exponents of the form do.
    const Exponents slope = slopes(form, grid);
    const auto near = [](double a, double b) { return std::abs(a - b) <= Claim::kTolerance; };
    const Exponents& says = row.claim.exponents;
    const bool holds = near(slope.n, says.n) && near(slope.d, says.d) && near(slope.M, says.M);
    EXPECT_EQ(row.follows(), holds);
    EXPECT_EQ(row.holds(), std::optional(holds));
    EXPECT_EQ(row.verdict() == "holds", holds);
    if (!holds) {
      not_as_claimed.insert(std::string(row.claim.from) + " " + row.verdict());
    }
  }
  EXPECT_EQ(dense.size(), 8U) << "a cell is not there";
  EXPECT_EQ(not_as_claimed,
            (std::multiset<std::string>{"Lemma C.9 no: exponent of M is 0.00",
                                        "Theorem D.5 no: exponent of d is 0.00, of M is 0.00"}));
}

// Counts the words of a sparse row at a point again.
double sparse_words(const Row& row, const Sample& at) {
  const EntryFamily& family = *row.fit.grid.family;
  const auto rows = [&](const char* name) {
    return pattern_by_rule(parse_rule("random:" + std::to_string(at.d)), name, 1, at.n, family.d);
  };
  const BlockPattern X = family.full_X
                             ? full_pattern(family.d, family.d)
                             : pattern_by_rule(parse_rule("identity"), "X", 1, family.d, family.d);
  const Problem problem = Problem(at.n, at.n, family.d).with_sparsity({rows("A1"), X, rows("A2")});
  if (row.claim.bound == "lower") {
    return static_cast<double>(
        largest(lower_bounds({.pass = Pass::logsumexp, .problem = problem, .memory = at.M})).words);
  }
  const PhaseCost whole = total(find_kernel(row.by).plan(problem, at.M).phases);
  EXPECT_LE(whole.peak, Words(at.M));
  double sum = 0;
  for (const PhaseCost& phase : find_kernel(row.by).plan(problem, at.M).phases) {
    if (row.counted.before || phase.path == "core") {
      sum += static_cast<double>((phase.reads + phase.writes).value());
      sum -= row.counted.index
                 ? 0
                 : static_cast<double>((phase.index_reads + phase.index_writes).value());
    }
  }
  return sum;
}

TEST(Table1, SparseRowsAreLawsOfWhatIsMoved) {
  std::map<std::string, int> rows;
  for (const Row& row : sparse_rows(small_sparse_laws())) {
    SCOPED_TRACE(row.by + ", " + std::string(row.fit.grid.name));
    ++rows[row.by];
    double least = std::numeric_limits<double>::infinity(), most = 0, off = 0;
    for (const Sample& at : row.fit.grid.points()) {
      const double words = sparse_words(row, at);
      const double claimed =
          std::exp2(predicted({.constant = 1, .exponents = row.claim.exponents}, at));
      least = std::min(least, words / claimed);
      most = std::max(most, words / claimed);
      off = std::max(off, std::abs(predicted(row.fit.law, at) - std::log2(words)));
    }
    EXPECT_NEAR(row.fit.least_over_claim / least, 1, 1e-9);
    EXPECT_NEAR(row.fit.most_over_claim / most, 1, 1e-9);
    EXPECT_NEAR(row.fit.law.residual, off, 1e-9);
    const Exponents &found = row.fit.law.exponents, &says = row.claim.exponents;
    const double of_M = row.claim.cache == "small" ? 0.2 : 0.1;
    EXPECT_EQ(row.follows(), std::abs(found.n - says.n) <= 0.1 * says.n &&
                                 std::abs(found.d - says.d) <= 0.1 * says.d &&
                                 std::abs(found.M - says.M) <= of_M * -says.M)
        << row.verdict();
    EXPECT_EQ(row.verdict() == "holds", row.holds() == true);
  }
  EXPECT_EQ(rows["logsumexp/sparse-rows"], 8);
  EXPECT_EQ(rows["logsumexp/sparse-tiles"], 4);
  EXPECT_EQ(rows["logsumexp/sparse-x"], 2);
}

// Theorem 4.5 is a lower bound for forward and backward, and Table 1 has no upper bound for sparse
// operands. So the words of a kernel cannot contradict the paper by another exponent, and neither
// can a smaller proven bound.
TEST(Table1, SparseRowsOfThePaperAreLowerBounds) {
  const Table1 table = report_table1(small_sparse_laws());
  std::set<std::string_view> caches;
  for (const Row& row : table.rows) {
    SCOPED_TRACE(row.by + ", " + std::string(row.fit.grid.name));
    if (!row.fit.grid.family) {
      EXPECT_NE(row.claim.from, "Theorem 4.5");
      continue;
    }
    const bool of_bound = row.by.starts_with("bound: ");
    EXPECT_EQ(row.claim.from, of_bound ? "Theorem 4.5" : "no claim");
    EXPECT_EQ(row.claim.bound, of_bound ? "lower" : "none");
    if (of_bound) {
      caches.insert(row.claim.cache);
    } else {
      EXPECT_FALSE(row.holds().has_value());
    }
  }
  EXPECT_EQ(caches, (std::set<std::string_view>{"large", "small"}));
  const std::string text = to_table(table);
  EXPECT_EQ(text.find("sparse upper"), std::string::npos) << text;
  EXPECT_EQ(text.find("Theorem 4.5 (", text.find("not as claimed")), std::string::npos) << text;
}

}  // namespace
}  // namespace redblue
