// forward/sparse-tiles and backward/sparse-tiles: their words against a second writing, by loops
// over blocks, keys and entries, against plans and runs; and results against double precision.

#include <algorithm>
#include <cmath>
#include <map>
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

// ---- results -----------------------------------------------------------------------------------

// A number in double precision, and how far off one may be that was rounded on its way.
struct Rounded {
  double value = 0, error = 0;
};
using RoundedMatrix = std::vector<std::vector<Rounded>>;
using StoredAt = std::vector<std::vector<bool>>;

StoredAt stored_at(const BlockPattern& of) {
  StoredAt found(static_cast<std::size_t>(of.rows), std::vector<bool>(of.cols));
  for (Index i = 0; i < of.rows; ++i) {
    for (const Index j : of.row(i)) {
      found[i][j] = true;
    }
  }
  return found;
}

StoredAt either_way(const StoredAt& a, const StoredAt& b, Index cols) {
  StoredAt c(a.size(), std::vector<bool>(cols));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < b.size(); ++k) {
      for (Index j = 0; a[i][k] && j < cols; ++j) {
        c[i][j] = c[i][j] || b[k][j];
      }
    }
  }
  return c;
}

template <class Matrix>
Matrix turned(const Matrix& a, Index cols) {
  Matrix t(static_cast<std::size_t>(cols), typename Matrix::value_type(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (Index j = 0; j < cols; ++j) {
      t[j][i] = a[i][j];
    }
  }
  return t;
}

// Everything of a problem by its definition.
class TileReference {
 public:
  TileReference(const Problem& problem, std::map<std::string, DenseWords>& words)
      : problem_(problem), unit_(std::ldexp(roundings(problem.shape), -24)) {
    const auto [n, m, d] = problem.shape;
    const Sparsity& of = problem.sparsity;
    live = either_way(either_way(stored_at(of.A1()), stored_at(of.X()), d),
                      turned(stored_at(of.A2()), d), m);
    const RoundedMatrix A1 = entries(of.A1(), words.at("A1")),
                        A2 = entries(of.A2(), words.at("A2"));
    const RoundedMatrix A3 = matrix(m, d, words.at("A3")), Y = matrix(d, d, words.at("Y"));
    const RoundedMatrix s = times(times(A1, entries(of.X(), words.at("X"))), turned(A2, d));
    make_f(s);
    O = times(times(f_, A3), Y);
    for (Index i = 0; i < n; ++i) {
      words["L"].push_back(static_cast<float>(L[i][0].value));
      for (const Rounded& word : O[i]) {
        words["O"].push_back(static_cast<float>(word.value));
      }
    }
    const RoundedMatrix dO = matrix(n, d, words.at("dO"));
    const RoundedMatrix q = times(times(dO, turned(Y, d)), turned(A3, d));
    RoundedMatrix used = A1;
    RoundedMatrix p(s.size(), std::vector<Rounded>(static_cast<std::size_t>(m)));
    for (Index i = 0; i < n; ++i) {
      const Rounded v =
          problem.normalised() ? times({dO[i]}, turned(RoundedMatrix{O[i]}, d))[0][0] : Rounded();
      for (Index j = 0; j < m; ++j) {
        if (live[i][j]) {
          p[i][j] = product(factor_[i][j], {q[i][j].value - v.value, q[i][j].error + v.error});
        }
      }
      if (std::ranges::find(live[i], true) == live[i].end()) {
        used[i].assign(static_cast<std::size_t>(d), {});
      }
    }
    g = times(turned(used, d), times(p, A2));
  }

  StoredAt live;
  RoundedMatrix O, L, g;

 private:
  static double roundings(const Shape& of) {
    return static_cast<double>(2 * (of.n + of.m) + 8 * of.d + 64);
  }
  static RoundedMatrix entries(const BlockPattern& of, const DenseWords& words) {
    RoundedMatrix found(static_cast<std::size_t>(of.rows), std::vector<Rounded>(of.cols));
    for (Index i = 0; i < of.rows; ++i) {
      for (Index e = of.offsets[i]; e < of.offsets[i + 1]; ++e) {
        found[i][of.columns[e]].value = words[e];
      }
    }
    return found;
  }
  static RoundedMatrix matrix(Index rows, Index cols, const DenseWords& words) {
    RoundedMatrix found(static_cast<std::size_t>(rows), std::vector<Rounded>(cols));
    for (Index i = 0; i < rows * cols; ++i) {
      found[i / cols][i % cols].value = words[i];
    }
    return found;
  }
  [[nodiscard]] Rounded product(Rounded a, Rounded b) const {
    const double size = (std::abs(a.value) + a.error) * (std::abs(b.value) + b.error);
    return {a.value * b.value, size - std::abs(a.value * b.value) + unit_ * size};
  }
  [[nodiscard]] RoundedMatrix times(const RoundedMatrix& a, const RoundedMatrix& b) const {
    RoundedMatrix c(a.size(), std::vector<Rounded>(b[0].size()));
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t k = 0; k < b.size(); ++k) {
        for (std::size_t j = 0; j < b[k].size(); ++j) {
          const Rounded term = product(a[i][k], b[k][j]);
          c[i][j].value += term.value;
          c[i][j].error += term.error;
        }
      }
    }
    return c;
  }
  // f; and what p has beside q - v.
  void make_f(const RoundedMatrix& s) {
    const Index m = problem_.shape.m;
    L.assign(s.size(), std::vector<Rounded>(1));
    f_.assign(s.size(), std::vector<Rounded>(static_cast<std::size_t>(m)));
    factor_ = f_;
    for (std::size_t i = 0; i < s.size(); ++i) {
      double sum = 0, error = 0, size = 0;
      for (Index j = 0; j < m; ++j) {
        if (live[i][j]) {
          sum += std::exp(s[i][j].value);
          error = std::max(error, s[i][j].error);
          size = std::max(size, std::abs(s[i][j].value));
        }
      }
      L[i][0] = {std::log(sum), error + unit_ * (2 + size)};
      for (Index j = 0; j < m; ++j) {
        if (!live[i][j]) {
          continue;
        }
        if (problem_.normalised()) {
          const double f = std::exp(s[i][j].value) / sum;
          f_[i][j] = {f, f * std::expm1(2 * error + unit_ * (4 + 2 * size))};
          factor_[i][j] = f_[i][j];
        } else {
          activate(s[i][j], f_[i][j], factor_[i][j]);
        }
      }
    }
  }
  // Slopes are at most 1.1, and change by at most half as much as s; that of relu jumps at 0.
  void activate(Rounded s, Rounded& f, Rounded& slope) const {
    const double x = s.value, sigma = 1 / (1 + std::exp(-x));
    const double off = 1.1 * s.error + unit_ * (1 + std::abs(x));
    if (problem_.activation == Activation::relu) {
      f = {std::max(x, 0.0), off};
      slope = {x > 0 ? 1.0 : 0.0, std::abs(x) <= s.error ? 1.0 : 0.0};
    } else if (problem_.activation == Activation::sigmoid) {
      f = {sigma, off};
      slope = {sigma * (1 - sigma), off};
    } else {
      f = {x * sigma, off};
      slope = {sigma * (1 + x * (1 - sigma)), off};
    }
  }

  const Problem& problem_;
  double unit_;
  RoundedMatrix f_, factor_;
};

// ---- words -------------------------------------------------------------------------------------

struct LiteralPhase {
  IoCount io, indices;
  Index peak = 0;

  void values(Index reads, Index writes) { io += {reads, writes}; }
  void index(Index reads, Index writes) {
    indices += {reads, writes};
    io += {reads, writes};
  }
  void holds(Index words) { peak = std::max(peak, words); }
};

class LiteralTiles {
 public:
  LiteralTiles(const Plan& plan, const StoredAt& live)
      : plan_(plan),
        live_(live),
        one_(plan.problem.normalised() ? 1 : 0),
        r_(std::min(plan.blocks["r"], plan.problem.shape.n)) {
    Index pairs = 0, met = 0;
    for (const Range I : rows()) {
      for (const Index count : counts(I)) {
        pairs += count;
        met += count > 0 ? 1 : 0;
      }
    }
    const Index mask = ceil_div(r_, Index{32});
    bits_ = met * (1 + mask) < 2 * met + pairs;
    header_ = bits_ ? 1 + mask : 2;
    passing_ = bits_ ? 2 : 3;
  }

  [[nodiscard]] bool bits() const { return bits_; }

  [[nodiscard]] LiteralPhase core() const {
    const bool given = plan_.pass == Pass::backward;
    const Sparsity& of = plan_.problem.sparsity;
    LiteralPhase sum;
    for (const Range I : rows()) {
      const auto s = columns(of.S(), I);
      const Index of_rows = one_ * (given ? 1 : 2) * I.size();
      sum.values(given ? one_ * I.size() : 0, given ? 0 : one_ * I.size());
      sum.holds(of_rows + 1);
      sum.index(0, 1);
      for (const Range J : blocks(shape().m, plan_.blocks["c"])) {
        const auto a2 = columns(of.A2(), J);
        Index both = 0, few = 0;
        for (const auto& [k, number] : s) {
          if (const auto found = a2.find(k); found != a2.end()) {
            both += number + found->second;
            few = std::max(few, std::min(number, found->second));
          }
        }
        if (both > 0) {
          sum.index(1 + 2 * (std::ssize(s) + std::ssize(a2)) + both, 0);
          sum.values(both, 0);
          sum.holds(of_rows + I.size() * J.size() + 5 + 2 * few + 2);
        }
      }
      for (const Index count : counts(I)) {
        sum.index(0, pattern(count));
        sum.values(0, count);
      }
    }
    return sum;
  }

  [[nodiscard]] LiteralPhase Z() const {
    const Index w = plan_.blocks["w"];
    LiteralPhase sum;
    for (const Range I : rows()) {
      sum.values(one_ * I.size(), 0);
      for (const Range K : blocks(shape().d, w)) {
        sum.index(1, 0);
        sum.values(0, I.size() * K.size());
        sum.holds(I.size() * (one_ + K.size()) + 1);
        for (const Index count : counts(I)) {
          if (count > 0) {
            sum.index(pattern(count), 0);
            sum.values(count + K.size(), 0);
            sum.holds(I.size() * (one_ + K.size()) + 1 + passing_ + I.size() + K.size());
          }
        }
      }
    }
    return sum;
  }

  [[nodiscard]] LiteralPhase p() const {
    const Index d = shape().d, h = std::min(plan_.blocks["p.depth"], d);
    LiteralPhase sum;
    for (const Range I : rows()) {
      sum.values(one_ * I.size(), 0);
      sum.index(1, 0);
      sum.holds(one_ * I.size() + 1);
      const std::vector<Index> count = counts(I);
      for (const Range J : blocks(shape().m, plan_.blocks["p.cols"])) {
        Index queries = 0, keys = 0;
        for (Index j = J.begin; j < J.end; ++j) {
          keys += count[j] > 0 ? 1 : 0;
          sum.index(pattern(count[j]), 0);
          sum.values(count[j], count[j]);
        }
        for (Index i = I.begin; i < I.end; ++i) {
          const auto begin = live_[i].begin();
          queries += std::count(begin + J.begin, begin + J.end, true) > 0 ? 1 : 0;
        }
        sum.values(d * (queries + keys), 0);
        if (keys > 0) {
          sum.holds(one_ * I.size() + 1 + I.size() * J.size() +
                    std::max(passing_, I.size() * h + h));
        }
      }
    }
    return sum;
  }

  // W, and with it g.
  [[nodiscard]] std::pair<LiteralPhase, LiteralPhase> gradients() const {
    const Index d = shape().d, w = std::min(plan_.blocks["w"], d);
    const Sparsity& of = plan_.problem.sparsity;
    LiteralPhase W, g;
    std::map<std::pair<Index, Index>, bool> written;
    for (const Range I : rows()) {
      const std::vector<Index> count = counts(I);
      const auto a1 = columns(of.A1(), I);
      for (const Range K : blocks(d, w)) {
        bool any = false;
        for (Index j = 0; j < shape().m; ++j) {
          const Index entries = std::ranges::count_if(
              of.A2().row(j), [&](Index k) { return K.begin <= k && k < K.end; });
          if (count[j] > 0 && entries > 0) {
            any = true;
            W.index(3 + pattern(count[j]) + entries, 0);
            W.values(count[j] + entries, 0);
            W.holds(I.size() * K.size() + 3 + passing_ + I.size() + 2);
          }
        }
        for (const auto& [k, entries] : a1) {
          if (any) {
            const bool again = std::exchange(written[{k, K.begin}], true);
            g.index(2 + entries, 0);
            g.values(entries + (again ? K.size() : 0), K.size());
            g.holds(I.size() * K.size() + K.size() + 4);
          }
        }
      }
    }
    for (Index k = 0; k < d; ++k) {
      for (const Range K : blocks(d, w)) {
        if (!written.contains({k, K.begin})) {
          g.values(0, K.size());
          g.holds(K.size());
        }
      }
    }
    return {W, g};
  }

 private:
  [[nodiscard]] const Shape& shape() const { return plan_.problem.shape; }
  [[nodiscard]] std::vector<Range> rows() const {
    std::vector<Range> all;
    for (const Range I : blocks(shape().n, r_)) {
      all.push_back(I);
    }
    return all;
  }
  [[nodiscard]] std::vector<Index> counts(Range I) const {
    std::vector<Index> found(static_cast<std::size_t>(shape().m));
    for (Index i = I.begin; i < I.end; ++i) {
      for (std::size_t j = 0; j < found.size(); ++j) {
        found[j] += live_[i][j] ? 1 : 0;
      }
    }
    return found;
  }
  [[nodiscard]] Index pattern(Index count) const {
    return count == 0 ? 0 : header_ + (bits_ ? 0 : count);
  }
  static std::map<Index, Index> columns(const BlockPattern& of, Range rows) {
    std::map<Index, Index> found;
    for (Index i = rows.begin; i < rows.end; ++i) {
      for (const Index k : of.row(i)) {
        ++found[k];
      }
    }
    return found;
  }

  const Plan& plan_;
  const StoredAt& live_;
  Index one_, r_;
  bool bits_ = false;
  Index header_ = 0, passing_ = 0;
};

// ---- runs --------------------------------------------------------------------------------------

class TilePassRun {
 public:
  TilePassRun(const Problem& problem, SparseCases& random)
      : problem_(problem), words_(drawn(problem, random)), exact_(problem_, words_) {}
  // A NaN where a pair that is not live would meet it.
  void change(const char* name, Index at, float to) { words_.at(name).at(at) = to; }

  // Whether queries are kept as bits.
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

// Blocks of a caller's choice, also larger than what they are blocks of.
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

// Of a query without keys nothing reaches g, whatever its words are, nor does a key that no query
// meets; where no pair is live, O and g are 0.
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

// Rows of width d need not fit: with d = 512 and some ten entries a row, both run in 64 words,
// where the others are refused; and move fewer words than these where these barely fit.
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
