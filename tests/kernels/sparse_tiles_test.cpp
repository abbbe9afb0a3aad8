// logsumexp by tiles of scores. Its words match a second version of the formulas, with loops over
// tiles and their entries, and a machine's moves and peak. L matches double precision.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
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

// The entries of each row by column: the value, and its size computed from absolute terms.
struct Term {
  double value = 0, size = 0;
};
using SparseTerms = std::vector<std::map<Index, Term>>;

SparseTerms terms(const BlockPattern& of, const DenseWords& words) {
  SparseTerms rows(static_cast<std::size_t>(of.rows));
  for (Index i = 0; i < of.rows; ++i) {
    for (Index e = of.offsets[i]; e < of.offsets[i + 1]; ++e) {
      rows[i][of.columns[e]] = {words[e], std::abs(words[e])};
    }
  }
  return rows;
}

SparseTerms terms_of_product(const SparseTerms& a, const SparseTerms& b) {
  SparseTerms rows(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (const auto& [k, factor] : a[i]) {
      for (const auto& [l, word] : b[k]) {
        rows[i][l].value += factor.value * word.value;
        rows[i][l].size += factor.size * word.size;
      }
    }
  }
  return rows;
}

struct ExpectedPhase {
  IoCount io, indices;
  Index peak = 0;
};

std::map<Index, Index> entries_of_columns(const SparseTerms& of, Index begin, Index size) {
  std::map<Index, Index> found;
  for (Index i = begin; i < std::min(begin + size, std::ssize(of)); ++i) {
    for (const auto& [k, term] : of[i]) {
      ++found[k];
    }
  }
  return found;
}

void expect_regrouped(const SparseTerms& of, Index size, ExpectedPhase& sum) {
  for (Index begin = 0; begin < std::ssize(of); begin += size) {
    const Index rows = std::min(size, std::ssize(of) - begin);
    Index entries = 0, groups = 0;
    for (const auto& [k, number] : entries_of_columns(of, begin, size)) {
      entries += number;
      ++groups;
    }
    sum.io += {2 * entries + rows + 1, 2 * entries + 2 * groups};
    sum.indices += {entries + rows + 1, entries + 2 * groups};
    sum.peak = std::max(sum.peak, 3 * rows + std::min<Index>(entries, 1));
  }
}

ExpectedPhase expected_tiles(const SparseTerms& S, const SparseTerms& A2, Index r, Index c) {
  const Index n = std::ssize(S), m = std::ssize(A2);
  ExpectedPhase sum{{0, n}, {}, 2 * std::min(r, n)};
  for (Index i = 0; i < n; i += r) {
    const auto s = entries_of_columns(S, i, r);
    for (Index j = 0; j < m; j += c) {
      const auto a2 = entries_of_columns(A2, j, c);
      Index both = 0, few = 0;
      for (const auto& [k, number] : s) {
        if (const auto found = a2.find(k); found != a2.end()) {
          both += number + found->second;
          few = std::max(few, std::min(number, found->second));
        }
      }
      if (both > 0) {
        const Index headers = 1 + 2 * (std::ssize(s) + std::ssize(a2));
        sum.io.reads += headers + 2 * both;
        sum.indices.reads += headers + both;
        const Index rows = std::min(r, n - i), keys = std::min(c, m - j);
        sum.peak = std::max(sum.peak, 2 * rows + rows * keys + 5 + 2 * few + 2);
      }
    }
  }
  return sum;
}

const Kernel& tiles() {
  return find_kernel("logsumexp/sparse-tiles");
}

class TilesRun {
 public:
  TilesRun(const Problem& problem, SparseCases& random)
      : problem_(problem),
        words_{random.words(problem.shape.A1_stored), random.words(problem.shape.X_stored),
               random.words(problem.shape.A2_stored)} {}
  // Changes a word of A1, X or A2.
  void change(std::size_t operand, Index at, float to) { words_[operand].at(at) = to; }

  void expect_right(const Plan& plan) const {
    SCOPED_TRACE(to_string(plan));
    ASSERT_LE(total(plan.phases).peak, Words(plan.M));
    const Shape& shape = problem_.shape;
    SlowMatrix A1("A1", shape.A1_stored, 1), X("X", shape.X_stored, 1),
        A2("A2", shape.A2_stored, 1);
    SlowMatrix L("L", shape.n, 1);
    HostAccess::put(A1, words_[0]);
    HostAccess::put(X, words_[1]);
    HostAccess::put(A2, words_[2]);
    Machine machine(plan.M);
    RamWorkspace workspace;
    tiles().run(machine, plan, {{&A1, &X, &A2}, {&L}}, workspace);
    EXPECT_EQ(machine.live(), 0);
    EXPECT_EQ(workspace.peak(), tiles().intermediates(plan).value());

    const Sparsity& of = problem_.sparsity;
    const SparseTerms keys = terms(of.A2(), words_[2]);
    const SparseTerms S = terms_of_product(terms(of.A1(), words_[0]), terms(of.X(), words_[1]));
    expect_words(plan, machine, S, keys);
    expect_L(L, S, keys);
  }

 private:
  void expect_words(const Plan& plan, const Machine& machine, const SparseTerms& S,
                    const SparseTerms& A2) const {
    const Index r = plan.blocks["r"], c = plan.blocks["c"];
    std::map<std::string, ExpectedPhase> expected;
    expect_regrouped(S, r, expected["prepare"]);
    expect_regrouped(A2, c, expected["prepare"]);
    expected["core"] = expected_tiles(S, A2, r, c);
    std::map<std::string, PhaseCounts> found;
    for (const PhaseCounts& phase : leaves(machine.phases())) {
      found[phase.path] = phase;
    }
    std::map<std::string, IoCount> of_loops;
    for (const NestLine& line : tiles().formula.nest(problem_, plan.blocks)) {
      of_loops[line.phase] += {line.reads.value(), line.writes.value()};
    }
    ASSERT_EQ(plan.phases.size(), 3U);
    for (const PhaseCost& phase : plan.phases) {
      SCOPED_TRACE(phase.path);
      const PhaseCounts& ran = found[phase.path];
      const IoCount io{phase.reads.value(), phase.writes.value()};
      EXPECT_EQ(ran.io, io);
      EXPECT_EQ(of_loops[phase.path], io);
      EXPECT_EQ(ran.indices, (IoCount{phase.index_reads.value(), phase.index_writes.value()}));
      EXPECT_EQ(Words(ran.peak), phase.peak);
      EXPECT_EQ(Words(ran.operations.flops), phase.flops);
      if (phase.path != "S") {  // the tests of the product cover S
        const ExpectedPhase& words = expected.at(phase.path);
        EXPECT_EQ(ran.io, words.io);
        EXPECT_EQ(ran.indices, words.indices);
        EXPECT_EQ(ran.peak, words.peak);
      }
    }
  }

  // Allows u (2 d + 4) times a score's size, with u = 2^-24, and as much for the sums of m terms.
  void expect_L(const SlowMatrix& L, const SparseTerms& S, const SparseTerms& A2) const {
    DenseWords words(S.size());
    HostAccess::get(L, words);
    for (std::size_t i = 0; i < S.size(); ++i) {
      double sum = 0, size = 0;
      for (const auto& key : A2) {
        Term s;
        bool live = false;
        for (const auto& [k, term] : key) {
          if (const auto found = S[i].find(k); found != S[i].end()) {
            live = true;
            s.value += found->second.value * term.value;
            s.size += found->second.size * term.size;
          }
        }
        sum += live ? std::exp(s.value) : 0;
        size = std::max(size, s.size);
      }
      if (sum == 0) {
        ASSERT_EQ(words[i], -std::numeric_limits<float>::infinity()) << i;
        continue;
      }
      const double roundings = static_cast<double>(4 * (problem_.shape.d + problem_.shape.m) + 16);
      ASSERT_LE(std::abs(words[i] - std::log(sum)),
                std::ldexp(roundings, -24) * (1 + size + std::abs(std::log(sum))))
          << i;
    }
  }

  Problem problem_;
  std::vector<DenseWords> words_;
};

TEST(SparseTiles, MovesTheWordsOfItsFormulas) {
  SparseCases random(6);
  for (int trial = 0; trial < 600 && !testing::Test::HasFailure(); ++trial) {
    const Problem problem = random.problem(30);
    const TilesRun run(problem, random);
    const Index least = tiles().least_M(problem);
    for (const Index M : {least, least + random.any(1, 40), least + random.any(41, 400)}) {
      run.expect_right(tiles().plan(problem, M));
    }
    EXPECT_THROW(static_cast<void>(tiles().plan(problem, least - 1)), FastMemoryTooSmall) << least;
  }
}

// Tiles chosen by a caller, including tiles larger than all scores.
TEST(SparseTiles, TakesAnyBlocks) {
  SparseCases random(7);
  for (int trial = 0; trial < 600 && !testing::Test::HasFailure(); ++trial) {
    const Problem problem = random.problem(40);
    const TilesRun run(problem, random);
    Blocks blocks = tiles().blocks(problem, 100000, Objective::words);
    blocks.set("r", random.any(1, 50));
    blocks.set("c", random.any(1, 50));
    run.expect_right(tiles().plan(problem, 100000, blocks));
  }
}

// A row without a live pair has L = -infinity, whatever its words are. A pair with score 0 is live.
// Without a live pair, tiles read no words.
TEST(SparseTiles, ARowWithoutKeysIsMinusInfinity) {
  SparseCases random(8);
  const BlockPattern A1{3, 2, 1, 1, {0, 1, 2, 3}, {0, 1, 0}};
  const BlockPattern X{2, 2, 1, 1, {0, 1, 2}, {0, 1}};
  const BlockPattern A2{4, 2, 1, 1, {0, 1, 1, 2, 3}, {0, 0, 0}};
  const Problem problem = Problem(3, 4, 2).with_sparsity({A1, X, A2});
  TilesRun run(problem, random);
  run.change(0, 1, std::numeric_limits<float>::quiet_NaN());
  run.change(0, 2, 0);
  for (const Index M : {tiles().least_M(problem), Index{10000}}) {
    run.expect_right(tiles().plan(problem, M));
  }
  const Problem dead = Problem(3, 4, 2).with_sparsity({A1, X, SparseCases::empty(4, 2)});
  const Plan plan = tiles().plan(dead, 10000);
  EXPECT_EQ(plan.phases.back().reads, Words(0));
  EXPECT_EQ(plan.phases.back().writes, Words(3));
  TilesRun(dead, random).expect_right(plan);
}

// With fully stored operands all groups are whole. With n = m = T b and r = c = b, there are T^2
// tiles of 1 + 4 d + 4 b d words each.
TEST(SparseTiles, OfFullOperands) {
  const auto full = [](Index rows, Index cols) {
    BlockPattern all{rows, cols, 1, 1, {0}, {}};
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < cols; ++j) {
        all.columns.push_back(j);
      }
      all.offsets.push_back(all.stored());
    }
    return all;
  };
  const Index T = 5, b = 6, d = 7;
  const Problem problem =
      Problem(T * b, T * b, d).with_sparsity({full(T * b, d), full(d, d), full(T * b, d)});
  Blocks blocks = tiles().blocks(problem, 10000, Objective::words);
  blocks.set("r", b);
  blocks.set("c", b);
  const Plan plan = tiles().plan(problem, 10000, blocks);
  EXPECT_EQ(plan.phases.back().reads, Words(T * T * (1 + 4 * d + 4 * b * d)));
  EXPECT_EQ(plan.phases.back().peak, Words(2 * b + b * b + 5 + 2 * b + 2));
}

// A1 and A2 have n = 1024 rows with s random columns of d = 256 each, and X = I. Among M that are
// powers of sqrt 2, sparse-rows moves fewer words than tiles from M = 362 (s = 16) or M = 1024 (s =
// 32) on, near s^2.
TEST(SparseTiles, AreForASmallFastMemory) {
  SparseCases random(9);
  const Index n = 1024, d = 256;
  const auto rows_of = [&](Index s) {
    BlockPattern found{n, d, 1, 1, {0}, {}};
    for (Index i = 0; i < n; ++i) {
      std::set<Index> columns;
      while (std::ssize(columns) < s) {
        columns.insert(random.any(0, d - 1));
      }
      found.columns.insert(found.columns.end(), columns.begin(), columns.end());
      found.offsets.push_back(found.stored());
    }
    return found;
  };
  BlockPattern identity{d, d, 1, 1, {0}, {}};
  for (Index k = 0; k < d; ++k) {
    identity.columns.push_back(k);
    identity.offsets.push_back(k + 1);
  }
  for (const auto& [s, few, many] : {std::array<Index, 3>{16, 256, 362}, {32, 724, 1024}}) {
    const Problem problem = Problem(n, n, d).with_sparsity({rows_of(s), identity, rows_of(s)});
    const auto words = [&](const Kernel& kernel, Index M) {
      const PhaseCost all = total(kernel.plan(problem, M).phases);
      return all.reads + all.writes;
    };
    const Kernel& rows = find_kernel("logsumexp/sparse-rows");
    EXPECT_LT(words(tiles(), few), words(rows, few)) << s;
    EXPECT_GT(words(tiles(), many), words(rows, many)) << s;
  }
}

}  // namespace
}  // namespace redblue
