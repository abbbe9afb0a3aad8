// g, and dQ, dK, dV for Q = A1 X, K = A2, V = A3 Y, in the manner of FlashAttention: a column
// block (K_J, V_J and their gradients) stays, row blocks pass, and dQ_I is read, added to and
// written once a column block. Given dO, O and L. At last g = A1^T dQ.
//
//   core   reads   2 m d + T (2 n d + 2 n) + (T - 1) n d,   T = ceil(m / Bc)
//          writes  T n d + 2 m d
//
// gradients/flash is v and the core for Q, K, V as they are: K_J stays as c K_J, so that scores and
// dQ have c, and dK_J, a sum of p^T Q, is multiplied by it at last.

#include <algorithm>
#include <optional>
#include <string>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/product.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

// The phases S and h make Q and V; K is A2.
Nest loop_nest(const Problem& problem, const Blocks& by) {
  const Index n = problem.shape.n, m = problem.shape.m, d = problem.shape.d;
  const NestLoop I("I", "queries", n, by["core.Br"]);
  const NestLoop J("J", "keys", m, by["core.Bc"]);
  const NestLoop rows("I", "queries", n, by["v.Br"]);
  const NestTile Q("Q", I, d), dO("dO", I, d), L("L", I), v("v", I), dQ("dQ", I, d);
  const std::string keys(names_of(problem).keys);
  const NestTile K(keys, J, d), V("V", J, d), dK("dK", J, d), dV("dV", J, d);
  NestWriter nest;
  const bool weighted = problem.inputs == Inputs::weighted;
  if (weighted) {
    nest.phase("S", [&] { project_nest(nest, {"Q", "A1", "X"}, n, d, {by["S.Br"], by["S.Bc"]}); });
    nest.phase("h", [&] { project_nest(nest, {"V", "A3", "Y"}, m, d, {by["h.Br"], by["h.Bc"]}); });
  }
  nest.phase("v", [&] {
    nest.loop(rows, [&] {
      nest.step("v_I = rowsum(dO_I * O_I)", {{"dO", rows, d}, {"O", rows, d}}, {{"v", rows}});
    });
  });
  nest.phase("core", [&] {
    nest.loop(J, [&] {
      nest.read({K, V});
      nest.loop(I, {K, V, dK, dV}, [&] {
        nest.step("f = exp(Q_I " + keys + "_J^T - L_I)", {Q, L});
        nest.step("dV_J += f^T dO_I; p = f (dO_I V_J^T - v_I)", {dO, v});
        nest.step("dK_J += p^T Q_I; dQ_I += p " + keys + "_J", {dQ.but_once(J)}, {dQ});
      });
      nest.write({dK, dV});
    });
  });
  if (!weighted) {
    return nest.lines();
  }
  nest.phase("g", [&] {
    product_nest(nest, {"g", "A1^T", "dQ"}, {d, d, n}, {by["g.rows"], by["g.cols"], by["g.depth"]});
  });
  return nest.lines();
}

// v = rowsum(dO * O).
void row_dots(Machine& machine, Index Br, const SlowMatrix& dO, const SlowMatrix& O,
              SlowMatrix& v) {
  for (const Range I : blocks(dO.rows(), Br)) {
    const Tile do_i = machine.read(dO.row_block(I));  // dO_I (r, d)
    const Tile o_i = machine.read(O.row_block(I));    // O_I (r, d)
    Tile v_i = machine.initialize("v", I.size());     // v_I (r)
    add_row_dots(do_i, o_i, v_i);
    machine.write(v_i, v.row_block(I));
  }
}

struct Slow {
  const SlowMatrix &Q, &K, &V, &dO, &L, &v;
  SlowMatrix &dQ, &dK, &dV;
  std::optional<float> scale;  // c
};

void core(Machine& machine, Index Br, Index Bc, const Slow& x) {
  for (const Range J : blocks(x.K.rows(), Bc)) {
    Tile k_t = machine.read(transposed(x.K.row_block(J)));  // K_J^T (d, c)
    if (x.scale) {
      scale(k_t, *x.scale);
    }
    const Tile v_t = machine.read(transposed(x.V.row_block(J)));  // V_J^T (d, c)
    Tile dk = machine.initialize("dK", J.size(), x.K.cols());     // dK_J (c, d)
    Tile dv = machine.initialize("dV", J.size(), x.V.cols());     // dV_J (c, d)
    for (const Range I : blocks(x.Q.rows(), Br)) {
      const Tile q_i = machine.read(x.Q.row_block(I));                      // Q_I (r, d)
      Tile f = machine.initialize("f", I.size(), J.size(), Holds::scores);  // f_IJ (r, c)
      {
        const Tile l_i = machine.read(x.L.row_block(I));  // L_I (r)
        multiply_add(q_i, k_t, f);
        exponentiate(f, l_i, f);
      }
      Tile p = machine.initialize("p", I.size(), J.size(), Holds::scores);  // p_IJ (r, c)
      {
        const Tile do_i = machine.read(x.dO.row_block(I));  // dO_I (r, d)
        multiply_add(transposed(f), do_i, dv);
        multiply_add(do_i, v_t, p);
      }
      {
        const Tile v_i = machine.read(x.v.row_block(I));  // v_I (r)
        softmax_gradient(f, p, v_i, p);
      }
      f.reset();
      multiply_add(transposed(p), q_i, dk);
      Tile p_t = machine.initialize("p^T", J.size(), I.size(), Holds::scores);  // p_IJ^T (c, r)
      transpose(p, p_t);
      p.reset();
      // dQ_I^T (d, r). Nothing is there to be read before the first column block has been.
      Tile dq_t = J.begin == 0 ? machine.initialize("dQ", q_i.cols(), I.size())
                               : machine.read(transposed(x.dQ.row_block(I)));
      multiply_add(k_t, p_t, dq_t);
      machine.write(dq_t, transposed(x.dQ.row_block(I)));
    }
    if (x.scale) {
      scale(dk, *x.scale);
    }
    machine.write(dk, x.dK.row_block(J));
    machine.write(dv, x.dV.row_block(J));
  }
}

// K_J, V_J, dK_J, dV_J; then Q_I and dO_I (or, later, dQ_I) with both score tiles.
Words core_peak(Index d, Index r, Index c) {
  return Words(4) * c * d + Words(2) * r * d + Words(2) * r * c;
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.problem.shape;
  const SlowMatrix& dO = io.in("dO");
  SlowMatrix& dQ = io.out("dQ");

  const Index Br = plan.blocks["core.Br"];
  const Index Bc = plan.blocks["core.Bc"];
  const auto make_v = [&](SlowMatrix& v) {
    const Phase phase(machine, "v");
    row_dots(machine, plan.blocks["v.Br"], dO, io.in("O"), v);
  };
  SlowMatrix v = workspace.matrix("v", n, 1).holding(Holds::sums);
  if (plan.problem.inputs == Inputs::plain) {
    make_v(v);
    const Phase phase(machine, "core");
    core(machine, Br, Bc,
         {io.in("Q"), io.in("K"), io.in("V"), dO, io.in("L"), v, dQ, io.out("dK"), io.out("dV"),
          plan.problem.scale()});
    return;
  }
  const SlowMatrix& A1 = io.in("A1");
  SlowMatrix Q = workspace.matrix("Q", n, d, Window{std::min(n, Br), d});
  SlowMatrix V = workspace.matrix("V", m, d, Window{std::min(m, Bc), d});
  {
    const Phase phase(machine, "S");
    project(machine, {plan.blocks["S.Br"], plan.blocks["S.Bc"]}, A1, io.in("X"), Q);
  }
  {
    const Phase phase(machine, "h");
    project(machine, {plan.blocks["h.Br"], plan.blocks["h.Bc"]}, io.in("A3"), io.in("Y"), V);
  }
  make_v(v);
  {
    const Phase phase(machine, "core");
    core(machine, Br, Bc,
         {Q, io.in("A2"), V, dO, io.in("L"), v, dQ, io.out("dK"), io.out("dV"), std::nullopt});
  }
  const Phase phase(machine, "g");
  product(machine, {plan.blocks["g.rows"], plan.blocks["g.cols"], plan.blocks["g.depth"]},
          transposed(A1), dQ, io.out("g"));
}

// g = A1^T dQ moves n d (ceil(d / rows) + ceil(d / cols)) + d^2 words, so the side with fewer
// words, at most sqrt(M), is tried from large to small with the most of the other; then the
// blocks are made as deep as fits.
ProductBlocks fit_gradient(Index n, Index d, Index M) {
  const auto fits = [M](Index rows, Index cols, Index depth) {
    return Words(rows) * cols + (Words(rows) + cols) * depth <= Words(M);
  };
  ProductBlocks best{1, 1, 1};
  if ((Words(d) * d).overflowed()) {
    return best;  // no count will fit, whatever the blocks
  }
  Words fewest_passes = 2 * Words(d);
  for (Index rows = even(d, std::min(d, square_side(M, 1)));
       Words(ceil_div(d, rows)) < fewest_passes; rows = even(d, rows - 1)) {
    const Index cols =
        even(d, largest(std::min(d, M), [&](Index tried) { return fits(rows, tried, 1); }));
    const Words passes = Words(ceil_div(d, rows)) + ceil_div(d, cols);
    if (fits(rows, cols, 1) && passes < fewest_passes) {
      fewest_passes = passes;
      best = {rows, cols, 1};
    }
    if (rows == 1) {
      break;
    }
  }
  best.depth =
      largest(std::min(n, M), [&](Index tried) { return fits(best.rows, best.cols, tried); });
  return best;
}

// The words of the core depend on Bc alone, those of v on nothing.
Blocks fit(const Problem& problem, Index M) {
  const auto [n, m, d] = problem.shape;
  const Index width = d;  // a lambda cannot capture a structured binding
  const Index v =
      largest(std::min(n, M), [&](Index r) { return Words(2) * r * width + Words(r) <= Words(M); });
  const Index Bc =
      even(m, largest(std::min(m, M), [&](Index c) { return core_peak(width, 1, c) <= Words(M); }));
  const Index Br = even(
      n, largest(std::min(n, M), [&](Index r) { return core_peak(width, r, Bc) <= Words(M); }));
  if (problem.inputs == Inputs::plain) {
    return {{"v.Br", v}, {"core.Br", Br}, {"core.Bc", Bc}};
  }
  const ProjectBlocks S = fit_project(n, d, M);
  const ProjectBlocks h = fit_project(m, d, M);
  const ProductBlocks g = fit_gradient(n, d, M);
  return {{"S.Br", S.rows},   {"S.Bc", S.cols},    {"h.Br", h.rows}, {"h.Bc", h.cols},
          {"v.Br", v},        {"core.Br", Br},     {"core.Bc", Bc},  {"g.rows", g.rows},
          {"g.cols", g.cols}, {"g.depth", g.depth}};
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const auto [n, m, d] = problem.shape;
  const Index Br = blocks["core.Br"];
  const Index Bc = blocks["core.Bc"];
  const Words nd = Words(n) * d;
  const Words md = Words(m) * d;
  const Index T = ceil_div(m, Bc);
  const PhaseCost v{.path = "v",
                    .reads = 2 * nd,
                    .writes = n,
                    .peak = std::min(n, blocks["v.Br"]) * (Words(2) * d + 1),
                    .flops = 0};
  const PhaseCost core{.path = "core",
                       .reads = 2 * md + T * (2 * nd + 2 * Words(n)) + (T - 1) * nd,
                       .writes = T * nd + 2 * md,
                       .peak = core_peak(d, std::min(n, Br), std::min(m, Bc)),
                       .flops = 10 * nd * m};
  if (problem.inputs == Inputs::plain) {
    return {v, core};
  }
  return {
      project_cost("S", n, d, {blocks["S.Br"], blocks["S.Bc"]}),
      project_cost("h", m, d, {blocks["h.Br"], blocks["h.Bc"]}),
      v,
      core,
      product_cost("g", {d, d, n}, {blocks["g.rows"], blocks["g.cols"], blocks["g.depth"]}),
  };
}

// A1 comes once for S, and for g as often as its columns are cut.
Window window(const Signature& operand, const Problem& problem, const Blocks& by) {
  const auto of = [&](Index rows, Index cols) { return window_of(operand, problem, rows, cols); };
  const Index d = problem.shape.d;
  if (operand.name == kX.name) {
    return of(d, by["S.Bc"]);
  }
  if (operand.name == kY.name) {
    return of(d, by["h.Bc"]);
  }
  if (operand.name == kA1.name) {
    return of(by["g.depth"], by["g.rows"]);
  }
  if (operand.name == kg.name) {
    return of(by["g.rows"], by["g.cols"]);
  }
  if (operand.name == kO.name) {
    return of(by["v.Br"], d);
  }
  if (operand.name == kA3.name) {
    return of(by["h.Br"], d);
  }
  return of(by[operand.rows == &Shape::m ? "core.Bc" : "core.Br"], d);
}

}  // namespace

Kernel backward_flash() {
  return {
      .name = "backward/flash",
      .summary = "FlashAttention's loops: column blocks stay, dQ is read and written once for each",
      .pass = Pass::backward,
      .operands = {kA1, kA2, kA3, kX, kY, kdO, kO, kL},
      .returns = {kg, kdQ, kdK, kdV},
      .schedule = {.code = code},
      .formula = {.cost = cost,
                  .intermediates =
                      [](const Problem& problem, const Blocks&) {
                        const auto [n, m, d] = problem.shape;
                        return problem.inputs == Inputs::plain ? Words(n) : (Words(n) + m) * d + n;
                      },
                  .nest = loop_nest},
      .fitting = {.fit = [](const Problem& problem, const Memory& memory,
                            Objective) { return fit(problem, memory.M); },
                  .window = window}};
}

}  // namespace redblue
