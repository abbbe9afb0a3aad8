// Products of sparse matrices. Their words match a second version of the formulas, and a machine's
// moves and peak match both. Their values match a sum in double precision.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernel.hpp"
#include "memsim/host_access.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"
#include "tests/kernels/sparse_cases.hpp"
#include "tests/support/print.hpp"

namespace redblue {
namespace {

Index words_of(const BlockPattern& of) {
  return 2 * of.stored() + of.rows + 1;
}

struct ExpectedProduct {
  Index reads = 0, peak = 0;
};

// If B stays, w(A) + w(B) words are read. The peak is w(B), cols + 1, and the largest piece of a
// row of A or C, with 2 words for each entry. Otherwise rows of A come in chunks. The words of a
// chunk and of its sums, min(cols, 2 entries) for each row, are at most `chunk`. Each chunk reads
// its rows, and the needed rows of B with 2 words for each entry. It also reads a word for each
// needed row and for each run of needed rows. Its peak includes the largest piece of a row of B.
ExpectedProduct expected(const Sparsity& of, const Blocks& blocks) {
  const BlockPattern &A = of.A1(), &B = of.X(), &C = of.S();
  const Index piece = blocks["entries"];
  const auto longest = [&](const BlockPattern& pattern, const std::set<Index>& rows) {
    Index most = 0;
    for (const Index row : rows) {
      most = std::max(most, std::min<Index>(piece, std::ssize(pattern.row(row))));
    }
    return most;
  };
  if (!blocks.contains("chunk")) {
    std::set<Index> all;
    for (Index row = 0; row < A.rows; ++row) {
      all.insert(row);
    }
    const Index entries = 2 * std::max(longest(A, all), longest(C, all));
    return {words_of(A) + words_of(B), words_of(B) + B.cols + 1 + std::max<Index>(entries, 1)};
  }
  ExpectedProduct sum{words_of(A), 0};
  for (Index begin = 0, end = 0; begin < A.rows; begin = end) {
    Index entries = 0, sums = 0;
    const auto sums_of = [&](Index row) {
      return std::min<Index>(B.cols, 2 * std::ssize(C.row(row)));
    };
    std::set<Index> needed, rows;
    do {
      entries += std::ssize(A.row(end));
      sums += sums_of(end);
      needed.insert(A.row(end).begin(), A.row(end).end());
      rows.insert(end++);
    } while (end < A.rows &&
             2 * (entries + std::ssize(A.row(end))) + end + 1 - begin + sums + sums_of(end) <=
                 blocks["chunk"]);
    for (const Index k : needed) {
      sum.reads += (needed.contains(k - 1) ? 1 : 2) + 2 * std::ssize(B.row(k));
    }
    const Index of_B = needed.empty() ? 0 : 1 + 2 * longest(B, needed);
    sum.peak = std::max({sum.peak, 2 * entries + end - begin + sums + 1 + of_B,
                         sums + 1 + std::max<Index>(2 * longest(C, rows), 1)});
  }
  return sum;
}

void expect_product(const Kernel& kernel, const Problem& problem, const Plan& plan,
                    SparseCases& random) {
  SCOPED_TRACE(to_string(plan));
  const Sparsity& of = problem.sparsity;
  const ExpectedProduct words = expected(of, plan.blocks);
  const PhaseCost cost = total(plan.phases);
  EXPECT_EQ(cost.reads, Words(words.reads));
  EXPECT_EQ(cost.writes, Words(words_of(of.S())));
  EXPECT_EQ(cost.peak, Words(words.peak));
  EXPECT_LE(cost.peak, Words(plan.M));
  Index nest_reads = 0, nest_writes = 0;
  for (const NestLine& line : kernel.formula.nest(problem, plan.blocks)) {
    nest_reads += line.reads.value();
    nest_writes += line.writes.value();
  }
  EXPECT_EQ(nest_reads, words.reads);
  EXPECT_EQ(nest_writes, words_of(of.S()));

  const DenseWords a = random.words(problem.shape.A1_stored);
  const DenseWords b = random.words(problem.shape.X_stored);
  SlowMatrix A("A", problem.shape.A1_stored, 1), B("B", problem.shape.X_stored, 1);
  SlowMatrix C("C", problem.shape.S_stored, 1);
  HostAccess::put(A, a);
  HostAccess::put(B, b);
  Machine machine(plan.M);
  RamWorkspace workspace;
  kernel.run(machine, plan, {{&A, &B}, {&C}}, workspace);
  const PhaseCounts counts = total(machine.phases());
  EXPECT_EQ(counts.io, (IoCount{words.reads, words_of(of.S())}));
  EXPECT_EQ(counts.peak, words.peak);
  EXPECT_EQ(counts.indices, (IoCount{cost.index_reads.value(), cost.index_writes.value()}));
  EXPECT_EQ(cost.index_writes, Words(of.S().stored() + of.S().rows + 1));
  EXPECT_EQ(cost.flops, Words(counts.operations.flops));
  EXPECT_EQ(machine.live(), 0);

  DenseWords c(static_cast<std::size_t>(problem.shape.S_stored));
  HostAccess::get(C, c);
  for (Index i = 0; i < problem.shape.n; ++i) {
    std::map<Index, std::pair<double, double>> row;  // the sum, and the sum of absolute terms
    for (Index e = of.A1().offsets[i]; e < of.A1().offsets[i + 1]; ++e) {
      const Index k = of.A1().columns[e];
      for (Index f = of.X().offsets[k]; f < of.X().offsets[k + 1]; ++f) {
        const double term = static_cast<double>(a[e]) * b[f];
        auto& [sum, size] = row[of.X().columns[f]];
        sum += term;
        size += std::abs(term);
      }
    }
    for (Index e = of.S().offsets[i]; e < of.S().offsets[i + 1]; ++e) {
      const auto [sum, size] = row.at(of.S().columns[e]);
      const double terms = static_cast<double>(problem.shape.d) + 1;
      EXPECT_LE(std::abs(c[e] - sum), terms * std::numeric_limits<float>::epsilon() * size);
    }
  }
}

TEST(SparseProduct, MovesTheWordsOfItsFormula) {
  SparseCases random(1);
  for (int trial = 0; trial < 500 && !testing::Test::HasFailure(); ++trial) {
    const Index n = random.any(1, 20), d = random.any(1, 12), m = random.any(1, 20);
    const Problem problem =
        Problem(n, m, d).with_sparsity({random.pattern(n, d), random.pattern(d, m)});
    for (const char* const name : {"matmul/sparse-stay", "matmul/sparse-pass"}) {
      const Kernel& kernel = find_kernel(name);
      const Index least = kernel.least_M(problem);
      for (const Index M : {least, least + random.any(1, 40), least + 1000}) {
        expect_product(kernel, problem, kernel.plan(problem, M), random);
      }
      if (least > 1) {
        EXPECT_THROW(static_cast<void>(kernel.plan(problem, least - 1)), FastMemoryTooSmall);
      }
    }
  }
}

TEST(SparseProduct, NeverMovesMoreInALargerFastMemory) {
  SparseCases random(2);
  for (int trial = 0; trial < 100; ++trial) {
    const Index n = random.any(1, 30), d = random.any(1, 12);
    const Problem problem =
        Problem(n, d, d).with_sparsity({random.pattern(n, d), random.pattern(d, d)});
    const Kernel& kernel = find_kernel("matmul/sparse-pass");
    const Index least = kernel.least_M(problem);
    EXPECT_LE(total(kernel.plan(problem, 100000).phases).reads,
              total(kernel.plan(problem, least).phases).reads);
  }
}

TEST(SparseProduct, TakesNoOperandsButItsOwn) {
  const Kernel& kernel = find_kernel("matmul/sparse-stay");
  const Sparsity identity({2, 2, 1, 1, {0, 1, 2}, {0, 1}}, {2, 2, 1, 1, {0, 1, 2}, {0, 1}});
  const Problem sparse = Problem(2, 2, 2).with_sparsity(identity);
  EXPECT_THROW(static_cast<void>(kernel.plan(Problem(2, 2, 2), 100)), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(kernel.plan(sparse.with_mask(Mask::causal(2, 2)), 100)),
               ShapeMismatch);
  EXPECT_THROW(static_cast<void>(kernel.plan(sparse.with_stacked(2), 100)), ShapeMismatch);
  Problem shared = sparse;
  shared.sharing = Sharing::kv;
  EXPECT_THROW(static_cast<void>(kernel.plan(shared, 100)), ShapeMismatch);
  Problem larger = sparse;
  larger.shape.n = 3;
  EXPECT_THROW(static_cast<void>(kernel.plan(larger, 100)), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(find_kernel("matmul/blocked").plan(sparse, 100)), ShapeMismatch);
}

}  // namespace
}  // namespace redblue
