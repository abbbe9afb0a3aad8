// Computes g by the paper's small-cache algorithm (Algorithms 2 to 6), from scratch. It has four
// phases of square blocks, B = floor(sqrt(M / 4)), with f, q and p in slow memory. It moves about
// 12 n m d / sqrt(M) + 9 n m words. Under a mask all four phases skip blocks of scores without a
// live pair.

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/product.hpp"
#include "kernels/parts/scores.hpp"
#include "kernels/parts/small_cache.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace in_backward_small {
namespace {

// Algorithm 2: f = softmax(A1 X A2^T).
// Erratum: lines 5 to 13 print two "for" and three "end for", and use j and k unbound. This code
// uses the loops of a blocked product.
// Erratum: Definition B.5 prints f = diag(l) A instead of diag(l)^-1 A.
SlowMatrix phase1(Machine& machine, const Problem& problem, Index B, const SlowMatrix& A1,
                  const SlowMatrix& A2, const SlowMatrix& X, Workspace& workspace) {
  const Phase phase(machine, "phase1");
  SlowMatrix f = workspace.matrix("f", A1.rows(), A2.rows()).holding(Holds::scores);
  SlowMatrix S = workspace.matrix("S", A1.rows(), X.cols());
  {
    const Phase inner(machine, "S");
    product(machine, square(B), A1, X, S);
  }
  softmax(machine, problem, B, "A", S, A2, f, nullptr, workspace, true);
  return f;
}

// Algorithm 3: q = dO h^T with h = A3 Y. Erratum: it lists f as an argument but does not use it.
SlowMatrix phase2(Machine& machine, const Problem& problem, Index B, const SlowMatrix& A3,
                  const SlowMatrix& dO, const SlowMatrix& Y, Workspace& workspace) {
  const Phase phase(machine, "phase2");
  SlowMatrix h = workspace.matrix("h", A3.rows(), Y.cols());
  SlowMatrix q = workspace.matrix("q", dO.rows(), A3.rows()).holding(Holds::scores);
  {
    const Phase inner(machine, "h");
    product(machine, square(B), A3, Y, h);
  }
  const Phase inner(machine, "q");
  const Pieces depth({{0, h.cols()}}, B);
  const Units queries = Units::of_queries(problem, B);
  for (const Range I : queries) {
    const Tile index = queries.read_index(machine, I);
    for (const Range J : queries.met_blocks(I, B)) {
      Tile q_ij = product_block(machine, "q", dO, transposed(h), I, J, depth, {},
                                Holds::scores);  // q_IJ (b, c)
      LivePairs(problem, I, J).set_dead(q_ij, 0);
      machine.write(q_ij, q.block(I, J));
    }
  }
  return q;
}

// Algorithm 4: p = f * (q - v) with v = rowsum(f * q). f and q are deleted here.
// Erratum: line 2 prints B = floor(sqrt(M) / 4), elsewhere floor(sqrt(M / 4)). The count does not
// depend on it, so B is the same in all phases.
// Erratum: Lemma C.9 claims n^2 / sqrt(M) for this phase. For any B it reads 4 n m words and writes
// n m.
SlowMatrix phase3(Machine& machine, const Problem& problem, Index B, SlowMatrix f, SlowMatrix q,
                  Workspace& workspace) {
  const Phase phase(machine, "phase3");
  SlowMatrix p = workspace.matrix("p", f.rows(), f.cols()).holding(Holds::scores);
  const Units queries = Units::of_queries(problem, B);
  for (const Range I : queries) {
    const Pieces keys = queries.met_blocks(I, B);
    Tile v = row_values(machine, problem, "v", I.size());  // v_I (b)
    if (problem.normalised()) {
      const Phase inner(machine, "v");
      const Tile index = queries.read_index(machine, I);
      for (const Range J : keys) {
        const Tile f_ij = machine.read(f.block(I, J));  // f_IJ (b, c)
        const Tile q_ij = machine.read(q.block(I, J));  // q_IJ (b, c)
        add_row_dots(f_ij, q_ij, v);
      }
    }
    const Phase inner(machine, "p");
    const Tile index = queries.read_index(machine, I);
    for (const Range J : keys) {
      Tile p_ij = machine.initialize("p", I.size(), J.size(), Holds::scores);  // p_IJ (b, c)
      {
        const Tile f_ij = machine.read(f.block(I, J));  // f_IJ (b, c)
        const Tile q_ij = machine.read(q.block(I, J));  // q_IJ (b, c)
        make_p(problem, f_ij, q_ij, v, p_ij);
      }
      machine.write(p_ij, p.block(I, J));
    }
  }
  return p;
}

// Algorithm 5: g = T A2 with T = A1^T p.
void phase4(Machine& machine, const Problem& problem, Index B, const SlowMatrix& A1,
            const SlowMatrix& A2, const SlowMatrix& p, SlowMatrix& g, Workspace& workspace) {
  const Phase phase(machine, "phase4");
  SlowMatrix T = workspace.matrix("T", A1.cols(), A2.rows());
  {
    const Phase inner(machine, "T");
    const Units keys = Units::of_keys(problem, B);
    for (const Range D : blocks(A1.cols(), B)) {
      for (const Range J : keys) {
        const Tile index = keys.read_index(machine, J);
        const Tile T_dj = product_block(machine, "T", transposed(A1), p, D, J,
                                        keys.met_blocks(J, B));  // T_DJ (e, c)
        machine.write(T_dj, T.block(D, J));
      }
    }
  }
  const Phase inner(machine, "g");
  product(machine, square(B), T, A2, g);
}

// Algorithm 6. Erratum: its line 3 passes f to phase 2, which does not use it.
void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const Problem& problem = plan.problem;
  const Index B = plan.blocks["B"];
  const SlowMatrix& A1 = io.in("A1");
  const SlowMatrix& A2 = io.in("A2");

  SlowMatrix f = phase1(machine, problem, B, A1, A2, io.in("X"), workspace);
  SlowMatrix q = phase2(machine, problem, B, io.in("A3"), io.in("dO"), io.in("Y"), workspace);
  const SlowMatrix p = phase3(machine, problem, B, std::move(f), std::move(q), workspace);
  phase4(machine, problem, B, A1, A2, p, io.out("g"), workspace);
}

// Erratum: Lemmas C.5 and C.7 omit the n m words written for each of A, f and q.
std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const auto [n, m, d] = problem.shape;
  const Index B = blocks["B"];
  const Words b = std::min(n, B);
  const Words c = std::min(m, B);
  const Index of_sum = problem.sum_words;
  const Words of_row = problem.row_words();
  const Products of(problem);
  const Units::Tiles tiles = live_tiles(problem, B);
  PhaseCost T = product_cost("phase4/T", ProductShape{d, m, n}.weighing(of_sum), square(B));
  T.reads = d * tiles.rows + tiles.words * ceil_div(d, B);
  T.flops = 2 * d * tiles.words;
  const Units::Sum queries = Units::of_queries(problem, B).sum();
  const Units::Sum keys = Units::of_keys(problem, B).sum();
  T.peak += keys.index_live;
  std::vector<PhaseCost> phases = {product_cost("phase1/S", of.S, square(B))};
  std::ranges::move(softmax_cost("phase1/", "A", problem, B, false), std::back_inserter(phases));
  phases.push_back(product_cost("phase2/h", of.h, square(B)));
  phases.push_back(score_product_cost("phase2/q", problem, B));
  if (problem.normalised()) {
    phases.push_back(with_index({.path = "phase3/v",
                                 .reads = 2 * tiles.words,
                                 .writes = 0,
                                 .peak = b * of_row + 2 * b * c + queries.index_live,
                                 .flops = 0},
                                queries));
  }
  phases.push_back(with_index({.path = "phase3/p",
                               .reads = 2 * tiles.words,
                               .writes = tiles.words,
                               .peak = b * of_row + 3 * b * c + queries.index_live,
                               .flops = 0},
                              queries));
  phases.push_back(with_index(T, keys, ceil_div(d, B)));
  phases.push_back(product_cost("phase4/g", ProductShape{d, d, m}.weighing(of_sum), square(B)));
  return phases;
}

// Slow memory holds f, s and S (without a softmax only one of f and s); then f, q and h; then f, q
// and p; then p and T.
Words workspace_words(const Problem& problem, const Blocks&) {
  const auto [n, m, d] = problem.shape;
  const Words nm = Words(n) * m;
  return std::max({(1 + problem.row_columns()) * nm + Words(n) * d, 2 * nm + Words(m) * d, 3 * nm,
                   nm + Words(d) * m});
}

}  // namespace
}  // namespace in_backward_small

Kernel backward_small() {
  using namespace in_backward_small;
  return {.name = "backward/small",
          .summary = "the paper's small-cache algorithm: f, q and p in slow memory, square blocks",
          .pass = Pass::backward,
          .operands = {kA1, kA2, kA3, kX, kY, kdO},
          .returns = {kg},
          .takes_activations = true,
          .schedule = {.code = code},
          .formula = {.cost = cost, .intermediates = workspace_words},
          .fitting = {.fit = small_cache_blocks, .window = square_window},
          .numerics = {.rescales = small_cache_rescales}};
}

}  // namespace redblue
