// Computes g by the paper's large-cache algorithm (Algorithms 7 to 9), after a forward pass. S and
// h are written first. Then g stays in fast memory. Each row block (S_i, dO_i, A1_i) stays in turn,
// while column blocks (h_j, A2_j) stream past it. It needs M of at least about d^2 + 5 d. Under a
// mask a row block streams only the column blocks with a live pair.

#include <algorithm>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/product.hpp"
#include "kernels/registry.hpp"
#include "kernels/units.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace in_backward_large {
namespace {

Units::Tiles phase2_tiles(const Problem& problem, const Blocks& by) {
  return Units::of_queries(problem, by["phase2.Br"]).live_tiles(by["phase2.Bc"]);
}

// Algorithm 7 for n = m, where the row blocks of A1 and A3 are paired as printed.
// Erratum: the proof of Lemma D.2 takes ceil(d / Br) column blocks, but the algorithm ceil(d / Bc).
void project_pairs(Machine& machine, ProjectBlocks by, const SlowMatrix& A1, const SlowMatrix& A3,
                   const SlowMatrix& X, const SlowMatrix& Y, SlowMatrix& S, SlowMatrix& h) {
  for (const Range I : blocks(A1.rows(), by.rows)) {
    const Tile a1 = machine.read(A1.row_block(I));  // A1_I (r, d)
    const Tile a3 = machine.read(A3.row_block(I));  // A3_I (r, d)
    for (const Range J : blocks(X.cols(), by.cols)) {
      {
        const Tile x = machine.read(X.block({0, X.rows()}, J));  // X_J (d, c)
        Tile s = machine.initialize("S", I.size(), J.size());    // S_IJ (r, c)
        multiply_add(a1, x, s);
        machine.write(s, S.block(I, J));
      }
      const Tile y = machine.read(Y.block({0, Y.rows()}, J));   // Y_J (d, c)
      Tile h_ij = machine.initialize("h", I.size(), J.size());  // h_IJ (r, c)
      multiply_add(a3, y, h_ij);
      machine.write(h_ij, h.block(I, J));
    }
  }
}

// Algorithm 8.
// Erratum: the paper never deletes h_j. Here h_j is deleted as soon as q_ij is computed.
// Erratum: line 16 prints f = diag(l) A instead of diag(l)^-1 A. This code has L, the log of l,
// instead of l. So the tile A holds the raw scores and f = exp(A - L), at the same words and peak.
void gradient(Machine& machine, const Plan& plan, const Operands& io, const SlowMatrix& S,
              const SlowMatrix& h) {
  const SlowMatrix& A1 = io.in("A1");
  const SlowMatrix& A2 = io.in("A2");
  const Problem& problem = plan.problem;
  Tile g_t = machine.initialize("g", A2.cols(), A1.cols());  // g^T (d, d)
  const Units queries = Units::of_queries(plan.problem, plan.blocks["phase2.Br"]);
  for (const Range I : queries) {
    const Tile s_i = machine.read(S.row_block(I));                   // S_I (r, d)
    Tile o_i = read_row_values(machine, problem, io, "O", I);        // O_I (r, d)
    const Tile do_i = machine.read(io.in("dO").row_block(I));        // dO_I (r, d)
    const Tile a1_i = machine.read(A1.row_block(I));                 // A1_I (r, d)
    const Tile l_i = read_row_values(machine, problem, io, "L", I);  // L_I (r)
    Tile v_i = row_values(machine, problem, "v", I.size());          // v_I (r)
    if (problem.normalised()) {
      add_row_dots(do_i, o_i, v_i);
    }
    o_i.reset();
    const Tile index = queries.read_index(machine, I);
    for (const Range J : queries.met_blocks(I, plan.blocks["phase2.Bc"])) {
      const LivePairs live(plan.problem, I, J);
      Tile q;
      {
        const Tile h_j = machine.read(transposed(h.row_block(J)));       // h_J^T (d, c)
        q = machine.initialize("q", I.size(), J.size(), Holds::scores);  // q_IJ (r, c)
        multiply_add(do_i, h_j, q);
      }
      const Tile a2_j = machine.read(transposed(A2.row_block(J)));          // A2_J^T (d, c)
      Tile a = machine.initialize("A", I.size(), J.size(), Holds::scores);  // A_IJ (r, c)
      multiply_add(s_i, a2_j, a);
      Tile f;  // f_IJ (r, c); A itself if p is computed from scores
      if (problem.normalised()) {
        live.set_dead(a, kDeadScore);
        f = machine.initialize("f", I.size(), J.size(), Holds::scores);
        exponentiate(a, l_i, f);
        a.reset();
      } else {
        f = std::move(a);
      }
      Tile p = machine.initialize("p", I.size(), J.size(), Holds::scores);  // p_IJ (r, c)
      make_p(problem, f, q, v_i, p);
      live.set_dead(p, 0);
      f.reset();
      q.reset();
      Tile T_t = machine.initialize("T", J.size(), a1_i.cols(), Holds::operands);  // T_J^T (c, d)
      multiply_add(transposed(p), a1_i, T_t);
      multiply_add(a2_j, T_t, g_t);
    }
  }
  machine.write(g_t, transposed(io.out("g").whole()));
}

// Algorithm 9.
// Erratum: its line 3 calls "Phase4" instead of Algorithm 8, which calls itself phase 2.
void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.problem.shape;
  const Index Br = plan.blocks["phase2.Br"];
  const Index Bc = plan.blocks["phase2.Bc"];
  SlowMatrix S = workspace.matrix("S", n, d, Window{std::min(n, Br), d});
  SlowMatrix h = workspace.matrix("h", m, d, Window{std::min(m, Bc), d});
  {
    const Phase phase(machine, "phase1");
    const ProjectBlocks by{plan.blocks["phase1.Br"], plan.blocks["phase1.Bc"]};
    if (n == m) {
      project_pairs(machine, by, io.in("A1"), io.in("A3"), io.in("X"), io.in("Y"), S, h);
    } else {
      project(machine, by, io.in("A1"), io.in("X"), S);
      project(machine, by, io.in("A3"), io.in("Y"), h);
    }
  }
  const Phase phase(machine, "phase2");
  gradient(machine, plan, io, S, h);
}

// A row block of A1, and the paired block of A3 if n = m; a block of X or Y; a block of S or h.
Words phase1_peak(const Problem& problem, Index Br, Index Bc) {
  const Index d = problem.shape.d;
  const Words r = std::min(Br, std::max(problem.shape.n, problem.shape.m));
  const Words c = std::min(Bc, d);
  return (problem.shape.n == problem.shape.m ? 2 : 1) * r * d + c * d + r * c * problem.sum_words;
}

// Resident: g and S_i, dO_i, A1_i, l_i, v_i. With them O_i first, and later A2_j with q, A and f,
// or with p and T.
Words phase2_peak(const Problem& problem, Index Br, Index Bc) {
  const Index d = problem.shape.d;
  const Words r = std::min(Br, problem.shape.n);
  const Words c = std::min(Bc, problem.shape.m);
  const Words rows = Words(d) * d * problem.sum_words + 3 * r * d + 2 * r * problem.row_words();
  const Words index = problem.mask.index().live();
  return rows + std::max(r * d * problem.row_columns(),
                         index + c * d + std::max(3 * r * c, r * c + c * d));
}

// In both phases the words depend on the rows alone. So Br is the largest that fits with one
// column, and Bc fills the remaining words. A mask changes this: larger column blocks stream for
// fewer live pairs. So the fit tries Bc, Bc / 2, ... and takes the size with the fewest words.
// Erratum: the paper caps Br at d although Br is the outer block, so its words stop falling at M =
// 4 d^2. This code has no cap.
Blocks fit(const Problem& problem, Index M, Objective objective) {
  const auto [n, m, d] = problem.shape;
  const auto rows = [&](Index limit, auto peak) {
    return largest(std::min(limit, M), [&](Index r) { return peak(problem, r, 1) <= Words(M); });
  };
  const auto cols = [&](Index limit, Index Br, auto peak) {
    return largest(std::min(limit, M), [&](Index c) { return peak(problem, Br, c) <= Words(M); });
  };
  const Index Br1 = rows(std::max(n, m), phase1_peak);
  const Index Br2 = even(n, rows(n, phase2_peak));
  Blocks by{{"phase1.Br", Br1},
            {"phase1.Bc", even(d, cols(d, Br1, phase1_peak))},
            {"phase2.Br", Br2},
            {"phase2.Bc", even(m, cols(m, Br2, phase2_peak))}};
  if (problem.mask.full() || objective == Objective::time) {
    return by;
  }
  Blocks best = by;
  for (Index Bc = by["phase2.Bc"] / 2; Bc > 0; Bc /= 2) {
    by.set("phase2.Bc", Bc);
    if (phase2_tiles(problem, by).met < phase2_tiles(problem, best).met) {
      best = by;
    }
  }
  return best;
}

// The sizes in lines 2 of Algorithms 7 and 8. Erratum: with these sizes the tiles exceed M words.
Blocks printed(const Problem& problem, const Memory& memory) {
  const Index Bc = ceil_div(memory.M, (Words(4) * problem.shape.d).value());
  const Index Br = std::min(Bc, problem.shape.d);
  return {{"phase1.Br", Br}, {"phase1.Bc", Bc}, {"phase2.Br", Br}, {"phase2.Bc", Bc}};
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const auto [n, m, d] = problem.shape;
  const Words nd = Words(n) * d;
  const Words md = Words(m) * d;
  const Words dd = Words(d) * d;
  const Index Br1 = blocks["phase1.Br"];
  const Index Br2 = blocks["phase2.Br"];
  const Units::Tiles tiles = phase2_tiles(problem, blocks);
  return {
      {.path = "phase1",
       .reads = nd + md + dd * (Words(ceil_div(n, Br1)) + ceil_div(m, Br1)),
       .writes = nd + md,
       .peak = phase1_peak(problem, Br1, blocks["phase1.Bc"]),
       .flops = 2 * (nd + md) * d},
      // Erratum: T_j A2_j is added to g for every tile, in 2 n m d^2 / Br flops.
      with_index({.path = "phase2",
                  .reads = 3 * nd + nd * problem.row_columns() + Words(n) * problem.row_words() +
                           2 * d * tiles.met,
                  .writes = dd,
                  .peak = phase2_peak(problem, Br2, blocks["phase2.Bc"]),
                  .flops = 6 * d * tiles.words + 2 * dd * tiles.met},
                 Units::of_queries(problem, Br2).sum()),
  };
}

// For each row block, a word of g adds up all columns of sums over the block's rows.
Words chain(const Problem& problem, const Blocks& blocks) {
  const Index Br = std::min(problem.shape.n, blocks["phase2.Br"]);
  return Words(Br) + Words(ceil_div(problem.shape.n, Br)) * problem.shape.m;
}

Window window(const Signature& operand, const Problem& problem, const Blocks& by) {
  const auto of = [&](Index rows, Index cols) { return window_of(operand, problem, rows, cols); };
  const Index d = problem.shape.d;
  if (operand.name == kX.name || operand.name == kY.name) {
    return of(d, by["phase1.Bc"]);
  }
  if (operand.name == kA2.name) {
    return of(by["phase2.Bc"], d);
  }
  if (operand.name == kg.name) {
    return of(d, d);
  }
  return of(by[operand.name == kA3.name ? "phase1.Br" : "phase2.Br"], d);
}

}  // namespace
}  // namespace in_backward_large

Kernel backward_large() {
  using namespace in_backward_large;
  return {.name = "backward/large",
          .summary = "the paper's large-cache algorithm: g and row blocks stay, column blocks pass",
          .pass = Pass::backward,
          .operands = {kA1, kA2, kA3, kX, kY, kdO, kO, kL},
          .returns = {kg},
          .takes_activations = true,
          .schedule = {.code = code},
          .formula = {.cost = cost,
                      .intermediates =
                          [](const Problem& problem, const Blocks&) {
                            const auto [n, m, d] = problem.shape;
                            return (Words(n) + m) * d;
                          }},
          .fitting = {.fit = [](const Problem& problem, const Memory& memory,
                                Objective objective) { return fit(problem, memory.M, objective); },
                      .printed = printed,
                      .window = window},
          .numerics = {.chain = chain, .folds_partial_sums = true}};
}

}  // namespace redblue
