// Formulas are the numbers: of every kernel of dense operands, at 1,000 random sizes under the
// formula's own conditions, reads, writes and peak of each phase are what the kernel's formula
// says, to the word. REDBLUE_FORMULA_POINTS sets how many.

#include "runtime/theory/symbolic.hpp"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/words.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

// x^2 y + 3 ceil(x / y) - 7.
Index known(const Sizes& at) {
  return at[0] * at[0] * at[1] + 3 * ceil_div(at[0], at[1]) - 7;
}
const std::vector<Monomial> kBasis = {{},         {{0}},      {{1}},          {{0, 1}},
                                      {{0}, {0}}, {{0}, {1}}, {{0}, {0}, {1}}};

std::vector<ValueAt> values(std::size_t number) {
  std::mt19937_64 random(5);
  std::vector<ValueAt> all;
  for (std::size_t k = 0; k < number; ++k) {
    const Sizes sizes = {redblue::uniform(random, 1, 90), redblue::uniform(random, 1, 20)};
    all.push_back({sizes, known(sizes)});
  }
  return all;
}

TEST(Interpolation, FindsThePolynomial) {
  const auto found = interpolate(kBasis, values(30));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), 3U);
  for (const ValueAt& at : values(200)) {
    EXPECT_EQ(value(*found, at.sizes), at.words);
  }
}

TEST(Interpolation, FindsNothingThatIsWrongAtOnePoint) {
  std::vector<ValueAt> all = values(30);
  ++all[17].words;
  EXPECT_FALSE(interpolate(kBasis, all));
}

TEST(Interpolation, FindsNoLargeCoefficients) {
  std::vector<ValueAt> all = values(30);
  for (ValueAt& at : all) {
    at.words *= Index{1} << 21;
  }
  EXPECT_FALSE(interpolate(kBasis, all));
}

TEST(Polynomials, AddUp) {
  const Polynomial a = {{2, {{0}}}, {1, {}}}, b = {{-2, {{0}}}, {5, {{1}}}};
  EXPECT_EQ(a + b, (Polynomial{{1, {}}, {5, {{1}}}}));
}

int points() {
  const char* asked = std::getenv("REDBLUE_FORMULA_POINTS");
  return asked == nullptr ? 1000 : std::atoi(asked);
}

// How often a formula, with so much added to its reads, is not what the kernel says.
int wrong(const SymbolicFormula& formula, Index more_reads = 0) {
  std::mt19937_64 random(11);
  int wrong = 0;
  for (int k = 0; k < points(); ++k) {
    const auto sizes = formula.of.draw(random, k % 2 == 0 ? 200 : 5000);
    if (!sizes) {
      ADD_FAILURE() << "no sizes have these conditions";
      return points();
    }
    const std::vector<PhaseCost> phases = formula.of.cost(*sizes);
    for (std::size_t p = 0; p < phases.size(); ++p) {
      const SymbolicPhase& phase = formula.phases[p];
      if (!phase.reads || !phase.writes || !phase.peak) {
        ADD_FAILURE() << phase.path << " has no formula";
        return points();
      }
      const bool right = value(*phase.reads, *sizes) + more_reads == phases[p].reads.value() &&
                         value(*phase.writes, *sizes) == phases[p].writes.value() &&
                         value(*phase.peak, *sizes) == phases[p].peak.value();
      if (!right) {
        ++wrong;
        break;
      }
    }
  }
  return wrong;
}

SymbolicFormula formula_of(const Kernel& kernel, const Problem& problem, Index M) {
  return symbolic_formula(kernel, kernel.plan(kernel.with_inputs(problem), M));
}

class SymbolicFormulas : public ::testing::TestWithParam<std::string> {};

TEST_P(SymbolicFormulas, AreTheNumbers) {
  const Kernel& kernel = find_kernel(GetParam());
  const bool naive = kernel.name.find("naive") != std::string_view::npos;
  const SymbolicFormula formula =
      formula_of(kernel, {8192, 10000, 64}, naive ? Index{1} << 50 : 65536);
  EXPECT_EQ(wrong(formula), 0);
  // Of the plan itself, too, and in total.
  const PhaseCost all = total(formula.of.cost(formula.of.sizes()));
  EXPECT_EQ(value(*formula.total.reads, formula.of.sizes()), all.reads.value());
  EXPECT_EQ(value(*formula.total.writes, formula.of.sizes()), all.writes.value());
  EXPECT_EQ(value(*formula.total.peak, formula.of.sizes()), all.peak.value());
}

std::vector<std::string> dense_names() {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels()) {
    if (!kernel.takes_sparse) {
      names.emplace_back(kernel.name);
    }
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Kernels, SymbolicFormulas, ::testing::ValuesIn(dense_names()),
                         [](const auto& kernel) { return test_name(kernel.param); });

TEST(SymbolicFormula, OneWordMoreShows) {
  const Kernel& kernel = find_kernel("backward/rows");
  EXPECT_EQ(wrong(formula_of(kernel, {8192, 10000, 64}, 65536), 1), points());
}

// The paper's first phase: n d ceil(d / B) + d^2 ceil(n / B) words, for B below both.
TEST(SymbolicFormula, OfThePaperIsThePapers) {
  const SymbolicFormula formula = formula_of(find_kernel("backward/small"), {1000, 700, 48}, 1024);
  std::mt19937_64 random(3);
  for (int k = 0; k < 200; ++k) {
    const Sizes sizes = *formula.of.draw(random, 300);
    const Index n = sizes[0], d = sizes[2], B = sizes[3];
    EXPECT_EQ(value(*formula.phases[0].reads, sizes),
              n * d * ceil_div(d, B) + d * d * ceil_div(n, B));
  }
}

// Where values are wider than keys dv is a length; where n = m is another formula, it says so.
TEST(SymbolicFormula, OfOtherProblems) {
  Problem wide(4096, 5000, 64);
  wide.shape.dv = 96;
  EXPECT_EQ(wrong(formula_of(find_kernel("attention/rows"), wide, 65536)), 0);
  EXPECT_EQ(wrong(formula_of(find_kernel("gradients/tiles"), wide, 65536)), 0);
  Problem sigmoid(4096, 5000, 64);
  sigmoid.activation = Activation::sigmoid;
  EXPECT_EQ(wrong(formula_of(find_kernel("gradients/rows-keys"), sigmoid, 65536)), 0);
  EXPECT_EQ(wrong(formula_of(find_kernel("backward/rows"), {4096, 5000, 64, Sharing::kv}, 65536)),
            0);
  Problem wanted(4096, 5000, 64);
  wanted.wanted = {"dQ"};
  EXPECT_EQ(wrong(formula_of(find_kernel("gradients/rows-keys"), wanted, 65536)), 0);
  const SymbolicFormula paired = formula_of(find_kernel("backward/large"), {4096, 4096, 64}, 65536);
  EXPECT_EQ(wrong(paired), 0);
  EXPECT_TRUE(std::ranges::any_of(paired.of.conditions(), [](const Condition& condition) {
    return condition.is == Condition::Is::equal;
  }));
}

// 2 n m d / Br of backward/rows.
TEST(SymbolicFormula, LeadingTermsAreOfTheHighestDegree) {
  const auto leading =
      leading_terms(formula_of(find_kernel("backward/rows"), {8192, 10000, 64}, 65536));
  ASSERT_TRUE(leading);
  ASSERT_EQ(leading->size(), 1U);
  EXPECT_EQ((*leading)[0].coefficient, 2);
  EXPECT_EQ((*leading)[0].factors.size(), 3U);
  EXPECT_EQ((*leading)[0].divisors.size(), 1U);
}

}  // namespace
}  // namespace redblue
