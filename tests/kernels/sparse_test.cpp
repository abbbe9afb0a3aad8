// Attention of sparse operands, on thousands of small problems. The words of a second version of
// the formulas match plans and runs, and so do peaks. Results match double precision.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention.hpp"
#include "kernels/kernel.hpp"
#include "memsim/host_access.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"
#include "tests/kernels/sparse_cases.hpp"
#include "tests/support/print.hpp"

namespace redblue {
namespace {

Index sparse_words(const BlockPattern& of) {
  return 2 * of.stored() + of.rows + 1;
}

std::set<Index> columns_of_row(const BlockPattern& of, Index row) {
  const auto columns = of.row(row);
  return {columns.begin(), columns.end()};
}

// Returns which pairs are live, by a loop over all entries.
using LivePairs = std::vector<std::vector<bool>>;
LivePairs live_pairs(const Sparsity& of) {
  LivePairs live(static_cast<std::size_t>(of.A1().rows),
                 std::vector<bool>(static_cast<std::size_t>(of.A2().rows)));
  for (Index i = 0; i < of.A1().rows; ++i) {
    std::set<Index> columns;
    for (const Index k : of.A1().row(i)) {
      columns.merge(columns_of_row(of.X(), k));
    }
    for (Index j = 0; j < of.A2().rows; ++j) {
      live[i][j] =
          std::ranges::any_of(of.A2().row(j), [&](Index l) { return columns.contains(l); });
    }
  }
  return live;
}

// ---- words -------------------------------------------------------------------------------------

struct ExpectedRows {
  Index reads = 0, writes = 0, peak = 0;  // without the phase S
};

// Each row takes e words and its entries: e is 2 for L, d + 2 for O and 2d + 2 for g. A chunk reads
// its entries. For the keys that it meets, it reads their entries and rows of A3. It reads the
// indices of all keys, or else three words for each run of met keys and the indices of the met
// keys.
ExpectedRows expected(const Problem& problem, const Plan& plan, bool X_stays) {
  const Sparsity& of = problem.sparsity;
  const Index n = problem.shape.n, m = problem.shape.m, d = problem.shape.d;
  const BlockPattern &A1 = of.A1(), &A2 = of.A2(), &rows = X_stays ? of.A1() : of.S();
  const bool backward = plan.pass == Pass::backward, dense = plan.pass != Pass::logsumexp;
  const bool softmax = problem.normalised();
  const Index one_word = softmax ? 1 : 0;  // for L and similar words
  const Index e = (backward ? 2 * d : dense ? d : 0) + 2 * one_word;
  // Columns of O, or G, in one piece: whole panels, or a power of two.
  Index w = dense ? std::min(plan.blocks["Bw"], d) : 0;
  while (w % 16 != 0 && w > 8 ? w != 16 : (w & (w - 1)) != 0) {
    --w;
  }
  const LivePairs live = live_pairs(of);
  const Index X = X_stays ? sparse_words(of.X()) : 0;
  const Index stays = X + (backward && !X_stays ? 2 : 1);
  // The number of keys that pass together, which need tiles of scores and of gradients or factors.
  const Index together =
      plan.blocks.contains("keys") ? std::min({plan.blocks["keys"], Index{64}, m}) : 0;
  const auto scores_of = [&](Index keys) { return backward ? 2 * keys : keys + one_word; };
  ExpectedRows sum{sparse_words(rows) + X, backward ? 0 : n * (dense ? d + one_word : 1), 0};
  if (backward) {
    sum.reads += n * d + one_word * (n * d + n) + (X_stays ? 0 : sparse_words(A1));
  }
  std::set<Index> touched;
  for (Index begin = 0, end = 0; begin < n; begin = end) {
    const auto row_words = [&](Index row) {
      const Index its =
          2 * std::ssize(rows.row(row)) + 1 + e + (together > 0 ? scores_of(together) : 0);
      return backward ? std::max(its, 2 * std::ssize(A1.row(row)) + 1 + d) : its;
    };
    Index words = row_words(end++);
    while (end < n && words + row_words(end) <= plan.blocks["chunk"]) {
      words += row_words(end++);
    }
    const Index r = end - begin;
    std::set<Index> columns;
    std::vector<bool> met(static_cast<std::size_t>(m));
    Index entries = 0, A1_entries = 0;
    for (Index i = begin; i < end; ++i) {
      entries += std::ssize(rows.row(i));
      A1_entries += std::ssize(A1.row(i));
      columns.merge(columns_of_row(A1, i));
      for (Index j = 0; j < m; ++j) {
        met[j] = met[j] || live[i][j];
      }
    }
    Index runs = 0, keys = 0, values = 0, longest = 0, passing = -1;
    Index in_group = 0, group = 0, most_in_group = 0, most_group = 0;
    for (Index j = 0; j < m; ++j) {
      const Index z = std::ssize(A2.row(j));
      runs += met[j] && (j == 0 || !met[j - 1]) ? 1 : 0;
      keys += met[j] ? 1 : 0;
      values += met[j] ? z : 0;
      longest = std::max(longest, met[j] ? z : 0);
      passing = std::max(passing, met[j] ? -1 : z);
      if (!met[j] || in_group == together) {
        in_group = group = 0;
      }
      in_group += met[j] ? 1 : 0;
      group += met[j] ? 2 * z + 1 + (dense ? d : 0) : 0;
      most_in_group = std::max(most_in_group, in_group);
      most_group = std::max(most_group, group);
    }
    const Index all = m + 1 + A2.stored(), given = 3 * runs + keys + values;
    const bool in_runs = plan.blocks.contains("runs") && given < all;
    sum.reads += (in_runs ? given : all) + values + (dense ? keys * d + d * d : 0);
    const Index one = 2 * longest + 1 + (dense ? d : 0);
    const Index key =
        keys == 0 ? 0 : (together > 0 ? most_group : one) + (in_runs ? 3 : 0) + (X_stays ? d : 0);
    const Index scores = together == 0 ? 2 : keys == 0 ? 0 : r * scores_of(most_in_group);
    const Index core = 2 * entries + r + r * e + scores + std::max(key, in_runs ? 0 : passing + 1);
    Index weights = 0;
    if (backward) {
      const auto before = static_cast<Index>(touched.size());
      touched.insert(columns.begin(), columns.end());
      const Index found = std::ssize(touched) - before, again = std::ssize(columns) - found;
      sum.reads += again * d;
      sum.writes += std::ssize(columns) * d;
      // A row of A1_I^T W_I, and the row of g that it is added to.
      const Index rows_of_g = again > 0 ? 2 * d : columns.empty() ? 0 : d;
      weights = std::max(one_word * r + 2 * r * d + w * d, r * d + 2 * A1_entries + r + rows_of_g);
    } else if (dense) {
      weights = r * d + std::max(2 * one_word * r, w * (d + r));
    }
    sum.peak = std::max(sum.peak, stays + std::max(core, weights));
  }
  sum.writes += backward ? (d - std::ssize(touched)) * d : 0;
  return sum;
}

// ---- results -----------------------------------------------------------------------------------

// All in double precision, with A1, X and A2 as dense matrices and the live pairs as a mask. `size`
// is the same expression with absolute terms, which bounds the rounding.
struct Sized {
  double value = 0, size = 0;
};
using SizedMatrix = std::vector<std::vector<Sized>>;

SizedMatrix sized(Index rows, Index cols) {
  return SizedMatrix(static_cast<std::size_t>(rows), std::vector<Sized>(cols));
}
SizedMatrix dense(const BlockPattern& of, const DenseWords& words) {
  SizedMatrix full = sized(of.rows, of.cols);
  for (Index i = 0; i < of.rows; ++i) {
    for (Index e = of.offsets[i]; e < of.offsets[i + 1]; ++e) {
      full[i][of.columns[e]] = {words[e], std::abs(words[e])};
    }
  }
  return full;
}
SizedMatrix dense(Index rows, Index cols, const DenseWords& words) {
  SizedMatrix full = sized(rows, cols);
  for (Index i = 0; i < rows * cols; ++i) {
    full[i / cols][i % cols] = {words[i], std::abs(words[i])};
  }
  return full;
}
SizedMatrix transposed_of(const SizedMatrix& a) {
  SizedMatrix t = sized(std::ssize(a[0]), std::ssize(a));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a[i].size(); ++j) {
      t[j][i] = a[i][j];
    }
  }
  return t;
}
SizedMatrix times(const SizedMatrix& a, const SizedMatrix& b) {
  SizedMatrix c = sized(std::ssize(a), std::ssize(b[0]));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < b.size(); ++k) {
      for (std::size_t j = 0; j < b[k].size(); ++j) {
        c[i][j].value += a[i][k].value * b[k][j].value;
        c[i][j].size += a[i][k].size * b[k][j].size;
      }
    }
  }
  return c;
}

// phi(s) and its slope. Both change by at most 1.1 times the change of s, apart from relu's jump.
struct OfScore {
  double value, slope;
};
OfScore of_score(Activation phi, double s) {
  const double sigmoid = 1 / (1 + std::exp(-s));
  return phi == Activation::relu      ? OfScore{std::max(s, 0.0), s > 0 ? 1.0 : 0.0}
         : phi == Activation::sigmoid ? OfScore{sigmoid, sigmoid * (1 - sigmoid)}
                                      : OfScore{s * sigmoid, sigmoid * (1 + s * (1 - sigmoid))};
}

struct SparseReference {
  SizedMatrix O, L, g;
};

// With u = 2^-24, a score is off by u (d + z) times its size, and other words similarly. Each word
// is off by at most `roundings` u times its size, where f counts (1 + the scores' size).
SparseReference reference(const Problem& problem, const std::map<std::string, DenseWords>& words) {
  const Sparsity& of = problem.sparsity;
  const auto [n, m, d] = problem.shape;
  const SizedMatrix A1 = dense(of.A1(), words.at("A1")), X = dense(of.X(), words.at("X")),
                    A2 = dense(of.A2(), words.at("A2"));
  const SizedMatrix s = times(times(A1, X), transposed_of(A2));
  const LivePairs live = live_pairs(of);
  SizedMatrix f = sized(n, m);
  SparseReference found{{}, sized(n, 1), {}};
  for (Index i = 0; i < n; ++i) {
    double sum = 0, size = 0;
    for (Index j = 0; j < m; ++j) {
      if (live[i][j]) {
        sum += std::exp(s[i][j].value);
        size = std::max(size, s[i][j].size);
      }
    }
    if (!problem.normalised()) {
      for (Index j = 0; j < m; ++j) {
        const double value = live[i][j] ? of_score(problem.activation, s[i][j].value).value : 0;
        f[i][j] = {value, live[i][j] ? std::abs(value) + 2 * s[i][j].size : 0};
      }
      continue;
    }
    found.L[i][0] = {std::log(sum), 1 + 2 * size + std::abs(sum > 0 ? std::log(sum) : 0)};
    for (Index j = 0; j < m; ++j) {
      if (live[i][j]) {
        f[i][j].value = std::exp(s[i][j].value) / sum;
        f[i][j].size = f[i][j].value * (1 + 3 * size + found.L[i][0].size);
      }
    }
  }
  if (!words.contains("A3")) {
    return found;
  }
  const SizedMatrix A3 = dense(m, d, words.at("A3")), Y = dense(d, d, words.at("Y"));
  found.O = times(times(f, A3), Y);
  if (!words.contains("dO")) {
    return found;
  }
  const SizedMatrix dO = dense(n, d, words.at("dO"));
  const SizedMatrix q = times(times(dO, transposed_of(Y)), transposed_of(A3));
  SizedMatrix p = sized(n, m);
  SizedMatrix used = A1;
  for (Index i = 0; i < n; ++i) {
    Sized v;
    bool any = false;
    for (Index c = 0; c < d; ++c) {
      v.value += dO[i][c].value * found.O[i][c].value;
      v.size += dO[i][c].size * found.O[i][c].size;
    }
    for (Index j = 0; j < m; ++j) {
      p[i][j].value = f[i][j].value * (q[i][j].value - v.value);
      p[i][j].size = f[i][j].size * (q[i][j].size + v.size);
      if (!problem.normalised()) {
        const Sized& score = s[i][j];
        const double slope = live[i][j] ? of_score(problem.activation, score.value).slope : 0;
        // Rounding may move a score across the edge of relu, and p becomes 0 or q.
        const bool at_edge =
            problem.activation == Activation::relu && std::abs(score.value) < 1e-5 * score.size;
        p[i][j].value = slope * q[i][j].value;
        p[i][j].size = live[i][j] ? (std::abs(slope) + 2 * score.size) * q[i][j].size +
                                        (at_edge ? 0x1p24 * std::abs(q[i][j].value) : 0)
                                  : 0;
      }
      any = any || live[i][j];
    }
    if (!any) {
      used[i].assign(static_cast<std::size_t>(d), {});
    }
  }
  found.g = times(transposed_of(used), times(p, A2));
  return found;
}

void expect_near(const SlowMatrix& matrix, const SizedMatrix& exact, Index roundings) {
  DenseWords words(static_cast<std::size_t>(matrix.rows() * matrix.cols()));
  HostAccess::get(matrix, words);
  for (Index i = 0; i < std::ssize(words); ++i) {
    const Sized& word = exact[i / matrix.cols()][i % matrix.cols()];
    if (std::isinf(word.value)) {
      ASSERT_EQ(words[i], word.value) << matrix.name() << " " << i;
      continue;
    }
    const double bound = std::ldexp(static_cast<double>(roundings), -24) * word.size;
    ASSERT_LE(std::abs(words[i] - word.value), bound) << matrix.name() << " " << i;
  }
}

class SparseRun {
 public:
  SparseRun(const Problem& problem, SparseCases& random) : problem_(problem) {
    const auto [n, m, d] = problem.shape;
    words_["A1"] = random.words(problem.shape.A1_stored);
    words_["X"] = random.words(problem.shape.X_stored);
    words_["A2"] = random.words(problem.shape.A2_stored);
    words_["A3"] = random.words(m * d);
    words_["Y"] = random.words(d * d);
    words_["dO"] = random.words(n * d);
    exact_ = reference(problem, words_);
    for (const auto& [name, exact] : {std::pair("O", &exact_.O), std::pair("L", &exact_.L)}) {
      for (const auto& row : *exact) {
        for (const Sized& word : row) {
          words_[name].push_back(static_cast<float>(word.value));
        }
      }
    }
  }
  // Fast memory is one word too small.
  void expect_refused(const Kernel& kernel, const Plan& plan) {
    std::vector<SlowMatrix> matrices;
    const Operands io = operands_of(kernel, matrices);
    Machine machine(plan.M);
    RamWorkspace workspace;
    EXPECT_THROW(kernel.run(machine, plan, io, workspace), FastMemoryOverflow) << to_string(plan);
  }
  void change(const char* name, Index at, float to) { words_.at(name).at(at) = to; }

  void expect_right(const Kernel& kernel, const Plan& plan) {
    SCOPED_TRACE(to_string(plan));
    const PhaseCost cost = total(plan.phases);
    ASSERT_LE(cost.peak, Words(plan.M));
    std::vector<SlowMatrix> matrices;
    const Operands io = operands_of(kernel, matrices);
    Machine machine(plan.M);
    RamWorkspace workspace;
    kernel.run(machine, plan, io, workspace);
    EXPECT_EQ(machine.live(), 0);
    EXPECT_EQ(workspace.peak(), kernel.intermediates(plan).value());
    expect_words(kernel, plan, machine);
    for (auto at = matrices.begin() + std::ssize(kernel.given(problem_)); at != matrices.end();
         ++at) {
      const Shape& shape = problem_.shape;
      expect_near(*at,
                  at->name() == "O"   ? exact_.O
                  : at->name() == "L" ? exact_.L
                                      : exact_.g,
                  8 * (2 * shape.n + 2 * shape.m + 4 * shape.d + 8));
    }
  }

 private:
  // Returns the operands of a kernel, followed by its results.
  Operands operands_of(const Kernel& kernel, std::vector<SlowMatrix>& matrices) {
    const auto all = [&](const std::vector<Signature>& signatures, bool given) {
      for (const Signature& of : signatures) {
        matrices.emplace_back(std::string(of.name), of.rows_of(problem_.shape),
                              of.cols_of(problem_.shape));
        if (given) {
          HostAccess::put(matrices.back(), words_.at(std::string(of.name)));
        }
      }
    };
    matrices.reserve(12);
    all(kernel.given(problem_), true);
    const auto results = std::ssize(matrices);
    all(kernel.returned(problem_), false);
    Operands io;
    for (auto at = matrices.begin(); at != matrices.end(); ++at) {
      at - matrices.begin() < results ? io.give(std::as_const(*at)) : io.take(*at);
    }
    return io;
  }
  void expect_words(const Kernel& kernel, const Plan& plan, const Machine& machine) {
    const bool X_stays = kernel.name.ends_with("sparse-x");
    ExpectedRows words = expected(problem_, plan, X_stays);
    const PhaseCounts counts = total(machine.phases());
    const PhaseCost cost = total(plan.phases);
    if (!X_stays) {
      const PhaseCost& S = plan.phases.front();
      words.reads += S.reads.value();
      words.writes += S.writes.value();
      words.peak = std::max(words.peak, S.peak.value());
    }
    EXPECT_EQ(counts.io, (IoCount{words.reads, words.writes}));
    EXPECT_EQ(counts.peak, words.peak);
    EXPECT_EQ(cost.peak, Words(words.peak));
    std::map<std::string, IoCount> of_loops;
    for (const NestLine& line : kernel.formula.nest(problem_, plan.blocks)) {
      // The product S may have only its own phase.
      of_loops[line.phase] += {line.reads.value(), line.writes.value()};
    }
    std::map<std::string, PhaseCounts> found;
    for (const PhaseCounts& phase : leaves(machine.phases())) {
      found[phase.path] = phase;
    }
    for (const PhaseCost& phase : plan.phases) {
      SCOPED_TRACE(phase.path);
      const PhaseCounts& ran = found[phase.path];
      const IoCount io{phase.reads.value(), phase.writes.value()};
      EXPECT_EQ(ran.io, io);
      EXPECT_EQ(of_loops[phase.path], io);
      EXPECT_EQ(ran.indices, (IoCount{phase.index_reads.value(), phase.index_writes.value()}));
      EXPECT_EQ(phase.flops, Words(ran.operations.flops));
      EXPECT_EQ(phase.peak, Words(ran.peak));
    }
  }

  Problem problem_;
  std::map<std::string, DenseWords> words_;
  SparseReference exact_;
};

const char* const kSparseNames[] = {"logsumexp/sparse-rows", "forward/sparse-rows",
                                    "backward/sparse-rows",  "logsumexp/sparse-x",
                                    "forward/sparse-x",      "backward/sparse-x"};

TEST(SparseAttention, MovesTheWordsOfItsFormulas) {
  SparseCases random(3);
  Index chunks = 0, runs = 0;
  for (int trial = 0; trial < 500 && !testing::Test::HasFailure(); ++trial) {
    const Problem problem = random.problem(20);
    SparseRun run(problem, random);
    for (const char* const name : kSparseNames) {
      const Kernel& kernel = find_kernel(name);
      const Index least = kernel.least_M(problem);
      for (const Index M : {least, least + random.any(1, 200)}) {
        const Plan plan = kernel.plan(problem, M);
        run.expect_right(kernel, plan);
        runs += plan.blocks.contains("runs") ? 1 : 0;
        ++chunks;
      }
      EXPECT_THROW(static_cast<void>(kernel.plan(problem, least - 1)), FastMemoryTooSmall)
          << name << " " << least;
    }
  }
  EXPECT_GT(runs, chunks / 4);
}

// Blocks chosen by a caller, and all rows in one chunk.
TEST(SparseAttention, TakesAnyBlocks) {
  SparseCases random(4);
  for (int trial = 0; trial < 200 && !testing::Test::HasFailure(); ++trial) {
    const Problem problem = random.problem(40);
    SparseRun run(problem, random);
    for (const char* const name : kSparseNames) {
      const Kernel& kernel = find_kernel(name);
      Blocks blocks = kernel.blocks(problem, 100000, Objective::words);
      blocks.set("chunk", random.any(1, 300));
      if (blocks.contains("Bw")) {
        blocks.set("Bw", random.any(1, 40));
      }
      blocks.drop("runs");
      if (random.any(0, 1) == 0) {
        blocks.add("runs", 1);
      }
      run.expect_right(kernel, kernel.plan(problem, 100000, blocks));
      run.expect_right(kernel, kernel.plan(problem, 1000000));
      constexpr std::array<Index, 6> kKeys = {1, 2, 7, 13, 64, 1000};
      blocks.add("keys", kKeys[static_cast<std::size_t>(random.any(0, 5))]);
      run.expect_right(kernel, kernel.plan(problem, 100000, blocks));
      // These blocks need exactly the formula's words, and one word less is refused.
      const Index least = total(kernel.plan(problem, 100000, blocks).phases).peak.value();
      run.expect_right(kernel, kernel.plan(problem, least, blocks));
      run.expect_refused(kernel, kernel.plan(problem, least - 1, blocks));
    }
  }
}

// Other activations have no L, v, maxima and sums. Only live pairs count, one by one and together.
TEST(SparseAttention, TakesOtherActivations) {
  SparseCases random(6);
  constexpr std::array kOthers = {Activation::relu, Activation::sigmoid, Activation::silu};
  for (std::size_t trial = 0; trial < 150 && !testing::Test::HasFailure(); ++trial) {
    Problem problem = random.problem(24);
    problem.activation = kOthers[trial % kOthers.size()];
    SparseRun run(problem, random);
    for (const char* const name : kSparseNames) {
      const Kernel& kernel = find_kernel(name);
      if (kernel.pass == Pass::logsumexp) {
        EXPECT_THROW(static_cast<void>(kernel.plan(problem, 100000)), ShapeMismatch);
        continue;
      }
      const Index least = kernel.least_M(problem);
      run.expect_right(kernel, kernel.plan(problem, least));
      EXPECT_THROW(static_cast<void>(kernel.plan(problem, least - 1)), FastMemoryTooSmall);
      Blocks blocks = kernel.blocks(problem, 100000, Objective::words);
      blocks.set("chunk", random.any(1, 300));
      blocks.add("keys", random.any(1, 30));
      const Plan plan = kernel.plan(problem, 100000, blocks);
      run.expect_right(kernel, plan);
      const Index least_of_blocks = total(plan.phases).peak.value();
      run.expect_right(kernel, kernel.plan(problem, least_of_blocks, blocks));
      run.expect_refused(kernel, kernel.plan(problem, least_of_blocks - 1, blocks));
    }
  }
}

// A row without a live pair adds 0 to g, whatever its words are.
TEST(SparseAttention, OfARowWithoutKeysNothingIsUsed) {
  SparseCases random(5);
  const BlockPattern A1{3, 2, 1, 1, {0, 1, 2, 3}, {0, 1, 0}};
  const BlockPattern X{2, 2, 1, 1, {0, 1, 2}, {0, 1}};
  const BlockPattern A2{4, 2, 1, 1, {0, 1, 1, 2, 3}, {0, 0, 0}};
  const Problem problem = Problem(3, 4, 2).with_sparsity({A1, X, A2});
  SparseRun run(problem, random);
  run.change("A1", 1, std::numeric_limits<float>::quiet_NaN());
  run.change("A3", 2, std::numeric_limits<float>::infinity());
  for (const char* const name : kSparseNames) {
    const Kernel& kernel = find_kernel(name);
    run.expect_right(kernel, kernel.plan(problem, 10000));
    for (const Index keys : {1, 2, 4}) {
      Blocks blocks = kernel.blocks(problem, 10000, Objective::words);
      blocks.add("keys", keys);
      run.expect_right(kernel, kernel.plan(problem, 10000, blocks));
    }
  }
}

BlockPattern identity(Index n) {
  BlockPattern found{n, n, 1, 1, {0}, {}};
  for (Index i = 0; i < n; ++i) {
    found.columns.push_back(i);
    found.offsets.push_back(i + 1);
  }
  return found;
}

// If rows of A1 are longer than rows of S, the phase g limits the rows of a chunk.
TEST(SparseAttention, FitsInEveryMFromTheLeastOn) {
  constexpr Index n = 24, d = 24;
  BlockPattern one_key = SparseCases::empty(n, d), one_entry = SparseCases::empty(d, d);
  one_entry.columns = {3};
  std::fill(one_entry.offsets.begin() + 6, one_entry.offsets.end(), 1);
  for (Index j = 0; j < n; ++j) {
    one_key.columns.push_back(j % d);
    one_key.offsets[static_cast<std::size_t>(j) + 1] = j + 1;
  }
  BlockPattern full{n, d, 1, 1, {0}, {}};
  for (Index i = 0; i < n; ++i) {
    for (Index k = 0; k < d; ++k) {
      full.columns.push_back(k);
    }
    full.offsets.push_back(full.stored());
  }
  const Problem problem = Problem(n, n, d).with_sparsity({full, one_entry, one_key});
  for (const char* const name : kSparseNames) {
    const Kernel& kernel = find_kernel(name);
    const Index least = kernel.least_M(problem);
    for (Index M = least; M < least + 6 * d; ++M) {
      EXPECT_LE(total(kernel.plan(problem, M).phases).peak, Words(M)) << name;
    }
  }
}

// Theorem 4.5 with constant 1 claims that the scores of A1 = A2 = X = I take 2 n^(3/2) / sqrt(M)
// words: 8,192, 65,536 and 524,288 here. Given S, chunks of 11 rows take 7 words for each row, and
// 3 for each chunk for the run of keys that it meets. S takes 9 more words for each row, and one or
// two for each chunk.
TEST(SparseAttention, MovesLessThanTheTheoremClaims) {
  const Kernel& kernel = find_kernel("logsumexp/sparse-rows");
  const Index M = 64;
  for (const auto& [n, given_S, all] :
       {std::array<Index, 3>{1024, 7451, 16755}, {4096, 29792, 67000}, {16384, 119159, 267983}}) {
    const Problem problem = Problem(n, n, n).with_sparsity({identity(n), identity(n), identity(n)});
    const Plan plan = kernel.plan(problem, M);
    EXPECT_EQ(total(plan.phases).reads + total(plan.phases).writes, Words(all));
    EXPECT_EQ(plan.phases.back().reads + plan.phases.back().writes, Words(given_S));
    EXPECT_EQ(given_S, 7 * n + 1 + 3 * ceil_div(n, Index{11}));
    const double claimed = 2 * std::pow(static_cast<double>(n), 1.5) / std::sqrt(M);
    EXPECT_LT(static_cast<double>(given_S), claimed);
    EXPECT_EQ(static_cast<double>(all) < claimed, n == 16384);
  }
}

}  // namespace
}  // namespace redblue
