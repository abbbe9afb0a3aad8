// Tests the accesses of a run, by hand and for every kernel. The kernel's own schedule is one way
// to page them.

#include "runtime/replay/run_accesses.hpp"

#include <string>

#include <gtest/gtest.h>

#include "kernels/arithmetic/arithmetic.hpp"
#include "runtime/replay/replay.hpp"
#include "runtime/report/kernel_replay.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/support/kernel_requests.hpp"
#include "tests/support/run_kernel.hpp"
#include "tests/support/traced_runs.hpp"

namespace redblue {
namespace {

// Returns text such as "n0 n1 o2 c2 d0", with a letter for each kind of access.
std::string text_of(const Accesses& accesses) {
  std::string text;
  for (const auto& [kind, word] : accesses.in_order) {
    text += text.empty() ? "" : " ";
    text += "ncod"[static_cast<int>(kind)];
    text += std::to_string(word);
  }
  return text;
}

TEST(RunAccesses, ProductsWithDepthOutermost) {
  const KernelAccesses run = accesses_of(request("matmul/blocked", {1, 2, 2}, 12));
  // For k = 0, then 1: a, b and c with j = 0, then 1. C starts at 0 and is not read.
  EXPECT_EQ(text_of(run.accesses), "n0 n1 o2 n0 n3 o4 n5 n6 c2 n5 n7 c4");
  EXPECT_EQ(run.moved.io.reads, 6);
}

// C = A B, with A (2 x 2), B and C (2 x 4). Each row of A is a unit, and each row of B and C is two
// units.
TEST(RunAccesses, ProductsOfRows) {
  const KernelAccesses run = accesses_of(request("matmul/blocked", {2, 4, 2}, 60), ReplayUnit::row);
  EXPECT_EQ(run.accesses.widths, std::vector<std::uint32_t>(10, 2));
  // For k = 0, each piece of B's row meets i = 0, then 1. Each step touches row i of A, the piece,
  // and the same piece of row i of C. For k = 1, rows of A are not touched: their units were
  // touched at k = 0.
  EXPECT_EQ(text_of(run.accesses), "n0 n1 o2 n0 n3 o4 n5 n1 o6 n5 n3 o7 n8 c2 n9 c4 n8 c6 n9 c7");
}

class TwoWords : public testing::Test {
 protected:
  TwoWords() { machine_.write(machine_.initialize("first", 1, 1, 0.F), A_.whole()); }
  Machine machine_{8};
  SlowMatrix A_{"A", 1, 1}, B_{"B", 1, 1};
};

// A word that changes has the address of the slow word where it will be written.
TEST_F(TwoWords, TheAddressIsWhereTheValueWillBe) {
  RunAccesses accesses(machine_, {"A", "B"});
  {
    Tile a = machine_.read(A_.whole());
    scale(a, 2);
    scale(a, 2);
    machine_.write(a, B_.whole());
  }
  EXPECT_EQ(text_of(accesses.take()), "n0 o1 c1");
}

// A value that is never written has a scratch address. The address dies with the tile, and the next
// tile of that name uses it again.
TEST_F(TwoWords, WhatIsNotWrittenIsScratch) {
  RunAccesses accesses(machine_, {"A", "B"});
  for (int time = 0; time < 2; ++time) {
    Tile a = machine_.read(A_.whole());
    scale(a, 2);
  }
  EXPECT_EQ(text_of(accesses.take()), "n0 o1 d1 n0 o1 d1");
}

// If the old value is read again meanwhile, the new value has another address until it is written.
TEST_F(TwoWords, AnOldValueThatIsWantedStays) {
  RunAccesses accesses(machine_, {"A", "B"});
  {
    Tile a = machine_.read(A_.whole());
    scale(a, 2);
    {
      Tile old = machine_.read(A_.whole());
      scale(old, 2);
    }
    machine_.write(a, A_.whole());
  }
  EXPECT_EQ(text_of(accesses.take()), "n0 o1 n0 o2 d2 n1 o0 d1");
}

// Slow words that are neither operands nor results die at the end.
TEST_F(TwoWords, WorkspaceDiesInTheEnd) {
  RunAccesses accesses(machine_, {"A"});
  {
    Tile a = machine_.read(A_.whole());
    scale(a, 2);
    machine_.write(a, B_.whole());
  }
  EXPECT_EQ(text_of(accesses.take()), "n0 o1 d1");
}

TEST_F(TwoWords, RefusesAValueThatHasNoPlaceAnyMore) {
  RunAccesses accesses(machine_, {"A", "B"});
  {
    Tile stale = machine_.read(A_.whole());
    Tile next = machine_.read(A_.whole());
    scale(next, 2);
    machine_.write(next, A_.whole());
    scale(stale, 2);
  }
  EXPECT_THROW(static_cast<void>(accesses.take()), InputError);
}

class AccessesOf : public testing::TestWithParam<FollowedKernel> {};

TEST_P(AccessesOf, ArePagedByTheScheduleItself) {
  for (const Shape& shape : {Shape{7, 5, 3}, Shape{12, 9, 4}, Shape{3, 3, 4}}) {
    for (const Request& request : GetParam().requests(shape)) {
      SCOPED_TRACE(said(request));
      const KernelAccesses run = accesses_of(request);
      const Replayed all = replay(run.accesses);
      EXPECT_LE(all.opt_reads[all.at(run.moved.peak)], run.moved.io.reads);
      EXPECT_LE(all.lru_reads.back(), run.moved.io.reads);
      EXPECT_LE(all.lru_writes.back(), run.moved.io.writes);
      if (run.bound) {
        EXPECT_LE(run.bound(run.moved.peak), run.moved.io.io());
      }
      // The reads of the phases add up to all reads.
      for (const Index M : {Index{1}, run.moved.peak}) {
        Index lru = 0, opt = 0;
        for (const PhaseReads& phase : all.phases) {
          lru += phase.lru[all.at(M)];
          opt += phase.opt[all.at(M)];
        }
        EXPECT_EQ(lru, all.lru_reads[all.at(M)]);
        EXPECT_EQ(opt, all.opt_reads[all.at(M)]);
      }
      // Without a mask, each word of a result is written, and so is each index. A cache of all
      // words writes no other word.
      if (request.mask.empty()) {
        const Plan& plan = run.report.kernel.plan;
        Index results = run.moved.indices.writes;
        for (const Signature& result : find_kernel(plan.kernel).returned(plan.problem)) {
          if (find_kernel(plan.kernel).takes_sparse && result.name == "C" &&
              plan.problem.sparsity.S().stored() == 0) {
            continue;  // a sparse product without entries
          }
          results += result.rows_of(plan.problem.shape) * result.cols_of(plan.problem.shape);
        }
        EXPECT_EQ(all.lru_writes.back(), results);
      }
    }
  }
}

// A cache of rows can also follow the kernel's schedule, because the kernel moves whole units. So
// it reads no more. A cache that holds everything reads and writes whole matrices, for any unit.
TEST_P(AccessesOf, RowsArePagedByTheScheduleItself) {
  for (const Shape& shape : {Shape{7, 5, 3}, Shape{12, 9, 4}}) {
    for (const Request& request : GetParam().requests(shape)) {
      SCOPED_TRACE(said(request));
      const KernelAccesses words = accesses_of(request);
      const KernelAccesses rows = accesses_of(request, ReplayUnit::row);
      const Replayed of_words = replay(words.accesses), of_rows = replay(rows.accesses);
      EXPECT_LE(of_rows.widest, shape.d);
      EXPECT_LE(of_rows.accesses, of_words.accesses);
      EXPECT_LE(of_rows.opt_reads[of_rows.at(rows.moved.peak)], rows.moved.io.reads);
      EXPECT_EQ(of_rows.lru_reads.back(), of_words.lru_reads.back());
      EXPECT_EQ(of_rows.lru_writes.back(), of_words.lru_writes.back());
    }
  }
}

// With d = 1, a unit is a word, and the accesses are the same.
TEST_P(AccessesOf, RowsOfOneWordAreWords) {
  for (const Request& request : GetParam().requests({7, 5, 1})) {
    SCOPED_TRACE(said(request));
    const Accesses words = accesses_of(request).accesses;
    const Accesses rows = accesses_of(request, ReplayUnit::row).accesses;
    EXPECT_EQ(rows.widths, words.widths);
    EXPECT_EQ(text_of(rows), text_of(words));
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, AccessesOf, testing::ValuesIn(followed_kernels()),
                         [](const auto& of) { return test_name(of.param.name); });

TEST(AccessesOf, RefusesThreads) {
  Request two = request("forward/rows", {20, 20, 4}, 300);
  two.threads = 2;
  EXPECT_THROW(static_cast<void>(accesses_of(two)), UsageError);
}

}  // namespace
}  // namespace redblue
