// Computes g with q = dO h^T in slow memory, for fast memories near d^2. Rows of S and of the sum W
// = p A2 stay, while A2 and q stream. Only S and W share the fast memory, instead of S, G and W.
// From scratch, three matrices share it instead of four. S, h, q and g = A1^T W are separate
// products.
//
// rows-q runs after a forward pass, and stores q - v. rows-q-onepass runs from scratch, stores q,
// and keeps a second sum, as backward/rows-onepass does. Words moved in units of n^2, with x = d /
// sqrt(M) < 2 and n = m >> d:
//
//   after a forward pass   3 x^2 + 2
//   from scratch           4 x^2 + 2
//
// Under a mask each row block reads only the keys that it meets, and q holds only live pairs.

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/online_softmax.hpp"
#include "kernels/parts/projected_rows.hpp"
#include "kernels/parts/stages.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace in_backward_rows_q {
namespace {

// Number of queries in a strip of scores, which shares fast memory with the resident rows.
constexpr Index kNarrow = kPanel;

// Computes q - v. If rows of dO stay, v is computed from them while O streams. If tiles stay, v is
// read.
class Centred : public ScoreEpilogue {
 public:
  static EpilogueCost cost(const Products& of, const StationaryBlocks& by) {
    const bool rows = rows_stay(of.scores, by);
    return {.columns = 1,
            .row_reads = rows ? 0 : 1,
            .row_operands = rows ? of.scores.depth : 0,
            .names = {.text = "q = q - v", .columns = {"v"}, .row_reads = rows ? "O" : "v"}};
  }
  // Requires: `v` is given unless rows stay.
  Centred(const SlowMatrix& O, const SlowMatrix* v) : O_(O), v_(v) {}
  RowTiles enter(Machine& machine, const LivePairs& pairs, const StayingRows* rows) override {
    const Range I = pairs.queries();
    if (rows == nullptr) {
      return {live_column(machine, *v_, pairs), {}};
    }
    Tile v = machine.initialize("v", I.size());
    if (rows->transposed) {
      for (const Range K : blocks(O_.cols(), rows->room)) {
        const Tile o_t = machine.read(transposed(O_.block(I, K)));
        add_row_dots(transposed(rows->tile.part(K)), transposed(o_t), v);
      }
    } else {
      for (const Range P : blocks(I.size(), rows->room)) {
        const Tile o = machine.read(O_.row_block(part_of(I, P)));
        add_row_dots(rows->tile.part(P), o, v.part(P));
      }
    }
    return {std::move(v), {}};
  }
  void apply(Machine&, Tile& q, Range part, const LivePairs&, RowTiles& of, Range within) override {
    subtract_rows(q.part(part), of.first.part(within));
  }

 private:
  const SlowMatrix& O_;
  const SlowMatrix* v_;
};

// Calls visit(K, live pairs, rows of A2_J that these pairs use) for each strip K of the queries I
// that meets some of the keys J.
template <class Visit>
void each_live_strip(const Problem& problem, Range I, Range J, const Visit& visit) {
  for (const Range K : blocks(I.size(), kNarrow)) {
    const LivePairs live = LivePairs::near(problem, part_of(I, K), J);
    if (!live.none()) {
      visit(K, live, Range{live.keys().begin - J.begin, live.keys().end - J.begin});
    }
  }
}

// Returns W_I = p_I A2. For a softmax the matrix `q` holds q - v.
Tile core(Machine& machine, const RowPlan& by, const Operands& io, const SlowMatrix& q, Range I,
          Tile s_t) {
  const Tile l = read_row_values(machine, by.problem, io, "L", I);
  Tile W = machine.initialize("W", I.size(), by.problem.shape.d);
  const Tile index = by.units().read_index(machine, I);
  const Pieces keys(by.problem.keys(I), by.keys);
  for (Index which = 0; which < keys.size(); ++which) {
    const Tile a2 = machine.read(io.in("A2").row_block(keys[which]));
    each_live_strip(by.problem, I, keys[which], [&](Range K, const LivePairs& live, Range at) {
      Tile p_t = machine.initialize("p", at.size(), K.size(), Holds::scores);
      const ConstView of_s = s_t.part({0, s_t.rows()}, K);
      if (by.problem.normalised()) {
        exponentiated_product(a2.part(at), of_s, l.part(K), p_t);
      } else {
        multiply(a2.part(at), of_s, p_t);
      }
      {
        const Tile q_t = machine.read(transposed(q.block(part_of(I, K), live.keys())));
        if (by.problem.normalised()) {
          multiply_words(p_t, q_t);
        } else {
          activation_gradient(by.problem.activation, p_t, q_t, p_t);
        }
      }
      live.set_dead(transposed(p_t), 0);
      multiply_add(transposed(p_t), a2.part(at), W.part(K));
    });
  }
  return W;
}

// The core from scratch: keeps q relative to its running mean, and sums with and without q.
Tile core_onepass(Machine& machine, const RowPlan& by, const Operands& io, const SlowMatrix& q,
                  Range I, Tile s_t) {
  const Index d = by.problem.shape.d;
  Tile U = machine.initialize("U", I.size(), d);
  Tile Z = machine.initialize("Z", I.size(), d);
  OnlineSoftmax softmax(machine, I.size());
  RunningMean mean(machine, I.size());
  const Tile index = by.units().read_index(machine, I);
  const Pieces keys(by.problem.keys(I), by.keys);
  for (Index which = 0; which < keys.size(); ++which) {
    const Tile a2 = machine.read(io.in("A2").row_block(keys[which]));
    each_live_strip(by.problem, I, keys[which], [&](Range K, const LivePairs& live, Range at) {
      Tile e_t = machine.initialize("e", at.size(), K.size(), Holds::scores);
      multiply(a2.part(at), s_t.part({0, s_t.rows()}, K), e_t);
      live.set_dead(transposed(e_t), kDeadScore);
      {
        Tile rescale = machine.initialize("rescale", K.size());
        softmax.raise(transposed(std::as_const(e_t)), K, rescale, {U.part(K), Z.part(K)});
      }
      Tile q_t = machine.read(transposed(q.block(part_of(I, K), live.keys())));
      subtract_rows(transposed(q_t), mean.of(K));
      Tile delta = machine.initialize("delta", K.size());
      mean.follow(softmax, K, e_t, q_t, delta, U.part(K), Z.part(K));
      multiply_add(transposed(e_t), a2.part(at), Z.part(K));
      multiply_add(transposed(q_t), a2.part(at), U.part(K));
    });
  }
  softmax.divide(U);
  return U;
}

// Computes S and W, then g = A1^T W.
void gradient(Machine& machine, const Plan& plan, const RowPlan& by, const Operands& io,
              const SlowMatrix& q, Start start, Workspace& workspace) {
  SlowMatrix W = workspace.matrix("W", by.problem.shape.n, by.problem.shape.d);
  {
    const ProjectedRows S(machine, by, plan.blocks, "S", io.in("A1"), io.in("X"), workspace);
    for (const Range I : by.units()) {
      Tile s_t = S.read(machine, I);
      const Phase phase(machine, "W");
      machine.write(start == Start::given ? core(machine, by, io, q, I, std::move(s_t))
                                          : core_onepass(machine, by, io, q, I, std::move(s_t)),
                    W.row_block(I));
    }
  }
  product_phase(machine, "g", plan.blocks, transposed(io.in("A1")), W, io.out("g"));
}

// Words for S, W and L; A2_J; p and q.
Words core_peak(const Problem& problem, Words r, Words c) {
  const Index d = problem.shape.d;
  return r * d * (1 + problem.sum_words) + r * problem.row_words() + c * d +
         2 * c * std::min(r, Words(kNarrow));
}
// Words for S, U and Z, maximum, sum and mean; A2_J; e, with factors or with q and delta.
Words core_onepass_peak(const Problem& problem, Words r, Words c) {
  const Index d = problem.shape.d;
  const Words sum_words = problem.sum_words;
  return r * d + (2 * r * d + 3 * r) * sum_words + c * d +
         (2 * c + sum_words) * std::min(r, Words(kNarrow));
}

using CorePeak = Words (*)(const Problem& problem, Words r, Words c);
struct Core {
  CorePeak peak;
  Index products;   // of n m d multiply-adds
  Index row_reads;  // words read for each row
  Start start;
};
constexpr Core kCore{.peak = core_peak, .products = 2, .row_reads = 1, .start = Start::given};
constexpr Core kCoreOnepass{
    .peak = core_onepass_peak, .products = 3, .row_reads = 0, .start = Start::nothing};

RowPlan row_plan(const Problem& problem, const Blocks& blocks) {
  return {problem, blocks["W.Br"], blocks["W.Bc"], blocks["S.Bw"]};
}

void plan_core(const Problem& problem, Index M, Objective objective, CorePeak peak,
               Blocks& blocks) {
  const auto [n, m, d] = problem.shape;
  const Words index = problem.mask.index().live();
  const auto fits = [&](Index r, Index c) { return peak(problem, r, c) + index <= Words(M); };
  Index keys = objective == Objective::time ? std::min<Index>(m, 48) : 1;
  while (keys > 1 && Words(keys) * d * 4 > Words(M)) {
    keys /= 2;
  }
  const Index r = even(n, largest(std::min(n, M), [&](Index tried) { return fits(tried, keys); }));
  blocks.add("S.Bw", even(d, largest(std::min(d, M), [&, d = d](Index tried) {
                            return Words(2) * r * d + Words(tried) * d <= Words(M);
                          })));
  blocks.add("W.Br", r);
  blocks.add("W.Bc", largest(std::min(m, M), [&](Index tried) { return fits(r, tried); }));
  plan_projected_rows("S", row_plan(problem, blocks), M, objective, blocks);
}

PhaseCost core_cost(const RowPlan& by, const Core& core) {
  const auto [n, m, d] = by.problem.shape;
  const Units::Sum of = by.units().sum();
  return with_index(
      {.path = "W",
       .reads = of.met * d + of.pairs + Words(n) * core.row_reads * by.problem.row_words(),
       .writes = Words(n) * d,
       .peak = core.peak(by.problem, std::min(n, by.rows), std::min(m, by.keys)) + of.index_live,
       .flops = 2 * core.products * of.pairs * d},
      of);
}

bool stores_v(const Problem& problem, const Blocks& blocks) {
  return problem.normalised() &&
         !rows_stay(Products(problem).scores, StationaryBlocks::get("q", blocks));
}

Words W_and_S_words(const Problem& problem, const Blocks& blocks) {
  const Index matrices = made_before("S", blocks) ? 2 : 1;
  return Words(problem.shape.n) * problem.shape.d * matrices;
}

PhaseCost centred_cost(const Problem& problem, const StationaryBlocks& by) {
  return scores_cost("q", problem, by, Centred::cost(Products(problem), by));
}

// Computes v, and q - v. If rows stay, v is not stored.
Stage centred_stage(const Problem& problem) {
  const Products of(problem);
  return {.put =
              [=](Index M, Objective objective, Blocks& blocks) {
                plan_row_dots(problem, M, blocks);
                const auto cost = [&](const StationaryBlocks& by) {
                  PhaseCost q = centred_cost(problem, by);
                  if (!rows_stay(of.scores, by)) {
                    const PhaseCost v = row_dots_cost(problem, blocks);
                    q.reads += v.reads + v.writes;
                  }
                  return q;
                };
                (problem.mask.full() ? fit_stationary(of.scores, M, objective, cost)
                                     : fit_score_rows(problem, M, objective, cost))
                    .put("q", blocks);
              },
          .cost =
              [=](const Blocks& blocks) {
                std::vector<PhaseCost> phases;
                if (stores_v(problem, blocks)) {
                  phases.push_back(row_dots_cost(problem, blocks));
                }
                phases.push_back(centred_cost(problem, StationaryBlocks::get("q", blocks)));
                return phases;
              },
          .nest =
              [=](NestWriter& nest, const Blocks& blocks) {
                const auto by = StationaryBlocks::get("q", blocks);
                if (stores_v(problem, blocks)) {
                  nest.phase("v", [&] { row_dots_nest(nest, problem, blocks); });
                }
                nest.phase("q", [&] {
                  scores_nest(nest, {"q", "dO", "h^T"}, problem, by, Centred::cost(of, by));
                });
              }};
}

void core_nest(NestWriter& nest, const Problem& problem, const Blocks& blocks, const Core& core) {
  const Index d = problem.shape.d;
  const RowPlan by = row_plan(problem, blocks);
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const NestLoop J = key_loop(by, I);
  const NestLoop P = I.pieces("P", kNarrow);
  const NestTile S("S", I, d), W("W", I, d), U("U", I, d), Z("Z", I, d), A2("A2", J, d);
  const NestTile L("L", I, problem.row_columns()), maximum("max", I), sum("sum", I),
      mean("mean", I);
  const bool given = core.start == Start::given;
  projected_rows_nest(nest, by, blocks, {"S", "A1", "X"});
  nest.loop(I, [&] {
    read_projected_rows_nest(nest, by, blocks, I, {"S", "A1", "X"}, {});
    nest.phase("W", [&] {
      if (given) {
        nest.read({L});
      }
      const NestWriter::Tiles stays =
          given ? NestWriter::Tiles{S, W, L} : NestWriter::Tiles{S, U, Z, maximum, sum, mean};
      index_nest(nest, by.units().sum());
      nest.loop(J, stays, [&] {
        nest.read({A2});
        nest.loop(P, {A2}, [&] {
          nest.step(!problem.normalised() ? "p = phi'(S_P A2_J^T) q_PJ; W_P += p A2_J"
                    : given               ? "p = exp(S_P A2_J^T - L_P) q_PJ; W_P += p A2_J"
                            : "e = exp(S_P A2_J^T - max_P); U_P += e (q_PJ - mean_P) A2_J; "
                              "Z_P += e A2_J",
                    {NestTile("q", P, J).of_words(problem.pairs())});
        });
      });
      if (!given) {
        nest.step("W_I = U_I / sum_I");
      }
      nest.write({W});
    });
  });
}

// Computes S and W.
Stage core_stage(const Problem& problem, const Core& core) {
  return {.put = [=](Index M, Objective objective,
                     Blocks& blocks) { plan_core(problem, M, objective, core.peak, blocks); },
          .cost = [=](const Blocks& blocks) -> std::vector<PhaseCost> {
            const RowPlan by = row_plan(problem, blocks);
            return {projected_rows_cost("S", by, blocks), core_cost(by, core)};
          },
          .nest = [=](NestWriter& nest,
                      const Blocks& blocks) { core_nest(nest, problem, blocks, core); }};
}

std::vector<Stage> stages_from(const Problem& problem, Start start) {
  const Products of(problem);
  const FactorNames q{"dO", "h^T"};
  const bool given = start_of(problem, start) == Start::given;
  return {
      product_stage("h", of.h, {"A3", "Y"}),
      given && problem.normalised() ? centred_stage(problem)
      : problem.mask.full()         ? product_stage("q", of.scores, q)
                                    : score_rows_stage("q", problem, q, Unchanged::kCost),
      core_stage(problem, given ? kCore : kCoreOnepass),
      product_stage("g", of.g, {"A1^T", "W"}),
  };
}

std::vector<Stage> stages(const Problem& problem) {
  return stages_from(problem, Start::given);
}

std::vector<Stage> stages_onepass(const Problem& problem) {
  return stages_from(problem, Start::nothing);
}

void code_onepass(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.problem.shape;
  const Blocks& by = plan.blocks;
  SlowMatrix q = score_matrix(workspace, "q", plan.problem);
  {
    SlowMatrix h = workspace.matrix("h", m, d);
    product_phase(machine, "h", by, io.in("A3"), io.in("Y"), h);
    if (plan.problem.mask.full()) {
      product_phase(machine, "q", by, io.in("dO"), transposed(h), q);
    } else {
      Unchanged unchanged;
      scores_phase(machine, "q", plan, io.in("dO"), h, unchanged, q);
    }
  }
  gradient(machine, plan, row_plan(plan.problem, by), io, q, start_of(plan.problem, Start::nothing),
           workspace);
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  if (!plan.problem.normalised()) {  // q needs no v
    return code_onepass(machine, plan, io, workspace);
  }
  const auto [n, m, d] = plan.problem.shape;
  const Blocks& by = plan.blocks;
  const SlowMatrix& dO = io.in("dO");
  SlowMatrix q = score_matrix(workspace, "q", plan.problem);
  {
    SlowMatrix h = workspace.matrix("h", m, d);
    std::optional<SlowMatrix> v;
    product_phase(machine, "h", by, io.in("A3"), io.in("Y"), h);
    if (stores_v(plan.problem, by)) {
      v = workspace.matrix("v", n, 1).holding(Holds::sums);
      row_dots(machine, by, dO, io.in("O"), *v);
    }
    Centred centred(io.in("O"), v ? &*v : nullptr);
    scores_phase(machine, "q", plan, dO, h, centred, q);
  }
  gradient(machine, plan, row_plan(plan.problem, by), io, q, Start::given, workspace);
}

// Slow memory holds q with h and v, then q with W and perhaps S.
Words intermediates(const Problem& problem, const Blocks& blocks) {
  const auto [n, m, d] = problem.shape;
  return problem.pairs() + std::max(Words(m) * d + (stores_v(problem, blocks) ? n : 0),
                                    W_and_S_words(problem, blocks));
}

Words intermediates_onepass(const Problem& problem, const Blocks& blocks) {
  const auto [n, m, d] = problem.shape;
  return problem.pairs() + std::max(Words(m) * d, W_and_S_words(problem, blocks));
}

Words recentred_blocks(const Problem& problem, const Blocks& blocks) {
  return problem.key_pieces(blocks["W.Bc"]);
}

}  // namespace
}  // namespace in_backward_rows_q

Kernel backward_rows_q(Start start) {
  using namespace in_backward_rows_q;
  const std::vector<std::pair<std::string_view, std::string_view>> axes = {{"q", "stored"},
                                                                           {"sink", "W"}};
  if (start == Start::given) {
    return {.name = "backward/rows-q",
            .summary = "q - v in slow memory; row blocks of S and W stay, keys and q pass",
            .pass = Pass::backward,
            .operands = {kA1, kA2, kA3, kX, kY, kdO, kO, kL},
            .returns = {kg},
            .takes_activations = true,
            .axes = axes,
            .schedule = {.code = code},
            .formula = {.cost = cost_of(stages),
                        .intermediates = intermediates,
                        .nest = nest_of(stages)},
            .fitting = fitting_of(stages)};
  }
  return {.name = "backward/rows-q-onepass",
          .summary = "backward/rows-q from nothing: q relative to its running mean, two sums stay",
          .pass = Pass::backward,
          .operands = {kA1, kA2, kA3, kX, kY, kdO},
          .returns = {kg},
          .takes_activations = true,
          .axes = axes,
          .schedule = {.code = code_onepass},
          .formula = {.cost = cost_of(stages_onepass),
                      .intermediates = intermediates_onepass,
                      .nest = nest_of(stages_onepass)},
          .fitting = fitting_of(stages_onepass),
          .numerics = {.recentred_blocks = recentred_blocks}};
}

}  // namespace redblue
