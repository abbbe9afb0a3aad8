// Computes g by the paper's Algorithm 1, "without cache", from scratch. Each matrix that it names
// has separate words in fast memory, and is deleted where the algorithm says so. Under a mask the
// dead pairs of live rows and columns take words too.

#include "kernels/parts/naive.hpp"

#include <algorithm>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace in_backward_naive {
namespace {

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const auto [n, m, d] = plan.problem.shape;
  Tile A1;
  Tile A2_t;
  Tile f;
  {
    const Phase phase(machine, "f");
    A1 = machine.read(io.in("A1").whole());                // A1 (n, d)
    A2_t = machine.read(transposed(io.in("A2").whole()));  // A2^T (d, m)
    f = f_at_once(machine, plan.problem, A1, A2_t, io.in("X"), nullptr, true);
  }
  Tile q;
  {
    const Phase phase(machine, "q");
    Tile h_t;
    {
      const Tile A3_t = machine.read(transposed(io.in("A3").whole()));  // A3^T (d, m)
      const Tile Y = machine.read(io.in("Y").whole());                  // Y (d, d)
      h_t = machine.initialize("h", d, m, Holds::operands);             // h^T (d, m)
      multiply_add(transposed(Y), A3_t, h_t);
    }
    const Tile dO = machine.read(io.in("dO").whole());  // dO (n, d)
    q = machine.initialize("q", n, m, Holds::scores);   // q (n, m)
    multiply_add(dO, h_t, q);
    set_dead_scores(machine, plan.problem, q, 0);
  }
  Tile p;
  {
    const Phase phase(machine, "p");
    Tile v = row_values(machine, plan.problem, "v", n);  // v (n)
    if (plan.problem.normalised()) {
      add_row_dots(f, q, v);
    }
    p = machine.initialize("p", n, m, Holds::scores);  // p (n, m)
    make_p(plan.problem, f, q, v, p);
    f.reset();
    q.reset();
  }
  // Erratum: line 8 prints g as n x n; it is d x d.
  const Phase phase(machine, "g");
  Tile g_t = machine.initialize("g", d, d);                   // g^T (d, d)
  Tile T_t = machine.initialize("T", m, d, Holds::operands);  // T^T (m, d)
  multiply_add(transposed(p), A1, T_t);
  multiply_add(A2_t, T_t, g_t);
  machine.write(g_t, transposed(io.out("g").whole()));
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks&) {
  const auto [n, m, d] = problem.shape;
  const Words nd = Words(n) * d;
  const Words md = Words(m) * d;
  const Words dd = Words(d) * d;
  const Words nm = Words(n) * m;
  const Units::Sum all = all_queries(problem).sum();
  return {
      f_at_once_cost(problem, false),
      // A1, A2 and f stay. With them A3, Y and h, then h, dO and q.
      with_index({.path = "q",
                  .reads = md + dd + nd,
                  .writes = 0,
                  .peak = nd + md + nm + std::max(2 * md + dd, md + nd + nm + all.index_live),
                  .flops = 2 * md * d + 2 * nd * m},
                 all),
      {.path = "p",
       .reads = 0,
       .writes = 0,
       .peak = nd + md + 3 * nm + n * problem.row_words(),
       .flops = 0},
      {.path = "g",
       .reads = 0,
       .writes = dd,
       .peak = nd + md + nm + dd * problem.sum_words + md,
       .flops = 2 * nd * m + 2 * md * d},
  };
}

}  // namespace
}  // namespace in_backward_naive

Kernel backward_naive() {
  using namespace in_backward_naive;
  return {.name = "backward/naive",
          .summary = "the paper's Algorithm 1: everything in fast memory at once",
          .pass = Pass::backward,
          .operands = {kA1, kA2, kA3, kX, kY, kdO},
          .returns = {kg},
          .takes_activations = true,
          .schedule = {.code = code},
          .formula = {.cost = cost},
          .fitting = {.fit = [](const Problem&, const Memory&, Objective) { return Blocks{}; },
                      .window = whole_window}};
}

}  // namespace redblue
