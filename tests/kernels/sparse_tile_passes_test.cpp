// forward/sparse-tiles and backward/sparse-tiles. Their words in plans and runs match a second
// version of the formulas, and their results match double precision.

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention.hpp"
#include "kernels/kernel.hpp"
#include "memsim/host_access.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"
#include "tests/kernels/sparse_cases.hpp"
#include "tests/kernels/sparse_tile_reference.hpp"
#include "tests/kernels/sparse_tile_words.hpp"
#include "tests/support/print.hpp"

namespace redblue {
namespace {

class TilePassRun {
 public:
  TilePassRun(const Problem& problem, SparseCases& random)
      : problem_(problem), words_(drawn(problem, random)), exact_(problem_, words_) {}
  // Sets a word, such as a NaN that only a dead pair would meet.
  void change(const char* name, Index at, float to) { words_.at(name).at(at) = to; }

  // Returns whether queries are kept as bits.
  bool expect_right(const Kernel& kernel, const Plan& plan) {
    SCOPED_TRACE(to_string(plan));
    EXPECT_LE(total(plan.phases).peak, Words(plan.M));
    std::vector<SlowMatrix> matrices;
    matrices.reserve(12);
    Operands io;
    for (const Signature& of : kernel.given(plan.problem)) {
      matrices.push_back(matrix_of(of));
      HostAccess::put(matrices.back(), words_.at(std::string(of.name)));
      io.give(std::as_const(matrices.back()));
    }
    const std::size_t given = matrices.size();
    for (const Signature& of : kernel.returned(plan.problem)) {
      matrices.push_back(matrix_of(of));
      io.take(matrices.back());
    }
    Machine machine(plan.M);
    RamWorkspace workspace;
    kernel.run(machine, plan, io, workspace);
    EXPECT_EQ(machine.live(), 0);
    EXPECT_EQ(workspace.peak(), kernel.intermediates(plan).value());
    for (std::size_t k = given; k < matrices.size(); ++k) {
      const std::string& name = matrices[k].name();
      expect_near(matrices[k], name == "O" ? exact_.O : name == "L" ? exact_.L : exact_.g);
    }
    return expect_words(kernel, plan, machine);
  }

 private:
  static std::map<std::string, DenseWords> drawn(const Problem& problem, SparseCases& random) {
    const auto [n, m, d] = problem.shape;
    return {{"A1", random.words(problem.shape.A1_stored)},
            {"X", random.words(problem.shape.X_stored)},
            {"A2", random.words(problem.shape.A2_stored)},
            {"A3", random.words(m * d)},
            {"Y", random.words(d * d)},
            {"dO", random.words(n * d)}};
  }
  [[nodiscard]] SlowMatrix matrix_of(const Signature& of) const {
    return {std::string(of.name), of.rows_of(problem_.shape), of.cols_of(problem_.shape)};
  }

  static void expect_near(const SlowMatrix& matrix, const RoundedMatrix& exact) {
    DenseWords words(static_cast<std::size_t>(matrix.rows() * matrix.cols()));
    HostAccess::get(matrix, words);
    for (Index i = 0; i < std::ssize(words); ++i) {
      const Rounded& word = exact[i / matrix.cols()][i % matrix.cols()];
      if (std::isinf(word.value)) {
        ASSERT_EQ(words[i], word.value) << matrix.name() << " " << i;
      } else {
        ASSERT_LE(std::abs(words[i] - word.value), word.error) << matrix.name() << " " << i;
      }
    }
  }

  bool expect_words(const Kernel& kernel, const Plan& plan, const Machine& machine) const {
    const LiteralTiles literal(plan, exact_.live);
    std::map<std::string, LiteralPhase> expected = {{"core", literal.core()}};
    if (plan.pass == Pass::forward) {
      expected["Z"] = literal.Z();
    } else {
      expected["p"] = literal.p();
      std::tie(expected["W"], expected["g"]) = literal.gradients();
    }
    std::map<std::string, PhaseCounts> found;
    for (const PhaseCounts& phase : leaves(machine.phases())) {
      found[phase.path] = phase;
    }
    std::map<std::string, IoCount> of_loops;
    for (const NestLine& line : kernel.formula.nest(plan.problem, plan.blocks)) {
      of_loops[line.phase] += {line.reads.value(), line.writes.value()};
    }
    IoCount all;
    for (const PhaseCost& phase : plan.phases) {
      SCOPED_TRACE(phase.path);
      const PhaseCounts& ran = found[phase.path];
      const IoCount io{phase.reads.value(), phase.writes.value()};
      all += io;
      EXPECT_EQ(ran.io, io);
      EXPECT_EQ(of_loops[phase.path], io);
      EXPECT_EQ(ran.indices, (IoCount{phase.index_reads.value(), phase.index_writes.value()}));
      EXPECT_EQ(Words(ran.peak), phase.peak);
      EXPECT_EQ(Words(ran.operations.flops), phase.flops);
      if (const auto words = expected.find(phase.path); words != expected.end()) {
        EXPECT_EQ(ran.io, words->second.io);
        EXPECT_EQ(ran.indices, words->second.indices);
        EXPECT_EQ(ran.peak, words->second.peak);
      }
    }
    EXPECT_EQ(total(machine.phases()).io, all);
    return literal.bits();
  }

  Problem problem_;
  std::map<std::string, DenseWords> words_;
  TileReference exact_;
};

const char* const kTilePasses[] = {"forward/sparse-tiles", "backward/sparse-tiles"};

Problem any_activation(Problem problem, SparseCases& random) {
  constexpr Activation all[] = {Activation::softmax, Activation::softmax, Activation::softmax,
                                Activation::relu,    Activation::sigmoid, Activation::silu};
  problem.activation = all[random.any(0, 5)];
  return problem;
}

TEST(SparseTilePasses, MoveTheWordsOfTheirFormulas) {
  SparseCases random(21);
  Index bits = 0, runs = 0;
  for (int trial = 0; trial < 300 && !testing::Test::HasFailure(); ++trial) {
    const Problem problem = any_activation(random.problem(24), random);
    TilePassRun run(problem, random);
    for (const char* const name : kTilePasses) {
      const Kernel& kernel = find_kernel(name);
      const Index least = kernel.least_M(problem);
      for (const Index M : {least, least + random.any(1, 40), least + random.any(41, 600)}) {
        bits += run.expect_right(kernel, kernel.plan(problem, M)) ? 1 : 0;
        ++runs;
      }
      EXPECT_THROW(static_cast<void>(kernel.plan(problem, least - 1)), FastMemoryTooSmall)
          << name << " " << least;
    }
  }
  EXPECT_GT(bits, runs / 10);
  EXPECT_LT(bits, runs - runs / 10);
}

// Blocks chosen by a caller, including blocks larger than their extents.
TEST(SparseTilePasses, TakeAnyBlocks) {
  SparseCases random(22);
  for (int trial = 0; trial < 200 && !testing::Test::HasFailure(); ++trial) {
    const Problem problem = any_activation(random.problem(45), random);
    TilePassRun run(problem, random);
    for (const char* const name : kTilePasses) {
      const Kernel& kernel = find_kernel(name);
      Blocks blocks = kernel.blocks(problem, 100000, Objective::words);
      for (const char* const block : {"r", "c", "w", "p.cols", "p.depth"}) {
        if (blocks.contains(block)) {
          blocks.set(block, random.any(1, 50));
        }
      }
      run.expect_right(kernel, kernel.plan(problem, 100000, blocks));
    }
  }
}

// A query without keys, or a key without queries, adds 0 to g, whatever its words are. If no pair
// is live, O and g are 0.
TEST(SparseTilePasses, OfWhatIsNotLiveNothingIsUsed) {
  SparseCases random(23);
  const BlockPattern A1{3, 2, 1, 1, {0, 1, 2, 3}, {0, 1, 0}};
  const BlockPattern X{2, 2, 1, 1, {0, 1, 2}, {0, 1}};
  const BlockPattern A2{4, 2, 1, 1, {0, 1, 1, 2, 3}, {0, 0, 0}};
  const Problem problem = Problem(3, 4, 2).with_sparsity({A1, X, A2});
  TilePassRun run(problem, random);
  run.change("A1", 1, std::numeric_limits<float>::quiet_NaN());
  run.change("A3", 2, std::numeric_limits<float>::infinity());
  const Problem dead = Problem(3, 4, 2).with_sparsity({A1, X, SparseCases::empty(4, 2)});
  TilePassRun of_dead(dead, random);
  for (const char* const name : kTilePasses) {
    const Kernel& kernel = find_kernel(name);
    for (const Index M : {kernel.least_M(problem), Index{10000}}) {
      run.expect_right(kernel, kernel.plan(problem, M));
    }
    of_dead.expect_right(kernel, kernel.plan(dead, kernel.least_M(dead)));
  }
}

// Rows of width d need not fit. With d = 512 and about ten entries in a row, both kernels run in 64
// words, where the other kernels are refused. At an M where the others barely fit, both move fewer
// words.
TEST(SparseTilePasses, RunWhereNoRowFits) {
  SparseCases random(24);
  const Index n = 48, d = 512;
  BlockPattern rows{n, d, 1, 1, {0}, {}}, identity{d, d, 1, 1, {0}, {}};
  for (Index i = 0; i < n; ++i) {
    Index column = random.any(0, 30);
    for (; column < d; column += random.any(30, 80)) {
      rows.columns.push_back(column);
    }
    rows.offsets.push_back(rows.stored());
  }
  for (Index k = 0; k < d; ++k) {
    identity.columns.push_back(k);
    identity.offsets.push_back(k + 1);
  }
  const Problem problem = Problem(n, n, d).with_sparsity({rows, identity, rows});
  TilePassRun run(problem, random);
  for (const char* const name : kTilePasses) {
    const Kernel& kernel = find_kernel(name);
    EXPECT_LT(kernel.least_M(problem), 64);
    run.expect_right(kernel, kernel.plan(problem, 64));
    const std::string pass(name, std::string(name).find('/'));
    for (const char* const other : {"/sparse-rows", "/sparse-x"}) {
      EXPECT_GT(find_kernel(pass + other).least_M(problem), d);
    }
  }
}

}  // namespace
}  // namespace redblue
