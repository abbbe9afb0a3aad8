// The counts of the published algorithms, written down literally: tables and totals.

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/contract.hpp"
#include "tests/support/print.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

std::vector<MovedPhase> rows_of(const Plan& plan) {
  std::vector<MovedPhase> rows;
  for (const PhaseCost& phase : plan.phases) {
    rows.push_back({phase.path, phase.reads.value(), phase.writes.value()});
  }
  return rows;
}

std::vector<MovedPhase> rows_of(const Result& result) {
  std::vector<MovedPhase> rows;
  for (const PhaseCounts& phase : result.phases) {
    rows.push_back({phase.path, phase.io.reads, phase.io.writes});
  }
  return rows;
}

TEST(BackwardSmall, CountsAreTheTableOfAlgorithm6) {
  const TestedKernel kernel = tested_kernel("backward/small");
  const std::tuple<Shape, Index> problems[] = {
      {{1000, 1000, 48}, 1024}, {{257, 129, 33}, 500}, {{129, 257, 33}, 500}, {{1, 1, 1}, 5},
      {{7, 1, 3}, 16},          {{64, 64, 64}, 4096},  {{100, 3, 8}, 100000}, {{5, 90, 2}, 19}};
  for (const auto& [shape, M] : problems) {
    Index B = 1;  // floor(sqrt(M / 4))
    while (4 * (B + 1) * (B + 1) <= M) {
      ++B;
    }
    const Plan plan = kernel.plan(shape, M);
    EXPECT_EQ(plan.blocks["B"], B);
    EXPECT_EQ(rows_of(plan), small_table(shape, B)) << to_string(plan);
  }
}

TEST(BackwardSmall, TotalsAreTheContracts) {
  const TestedKernel kernel = tested_kernel("backward/small");
  const PhaseCost square = total(kernel.plan({1000, 1000, 48}, 1024).phases);
  EXPECT_EQ(square.reads.value(), 23'986'304);
  EXPECT_EQ(square.writes.value(), 4'146'304);
  const PhaseCost ragged = total(kernel.plan({257, 129, 33}, 500).phases);
  EXPECT_EQ(ragged.reads.value(), 877'836);
  EXPECT_EQ(ragged.writes.value(), 150'696);
}

TEST(BackwardSmall, MovesTheTableWhenItRuns) {
  const TestedKernel kernel = tested_kernel("backward/small");
  const Shape shape{257, 129, 33};
  const Plan plan = kernel.plan(shape, 500);
  const TestProblem problem = make_problem(kernel, shape, 1);
  const Result result = run_kernel(kernel, plan, problem);
  EXPECT_EQ(rows_of(result), small_table(shape, 11));
  EXPECT_EQ(result.all.io, (IoCount{877'836, 150'696}));
  const Verified verdict = verify(kernel, plan, problem, result.returned);
  EXPECT_TRUE(verdict.ok) << verdict.text;
}

// Algorithm 8 moves 4nd + n + 2md T + d^2 words, with T row blocks.
TEST(BackwardLarge, Phase2IsTheCountOfAlgorithm8) {
  const TestedKernel kernel = tested_kernel("backward/large");
  for (const Shape& shape : {Shape{2000, 2000, 32}, Shape{300, 70, 16}, Shape{70, 300, 16}}) {
    const auto [n, m, d] = shape;
    for (const Index M : {Index{512}, Index{2048}, Index{8192}, Index{1000000}}) {
      if (M < kernel.least_M(shape)) {
        continue;
      }
      const Plan plan = kernel.plan(shape, M);
      const Index T = ceil_div(n, plan.blocks["phase2.Br"]);
      EXPECT_EQ(rows_of(plan)[1], (MovedPhase{"phase2", 4 * n * d + n + 2 * m * d * T, d * d}));
    }
  }
}

// The paper's block sizes need more than M: 2.3, 2.0, 1.25 and 1.02 times M, if h_j is freed after
// use.
TEST(BackwardLarge, PrintedBlocksOverflowAsDerived) {
  const TestedKernel kernel = tested_kernel("backward/large");
  ASSERT_NE(kernel.kernel->fitting.printed, nullptr);
  const Shape shape{4096, 4096, 64};
  const std::tuple<Index, double, double> expected[] = {
      {1 << 12, 2.3, 0.05}, {1 << 14, 2.0, 0.05}, {1 << 16, 1.25, 0.005}, {1 << 20, 1.02, 0.005}};
  for (const auto& [M, ratio, digits] : expected) {
    const Index c = (M + 255) / 256;
    const Blocks blocks = kernel.kernel->fitting.printed(kernel.problem(shape), M);
    EXPECT_EQ(blocks["phase2.Bc"], c);
    EXPECT_EQ(blocks["phase2.Br"], std::min<Index>(c, 64));
    const Plan plan = kernel.plan(shape, M, blocks);
    EXPECT_NEAR(static_cast<double>(total(plan.phases).peak.value()) / static_cast<double>(M),
                ratio, digits);
    // Br is capped: from M = 4 d^2 on, the words no longer fall.
    if (M >= 1 << 14) {
      const PhaseCost all = total(plan.phases);
      EXPECT_NEAR(static_cast<double>((all.reads + all.writes).value()), 36.18e6, 0.01e6);
    }
  }
}

// The core of FlashAttention's backward pass moves T(4nd + 2n) + 3nd for n = m. v adds 2nd + n.
TEST(BackwardFlash, CoreIsTheCountOfFlashAttention) {
  const TestedKernel kernel = tested_kernel("backward/flash");
  for (const Index n : {Index{64}, Index{511}, Index{4096}}) {
    for (const Index M : {Index{500}, Index{2048}, Index{20000}}) {
      const Index d = 32;
      const Plan plan = kernel.plan({n, n, d}, M);
      const Index T = ceil_div(n, plan.blocks["core.Bc"]);
      const auto io = [&](std::size_t k) {
        return (plan.phases[k].reads + plan.phases[k].writes).value();
      };
      ASSERT_EQ(plan.phases[2].path, "v");
      ASSERT_EQ(plan.phases[3].path, "core");
      EXPECT_EQ(io(2), 2 * n * d + n);
      EXPECT_EQ(io(3), T * (4 * n * d + 2 * n) + 3 * n * d);
    }
  }
}

// Every kernel's total, against formulas written down independently of the code.
TEST(EveryKernelsTotal, IsTheContracts) {
  for (const TestedKernel& kernel : tested_kernels()) {
    for (const Shape& shape :
         {Shape{100, 100, 16}, Shape{257, 129, 33}, Shape{61, 200, 7}, Shape{1, 1, 1},
          Shape{13, 1, 5}, Shape{83, 71, 16, 5}, Shape{40, 90, 3, 17}}) {
      if (shape.dv != shape.d && !kernel.takes_dv()) {
        continue;
      }
      const Index least = kernel.least_M(shape);
      for (const Index M : {least, least + 100, 3 * least + 1000, Index{1} << 24}) {
        const Plan plan = kernel.plan(shape, M);
        const PhaseCost all = total(plan.phases);
        const auto expected = moved_by_contract<Index>(kernel.name, shape, plan.blocks);
        EXPECT_EQ(all.reads.value(), expected.reads) << to_string(plan);
        EXPECT_EQ(all.writes.value(), expected.writes) << to_string(plan);
      }
    }
  }
}

// The words of groups of keys. Each group reads its queries. A forward group leaves n (dv + 1)
// words, which are read. A backward group adds d^2 words to g for each row block. A group of
// gradients leaves n d words. From scratch, a group first leaves n (2 d + 3) words, and its sum is
// made from them. A group of queries reads all keys and leaves m (d + dv).
TEST(KeyGroups, MoveTheWordsAndOperationsOfTheContract) {
  int kernels = 0;
  for (const TestedKernel& kernel : tested_kernels()) {
    if (!kernel.groups_keys()) {
      continue;
    }
    ++kernels;
    for (const Shape& shape : {Shape{1, 1, 1}, Shape{1, 61, 7}, Shape{13, 1, 5}, Shape{40, 90, 3},
                               Shape{83, 71, 16, 5}, Shape{5, 200, 17}}) {
      if (shape.dv != shape.d && !kernel.takes_dv()) {
        continue;
      }
      const Index least = kernel.least_M(shape);
      for (const Index M : {least, least + 100, 3 * least + 1000}) {
        for (const Index groups : {Index{1}, Index{2}, Index{3}, Index{7}, shape.m, 2 * shape.m}) {
          const Index of_queries = 1 + (groups + M) % 6;
          const Plan plan = kernel.in_groups(kernel.plan(shape, M), groups, of_queries);
          SCOPED_TRACE(to_string(plan));
          const auto expected = moved_by_contract<Index>(kernel.name, shape, plan.blocks);
          const TestProblem problem = make_problem(kernel, shape, 1, 3);
          const Result result = run_kernel(kernel, plan, problem);
          EXPECT_EQ(without_elementwise(result.phases), as_counted(plan.phases));
          EXPECT_EQ(result.all.io, (IoCount{expected.reads, expected.writes}));
          EXPECT_EQ(result.all.operations.elementwise,
                    elementwise_by_contract(kernel.name, shape, plan.blocks));
          const Verified verdict = verify(kernel, plan, problem, result.returned);
          EXPECT_TRUE(verdict.ok) << verdict.text;
        }
      }
    }
  }
  EXPECT_EQ(kernels, 12);
}

// Scores of thousands, with the largest in one group. The other groups have weight 0, however their
// L is rounded.
TEST(KeyGroups, MergeWhatDiffersByFarMoreThanAnExponentHolds) {
  for (const char* const name :
       {"attention/rows", "forward/rows", "backward/rows-onepass", "gradients/rows-keys-onepass"}) {
    const TestedKernel kernel = tested_kernel(name);
    for (const double scale : {30, 300, 3000}) {
      const Shape shape{3, 50, 6};
      const Plan plan = kernel.in_groups(kernel.plan(shape, 2000), 7);
      const TestProblem problem = make_problem(kernel, shape, 2, scale);
      const Verified verdict =
          verify(kernel, plan, problem, run_kernel(kernel, plan, problem).returned);
      EXPECT_TRUE(verdict.ok) << name << " " << scale << ": " << verdict.text;
    }
  }
}

// Products, as the paper's time bounds count them.
TEST(EveryKernelsFlops, AreItsProducts) {
  const Index n = 50;
  const Index m = 37;
  const Index d = 11;
  const Index projections = 2 * n * d * d + 2 * m * d * d;  // S and h
  const Index pair = 2 * n * m * d;                         // a product over all n x m
  const std::pair<const char*, Index> expected[] = {
      {"matmul/blocked", pair},
      {"forward/naive", projections + 2 * pair},
      {"forward/small", projections + 2 * pair},
      {"forward/flash", projections + 2 * pair},
      {"backward/naive", projections + 3 * pair + 2 * m * d * d},
      {"backward/small", projections + 3 * pair + 2 * m * d * d},
      {"backward/flash", projections + 5 * pair + 2 * n * d * d},
      {"layer/flash", 3 * projections + 5 * pair},
      {"layer/rows-keys", 3 * projections + 7 * pair},
      {"layer/tiles", 3 * projections + 5 * pair},
      {"linear/rows", projections + 4 * d * d * d},
      {"linear-gradient/rows", projections + 4 * d * d * d},
      {"linear-gradient/products", projections + 4 * d * d * d},
  };
  for (const auto& [name, flops] : expected) {
    const TestedKernel kernel = tested_kernel(name);
    EXPECT_EQ(total(kernel.plan({n, m, d}, 100000).phases).flops.value(), flops) << name;
  }
  // Algorithm 8 adds T A2 to g for each of its T row blocks.
  const TestedKernel large = tested_kernel("backward/large");
  const Plan plan = large.plan({n, m, d}, 1000);
  const Index T = ceil_div(n, plan.blocks["phase2.Br"]);
  EXPECT_GT(T, 1);
  EXPECT_EQ(total(plan.phases).flops.value(), projections + 3 * pair + 2 * m * d * d * T);
}

// Kernels have no formula for these operations, so runs are compared with the contract.
TEST(EveryKernelsElementwiseOperations, AreTheContracts) {
  for (const TestedKernel& kernel : tested_kernels()) {
    for (const Shape& shape :
         {Shape{50, 37, 11}, Shape{96, 96, 16}, Shape{61, 83, 7}, Shape{1, 1, 1}, Shape{13, 1, 5},
          Shape{83, 71, 16, 5}, Shape{40, 90, 3, 17}}) {
      if (shape.dv != shape.d && !kernel.takes_dv()) {
        continue;
      }
      const Index least = kernel.least_M(shape);
      for (const Index M : {least, least + 100, 3 * least + 1000, Index{1} << 20}) {
        const Plan plan = kernel.plan(shape, M);
        const Result result = run_kernel(kernel, plan, make_problem(kernel, shape, 1));
        EXPECT_EQ(result.all.operations.elementwise,
                  elementwise_by_contract(kernel.name, shape, plan.blocks))
            << to_string(plan);
      }
    }
  }
}

// To leading order, with x^2 = d^2 / M, small moves 12x + 9. With given O and L flash moves 16x^2,
// and 20x^2 with its forward pass. Small wins below M = 0.6 d^2, and flash wins above d^2.
TEST(SmallAndFlash, CrossNearDSquared) {
  for (const Index n : {Index{512}, Index{4096}}) {
    const Shape shape{n, n, 64};
    const auto io = [&](const char* name, double share) {
      const auto M = static_cast<Index>(share * 64 * 64);
      const PhaseCost all = total(tested_kernel(name).plan(shape, M).phases);
      return (all.reads + all.writes).value();
    };
    for (const double share : {0.25, 0.4, 0.5, 0.6}) {
      EXPECT_LT(io("backward/small", share), io("backward/flash", share)) << share;
    }
    for (const double share : {1.0, 1.05, 1.25, 2.0, 4.0, 16.0}) {
      EXPECT_GT(io("backward/small", share), io("backward/flash", share)) << share;
    }
    // From scratch, so that both do the same work. At M = d^2 itself, flash with its forward pass
    // still loses, because small's floor(sqrt(M / 4)) moves in steps.
    for (const double share : {1.05, 1.25, 2.0, 4.0, 16.0}) {
      EXPECT_GT(io("backward/small", share),
                io("backward/flash", share) + io("forward/flash", share))
          << share;
    }
    EXPECT_LT(io("backward/small", 1), io("backward/flash", 1) + io("forward/flash", 1));
  }
}

}  // namespace
}  // namespace redblue
