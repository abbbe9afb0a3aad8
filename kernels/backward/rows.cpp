// g with rows in fast memory: for a row block I, S_I = A1_I X, G_I = dO_I Y^T and the sum
// W_I = p_I A2 stay while keys pass (q_ij = G_i . A3_j, so that h = A3 Y is never made); then
// A1_I^T W_I is added to g. Given dO, O and L. Nothing goes to the slow store but g:
//
//   reads and writes   2 m d T + 4 d^2 T - d^2 + (4 d - kept) n + n,   T = ceil(n / Br)
//
// where `kept` columns of A1_I stay until they meet W_I.
//
// rows-w is for fast memories below 3 d^2, where T is large: W goes to the slow store and
// g = A1^T W is a product; S and G, too, are products where that moves fewer words.

#include "kernels/parts/rows.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/made_rows.hpp"
#include "kernels/parts/scores.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

// W_I = p_I A2.
Tile core(Machine& machine, const RowPlan& by, const Operands& io, Range I, Tile s_t,
          RowGradients of_rows) {
  const Phase phase(machine, "core");
  const auto& [g_t, v] = of_rows;
  const auto [n, m, d] = by.problem.shape;
  const Tile l = machine.read(io.in("L").row_block(I));
  Tile W = machine.initialize("W", I.size(), d);
  const Index keys = std::min(by.keys, m);
  const Index queries = std::min(by.strip(), I.size());
  Tile strip = machine.initialize("p", keys, queries);
  const Tile home = machine.initialize("q", std::min(kHomeWords, strip.words()));
  for (const auto& [J, a2, a3] : KeyStream(machine, by, io)) {
    for (const Range K : blocks(I.size(), by.strip())) {
      const View p_t = strip.part({0, J.size()}, {0, K.size()});
      exponentiated_product(a2, s_t.part({0, s_t.rows()}, K), l.part(K), p_t);
      softmax_gradient_product(a3, g_t.part({0, g_t.rows()}, K), v.part(K), p_t, home);
      multiply_add(transposed(p_t), a2, W.part(K));
    }
  }
  return W;
}

void unit(Machine& machine, const RowPlan& by, const Operands& io, Index unit,
          SlowMatrix* partials) {
  const Range I = by.units()[unit];
  auto [s_t, a1_t] = row_scores(machine, by, io, I);
  RowGradients of_rows = row_gradients(machine, by, io, I);
  const Tile W = core(machine, by, io, I, std::move(s_t), std::move(of_rows));
  add_gradient(machine, by, io, unit, W, std::move(a1_t), partials);
}

std::vector<PhaseCost> part_cost(const Problem& problem, const Blocks& blocks, Range units,
                                 bool partials) {
  const auto [n, m, d] = problem.shape;
  const RowPlan by(problem, blocks);
  const Index T = units.size();
  const Words rows = by.rows_of(units);
  const Words r = by.largest_of(units);
  const Words c = std::min(by.keys, m);
  PhaseCost G = row_gradients_cost(by, units);
  const Words kept = r * by.kept;  // of A1
  G.peak += r * d + kept;          // S
  const Words strip = std::min(r, Words(by.strip()));
  const Words home = std::min(c * strip, Words(kHomeWords));
  return {
      rows_times_cost("S", by, units),
      G,
      // S, G and W, L and v, and what is kept of A1; A2_J and A3_J; a strip.
      {.path = "core",
       .reads = rows + problem.key_sources() * Words(m) * d * T,
       .writes = 0,
       .peak = 3 * r * d + 2 * r + kept + by.key_words() + c * strip + home,
       .flops = 6 * rows * m * d},
      add_gradient_cost(by, units, partials),
  };
}

// ---- W in the slow store -----------------------------------------------------------------

constexpr Extents gradient_product(const Problem& problem) {
  return {.rows = problem.shape.d, .cols = problem.shape.d, .depth = problem.shape.n};
}

void code_w(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const Index n = plan.problem.shape.n;
  const Blocks& blocks = plan.blocks;
  const RowPlan by(plan.problem, blocks);
  const SlowMatrix& A1 = io.in("A1");
  const SlowMatrix& dO = io.in("dO");
  const bool stores_G = made_before("G", blocks);
  SlowMatrix W = workspace.matrix("W", n, plan.problem.shape.d);
  {
    const MadeRows S(machine, by, blocks, "S", A1, io.in("X"), workspace);
    const MadeRows G(machine, by, blocks, "G", dO, transposed(io.in("Y")), workspace);
    std::optional<SlowMatrix> v;
    if (stores_G) {
      v = workspace.matrix("v", n, 1);
      row_dots(machine, blocks, dO, io.in("O"), *v);
    }
    const auto gradients = [&](Range I) -> RowGradients {
      if (!stores_G) {
        return row_gradients(machine, by, io, I);
      }
      Tile g_t = G.read(machine, I);
      const Phase phase(machine, "v");
      return {std::move(g_t), machine.read(std::as_const(*v).row_block(I))};
    };
    for (const Range I : by.units()) {
      Tile s_t = S.read(machine, I);
      const Tile w = core(machine, by, io, I, std::move(s_t), gradients(I));
      const Phase phase(machine, "W");
      machine.write(w, W.row_block(I));
    }
  }
  product_phase(machine, "g", blocks, transposed(A1), W, io.out("g"));
}

std::vector<PhaseCost> cost_w(const Problem& problem, const Blocks& blocks) {
  const RowPlan by(problem, blocks);
  const Range units{0, by.units().size()};
  const std::vector<PhaseCost> rows = part_cost(problem, blocks, units, false);
  const Words rd = Words(by.largest_of(units)) * problem.shape.d;
  std::vector<PhaseCost> phases = {made_rows_cost("S", by, blocks)};
  if (made_before("G", blocks)) {
    phases.push_back(made_rows_cost("G", by, blocks, rd));
    PhaseCost v = row_dots_cost(problem, blocks);
    v.reads += problem.shape.n;
    v.peak = std::max(v.peak, 2 * rd + by.largest_of(units));
    phases.push_back(v);
  } else {
    phases.push_back(rows[1]);
  }
  phases.push_back(rows[2]);
  phases.push_back({.path = "W",
                    .reads = 0,
                    .writes = Words(problem.shape.n) * problem.shape.d,
                    .peak = rd,
                    .flops = 0});
  phases.push_back(product_phase_cost("g", gradient_product(problem), blocks));
  return phases;
}

Blocks fit_w(const Problem& problem, Index M, Objective objective) {
  const auto fit = objective == Objective::words ? fewest_words : fastest;
  Blocks blocks = fit(problem, M, whole_cost(part_cost));
  const RowPlan by(problem, blocks);
  put_made_rows("S", by, M, objective, blocks);
  // Where G is made before, dO and O pass once more for v, which is written and read.
  put_made_rows("G", by, M, objective, blocks, Words(problem.shape.n) * (problem.shape.d + 2));
  if (made_before("G", blocks)) {
    put_row_dots(problem, M, blocks);
  }
  put_product("g", gradient_product(problem), M, objective, blocks);
  return blocks;
}

Words intermediates_w(const Problem& problem, const Blocks& blocks) {
  const Words nd = Words(problem.shape.n) * problem.shape.d;
  return nd + (made_before("S", blocks) ? nd : 0) +
         (made_before("G", blocks) ? nd + problem.shape.n : 0);
}

}  // namespace

Kernel backward_rows() {
  Kernel kernel = row_kernel(unit, part_cost, Pass::backward);
  kernel.name = "backward/rows";
  kernel.summary =
      "row blocks of S, G = dO Y^T and W = p A2 stay, keys pass; g is added to once each";
  kernel.operands = {kA1, kA2, kA3, kX, kY, kdO, kO, kL};
  kernel.returns = {kg};
  return kernel;
}

Kernel backward_rows_w() {
  return {.name = "backward/rows-w",
          .summary = "backward/rows with W in the slow store; g = A1^T W is a product",
          .pass = Pass::backward,
          .operands = {kA1, kA2, kA3, kX, kY, kdO, kO, kL},
          .returns = {kg},
          .shares_keys = true,
          .schedule = {.code = code_w},
          .formula = {.cost = cost_w, .intermediates = intermediates_w},
          .fitting = {.fit = fit_w},
          .numerics = {.Y_meets_rows = true}};
}

}  // namespace redblue
