// logsumexp, forward and backward of sparse A1, X and A2: a chunk of rows stays, keys pass, one
// after the other, and of each live pair the score is made and used at once.
//
//   logsumexp   the maximum and the sum of exponentials of each row stay;
//   forward     and Z = e A3, of which O = (Z / l) Y is made when the keys have passed;
//   backward    given O and L: G = dO Y^T, v = rowsum(dO * O) and W = p A2 stay; then
//               g += A1_I^T W_I, row by row of g: those that A1_I has an entry for.

#include "kernels/sparse/rows.hpp"

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/registry.hpp"
#include "kernels/sparse/arithmetic.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

// ---- what is made of scores ------------------------------------------------------------------

// A key with its values, while no tile is made.
struct PresentKey {
  SparseRow a2;
  std::optional<ConstView> a3;
};

class SparseSums {
 public:
  SparseSums(Machine& machine, const SparseRows& by, Index rows)
      : maximum(machine.initialize("maximum", rows, 1, kNoMaximum)),
        sum(machine.initialize("sum", rows)),
        Z(by.dense ? machine.initialize("Z", rows, by.d) : Tile()) {}

  // Calls pair(i, s) for live pairs of the key.
  template <class Pairs>
  void key(const PresentKey& key, const Pairs& pairs) {
    float* const largest = View(maximum).at(0, 0);
    float* const of_rows = View(sum).at(0, 0);
    const std::optional<View> z = key.a3 ? std::optional<View>(Z) : std::nullopt;
    pairs([&](Index i, float s) {
      if (s > largest[i]) {
        const float rescale = std::exp(largest[i] - s);
        largest[i] = s;
        of_rows[i] *= rescale;
        if (z) {
          scale_row(*z, i, rescale);
        }
      }
      const float e = std::exp(s - largest[i]);
      of_rows[i] += e;
      if (z) {
        add_scaled_row(*z, i, e, *key.a3);
      }
    });
  }
  [[nodiscard]] Operations of_pair(const PresentKey& key) const {
    return {.flops = key.a3 ? 2 * key.a3->cols() : 0, .elementwise = 3};
  }

  Tile maximum, sum, Z;
};

class SparseGradients {
 public:
  SparseGradients(Machine& machine, const SlowMatrix& L, Range I, Tile G, Tile v)
      : G_(std::move(G)),
        v_(std::move(v)),
        L_(machine.read(L.row_block(I))),
        W(machine.initialize("W", G_.words())) {}

  template <class Pairs>
  void key(const PresentKey& key, const Pairs& pairs) {
    const ConstView g(std::as_const(G_));
    const float* const l = ConstView(std::as_const(L_)).at(0, 0);
    const float* const v = ConstView(std::as_const(v_)).at(0, 0);
    float* const w = View(W).at(0, 0);
    pairs([&](Index i, float s) {
      const float f = std::exp(s - l[i]);
      const float p = f * (dot_row(g, i, *key.a3) - v[i]);
      add_scaled(key.a2, p, w + i * g.cols());
    });
  }
  [[nodiscard]] Operations of_pair(const PresentKey& key) const {
    return {.flops = 2 * (key.a3->cols() + key.a2.size()), .elementwise = 4};
  }

 private:
  Tile G_, v_, L_;

 public:
  Tile W;  // row after row
};

// ---- keys that pass ----------------------------------------------------------------------------

// Reads the indices of all keys, or the given runs, and calls visit(key, its entries) for those
// that are met.
template <class Visit>
void each_met_key(Machine& machine, const SlowCsr& A2, const MetKeys& met, const Visit& visit) {
  Tile run;
  Index next = 0;                      // key
  Index pointers = met.given ? 0 : 1;  // that are to be read besides: the first
  const auto pass = [&](Index end) {
    if (next < end) {
      Index most = 0;
      for (Index key = next; key < end; ++key) {
        most = std::max(most, stored_in(A2.pattern, key));
      }
      const Tile index = machine.read_indices(
          stored_in(A2.pattern, {next, end}) + end - next + std::exchange(pointers, 0), most + 1);
    }
  };
  each_key(met.keys, [&](Index key) {
    if (!met.given) {
      pass(key);
    } else if (key != next || run.words() == 0) {
      run.reset();
      run = machine.read_indices(3, 3);
    }
    const Range entries = entries_of(A2.pattern, key);
    CsrEntries a2{
        entries,
        machine.read_indices(entries.size() + 1 + std::exchange(pointers, 0), entries.size() + 1),
        machine.read(A2.values.row_block(entries))};
    visit(key, a2);
    next = key + 1;
  });
  if (!met.given) {
    pass(A2.pattern.rows);
  }
}

// The scores of a chunk of rows of S.
class StayingS {
 public:
  StayingS(const SparseRows& by, Range I, const CsrEntries& s)
      : by_(by), I_(I), s_(s), columns_(by.rows, I), met_(static_cast<std::size_t>(I.size()), -1) {}

  [[nodiscard]] Tile beside(Machine&, Index, const CsrEntries&) { return {}; }

  template <class Visit>
  Operations each(Index key, const CsrEntries& a2, const Tile&, const Visit& visit) {
    const BlockPattern& S = by_.rows;
    const SparseRow of_key{by_.of.A2().row(key), a2.word(a2.entries.begin)};
    Operations done;
    const auto pair = [&](Index i) {
      const Index row = I_.begin + i;
      visit(i, dot({S.row(row), s_.word(entries_of(S, row).begin)}, of_key, S.cols));
    };
    for (const Index column : of_key.columns) {
      done.flops += 2 * std::ssize(columns_[column]);
    }
    for (const Index column : of_key.columns) {
      if (std::ssize(columns_[column]) == I_.size()) {
        for (Index i = 0; i < I_.size(); ++i) {
          if (met_[static_cast<std::size_t>(i)] != key) {
            pair(i);
          }
        }
        return done;
      }
      for (const ByColumns::Entry& entry : columns_[column]) {
        const Index i = entry.row - I_.begin;
        if (std::exchange(met_[static_cast<std::size_t>(i)], key) != key) {
          pair(i);
        }
      }
    }
    return done;
  }

 private:
  const SparseRows& by_;
  Range I_;
  const CsrEntries& s_;
  ByColumns columns_;
  std::vector<Index> met_;  // the last key of each row
};

// The scores of a chunk of rows of A1 beside X.
class StayingX {
 public:
  StayingX(const SparseRows& by, const ByColumns& x_columns, const CsrEntries& x, Range I,
           const CsrEntries& a1)
      : by_(by),
        x_columns_(x_columns),
        x_(x),
        I_(I),
        a1_(a1),
        stored_(static_cast<std::size_t>(by.d), -1) {}

  // y = X A2_j^T.
  [[nodiscard]] Tile beside(Machine& machine, Index key, const CsrEntries& a2) {
    Tile y = machine.initialize("y", by_.d);
    float* const sums = View(y).at(0, 0);
    const float* const x = by_.of.X().stored() > 0 ? x_.word(0) : nullptr;
    Index products = 0;
    for (Index entry = a2.entries.begin; entry < a2.entries.end; ++entry) {
      const Index l = by_.of.A2().columns[static_cast<std::size_t>(entry)];
      const float factor = *a2.word(entry);
      for (const ByColumns::Entry& at : x_columns_[l]) {
        sums[at.row] += x[at.entry] * factor;
        stored_[static_cast<std::size_t>(at.row)] = key;
      }
      products += std::ssize(x_columns_[l]);
    }
    machine.computed(Operations{.flops = 2 * products});
    return y;
  }

  template <class Visit>
  Operations each(Index key, const CsrEntries&, const Tile& y, const Visit& visit) {
    const BlockPattern& A1 = by_.rows;
    const float* const of_key = ConstView(y).at(0, 0);
    Operations done;
    for (Index i = 0; i < I_.size(); ++i) {
      const std::span<const Index> columns = A1.row(I_.begin + i);
      if (columns.empty()) {
        continue;
      }
      const float* const words = a1_.word(entries_of(A1, I_.begin + i).begin);
      float s = 0;
      Index products = 0;
      for (std::size_t k = 0; k < columns.size(); ++k) {
        if (stored_[static_cast<std::size_t>(columns[k])] == key) {
          s += words[k] * of_key[columns[k]];
          ++products;
        }
      }
      if (products > 0) {
        visit(i, s);
        done.flops += 2 * products;
      }
    }
    return done;
  }

 private:
  const SparseRows& by_;
  const ByColumns& x_columns_;
  const CsrEntries& x_;
  Range I_;
  const CsrEntries& a1_;
  std::vector<Index> stored_;  // the last key for which y has an entry there
};

template <class Scores, class Sums>
void over_met_keys(Machine& machine, const SparseRows& by, const Operands& io, Range I,
                   Scores scores, Sums& sums) {
  const Tile pair = machine.initialize("pair", kPairWords, 1, Holds::scores);
  const SlowCsr A2{by.of.A2(), io.in("A2")};
  each_met_key(machine, A2, by.met(I), [&](Index key, const CsrEntries& a2) {
    const Tile beside = scores.beside(machine, key, a2);
    const Tile a3 = by.dense ? machine.read(io.in("A3").row_block({key, key + 1})) : Tile();
    const PresentKey present{{by.of.A2().row(key), a2.word(a2.entries.begin)},
                             by.dense ? std::optional<ConstView>(a3) : std::nullopt};
    Index pairs = 0;
    Operations done;
    sums.key(present, [&](const auto& use) {
      done = scores.each(key, a2, beside, [&](Index i, float s) {
        use(i, s);
        ++pairs;
      });
    });
    const Operations of_pair = sums.of_pair(present);
    machine.computed(done + Operations{pairs * of_pair.flops, pairs * of_pair.elementwise});
  });
}

// ---- rows with weights ---------------------------------------------------------------------

// O and L from the sums.
void finish_sparse_rows(Machine& machine, const SparseRows& by, const Operands& io, Range I,
                        SparseSums& sums) {
  if (by.dense) {
    divide_unless_0(sums.Z, sums.sum);
  }
  add_logarithm(sums.maximum, sums.sum);
  machine.write(sums.maximum, io.out("L").row_block(I));
  sums.maximum.reset();
  sums.sum.reset();
  if (!by.dense) {
    return;
  }
  const SlowMatrix& Y = io.in("Y");
  for (const Range J : blocks(by.d, by.width)) {
    const Tile y = machine.read(Y.block({0, by.d}, J));
    Tile o = machine.initialize("O", I.size(), J.size());
    multiply(sums.Z, y, o);
    machine.write(o, io.out("O").block(I, J));
  }
}

struct SparseRowGradients {
  Tile G, v;
};

SparseRowGradients sparse_row_gradients(Machine& machine, const SparseRows& by, const Operands& io,
                                        Range I) {
  const Phase phase(machine, "G");
  Tile v = machine.initialize("v", I.size());
  const Tile d_o = machine.read(io.in("dO").row_block(I));
  for (Index i = 0; i < I.size(); ++i) {
    const Tile o = machine.read(io.in("O").row_block({I.begin + i, I.begin + i + 1}));
    add_row_dots(d_o.part({i, i + 1}), o, v.part({i, i + 1}));
  }
  Tile G = machine.initialize("G", I.size(), by.d, kUnset);
  for (const Range J : blocks(by.d, by.width)) {
    const Tile y_t = machine.read(transposed(std::as_const(io.in("Y")).row_block(J)));
    multiply(d_o, y_t, G.part({0, I.size()}, J));
  }
  return {std::move(G), std::move(v)};
}

// g += A1_I^T W_I of rows that have a live pair. `touched` are the rows of g that are there.
void add_sparse_gradient(Machine& machine, const SparseRows& by, SlowMatrix& g, Range I,
                         const CsrEntries& a1, const Tile& W, std::vector<bool>& touched) {
  const ByColumns columns(by.of.A1(), I);
  std::vector<bool> live(static_cast<std::size_t>(I.size()));
  for (Index i = 0; i < I.size(); ++i) {
    live[static_cast<std::size_t>(i)] = by.live(I.begin + i);
  }
  for (Index k = 0; k < by.d; ++k) {
    if (!columns.has(k)) {
      continue;
    }
    const Block row = g.row_block({k, k + 1});
    Tile g_k =
        touched[static_cast<std::size_t>(k)] ? machine.read(row) : machine.initialize("g", 1, by.d);
    touched[static_cast<std::size_t>(k)] = true;
    float* const sums = View(g_k).at(0, 0);
    for (const ByColumns::Entry& at : columns[k]) {
      const Index i = at.row - I.begin;
      if (live[static_cast<std::size_t>(i)]) {
        const float factor = *a1.word(at.entry);
        const float* const w = ConstView(W).at(0, 0) + i * by.d;
        for (Index l = 0; l < by.d; ++l) {
          sums[l] += factor * w[l];
        }
        machine.computed(Operations{.flops = 2 * by.d});
      }
    }
    machine.write(g_k, row);
  }
}

// ---- chunk after chunk ---------------------------------------------------------------------

CsrPass pass_in(Machine& machine, const char* name, const SlowCsr& of) {
  const Phase phase(machine, name);
  return {machine, of};
}

// What stays beside a chunk of rows, and the scores of that.
class Staying {
 public:
  Staying(Machine& machine, const SparseRows& by, const Operands& io) : by_(by) {
    if (by.stays == SparseStays::X) {
      const Phase phase(machine, "X");
      x_ = read_csr(machine, {by.of.X(), io.in("X")});
      columns_.emplace(by.of.X(), Range{0, by.d});
    }
  }
  template <class Sums>
  void add_scores(Machine& machine, const Operands& io, Range I, const CsrEntries& rows,
                  Sums& sums) const {
    if (columns_) {
      over_met_keys(machine, by_, io, I, StayingX(by_, *columns_, x_, I, rows), sums);
    } else {
      over_met_keys(machine, by_, io, I, StayingS(by_, I, rows), sums);
    }
  }

 private:
  const SparseRows& by_;
  CsrEntries x_;
  std::optional<ByColumns> columns_;
};

void forward_chunks(Machine& machine, const SparseRows& by, const Operands& io,
                    const SlowMatrix& rows) {
  const Staying staying(machine, by, io);
  CsrPass pass = pass_in(machine, "core", {by.rows, rows});
  by.each([&](Range I) {
    std::optional<Phase> phase(std::in_place, machine, "core");
    SparseSums sums(machine, by, I.size());
    staying.add_scores(machine, io, I, pass.rows(I), sums);
    if (by.dense) {
      phase.reset();
      phase.emplace(machine, "O");
    }
    finish_sparse_rows(machine, by, io, I, sums);
  });
}

void backward_chunks(Machine& machine, const SparseRows& by, const Operands& io,
                     const SlowMatrix& rows) {
  const Staying staying(machine, by, io);
  CsrPass pass = pass_in(machine, "core", {by.rows, rows});
  std::optional<CsrPass> of_A1;
  if (by.stays == SparseStays::S) {
    of_A1.emplace(pass_in(machine, "g", {by.of.A1(), io.in("A1")}));
  }
  std::vector<bool> touched(static_cast<std::size_t>(by.d));
  by.each([&](Range I) {
    SparseRowGradients of_rows = sparse_row_gradients(machine, by, io, I);
    CsrEntries a1;
    const Tile W = [&] {
      const Phase phase(machine, "core");
      SparseGradients sums(machine, io.in("L"), I, std::move(of_rows.G), std::move(of_rows.v));
      CsrEntries chunk = pass.rows(I);
      staying.add_scores(machine, io, I, chunk, sums);
      if (!of_A1) {
        a1 = std::move(chunk);
      }
      return std::move(sums.W);
    }();
    const Phase phase(machine, "g");
    if (of_A1) {
      a1 = of_A1->rows(I);
    }
    add_sparse_gradient(machine, by, io.out("g"), I, a1, W, touched);
  });
  const Phase phase(machine, "g");
  for (Index k = 0; k < by.d; ++k) {
    if (!touched[static_cast<std::size_t>(k)]) {
      const Tile zeros = machine.initialize("g", 1, by.d);
      machine.write(zeros, io.out("g").row_block({k, k + 1}));
    }
  }
}

void sparse_rows_code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace,
                      SparseStays stays) {
  const SparseRows by(plan.problem, plan.blocks, plan.pass, stays);
  const auto chunks = by.backward ? backward_chunks : forward_chunks;
  if (stays == SparseStays::X) {
    chunks(machine, by, io, io.in("A1"));
    return;
  }
  SlowMatrix S = workspace.matrix("S", plan.problem.shape.S_stored, 1);
  {
    const Phase phase(machine, "S");
    sparse_product(machine, by.of, "S", plan.blocks, io.in("A1"), io.in("X"), S);
  }
  chunks(machine, by, io, S);
}

// ---- the loops ---------------------------------------------------------------------------------

Nest sparse_rows_nest(const Problem& problem, const Blocks& blocks, Pass pass, SparseStays stays) {
  const SparseRows by(problem, blocks, pass, stays);
  NestWriter nest;
  Index chunks = 0, most = 0, entries = 0;
  by.each([&](Range I) {
    ++chunks;
    most = std::max(most, I.size());
    entries = std::max(entries, 2 * stored_in(by.rows, I) + I.size());
  });
  std::vector<PhaseCost> phases = sparse_rows_cost(problem, blocks, pass, stays);
  const auto cost = [&](std::string_view path) {
    return *std::ranges::find(phases, path, &PhaseCost::path);
  };
  const auto of = [](std::string_view name, Words words) {
    return NestTile(name, 1).of_words(words);
  };
  const std::string row = stays == SparseStays::S ? "S" : "A1";
  NestWriter::Tiles throughout;
  if (stays == SparseStays::S) {
    nest.phase("S", [&] { sparse_product_nest(nest, {"S", "A1", "X"}, by.of, "S", blocks); });
  } else {
    throughout.push_back(NestTile("X", csr_words(by.of.X()).value()));
    nest.phase("X", [&] { nest.read({of("X", csr_words(by.of.X()))}); });
  }
  const Words rows = csr_words(by.rows);
  const Index d = by.d;
  const NestLoop I("I", "chunks of rows", chunks, 1);
  nest.loop(I, throughout, [&] {
    if (by.backward) {
      nest.phase("G", [&] {
        nest.step("v_I = rowsum(dO_I * O_I)",
                  {of("dO", Words(by.n) * d), of("O", Words(by.n) * d)});
        nest.step("G_I = dO_I Y^T", {of("Y", Words(chunks) * d * d)});
      });
    }
    nest.phase("core", [&] {
      const Words L = by.backward ? Words(by.n) : Words(0);
      NestWriter::Tiles stay = {NestTile(row, entries)};
      if (by.backward) {
        nest.read({of(row, rows), of("L", L)});
        stay.insert(stay.end(), {NestTile("G", most * d), NestTile("W", most * d)});
      } else {
        nest.read({of(row, rows)});
        if (by.dense) {
          stay.emplace_back("Z", most * d);
        }
      }
      const Words keys = cost("core").reads.value() - rows.value() - L.value();
      nest.loop({"j", "keys", by.m, 1}, stay, [&] {
        const std::string s = stays == SparseStays::S ? "S_I A2_j^T" : "A1_I (X A2_j^T)";
        const std::string text = by.backward
                                     ? "W_I += p_j A2_j, of s_j = " + s + " and q_j = G_I A3_j^T"
                                 : by.dense ? "Z_I += e_j A3_j, of s_j = " + s
                                            : "l_I += e_j, of s_j = " + s;
        nest.step(text, {of(by.dense ? "A2, A3" : "A2", keys)});
      });
      if (!by.dense) {
        nest.write({of("L", by.n)});
      }
    });
    if (by.backward) {
      const PhaseCost g = cost("g");
      nest.phase(
          "g", [&] { nest.step("g += A1_I^T W_I", {of("A1, g", g.reads)}, {of("g", g.writes)}); });
    } else if (by.dense) {
      nest.phase("O", [&] {
        nest.write({of("L", by.n)});
        nest.step("O_I = (Z_I / l_I) Y", {of("Y", Words(chunks) * d * d)},
                  {of("O", Words(by.n) * d)});
      });
    }
  });
  return nest.lines();
}

Kernel sparse_rows_kernel(Pass pass, SparseStays stays) {
  Kernel kernel;
  kernel.pass = pass;
  kernel.takes_sparse = true;
  kernel.operands = {kSparseA1, kSparseX, kSparseA2};
  if (pass == Pass::logsumexp) {
    kernel.returns = {kL};
  } else {
    kernel.operands.insert(kernel.operands.end(), {kA3, kY});
    kernel.returns = {kO, kL};
  }
  if (pass == Pass::backward) {
    kernel.operands.insert(kernel.operands.end(), {kdO, kO, kL});
    kernel.returns = {kg};
  }
  kernel.schedule.code = [stays](Machine& machine, const Plan& plan, const Operands& io,
                                 Workspace& workspace) {
    sparse_rows_code(machine, plan, io, workspace, stays);
  };
  kernel.formula.cost = [=](const Problem& problem, const Blocks& blocks) {
    return sparse_rows_cost(problem, blocks, pass, stays);
  };
  kernel.formula.nest = [=](const Problem& problem, const Blocks& blocks) {
    return sparse_rows_nest(problem, blocks, pass, stays);
  };
  if (stays == SparseStays::S) {
    kernel.formula.intermediates = [](const Problem& problem, const Blocks&) {
      return Words(problem.shape.S_stored);
    };
  }
  kernel.fitting.fit = [=](const Problem& problem, const Memory& memory, Objective) {
    return fit_sparse_rows(problem, memory.M, pass, stays);
  };
  kernel.numerics = {.Y_meets_rows = true, .X_meets_keys = stays == SparseStays::X};
  if (pass != Pass::backward) {
    kernel.numerics.rescales = [](const Problem& problem, const Blocks&) {
      return Words(problem.shape.m);
    };
  }
  return kernel;
}

}  // namespace

Kernel sparse_rows(Pass pass) {
  Kernel kernel = sparse_rows_kernel(pass, SparseStays::S);
  kernel.name = pass == Pass::logsumexp ? "logsumexp/sparse-rows"
                : pass == Pass::forward ? "forward/sparse-rows"
                                        : "backward/sparse-rows";
  kernel.summary = pass == Pass::backward
                       ? "chunks of rows of S = A1 X, G = dO Y^T and W = p A2 stay, keys pass"
                       : "chunks of rows of S = A1 X stay, keys pass";
  return kernel;
}

Kernel sparse_x(Pass pass) {
  Kernel kernel = sparse_rows_kernel(pass, SparseStays::X);
  kernel.name = pass == Pass::logsumexp ? "logsumexp/sparse-x"
                : pass == Pass::forward ? "forward/sparse-x"
                                        : "backward/sparse-x";
  kernel.summary = "X and chunks of rows of A1 stay, keys pass, each with y = X A2_j^T";
  return kernel;
}

}  // namespace redblue
