// Computes g from scratch in three products. For a row block I, the scores e and q of all keys
// stay, so each is computed once. The sums of a row are known only after the last key. Then p and
// W_I = p_I A2 follow, while the keys of A2 stream again. The first block of A2 is read last, so it
// is still in fast memory for W_I. This suits a large cache, M far above m. With a smaller M,
// backward/rows-onepass moves fewer words, at the price of a fourth product.
//
//   reads and writes   (3 m - Bc) d T + 4 d^2 T - d^2 + 3 n d,   T = ceil(n / Br), Bc <= m
//
// Under a mask each row block keeps the scores of the keys that it meets, and streams only these
// keys.

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/row_gradient.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace in_backward_score_rows {
namespace {

// Returns the number of keys read again for W_I: all keys met, minus the first block of each row
// block.
Words passing_again(const RowPlan& by, Range units, const Units::Sum& of) {
  const Words first = by.units().first_met(by.keys, units);
  return of.met.overflowed() ? of.met : Words(of.met.value() - first.value());
}

Nest loop_nest(const Problem& problem, const Blocks& blocks) {
  const Index d = problem.shape.d;
  const RowPlan by(problem, blocks);
  const Units::Sum met = by.units().sum();
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const NestLoop J = key_loop(by, I);
  const NestTile kept("A1", I, by.kept), S("S", I, d), G("G", I, d), W("W", I, d);
  const NestTile e("e", I, met.most), q("q", I, met.most), A2("A2", J, d), A3("A3", J, d);
  const NestTile A2_again = A2.of_words(d * passing_again(by, {0, met.units}, met));
  const NestTile maximum("max", I), sum("sum", I), v("v", I);
  NestWriter nest;
  nest.loop(I, [&] {
    rows_times_nest(nest, by, I, {"S", "A1", "X"}, {});
    rows_times_nest(nest, by, I, {"G", "dO", "Y", true}, {kept, S});
    nest.phase("core", [&] {
      index_nest(nest, met);
      nest.loop(J, {kept, S, G, e, maximum},
                [&] { nest.step("from the last keys to the first: s = S_I A2_J^T; max_I", {A2}); });
      index_nest(nest, met);
      nest.loop(J, {kept, G, e, q, maximum, sum, v, {"A2", J.block, d}},
                [&] { nest.step("q = G_I A3_J^T; e = exp(s - max_I); sum_I, v_I", {A3}); });
      nest.step("v_I = v_I / sum_I");
      index_nest(nest, met);
      nest.loop(J, {kept, e, q, maximum, sum, v, W}, [&] {
        nest.step("W_I += e (q - v_I) A2_J, of which the first block is here", {A2_again});
      });
      nest.step("W_I = W_I / sum_I");
    });
    add_gradient_nest(nest, {problem, blocks}, I, W);
  });
  return nest.lines();
}

// Keys J that a row block meets, and `at`, the rows of their scores.
struct PassingKeys {
  Range J, at;
};
std::vector<PassingKeys> passing_keys(const RowPlan& by, Range I) {
  std::vector<PassingKeys> all;
  Index row = 0;
  for (const Range J : Pieces(by.problem.keys(I), by.keys)) {
    all.push_back({J, {row, row + J.size()}});
    row += J.size();
  }
  return all;
}

// Returns W_I = p_I A2. Keys stream backwards for s and its maximum, then forwards for e and q, and
// again for W. The block of A2 at the turning point is read once.
Tile core(Machine& machine, const RowPlan& by, const Operands& io, Range I, Tile s_t, Tile g_t) {
  const Phase phase(machine, "core");
  const SlowMatrix& A2 = io.in("A2");
  const SlowMatrix& A3 = io.in("A3");
  const std::vector<PassingKeys> keys = passing_keys(by, I);
  const Index met = keys.back().at.end;
  const BlockRanges queries = blocks(I.size(), by.strip());
  Tile e_t = machine.initialize("e", met, I.size(), kUnset, Holds::scores);  // e_I^T (c, r)
  Tile maximum = machine.initialize("max", I.size(), 1, kNoMaximum);         // max_I (r)
  Tile index = by.units().read_index(machine, I);
  Tile a2;
  for (auto block = keys.rbegin(); block != keys.rend(); ++block) {
    a2.reset();
    a2 = machine.read(A2.row_block(block->J));  // A2_J (c, d)
    for (const Range K : queries) {
      const LivePairs live(by.problem, part_of(I, K), block->J);
      if (!live.none()) {
        const View scores_t = e_t.part(block->at, K);
        multiply(a2, s_t.part({0, s_t.rows()}, K), scores_t);
        live.set_dead(transposed(scores_t), kDeadScore);
        raise_maximum(transposed(scores_t), maximum.part(K));
      }
    }
  }
  index.reset();
  s_t.reset();

  Tile q_t = machine.initialize("q", met, I.size(), kUnset, Holds::scores);  // q_I^T (c, r)
  Tile sum = machine.initialize("sum", I.size());                            // sum_I (r)
  Tile v = machine.initialize("v", I.size());                                // v_I (r)
  index = by.units().read_index(machine, I);
  for (const auto& [J, at] : keys) {
    const Tile a3 = machine.read(A3.row_block(J));  // A3_J (c, d)
    for (const Range K : queries) {
      const LivePairs live(by.problem, part_of(I, K), J);
      if (!live.none()) {
        const View of_q = q_t.part(at, K);
        multiply(a3, g_t.part({0, g_t.rows()}, K), of_q);
        live.set_dead(transposed(of_q), 0);
        exponentiate(transposed(e_t.part(at, K)), maximum.part(K), sum.part(K), transposed(of_q),
                     v.part(K));
      }
    }
  }
  index.reset();
  divide_rows(v, sum, v);
  g_t.reset();

  Tile W = machine.initialize("W", I.size(), A2.cols());  // W_I (r, d)
  index = by.units().read_index(machine, I);
  for (const auto& [J, at] : keys) {
    if (at.begin > 0) {
      a2.reset();
      a2 = machine.read(A2.row_block(J));  // A2_J (c, d)
    }
    for (const Range K : queries) {
      if (!LivePairs(by.problem, part_of(I, K), J).none()) {
        const View p_t = q_t.part(at, K);
        softmax_gradient(transposed(e_t.part(at, K)), v.part(K), transposed(p_t));
        multiply_add(transposed(p_t), a2, W.part(K));
      }
    }
  }
  divide_rows(W, sum, W);
  return W;
}

void unit(Machine& machine, const GroupedRows& rows, const Operands& io, Index unit,
          SlowMatrix* partials) {
  const RowPlan& by = rows.by;
  const Range I = rows.rows(unit);
  auto [s_t, a1_t] = row_scores(machine, by, io, I);
  Tile g_t = rows_times_transposed(machine, by, "G", io.in("dO"), I, io.in("Y"));
  const Tile W = core(machine, by, io, I, std::move(s_t), std::move(g_t));
  add_gradient(machine, rows, io, unit, W, std::move(a1_t), partials);
}

std::vector<PhaseCost> part_cost(const Problem& problem, const Blocks& blocks, Range units,
                                 bool partials) {
  const Index d = problem.shape.d;
  const RowPlan by(problem, blocks);
  const Units::Sum of = by.units().sum(units);
  PhaseCost G = rows_times_cost("G", by, of);
  const Words sum_words = problem.sum_words;
  constexpr Index kPasses = 3;                  // s, q and W
  G.peak += Words(of.largest) * (d + by.kept);  // S, and columns of A1
  // S, G, e and the maximum with A2_J. Then G, e and q, maximum, sum and v with A2_J and A3_J. Then
  // W replaces G and A3_J. The kept columns of A1 always stay.
  const auto peak = [&](const Units::Unit& unit) {
    const Words r = unit.rows, m = unit.most;
    const Index c = std::min(by.keys, unit.longest);
    return r * by.kept + std::max({r * m + 2 * r * d + r * sum_words + Words(c) * d,
                                   2 * r * m + r * d + 3 * r * sum_words + Words(2) * c * d,
                                   2 * r * m + r * (d + 3) * sum_words + Words(c) * d});
  };
  return {
      rows_times_cost("S", by, of),
      G,
      with_index({.path = "core",
                  .reads = d * (2 * of.met + passing_again(by, units, of)),
                  .writes = 0,
                  .peak = of.peak(peak) + of.index_live,
                  .flops = 6 * d * of.pairs},
                 of, kPasses),
      add_gradient_cost({problem, blocks}, units, partials),
  };
}

// Fewer row blocks compete with more keys that are read once. For each number of row blocks, the
// fit tries the most keys that fit.
Blocks fit(const Problem& problem, Index M) {
  const auto [n, m, d] = problem.shape;
  const CostOfBlocks cost_of = whole_cost(part_cost);
  const auto cost = [&](Index r, Index c, Index w) {
    return total(cost_of(problem, RowPlan(problem, r, c, w).blocks()));
  };
  const auto fits = [&](Index r, Index c, Index w) { return cost(r, c, w).peak <= Words(M); };
  const auto reads = [&](Index r, Index c) { return cost(r, c, 1).reads; };
  const Index most =
      even(n, largest(std::min(n, M), [&](Index tried) { return fits(tried, 1, 1); }));
  const auto most_keys = [&](Index r) {
    return largest(std::min(problem.shape.m, M), [&](Index tried) { return fits(r, tried, 1); });
  };
  const auto [best_r, best_c] = fewest_words_beside(n, most, m, most_keys, reads,
                                                    problem.mask.full() ? n : sizes_tried(problem));
  const Index w = even(d, largest(std::min(d, M), [&, r = best_r, c = best_c](Index tried) {
                         return fits(r, c, tried);
                       }));
  return RowPlan(problem, best_r, best_c, w).blocks();
}

}  // namespace
}  // namespace in_backward_score_rows

// Without a softmax no sums are needed before p, so keys stream once, as in backward/rows.
Kernel backward_score_rows() {
  using namespace in_backward_score_rows;
  Kernel kernel = row_kernel(unit, part_cost, nullptr);
  const Kernel rows = backward_rows("backward/rows", "", Start::nothing, Sink::gradient);
  SplitStage& stage = kernel.schedule.split->stages.front();
  const SplitStage& of_rows = rows.schedule.split->stages.back();
  stage.part = [of_softmax = stage.part, of_others = of_rows.part](
                   Machine& machine, const Plan& plan, const Operands& io, Range units,
                   SlowMatrix* partials) {
    (plan.problem.normalised() ? of_softmax : of_others)(machine, plan, io, units, partials);
  };
  stage.part_cost = [of_others = of_rows.part_cost](const Problem& problem, const Blocks& blocks,
                                                    Range units, bool partials) {
    return problem.normalised() ? part_cost(problem, blocks, units, partials)
                                : of_others(problem, blocks, units, partials);
  };
  kernel.schedule.code = [part = stage.part, units = stage.units](
                             Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
    part(machine, plan, io, {0, units(plan.problem, plan.blocks)}, nullptr);
  };
  kernel.formula.cost = whole_cost(stage.part_cost);
  kernel.name = "backward/score-rows";
  kernel.summary =
      "from nothing in three products: row blocks of e and q stay whole, keys pass twice";
  kernel.operands = {kA1, kA2, kA3, kX, kY, kdO};
  kernel.returns = {kg};
  kernel.shares_keys = false;
  kernel.takes_activations = true;
  kernel.formula.nest = [of_others = rows.formula.nest](const Problem& problem,
                                                        const Blocks& blocks) {
    return problem.normalised() ? loop_nest(problem, blocks) : of_others(problem, blocks);
  };
  kernel.fitting.fit = [of_others = rows.fitting.fit](const Problem& problem, const Memory& memory,
                                                      Objective objective) {
    if (!problem.normalised()) {
      return of_others(problem, memory, objective);
    }
    return objective == Objective::time ? fastest(problem, memory.M, whole_cost(part_cost))
                                        : fit(problem, memory.M);
  };
  kernel.fitting.ahead = false;  // keys pass back and forth
  return kernel;
}

}  // namespace redblue
