// dQ, dK and dV in two passes, so that no sum leaves fast memory before it is whole: rows of Q, dO
// and dQ stay while keys pass; then keys, values and their gradients stay while queries pass, with
// v by the first pass. Scores are made twice: 14 products of n m d for 10.
//
//   dQ    reads 3 n d + n + 2 m d T,   T = ceil(n / Br);   writes n d + n
//   dKV   reads 2 m d + C (2 n d + 2 n),   C = ceil(m / Bc);   writes 2 m d
//
// rows-keys is given O and L, and its first pass makes v = rowsum(dO * O). rows-keys-onepass is
// given neither. Its first pass keeps q relative to its running mean, and two sums, as
// backward/rows-onepass does; v is the last mean:
//
//   dQ    reads 2 n d + 2 m d T;   writes n d + 2 n
//
// Under a mask each block brings what it meets.
//
// In units of n^2, with x = d / sqrt(M) and n = m >> d: 14 x^2, and 16 x^2 from nothing.

#include <algorithm>
#include <optional>
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

RowPlan row_plan(const Problem& problem, const Blocks& blocks) {
  return {problem, blocks["dQ.Br"], blocks["dQ.Bc"], problem.shape.d};
}

KeyBlocks key_blocks(const Blocks& blocks) {
  return {.rows = blocks["dKV.Br"], .keys = blocks["dKV.Bc"]};
}

// L and v of all queries, for the second pass. Given O and L, L is an operand.
struct OfRows {
  const SlowMatrix& L;
  SlowMatrix* made_L;  // L, where the first pass makes it; else null
  SlowMatrix& v;
};

template <class Sums>
void over_keys(Machine& machine, const RowPlan& by, const Operands& io, Range I, const Tile& q_t,
               const Tile& do_t, Sums& sums) {
  for (const KeyTiles& keys : KeyStream(machine, by, io, I)) {
    sums.add(keys, I, q_t, do_t);
  }
}

// dQ_I = c p_I K; v_I; and L_I where it is not given.
void row_pass(Machine& machine, const RowPlan& by, const Operands& io, Range I, OfRows& of) {
  const float c = by.problem.scale();
  Tile q_t = machine.read(transposed(io.in("Q").row_block(I)));          // Q_I^T (d, r)
  const Tile do_t = machine.read(transposed(io.in("dO").row_block(I)));  // dO_I^T (d, r)
  scale(q_t, c);
  if (of.made_L != nullptr) {
    GradientSums sums(machine, by, I.size());
    over_keys(machine, by, io, I, q_t, do_t, sums);
    auto [dq, l, v] = sums.take_all();
    machine.write(l, of.made_L->row_block(I));
    machine.write(v, of.v.row_block(I));
    scale(dq, c);
    machine.write(dq, io.out("dQ").row_block(I));
    return;
  }
  Tile dots = machine.initialize("v", I.size());  // v_I (r)
  {
    const Tile o_t = machine.read(transposed(io.in("O").row_block(I)));  // O_I^T (d, r)
    add_row_dots(transposed(do_t), transposed(o_t), dots);
  }
  machine.write(dots, of.v.row_block(I));
  Tile l = machine.read(of.L.row_block(I));  // L_I (r)
  KnownGradientSums sums(machine, by, std::move(l), std::move(dots));
  over_keys(machine, by, io, I, q_t, do_t, sums);
  Tile dq = sums.take();  // dQ_I (r, d)
  scale(dq, c);
  machine.write(dq, io.out("dQ").row_block(I));
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace,
          Start start) {
  const Index n = plan.problem.shape.n;
  SlowMatrix v = workspace.matrix("v", n, 1).holding(Holds::sums);
  std::optional<SlowMatrix> L;
  if (start == Start::nothing) {
    L = workspace.matrix("L", n, 1).holding(Holds::sums);
  }
  OfRows of{.L = L ? *L : io.in("L"), .made_L = L ? &*L : nullptr, .v = v};
  {
    const Phase phase(machine, "dQ");
    const RowPlan by = row_plan(plan.problem, plan.blocks);
    for (const Range I : by.units()) {
      row_pass(machine, by, io, I, of);
    }
  }
  const Phase phase(machine, "dKV");
  key_gradients(machine, plan.problem, key_blocks(plan.blocks),
                {.Q = io.in("Q"),
                 .K = io.in("K"),
                 .V = io.in("V"),
                 .dO = io.in("dO"),
                 .L = of.L,
                 .v = v,
                 .dK = io.out("dK"),
                 .dV = io.out("dV"),
                 .scale = plan.problem.scale()});
}

// Q, dO and O with v, where O is given; then Q and dO beside the sums, and keys.
PhaseCost row_pass_cost(const RowPlan& by, Start start) {
  const Index d = by.problem.shape.d;
  const bool given = start == Start::given;
  const Units::Sum of = by.units().sum();
  const Words rd = Words(of.rows) * d;
  const Words r = of.largest;
  const Words sums = given ? KnownGradientSums::words(by, r) : GradientSums::words(by, r);
  const Index products = given ? KnownGradientSums::kProducts : GradientSums::kProducts;
  return {.path = "dQ",
          .reads = (given ? 3 * rd + of.rows : 2 * rd) + 2 * of.met * d,
          .writes = rd + Words(given ? 1 : 2) * of.rows,
          .peak = std::max(given ? 3 * r * d + r : Words(0),
                           2 * r * d + sums + by.key_words(of.longest)),
          .flops = 2 * products * of.pairs * d};
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks, Start start) {
  return {row_pass_cost(row_plan(problem, blocks), start),
          key_gradients_cost("dKV", problem, key_blocks(blocks), AddsTo::dK_dV)};
}

Nest loop_nest(const Problem& problem, const Blocks& blocks, Start start) {
  const Index d = problem.shape.d;
  const RowPlan by = row_plan(problem, blocks);
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const NestLoop J = key_loop(by, I);
  const NestTile Q("Q", I, d), dO("dO", I, d), dQ("dQ", I, d), L("L", I), v("v", I);
  NestWriter nest;
  nest.phase("dQ", [&] {
    nest.loop(I, [&] {
      nest.read({Q, dO});
      if (start == Start::nothing) {
        const NestTile U("U", I, d), Z("Z", I, d), maximum("max", I), sum("sum", I),
            mean("mean", I);
        nest.loop(J, {Q, dO, U, Z, maximum, sum, mean}, [&] {
          nest.step(
              "e = exp(c Q_I K_J^T - max_I); q = dO_I V_J^T - mean_I; U_I += e q K_J; "
              "Z_I += e K_J",
              key_tiles(problem, J));
        });
        nest.step("dQ_I = c U_I / sum_I; L_I = max_I + log(sum_I); v_I = mean_I", {}, {dQ, L, v});
        return;
      }
      nest.step("v_I = rowsum(dO_I * O_I)", {{"O", I, d}}, {v});
      nest.read({L});
      nest.loop(J, {Q, dO, L, v, dQ}, [&] {
        nest.step("p = exp(c Q_I K_J^T - L_I) (dO_I V_J^T - v_I); dQ_I += c p K_J",
                  key_tiles(problem, J));
      });
      nest.write({dQ});
    });
  });
  nest.phase("dKV", [&] { key_gradients_nest(nest, problem, key_blocks(blocks), AddsTo::dK_dV); });
  return nest.lines();
}

// Each pass has the whole of M.
Blocks fit(const Problem& problem, Index M, Objective objective, Start start) {
  const CostOfBlocks row_pass = [start](const Problem& of, const Blocks& blocks) {
    return std::vector<PhaseCost>{
        row_pass_cost(RowPlan(of, blocks["Br"], blocks["Bc"], of.shape.d), start)};
  };
  const Blocks rows = objective == Objective::time ? fastest(problem, M, row_pass)
                                                   : fewest_words(problem, M, row_pass);
  const KeyBlocks keys = fit_key_gradients(problem.shape, M, objective);
  return {
      {"dQ.Br", rows["Br"]}, {"dQ.Bc", rows["Bc"]}, {"dKV.Br", keys.rows}, {"dKV.Bc", keys.keys}};
}

}  // namespace

Kernel gradients_rows_keys(std::string_view name, std::string_view summary, Start start) {
  Kernel kernel{
      .name = name,
      .summary = summary,
      .pass = Pass::gradients,
      .operands = {kQ, kK, kV, kdO},
      .returns = {kdQ, kdK, kdV},

      .kin = start == Start::given ? "backward/rows" : "backward/rows-onepass",
      .schedule = {.code =
                       [start](Machine& machine, const Plan& plan, const Operands& io,
                               Workspace& workspace) {
                         code(machine, plan, io, workspace, start);
                       }},
      .formula = {
          .cost = [start](const Problem& problem,
                          const Blocks& blocks) { return cost(problem, blocks, start); },
          .intermediates =
              [start](const Problem& problem, const Blocks&) {
                return Words(problem.shape.n) * (start == Start::given ? 1 : 2);
              },
          .nest = [start](const Problem& problem,
                          const Blocks& blocks) { return loop_nest(problem, blocks, start); }},
      .fitting = {.fit =
                      [start](const Problem& problem, const Memory& memory, Objective objective) {
                        return fit(problem, memory.M, objective, start);
                      }},
      .numerics = {.recomputes = true}};
  if (start == Start::given) {
    kernel.operands.insert(kernel.operands.end(), {kO, kL});
  } else {
    kernel.numerics.recentred_blocks = [](const Problem& problem, const Blocks& blocks) {
      return Words(problem.key_pieces(blocks["dQ.Bc"]));
    };
  }
  return kernel;
}

}  // namespace redblue
