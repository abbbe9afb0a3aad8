// Computes O and L with everything in fast memory at once, in the order of the lines of Algorithm
// 1. If M is large enough for it, no algorithm moves fewer words. Under a mask, dead pairs of live
// rows and columns also take words in fast memory.

#include "kernels/parts/naive.hpp"

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace in_forward_naive {
namespace {

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const auto [n, m, d] = plan.problem.shape;
  Tile f;
  {
    const Phase phase(machine, "f");
    const Tile A1 = machine.read(io.in("A1").whole());                // A1 (n, d)
    const Tile A2_t = machine.read(transposed(io.in("A2").whole()));  // A2^T (d, m)
    f = f_at_once(machine, plan.problem, A1, A2_t, io.in("X"),
                  plan.problem.normalised() ? &io.out("L") : nullptr, false);
  }
  Tile h;
  {
    const Phase phase(machine, "h");
    const Tile A3 = machine.read(io.in("A3").whole());   // A3 (m, d)
    const Tile Y = machine.read(io.in("Y").whole());     // Y (d, d)
    h = machine.initialize("h", m, d, Holds::operands);  // h (m, d)
    multiply_add(A3, Y, h);
  }
  const Phase phase(machine, "O");
  Tile O = machine.initialize("O", n, d);  // O (n, d)
  multiply_add(f, h, O);
  machine.write(O, io.out("O").whole());
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks&) {
  const auto [n, m, d] = problem.shape;
  const Words nd = Words(n) * d;
  const Words md = Words(m) * d;
  const Words dd = Words(d) * d;
  const Words nm = Words(n) * m;
  return {
      f_at_once_cost(problem, true),
      {.path = "h", .reads = md + dd, .writes = 0, .peak = nm + 2 * md + dd, .flops = 2 * md * d},
      {.path = "O",
       .reads = 0,
       .writes = nd,
       .peak = nm + md + nd * problem.sum_words,
       .flops = 2 * nd * m},
  };
}

}  // namespace
}  // namespace in_forward_naive

Kernel forward_naive() {
  using namespace in_forward_naive;
  return {.name = "forward/naive",
          .summary = "everything in fast memory at once",
          .pass = Pass::forward,
          .operands = {kA1, kA2, kA3, kX, kY},
          .returns = {kO, kL},
          .takes_activations = true,
          .schedule = {.code = code},
          .formula = {.cost = cost},
          .fitting = {.fit = [](const Problem&, const Memory&, Objective) { return Blocks{}; },
                      .window = whole_window}};
}

}  // namespace redblue
