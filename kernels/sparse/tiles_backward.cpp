#include "kernels/sparse/tiles_backward.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/registry.hpp"
#include "kernels/sparse/arithmetic.hpp"
#include "memsim/machine.hpp"
#include "memsim/partial.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

struct SlowGradients {
  const SlowMatrix &G, &A3;
  const SlowMatrix* v;  // null without a softmax
  SlowMatrix* scores;   // f or s, later p; null if no pair is live
};

// The keys of a range that a block of queries meets, and the block's queries that meet one of them.
struct LiveTile {
  LiveTile(const ByColumns& pairs, Index queries, Range J) {
    std::vector<bool> met(static_cast<std::size_t>(queries));
    for (Index key = J.begin; key < J.end; ++key) {
      if (pairs.has(key)) {
        keys.push_back(key);
      }
      for (const ByColumns::Entry& of : pairs[key]) {
        met[static_cast<std::size_t>(of.row)] = true;
      }
    }
    for (Index i = 0; i < queries; ++i) {
      if (met[static_cast<std::size_t>(i)]) {
        if (rows.empty() || rows.back().end != i) {
          rows.push_back({i, i});
        }
        ++rows.back().end;
      }
    }
  }

  std::vector<Index> keys;
  std::vector<Range> rows;  // counted from the first query of the block
};

// Returns q of live pairs. The pattern is read once; afterwards the tile itself marks the live
// pairs.
Tile tile_of_q(Machine& machine, const StoredScores& stored, const SlowGradients& x,
               const ByColumns& pairs, const LiveTile& live, Range I, Range J, Index depth) {
  Tile q = machine.initialize("q", I.size(), J.size(), std::bit_cast<float>(kAbsentBits),
                              Holds::scores);  // q_IJ (r, c)
  {
    const Tile pattern = machine.read_indices(stored.pattern(pairs, J), stored.live_pattern());
    for (const Index key : live.keys) {
      for (const ByColumns::Entry& of : pairs[key]) {
        fill_word(machine, &q(of.row, key - J.begin), 0);
      }
    }
  }
  std::vector<Range> queries = live.rows;
  for (Range& rows : queries) {
    rows = {I.begin + rows.begin, I.begin + rows.end};
  }
  const SlowMatrix G = only_rows(x.G, std::move(queries));
  for (const Range H : blocks(x.G.cols(), depth)) {
    const Tile g = machine.read(G.block(I, H));  // G_IH (r, h)
    for (const Index key : live.keys) {
      const Tile a3 = machine.read(x.A3.block({key, key + 1}, H));  // A3_jH (1, h)
      const View sums = q;
      for (const ByColumns::Entry& of : pairs[key]) {
        sums(of.row, key - J.begin) += dot_row(g, of.row, a3);
      }
      if (machine.is_heard()) [[unlikely]] {
        for (const ByColumns::Entry& of : pairs[key]) {
          tell_dot_row(g, of.row, a3, sums, of.row, key - J.begin);
        }
      }
      machine.computed(Operations{.flops = 2 * std::ssize(pairs[key]) * H.size()});
    }
  }
  return q;
}

// Replaces the stored scores by p.
void make_stored_p(Machine& machine, const Plan& plan, const StoredScores& stored,
                   const SlowGradients& x) {
  const Phase phase(machine, "p");
  const Problem& problem = plan.problem;
  const auto by = BackwardTileBlocks::get(problem, plan.blocks);
  for (const Range I : blocks(problem.shape.n, stored.size)) {
    const ByColumns pairs(pairs_of(problem.sparsity, I), {0, I.size()});
    const Tile end = machine.read_indices(1);
    const Tile v = x.v == nullptr ? Tile() : machine.read(x.v->row_block(I));  // v_I (r)
    for (const Range J : blocks(problem.shape.m, by.cols)) {
      const LiveTile live(pairs, I.size(), J);
      if (live.keys.empty()) {
        continue;
      }
      const Tile q = tile_of_q(machine, stored, x, pairs, live, I, J, by.depth);
      for (const Index key : live.keys) {
        const Range column{key, key + 1};
        Tile p = machine.read(std::as_const(*x.scores).block(I, column));  // f_Ij, or s_Ij (r)
        make_p(problem, p, q.part({0, I.size()}, {key - J.begin, key - J.begin + 1}), v,
               {0, I.size()}, p);
        machine.write(p, x.scores->block(I, column));
      }
    }
  }
}

// ---- W and g -----------------------------------------------------------------------------------

// Returns the entries of a key in some columns.
Range entries_in(const BlockPattern& of, Index key, Range columns) {
  const auto row = of.row(key);
  const Index begin = entries_of(of, key).begin;
  const auto at = [&](Index column) {
    return begin + (std::ranges::lower_bound(row, column) - row.begin());
  };
  return {at(columns.begin), at(columns.end)};
}

struct SlowFactors {
  const SlowMatrix *p, &A2, &A1;  // p is null if no pair is live; A1 is in blocks of queries
};

// W_IK += p_Ij A2_jK.
void add_key(Machine& machine, const StoredScores& stored, const BlockPattern& of_A2,
             const SlowFactors& x, std::span<const ByColumns::Entry> queries, Index key,
             Range entries, Range I, Range K, Tile& W) {
  const Tile given = machine.read_indices(3, 3);
  const Tile pattern =
      machine.read_indices(stored.pattern(std::ssize(queries)), stored.live_pattern());
  const Tile p = machine.read(x.p->block(I, {key, key + 1}));  // p_Ij (r)
  for (Index entry = entries.begin; entry < entries.end; ++entry) {
    const Tile column = machine.read_indices(1);
    const Tile a2 = machine.read(x.A2.row_block({entry, entry + 1}));
    const Index k = of_A2.columns[static_cast<std::size_t>(entry)] - K.begin;
    const float factor = a2(0, 0);
    const float* const of_p = ConstView(p).at(0, 0);
    const View sums = W;
    for (const ByColumns::Entry& of : queries) {
      sums(of.row, k) += factor * of_p[of.row];
    }
    if (machine.is_heard()) [[unlikely]] {
      for (const ByColumns::Entry& of : queries) {
        tell_term(machine, ConstView(a2).at(0, 0), of_p + of.row, &sums(of.row, k));
      }
    }
  }
  machine.computed(Operations{.flops = 2 * entries.size() * std::ssize(queries)});
}

// The parts of g, and whether each was written.
class PartsOfG {
 public:
  PartsOfG(Machine& machine, SlowMatrix& g, Index width)
      : machine_(machine),
        g_(g),
        width_(width),
        written_(static_cast<std::size_t>(g.rows() * ceil_div(g.cols(), width))) {}

  // g_kK += A1_Ik^T W_IK, summed over live queries, for the columns k that these rows of A1 have.
  void add(const SlowMatrix& A1, const RowGroups& rows, const std::vector<bool>& live, Range K,
           const Tile& W) {
    for (const RowGroups::Group& group : rows.groups) {
      const Tile header = machine_.read_indices(2, 2);
      std::vector<bool>::reference written = part(group.column, K);
      const Block block = g_.block({group.column, group.column + 1}, K);
      Tile g = written ? machine_.read(block) : machine_.initialize("g", 1, K.size());
      written = true;
      for (Index entry = group.entries.begin; entry < group.entries.end; ++entry) {
        const Tile row = machine_.read_indices(1);
        const Tile a1 = machine_.read(A1.row_block({entry, entry + 1}));
        const Index i = rows.row_of[static_cast<std::size_t>(entry - rows.entries.begin)];
        if (live[static_cast<std::size_t>(rows.rows.begin + i)]) {
          add_scaled_row(g, 0, a1, 0, W.part({i, i + 1}));
          machine_.computed(Operations{.flops = 2 * K.size()});
        }
      }
      machine_.write(g, block);
    }
  }
  void write_others() {
    for (Index k = 0; k < g_.rows(); ++k) {
      for (const Range K : blocks(g_.cols(), width_)) {
        if (!part(k, K)) {
          const Tile zeros = machine_.initialize("g", 1, K.size());
          machine_.write(zeros, g_.block({k, k + 1}, K));
        }
      }
    }
  }

 private:
  std::vector<bool>::reference part(Index k, Range K) {
    return written_[static_cast<std::size_t>(k * ceil_div(g_.cols(), width_) + K.begin / width_)];
  }

  Machine& machine_;
  SlowMatrix& g_;
  Index width_;
  std::vector<bool> written_;
};

void fold_gradient(Machine& machine, const Plan& plan, const StoredScores& stored,
                   const SlowFactors& x, SlowMatrix& g) {
  const Problem& problem = plan.problem;
  const BlockPattern& A2 = problem.sparsity.A2();
  const Index width = BackwardTileBlocks::get(problem, plan.blocks).width;
  const LiveCounts live(problem.sparsity);
  PartsOfG parts(machine, g, width);
  for (const Range I : blocks(problem.shape.n, stored.size)) {
    const ByColumns pairs(pairs_of(problem.sparsity, I), {0, I.size()});
    const RowGroups a1(problem.sparsity.A1(), I);
    for (const Range K : blocks(problem.shape.d, width)) {
      Tile W;  // W_IK (r, w)
      {
        const Phase phase(machine, "W");
        for (Index key = 0; key < A2.rows; ++key) {
          const Range entries = entries_in(A2, key, K);
          if (pairs.has(key) && entries.size() > 0) {
            if (W.words() == 0) {
              W = machine.initialize("W", I.size(), K.size());
            }
            add_key(machine, stored, A2, x, pairs[key], key, entries, I, K, W);
          }
        }
      }
      if (W.words() > 0) {
        const Phase phase(machine, "g");
        parts.add(x.A1, a1, live.live_query, K, W);
      }
    }
  }
  const Phase phase(machine, "g");
  parts.write_others();
}

std::vector<Stage> backward_stages(const Problem& problem) {
  const auto [n, m, d] = problem.shape;
  std::vector<Stage> stages = {
      sparse_tiles_stage(problem, Pass::backward, beside_gradients(problem)),
      product_stage("G", {n, d, d}, {"dO", "Y^T"})};
  if (problem.normalised()) {
    stages.push_back(row_dots_stage(problem));
  }
  stages.push_back(backward_tiles_stage(problem));
  return stages;
}

void backward_code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const Problem& problem = plan.problem;
  const Sparsity& of = problem.sparsity;
  const auto [n, m, d] = problem.shape;
  std::optional<SlowMatrix> scores = stored_scores(workspace, "p", problem);
  SlowMatrix* const stored_words = scores ? &*scores : nullptr;
  over_tiles(machine, plan, io, workspace, stored_words);
  const StoredScores stored(of, GroupCounts(of.S(), plan.blocks["r"]));
  {
    SlowMatrix G = workspace.matrix("G", n, d);
    product_phase(machine, "G", plan.blocks, io.in("dO"), transposed(io.in("Y")), G);
    std::optional<SlowMatrix> v;
    if (problem.normalised()) {
      v = workspace.matrix("v", n, 1).holding(Holds::sums);
      row_dots(machine, plan.blocks, io.in("dO"), io.in("O"), *v);
    }
    make_stored_p(machine, plan, stored, {G, io.in("A3"), v ? &*v : nullptr, stored_words});
  }
  SlowMatrix grouped_A1 = workspace.matrix("A1_grouped", problem.shape.A1_stored, 1);
  regroup(machine, {of.A1(), io.in("A1")}, plan.blocks["r"], grouped_A1);
  fold_gradient(machine, plan, stored, {stored_words, io.in("A2"), grouped_A1}, io.out("g"));
}

}  // namespace

Kernel backward_sparse_tiles() {
  Kernel kernel;
  kernel.name = "backward/sparse-tiles";
  kernel.summary = "tiles of scores stay: f, then p, in slow memory; then tiles of W = p A2";
  kernel.pass = Pass::backward;
  kernel.takes_sparse = true;
  kernel.takes_activations = true;
  kernel.operands = {kSparseA1, kSparseX, kSparseA2, kA3, kY, kdO, kO, kL};
  kernel.returns = {kSparseg};
  kernel.schedule.code = backward_code;
  kernel.formula.cost = cost_of(backward_stages);
  kernel.formula.intermediates = [](const Problem& problem, const Blocks&) {
    const Words n = problem.shape.n;
    const Words later =
        std::max(n * problem.shape.d + n * problem.row_words(), Words(problem.shape.A1_stored));
    return std::max(sparse_tiles_intermediates(problem, Pass::backward),
                    problem.sparsity.pairs() + later);
  };
  kernel.formula.nest = nest_of(backward_stages);
  kernel.fitting = fitting_of(backward_stages);
  kernel.numerics = {.Y_meets_rows = true};
  return kernel;
}

}  // namespace redblue
