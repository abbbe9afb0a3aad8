// Tests that formulas equal the numbers. For every dense kernel, at 1,000 random sizes that meet
// the formula's conditions, the reads, writes and peak of each phase equal the kernel's own
// formula, word for word. REDBLUE_CASES sets the number of sizes.

#include "runtime/theory/symbolic.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/words.hpp"
#include "tests/support/cases.hpp"
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
  return static_cast<int>(cases(1000));
}

// Counts how often a formula, with `more_reads` added to its reads, differs from the kernel. With
// Missing::some, a phase may lack a formula.
enum class Missing { none, some };
int wrong(const SymbolicFormula& formula, Index more_reads = 0, Missing missing = Missing::none) {
  std::mt19937_64 random(seed_of_case(0));
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
      const auto is = [&](const auto& of, Index more, Words words) {
        return of ? value(*of, *sizes) + more == words.value() : missing == Missing::some;
      };
      const bool right = is(phase.reads, more_reads, phases[p].reads) &&
                         is(phase.writes, 0, phases[p].writes) && is(phase.peak, 0, phases[p].peak);
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
  // The formula also holds at the plan's own sizes, and in total.
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

// With wide values, dv is a length. If n = m has another formula, the conditions say so.
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

// q = dO h^T has n m words, even in a plan with as many queries as keys. The formula also covers
// other lengths if the kernel has no special formula for n = m.
TEST(SymbolicFormula, OfAsManyQueriesAsKeys) {
  const SymbolicFormula formula =
      formula_of(find_kernel("backward/rows-q"), {8192, 8192, 64}, 65536);
  EXPECT_EQ(wrong(formula), 0);
  EXPECT_TRUE(std::ranges::none_of(formula.of.conditions(), [](const Condition& condition) {
    return condition.is == Condition::Is::equal;
  }));
  ASSERT_EQ(formula.phases[1].path, "q");
  const Atom n{FormulaCase::kN}, m{FormulaCase::kM};
  EXPECT_EQ(formula.phases[1].writes, (Polynomial{{1, {n, m}}}));
  EXPECT_EQ(value(*formula.total.reads, formula.of.sizes()),
            total(formula.of.cost(formula.of.sizes())).reads.value());
}

// The formula keeps the plan's number of key groups, for at least as many keys.
TEST(SymbolicFormula, OfGroups) {
  for (const char* name : {"attention/rows", "backward/rows", "gradients/rows-keys"}) {
    SCOPED_TRACE(name);
    const Kernel& kernel = find_kernel(name);
    Plan plan = kernel.plan(kernel.with_inputs({8192, 10000, 64}), 65536);
    plan.blocks.add(std::string(kKeyGroups), 4);
    plan.phases = kernel.formula.cost(plan.problem, plan.blocks);
    const SymbolicFormula formula = symbolic_formula(kernel, plan);
    EXPECT_EQ(wrong(formula, 0, Missing::some), 0);
    for (std::size_t k = 0; k < plan.phases.size(); ++k) {
      const SymbolicPhase& phase = formula.phases[k];
      EXPECT_TRUE(plan.phases[k].reads > Words() || phase.reads == Polynomial()) << phase.path;
      EXPECT_TRUE(plan.phases[k].writes > Words() || phase.writes == Polynomial()) << phase.path;
    }
  }
}

// For small problems and memories, every stated formula holds, and some are missing.
TEST(SymbolicFormula, OfOtherCases) {
  for (const char* name : {"forward/rows", "attention/rows", "backward/rows", "backward/small",
                           "backward/tiles", "gradients/rows-keys", "backward/large"}) {
    for (const auto& [n, m, d, M] : {std::tuple(20, 30, 100, 24576), std::tuple(97, 131, 24, 3000),
                                     std::tuple(1, 1, 1, 1000)}) {
      SCOPED_TRACE(testing::Message() << name << " " << n << " " << M);
      EXPECT_EQ(wrong(formula_of(find_kernel(name), {n, m, d}, M), 0, Missing::some), 0);
    }
  }
  // n is below a strip of 48 queries, and one block covers all of it.
  for (const SymbolicPhase& phase :
       formula_of(find_kernel("forward/rows"), {47, 300, 10}, 65536).phases) {
    EXPECT_TRUE(phase.peak) << phase.path;
  }
}

// 2 n m d / Br for backward/rows.
TEST(SymbolicFormula, LeadingTermsAreOfTheHighestDegree) {
  const auto leading =
      leading_terms(formula_of(find_kernel("backward/rows"), {8192, 10000, 64}, 65536));
  ASSERT_TRUE(leading);
  ASSERT_EQ(leading->size(), 1U);
  EXPECT_EQ((*leading)[0].coefficient, 2);
  EXPECT_EQ((*leading)[0].factors.size(), 3U);
  EXPECT_EQ((*leading)[0].divisors.size(), 1U);
}

// For backward/rows, M is about 3 d Br words. For backward/small, B = floor(sqrt(M / 4)).
TEST(SymbolicFormula, BlocksFollowFromM) {
  const Index M = Index{1} << 20;
  for (const auto& [name, squared, coefficient] :
       {std::tuple("backward/rows", false, 3), std::tuple("backward/small", true, 4)}) {
    SCOPED_TRACE(name);
    const SymbolicFormula formula = formula_of(find_kernel(name), {80000, 100000, 64}, M);
    const auto block = block_of_M(formula, *leading_terms(formula), M);
    ASSERT_TRUE(block);
    EXPECT_EQ(block->coefficient, coefficient);
    EXPECT_EQ(block->squared, squared);
    EXPECT_EQ(block->lengths.size(), squared ? 0U : 1U);
  }
}

}  // namespace
}  // namespace redblue
