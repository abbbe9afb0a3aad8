// Linear attention. Results match its definition, with all keys and with the keys up to a query's
// number. Under the causal mask, words and loops match its formulas. Few words move.

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "memsim/sanitized.hpp"
#include "runtime/report/nest_report.hpp"
#include "tests/support/print.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

std::vector<TestedKernel> linear_kernels() {
  std::vector<TestedKernel> all;
  for (const TestedKernel& kernel : tested_kernels()) {
    if (is_linear(kernel.kernel->pass)) {
      all.push_back(kernel);
    }
  }
  return all;
}

bool makes_O(const TestedKernel& kernel) {
  return kernel.kernel->pass == Pass::linear;
}

// Returns a problem of whole numbers, so that every order of operations is exact.
TestProblem whole_numbers(const TestedKernel& kernel, const Shape& shape, std::mt19937& random) {
  TestProblem problem = make_problem(kernel, shape, 1);
  for (auto& [name, words] : problem.given) {
    std::ranges::generate(words, [&] { return static_cast<float>(random() % 5) - 2; });
  }
  return problem;
}

// Returns the sum over the live pairs of a_i X b_j c_j Y, word by word.
Buffer by_definition(const TestedKernel& kernel, const TestProblem& problem) {
  const auto [n, m, d] = problem.shape;
  const auto at = [&](const char* name, Index row, Index col) {
    return static_cast<double>(
        problem.given.at(name)[static_cast<std::size_t>(row * problem.shape.d + col)]);
  };
  const bool of_O = makes_O(kernel);
  std::vector<double> result(static_cast<std::size_t>((of_O ? n : d) * d));
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) {
      if (!problem.mask.full() && problem.mask.pairs({i, i + 1}, {j, j + 1}) == Words(0)) {
        continue;
      }
      double score = 0;  // (A1 X)_i A2_j, or dO_i (A3 Y)_j
      for (Index k = 0; k < d; ++k) {
        for (Index l = 0; l < d; ++l) {
          score += of_O ? at("A1", i, k) * at("X", k, l) * at("A2", j, l)
                        : at("dO", i, k) * at("Y", l, k) * at("A3", j, l);
        }
      }
      for (Index k = 0; k < d; ++k) {
        for (Index l = 0; l < d; ++l) {
          if (of_O) {
            result[static_cast<std::size_t>(i * d + l)] += score * at("A3", j, k) * at("Y", k, l);
          } else {
            result[static_cast<std::size_t>(k * d + l)] += at("A1", i, k) * score * at("A2", j, l);
          }
        }
      }
    }
  }
  return {result.begin(), result.end()};
}

constexpr Shape kShapes[] = {{7, 7, 3}, {12, 5, 4}, {5, 12, 4}, {1, 9, 2},   {9, 1, 2},
                             {1, 1, 1}, {3, 2, 9},  {2, 3, 9},  {23, 23, 5}, {1, 40, 12}};

TEST(Linear, IsItsDefinition) {
  std::mt19937 random(1);
  for (TestedKernel kernel : linear_kernels()) {
    for (const Shape& shape : kShapes) {
      for (const Mask& mask : {Mask(), Mask::causal(shape.n, shape.m)}) {
        kernel.mask = mask;
        const TestProblem problem = whole_numbers(kernel, shape, random);
        const Buffer expected = by_definition(kernel, problem);
        const Index least = kernel.least_M(shape);
        for (const Index M : {least, least + 7, 2 * least + 40, 9 * least + 3000}) {
          for (const Objective objective : {Objective::words, Objective::time}) {
            for (const Index groups : {Index{0}, Index{3}}) {
              Plan plan = kernel.plan(shape, M, objective);
              if (groups > 0 && plan.blocks.contains("groups")) {
                plan = kernel.in_groups(plan, groups);
              }
              const Buffers found = run_kernel(kernel, plan, problem).returned;
              EXPECT_EQ(found.begin()->second, expected) << to_string(plan);
            }
          }
        }
      }
    }
  }
}

TEST(Linear, CausalMovesAndHoldsWhatItsFormulasSay) {
  std::mt19937 random(2);
  const auto any = [&](Index most) { return 1 + static_cast<Index>(random()) % most; };
  for (TestedKernel kernel : linear_kernels()) {
    for (int k = 0; k < (kSanitized ? 60 : 400); ++k) {
      const Shape shape{any(40), any(40), any(12)};
      const Index dead = std::max<Index>(shape.n - shape.m, 0);
      kernel.mask = Mask::causal(shape.n, shape.m);
      const Index least = kernel.least_M(shape);
      const Objective objective = k % 3 == 0 ? Objective::time : Objective::words;
      Plan plan = kernel.plan(shape, k % 4 == 0 ? least : least + any(900), objective);
      if (plan.blocks.contains("groups") && k % 2 == 0) {
        plan = kernel.in_groups(plan, any(2 * shape.n));
      }
      SCOPED_TRACE(to_string(plan));
      TestProblem problem = make_problem(kernel, shape, static_cast<std::uint64_t>(k), 2);
      TestProblem poisoned = problem;  // dead queries are not read
      for (const std::string name : {"A1", "dO"}) {
        if (takes(kernel, name)) {
          Buffer& words = poisoned.given.at(name);
          std::fill_n(words.begin(), dead * shape.d, std::numeric_limits<float>::quiet_NaN());
        }
      }
      const Result result = run_kernel(kernel, plan, poisoned);
      EXPECT_EQ(without_elementwise(result.phases), as_counted(plan.phases));
      EXPECT_LE(result.all.peak, plan.M);
      EXPECT_EQ(result.workspace_peak, kernel.kernel->intermediates(plan).value());
      PhaseCost loops{.path = "", .reads = 0, .writes = 0, .peak = 0, .flops = 0};
      for (const NestLine& line : report_nest(plan).lines) {
        loops.reads += line.reads;
        loops.writes += line.writes;
      }
      EXPECT_EQ(loops.reads, total(plan.phases).reads);
      EXPECT_EQ(loops.writes, total(plan.phases).writes);
      const Verified verdict = verify(kernel, plan, problem, result.returned);
      EXPECT_TRUE(verdict.ok) << verdict.text;
      EXPECT_THROW(static_cast<void>(kernel.plan(shape, least - 1)), FastMemoryTooSmall);
    }
  }
}

// With all keys, each word moves once if M holds two d x d squares and a row (linear-gradient: two
// rows). Under the causal mask, 3 d^2 + 3 d + 1 words are needed.
TEST(Linear, LeastMOfCompulsoryWords) {
  const Shape shape{4096, 4096, 64};
  const auto [n, m, d] = shape;
  const auto words = [](const Plan& plan) {
    const PhaseCost all = total(plan.phases);
    return (all.reads + all.writes).value();
  };
  const Index compulsory = 2 * n * d + 2 * m * d + 2 * d * d;
  EXPECT_EQ(compulsory, 1'056'768);
  for (const auto& [name, rows] : {std::pair("linear/rows", 1), {"linear-gradient/rows", 2}}) {
    TestedKernel kernel = tested_kernel(name);
    EXPECT_EQ(kernel.least_M(shape), 2 * d * d + rows * d);
    for (const Index M : {2 * d * d + rows * d, Index{1} << 14, Index{1} << 20}) {
      EXPECT_EQ(words(kernel.plan(shape, M)), compulsory);
    }
    kernel.mask = Mask::causal(n, m);
    EXPECT_EQ(kernel.least_M(shape), 3 * d * d + 3 * d + 1);
    EXPECT_EQ(words(kernel.plan(shape, 3 * d * d + 3 * d + 1)), compulsory);
  }
}

// Products come in the order of fewest words: few queries meet X first, and few keys meet Y first.
TEST(Linear, ProductsComeInTheOrderOfFewestWords) {
  const auto has = [](const char* name, const Shape& shape, const char* product) {
    return tested_kernel(name).plan(shape, 300).blocks.contains(std::string(product) + ".rows");
  };
  for (const char* const name : {"linear/products", "linear-gradient/products"}) {
    EXPECT_TRUE(has(name, {4096, 4096, 64}, "S") && has(name, {4096, 4096, 64}, "T")) << name;
    EXPECT_TRUE(has(name, {4096, 8, 64}, "H")) << name;
    EXPECT_FALSE(has(name, {1, 4096, 64}, "T")) << name;
  }
  EXPECT_TRUE(has("linear/products", {4096, 4096, 64}, "P"));
  EXPECT_TRUE(has("linear/products", {20, 20, 64}, "Q"));
  EXPECT_TRUE(has("linear-gradient/products", {4096, 4096, 64}, "U"));
  EXPECT_TRUE(has("linear-gradient/products", {20, 20, 64}, "W"));
}

TEST(Linear, TakesNoMaskButCausal) {
  for (TestedKernel kernel : linear_kernels()) {
    kernel.mask = Mask::window(9, 9, 2, 0);
    EXPECT_THROW(static_cast<void>(kernel.plan({9, 9, 2}, 1000)), ShapeMismatch);
    kernel.mask = Mask::causal(9, 9);
    EXPECT_NO_THROW(static_cast<void>(kernel.plan({9, 9, 2}, 1000)));
  }
}

}  // namespace
}  // namespace redblue
