// Tests that derived formulas equal the counts. At the plan's sizes, and at random sizes that meet
// the conditions of the formula, the reads, writes and peak of each phase equal count(), word for
// word. REDBLUE_CASES sets the number of sizes.

#include "runtime/theory/symbolic.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernel.hpp"
#include "kernels/nests/nest_kernel.hpp"
#include "memsim/errors.hpp"
#include "memsim/range.hpp"
#include "memsim/words.hpp"
#include "runtime/report/nest_report.hpp"
#include "runtime/run/nest_file.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/random_nests.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

using Values = std::vector<Index>;

// A nest, the sizes of a case, and its formula.
struct Case {
  TextNest nest;
  NestSizes sizes;
  NestFormula formula;

  Case(const TextNest& its, const NestSizes& at)
      : nest(its), sizes(at), formula(redblue::formula(nest, sizes)) {}

  // Returns other sizes: the values of all symbols and the sizes for count().
  [[nodiscard]] std::pair<Values, NestSizes> with(Values values) const {
    NestSizes other = sizes;
    if (formula.sizes[kExtentDv] == formula.sizes[kExtentD]) {
      values[kExtentDv] = values[kExtentD];
    }
    for (const auto& [block, extent] : formula.whole) {
      values[block] = values[extent];
    }
    other.extents.n = values[kExtentN];
    other.extents.m = values[kExtentM];
    other.extents.d = values[kExtentD];
    other.extents.dv = values[kExtentDv];
    other.blocks = {};
    for (const NestBlock& block : nest.blocks) {
      const std::string& name = nest.symbols[block.symbol].name;
      if (sizes.blocks.contains(name)) {
        other.blocks.add(name, values[block.symbol]);
      }
    }
    return {values, other};
  }
  // Returns what differs at these sizes, or nothing.
  [[nodiscard]] std::string difference(const Values& at, const NestSizes& its) const {
    const auto value = [&](const Polynomial& of) { return formula.atoms.value(of, at); };
    const std::vector<PhaseCost> counted = count(nest, its);
    std::string text;
    Words all_reads, all_peak;
    for (const PhaseCost& phase : counted) {
      const auto found = std::ranges::find(formula.phases, phase.path, &PhaseFormula::path);
      all_reads += phase.reads;
      all_peak = std::max(all_peak, phase.peak);
      if (found == formula.phases.end()) {
        if (phase.reads + phase.writes > Words(0)) {
          text += phase.path + " has no formula; ";
        }
        continue;
      }
      const std::vector<std::pair<Index, Words>> pairs = {{value(found->reads), phase.reads},
                                                          {value(found->writes), phase.writes},
                                                          {peak(formula, *found, at), phase.peak}};
      for (const auto& [derived, words] : pairs) {
        if (Words(derived) != words) {
          text += phase.path + ": " + std::to_string(derived) + " and not " +
                  std::to_string(words.value()) + "; ";
        }
      }
    }
    if (Words(value(formula.total.reads)) != all_reads ||
        Words(peak(formula, formula.total, at)) != all_peak) {
      text += "total; ";
    }
    return text;
  }

  // Draws sizes that meet the conditions: near the given ones, or anywhere.
  [[nodiscard]] std::optional<std::pair<Values, NestSizes>> draw(std::mt19937_64& random) const {
    const auto any = [&](Index from, Index to) {
      return std::uniform_int_distribution<Index>(from, std::max(from, to))(random);
    };
    Values values = formula.sizes;
    const bool far = any(0, 1) == 1;
    for (SymbolId symbol = 0; symbol < values.size(); ++symbol) {
      const Index size = values[symbol];
      const bool is_length = symbol <= kExtentDv;
      if (is_length ||
          (symbol >= kExtents && nest.symbols[symbol].kind == NestSymbol::Kind::block)) {
        values[symbol] = any(0, 3) == 0 ? size
                         : far          ? any(size / 3, 2 * size + 2)
                                        : any(size - 2, size + 2);
        values[symbol] = std::max<Index>(values[symbol], is_length || size > 0 ? 1 : 0);
      }
    }
    auto drawn = with(std::move(values));
    try {
      return holds(formula, drawn.first) ? std::optional(std::move(drawn)) : std::nullopt;
    } catch (const std::exception&) {
      return std::nullopt;  // a condition divides by a block of 0
    }
  }
};

struct Tried {
  int held = 0;
  std::string wrong;
};
Tried tried(const Case& of, Index draws) {
  Tried all;
  std::mt19937_64 random(seed_of_case(0));
  const auto [values, sizes] = of.with(of.formula.sizes);
  all.wrong = of.difference(values, sizes);
  if (!holds(of.formula, values)) {
    all.wrong += "the conditions do not hold at the given sizes";
  }
  for (Index k = 0; k < draws && all.wrong.empty(); ++k) {
    if (const auto drawn = of.draw(random)) {
      try {
        static_cast<void>(count(of.nest, drawn->second));
      } catch (const std::exception&) {
        continue;  // no count at these sizes: a step or a divisor of 0
      }
      ++all.held;
      all.wrong = of.difference(drawn->first, drawn->second);
      if (!all.wrong.empty()) {
        for (SymbolId symbol = 0; symbol < drawn->first.size(); ++symbol) {
          all.wrong += " " + of.formula.names[symbol] + "=" + std::to_string(drawn->first[symbol]);
        }
      }
    }
  }
  return all;
}

Case case_of(const Plan& plan) {
  const Shape& shape = plan.problem.shape;
  return {parse_nest(nest_text(plan), plan.kernel + ".nest"),
          {.extents = {.n = shape.n, .m = shape.m, .d = shape.d, .dv = shape.dv, .M = plan.M},
           .blocks = plan.blocks,
           .sum_words = plan.problem.sum_words}};
}
Case case_of(std::string_view name, const Problem& problem, Index M) {
  const Kernel& kernel = find_kernel(name);
  return case_of(kernel.plan(kernel.with_inputs(problem), M));
}

class SymbolicFormulas : public ::testing::TestWithParam<std::string> {};

// At sizes of a large plan, and of plans for small and for odd problems.
TEST_P(SymbolicFormulas, AreTheNumbers) {
  const Kernel& kernel = find_kernel(GetParam());
  const bool naive = kernel.name.find("naive") != std::string_view::npos;
  const Problem large(8192, 10000, 64);
  const Case of = case_of(kernel.name, large, naive ? Index{1} << 50 : 65536);
  const Tried large_ones = tried(of, cases(kUsualCases));
  EXPECT_EQ(large_ones.wrong, "");
  EXPECT_GT(large_ones.held, 0);
  std::mt19937_64 random(seed_of_case(1));
  const auto any = [&](Index most) {
    return std::uniform_int_distribution<Index>(1, most)(random);
  };
  for (Index k = 0; k < cases(40); ++k) {
    const Problem problem = kernel.with_inputs(Problem(any(60), any(60), any(30)));
    const Index least = kernel.least_M(problem);
    const Index M = least + any(4 * least);
    SCOPED_TRACE(testing::Message() << problem.shape.n << " " << problem.shape.m << " "
                                    << problem.shape.d << " " << M);
    const Case small = case_of(kernel.name, problem, M);
    EXPECT_EQ(tried(small, 20).wrong, "");
  }
}

std::vector<std::string> dense_names() {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels()) {
    if (!kernel.takes_sparse && !kernel.of_one_source) {  // no nest has matrices that are one
      names.emplace_back(kernel.name);
    }
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Kernels, SymbolicFormulas, ::testing::ValuesIn(dense_names()),
                         [](const auto& kernel) { return test_name(kernel.param); });

// Each nest of another project, at sizes that it takes: with the block sizes of the file, and with
// names for them. A nest of one query has no other n.
class SymbolicFormulasOfProjects : public ::testing::TestWithParam<std::string> {};

TEST_P(SymbolicFormulasOfProjects, AreTheNumbers) {
  const KnownFile& file = *std::ranges::find_if(
      known_nests(), [](const KnownFile& its) { return its.name == GetParam(); });
  const TextNest nest = parse_nest(file.text, file.name);
  std::mt19937_64 random(seed_of_case(2));
  const auto any = [&](Index from, Index to) {
    return std::uniform_int_distribution<Index>(from, to)(random);
  };
  Index taken = 0, held = 0;
  for (Index k = 0; k < cases(300); ++k) {
    const auto length = [&] { return any(1, any(0, 1) == 0 ? 3000 : 90); };
    NestExtents extents{.n = k % 4 == 3 ? 1 : length(),
                        .m = length(),
                        .d = any(1, k % 3 == 0 ? 256 : 64),
                        .group = any(1, 3),
                        .M = 1 << 20};
    extents.dv = k % 5 == 0 ? any(1, 64) : extents.d;
    if (untaken(nest, extents) != nullptr) {
      continue;
    }
    NestSizes sizes{.extents = extents, .blocks = {}};
    if (k % 2 == 1) {
      const std::vector<Index> values = values_of(nest, sizes);
      for (const NestBlock& block : nest.blocks) {
        sizes.blocks.add(nest.symbols[block.symbol].name, values[block.symbol]);
      }
    }
    SCOPED_TRACE(testing::Message() << "n=" << extents.n << " m=" << extents.m << " d=" << extents.d
                                    << " dv=" << extents.dv << " group=" << extents.group);
    const Tried all = tried(Case(nest, sizes), 20);
    EXPECT_EQ(all.wrong, "");
    held += all.held;
    ++taken;
  }
  EXPECT_GE(taken, cases(300) / 20);
  EXPECT_GT(held, taken);
}

std::vector<std::string> files_of_projects() {
  std::vector<std::string> names;
  for (const KnownFile& nest : known_nests()) {
    names.emplace_back(nest.name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Nests, SymbolicFormulasOfProjects,
                         ::testing::ValuesIn(files_of_projects()), [](const auto& nest) {
                           return test_name(nest.param.substr(0, nest.param.find('.')));
                         });

// Random nests, with random sizes for all blocks.
TEST(SymbolicFormula, OfRandomNests) {
  Index derived = 0, held = 0;
  for (Index k = 0; k < cases(2000); ++k) {
    SCOPED_TRACE(testing::Message() << "seed " << seed_of_case(k));
    RandomNests random(seed_of_case(k));
    const std::string text = random.nest(5, 4, true);
    std::optional<TextNest> nest;
    try {
      nest = parse_nest(text, "random.nest");
    } catch (const NestError&) {
      continue;
    }
    NestSizes sizes{.extents = {.n = random.any(1, 30),
                                .m = random.any(1, 30),
                                .d = random.any(1, 12),
                                .dv = random.any(1, 12),
                                .M = 1000},
                    .blocks = {}};
    for (const NestBlock& block : nest->blocks) {
      if (!block.size || random.chance(30)) {
        sizes.blocks.add(nest->symbols[block.symbol].name, random.any(1, 12));
      }
    }
    try {
      static_cast<void>(count(*nest, sizes));
    } catch (const std::exception&) {
      continue;
    }
    const Case of(*nest, sizes);
    const Tried all = tried(of, 30);
    EXPECT_EQ(all.wrong, "") << text;
    ++derived;
    held += all.held;
    if (!all.wrong.empty()) {
      break;
    }
  }
  EXPECT_GT(derived, cases(2000) / 4);
  EXPECT_GT(held, derived);
}

// One word more in a formula is found.
TEST(SymbolicFormula, OneWordMoreShows) {
  Case of = case_of("backward/rows", {8192, 10000, 64}, 65536);
  of.formula.phases[0].reads = of.formula.phases[0].reads + number(1);
  EXPECT_NE(tried(of, 1).wrong, "");
}

// The paper's first phase: n d ceil(d / B) + d^2 ceil(n / B) words, for B below both.
TEST(SymbolicFormula, OfThePaperIsThePapers) {
  const Case of = case_of("backward/small", {1000, 700, 48}, 1024);
  for (const auto& [n, d, B] : {std::tuple(1000, 48, 16), std::tuple(333, 50, 7)}) {
    Values at = of.formula.sizes;
    at[kExtentN] = n;
    at[kExtentD] = at[kExtentDv] = d;
    const auto symbol = std::ranges::find(of.nest.symbols, "B", &NestSymbol::name);
    at[static_cast<SymbolId>(symbol - of.nest.symbols.begin())] = B;
    EXPECT_EQ(of.formula.atoms.value(of.formula.phases[0].reads, at),
              n * d * ceil_div(d, B) + d * d * ceil_div(n, B));
  }
}

// q = dO h^T has n m words, even in a plan with as many queries as keys.
TEST(SymbolicFormula, OfAsManyQueriesAsKeys) {
  const Case of = case_of("backward/rows-q", {8192, 8192, 64}, 65536);
  ASSERT_EQ(of.formula.phases[1].path, "q");
  EXPECT_EQ(of.formula.phases[1].writes, Atoms::symbol(kExtentN) * Atoms::symbol(kExtentM));
}

// With wide values, dv is a length.
TEST(SymbolicFormula, OfWideValues) {
  Problem wide(4096, 5000, 64);
  wide.shape.dv = 96;
  for (const char* name : {"attention/rows", "gradients/tiles"}) {
    const Case of = case_of(name, wide, 65536);
    EXPECT_EQ(tried(of, 500).wrong, "");
    EXPECT_NE(std::ranges::find(of.formula.free, SymbolId{kExtentDv}), of.formula.free.end());
  }
}

// 2 n m d / Br for backward/rows.
TEST(SymbolicFormula, LeadingTermsAreOfTheHighestDegree) {
  const auto leading = leading_terms(case_of("backward/rows", {8192, 10000, 64}, 65536).formula);
  ASSERT_EQ(leading.size(), 1U);
  EXPECT_EQ(leading[0].coefficient, 2);
  EXPECT_EQ(leading[0].factors.size(), 3U);
  EXPECT_EQ(leading[0].divisors.size(), 1U);
}

// For backward/rows, M is about 3 d Br words. For backward/small, B = floor(sqrt(M / 4)).
TEST(SymbolicFormula, BlocksFollowFromM) {
  const Index M = Index{1} << 20;
  for (const auto& [name, squared, coefficient] :
       {std::tuple("backward/rows", false, 3), std::tuple("backward/small", true, 4)}) {
    SCOPED_TRACE(name);
    const NestFormula formula = case_of(name, {80000, 100000, 64}, M).formula;
    const auto block = block_of_M(formula, leading_terms(formula), M);
    ASSERT_TRUE(block);
    EXPECT_EQ(block->coefficient, coefficient);
    EXPECT_EQ(block->squared, squared);
    EXPECT_EQ(block->lengths.size(), squared ? 0U : 1U);
  }
}

}  // namespace
}  // namespace redblue
