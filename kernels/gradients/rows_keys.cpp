// dQ, dK and dV in two passes, so that no sum leaves fast memory before it is whole: rows of Q, dO
// and dQ stay while keys pass; then keys, values and their gradients stay while queries pass, given
// v = rowsum(dO * O) by the first. Scores are made twice: 14 products of n m d for 10.
//
//   dQ    reads 3 n d + n + 2 m d T,   T = ceil(n / Br);   writes n d + n
//   dKV   reads 2 m d + C (2 n d + 2 n),   C = ceil(m / Bc);   writes 2 m d
//
// In units of n^2, with x = d / sqrt(M) and n = m >> d: 14 x^2.

#include <algorithm>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/key_gradients.hpp"
#include "kernels/parts/row_sums.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

constexpr KeyPass kPass{};

RowPlan row_plan(const Problem& problem, const Blocks& blocks) {
  return {problem, blocks["dQ.Br"], blocks["dQ.Bc"], problem.shape.d};
}

KeyPassBlocks key_blocks(const Blocks& blocks) {
  return {.rows = blocks["dKV.Br"], .keys = blocks["dKV.Bc"]};
}

// dQ_I = c p_I K; and v_I.
void row_pass(Machine& machine, const RowPlan& by, const Operands& io, Range I, SlowMatrix& v) {
  const float c = by.problem.scale();
  Tile q_t = machine.read(transposed(io.in("Q").row_block(I)));          // Q_I^T (d, r)
  const Tile do_t = machine.read(transposed(io.in("dO").row_block(I)));  // dO_I^T (d, r)
  scale(q_t, c);
  Tile dots = machine.initialize("v", I.size());  // v_I (r)
  {
    const Tile o_t = machine.read(transposed(io.in("O").row_block(I)));  // O_I^T (d, r)
    add_row_dots(transposed(do_t), transposed(o_t), dots);
  }
  machine.write(dots, v.row_block(I));
  Tile l = machine.read(io.in("L").row_block(I));  // L_I (r)
  KnownGradientSums sums(machine, by, std::move(l), std::move(dots));
  for (const auto& [J, k, values] : KeyStream(machine, by, io, I)) {
    sums.add(k, values, {0, J.size()}, q_t, do_t);
  }
  Tile dq = sums.take();  // dQ_I (r, d)
  scale(dq, c);
  machine.write(dq, io.out("dQ").row_block(I));
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  SlowMatrix v = workspace.matrix("v", plan.problem.shape.n, 1).holding(Holds::sums);
  {
    const Phase phase(machine, "dQ");
    const RowPlan by = row_plan(plan.problem, plan.blocks);
    for (const Range I : by.units()) {
      row_pass(machine, by, io, I, v);
    }
  }
  const Phase phase(machine, "dKV");
  key_gradients(machine, key_blocks(plan.blocks),
                {.Q = io.in("Q"),
                 .K = io.in("K"),
                 .dO = io.in("dO"),
                 .L = io.in("L"),
                 .V = &io.in("V"),
                 .v = &v,
                 .q = nullptr,
                 .dK = io.out("dK"),
                 .dV = io.out("dV"),
                 .scale = plan.problem.scale()});
}

// Q, dO and O with v; then Q and dO beside the sums, and keys.
PhaseCost row_pass_cost(const RowPlan& by) {
  const auto [n, m, d] = by.problem.shape;
  const Words nd = Words(n) * d;
  const Words r = std::min(n, by.rows);
  return {
      .path = "dQ",
      .reads = 3 * nd + n + Words(2) * m * d * by.units().size(),
      .writes = nd + n,
      .peak = std::max(3 * r * d + r, 2 * r * d + KnownGradientSums::words(by, r) + by.key_words()),
      .flops = 2 * KnownGradientSums::kProducts * nd * m};
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  return {row_pass_cost(row_plan(problem, blocks)),
          key_gradients_cost("dKV", problem.shape, key_blocks(blocks), kPass)};
}

Nest loop_nest(const Problem& problem, const Blocks& blocks) {
  const Index d = problem.shape.d;
  const RowPlan by = row_plan(problem, blocks);
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const NestLoop J("J", "keys", problem.shape.m, by.keys);
  const NestTile Q("Q", I, d), dO("dO", I, d), dQ("dQ", I, d), L("L", I), v("v", I);
  NestWriter nest;
  nest.phase("dQ", [&] {
    nest.loop(I, [&] {
      nest.read({Q, dO});
      nest.step("v_I = rowsum(dO_I * O_I)", {{"O", I, d}}, {v});
      nest.read({L});
      nest.loop(J, {Q, dO, L, v, dQ}, [&] {
        nest.step("p = exp(c Q_I K_J^T - L_I) (dO_I V_J^T - v_I); dQ_I += c p K_J",
                  key_tiles(problem, J));
      });
      nest.write({dQ});
    });
  });
  nest.phase("dKV", [&] { key_gradients_nest(nest, problem, key_blocks(blocks), kPass); });
  return nest.lines();
}

// Each pass has the whole of M.
Blocks fit(const Problem& problem, Index M, Objective objective) {
  const CostOfBlocks row_pass = [](const Problem& of, const Blocks& blocks) {
    return std::vector<PhaseCost>{
        row_pass_cost(RowPlan(of, blocks["Br"], blocks["Bc"], of.shape.d))};
  };
  const Blocks rows = objective == Objective::time ? fastest(problem, M, row_pass)
                                                   : fewest_words(problem, M, row_pass);
  const KeyPassBlocks keys = fit_key_gradients(problem.shape, M, kPass);
  return {
      {"dQ.Br", rows["Br"]}, {"dQ.Bc", rows["Bc"]}, {"dKV.Br", keys.rows}, {"dKV.Bc", keys.keys}};
}

}  // namespace

Kernel gradients_rows_keys() {
  return {.name = "gradients/rows-keys",
          .summary = "two passes: rows of Q, dO and dQ stay, then keys, values, dK and dV",
          .pass = Pass::gradients,
          .operands = {kQ, kK, kV, kdO, kO, kL},
          .returns = {kdQ, kdK, kdV},
          .kin = "backward/rows",
          .schedule = {.code = code},
          .formula = {.cost = cost,
                      .intermediates = [](const Problem& problem,
                                          const Blocks&) { return Words(problem.shape.n); },
                      .nest = loop_nest},
          .fitting = {.fit = [](const Problem& problem, const Memory& memory,
                                Objective objective) { return fit(problem, memory.M, objective); }},
          .numerics = {.recomputes = true}};
}

}  // namespace redblue
