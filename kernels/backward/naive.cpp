// g by the paper's Algorithm 1, "without cache": every matrix that it names has its own words
// in fast memory and is deleted where it says. Given dO alone.

#include "kernels/parts/naive.hpp"

#include <algorithm>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const auto [n, m, d] = plan.problem.shape;
  Tile A1;
  Tile A2_t;
  Tile f;
  {
    const Phase phase(machine, "f");
    A1 = machine.read(io.in("A1").whole());
    A2_t = machine.read(transposed(io.in("A2").whole()));
    f = softmax_at_once(machine, A1, A2_t, io.in("X"), nullptr);
  }
  Tile q;
  {
    const Phase phase(machine, "q");
    Tile h_t;
    {
      const Tile A3_t = machine.read(transposed(io.in("A3").whole()));
      const Tile Y = machine.read(io.in("Y").whole());
      h_t = machine.initialize("h", d, m);
      multiply_add(transposed(Y), A3_t, h_t);
    }
    const Tile dO = machine.read(io.in("dO").whole());
    q = machine.initialize("q", n, m);
    multiply_add(dO, h_t, q);
  }
  Tile p;
  {
    const Phase phase(machine, "p");
    Tile v = machine.initialize("v", n);
    add_row_dots(f, q, v);
    p = machine.initialize("p", n, m);
    softmax_gradient(f, q, v, p);
    f.reset();
    q.reset();
  }
  // Erratum: line 8 prints g as n x n; it is d x d.
  const Phase phase(machine, "g");
  Tile g_t = machine.initialize("g", d, d);
  Tile T_t = machine.initialize("T", m, d);
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
  return {
      softmax_at_once_cost(problem, false),
      // A1, A2 and f stay; A3, Y and h, then h, dO and q.
      {.path = "q",
       .reads = md + dd + nd,
       .writes = 0,
       .peak = nd + md + nm + std::max(2 * md + dd, md + nd + nm),
       .flops = 2 * md * d + 2 * nd * m},
      {.path = "p", .reads = 0, .writes = 0, .peak = nd + md + 3 * nm + n, .flops = 0},
      {.path = "g",
       .reads = 0,
       .writes = dd,
       .peak = nd + md + nm + dd + md,
       .flops = 2 * nd * m + 2 * md * d},
  };
}

}  // namespace

Kernel backward_naive() {
  return {.name = "backward/naive",
          .summary = "the paper's Algorithm 1: everything in fast memory at once",
          .pass = Pass::backward,
          .operands = {kA1, kA2, kA3, kX, kY, kdO},
          .returns = {kg},
          .schedule = {.code = code},
          .formula = {.cost = cost},
          .fitting = {.fit = [](const Problem&, Index, Objective) { return Blocks{}; },
                      .window = whole_window}};
}

}  // namespace redblue
