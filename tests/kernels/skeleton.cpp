// A kernel to copy: C = A B, with a row block of A in fast memory while columns of B pass.
//
//   for I in rows:       A_I                 n d
//     for J in columns:  B_J                 d m T,   T = ceil(n / Br)
//       C_IJ = A_I B_J                              n m written
//
// To add a schedule to redblue, copy this file to kernels/matmul/, kernels/forward/ or
// kernels/backward/ under the schedule's name. Declare its function in kernels/registry.hpp, and
// list it in kernels/registry.cpp. Write its words down once more in tests/kernels/contract.hpp,
// from the table above and not from the code below. CONTRIBUTING.md has the whole list.

#include "tests/kernels/skeleton.hpp"

#include <algorithm>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/fit.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// The table above as data, for `redblue plan --loops`: loops, and the words of their tiles.
Nest loop_nest(const Problem& problem, const Blocks& blocks) {
  const auto [n, m, d] = problem.shape;
  const NestLoop I("I", "rows", n, blocks["Br"]);
  const NestLoop J("J", "columns", m, blocks["Bc"]);
  const NestTile A("A", I, d), B("B", d, J), C("C", I, J);
  NestWriter nest;
  nest.phase("C", [&] {
    nest.loop(I, [&] {
      nest.read({A});
      nest.loop(J, {A}, [&] { nest.step("C_IJ = A_I B_J", {B}, {C}); });
    });
  });
  return nest.lines();
}

// The algorithm: loops over blocks that read, initialize, compute and write tiles. A tile takes
// fast memory until its scope ends.
void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const Phase phase(machine, "C");
  const SlowMatrix& A = io.in("A");
  const SlowMatrix& B = io.in("B");
  SlowMatrix& C = io.out("C");
  for (const Range I : blocks(A.rows(), plan.blocks["Br"])) {
    const Tile a = machine.read(A.row_block(I));  // (r, d)
    for (const Range J : blocks(B.cols(), plan.blocks["Bc"])) {
      const Tile b = machine.read(B.block({0, B.rows()}, J));  // (d, c)
      Tile c = machine.initialize("C", I.size(), J.size());    // (r, c)
      multiply(a, b, c);
      machine.write(c, C.block(I, J));
    }
  }
}

// Returns the cost, phase by phase: exact for any extents and any blocks, with shorter last blocks.
std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const auto [n, m, d] = problem.shape;
  const Words r = std::min(n, blocks["Br"]);
  const Words c = std::min(m, blocks["Bc"]);
  const Index T = ceil_div(n, blocks["Br"]);
  return {{.path = "C",
           .reads = Words(n) * d + Words(d) * m * T,
           .writes = Words(n) * m,
           .peak = r * d + d * c + r * c,
           .flops = Words(2) * n * m * d}};
}

// Returns the blocks with a peak within M that move the fewest words, which depend on Br alone. If
// no blocks fit, returns the smallest: their peak is the least M.
Blocks fit(const Problem& problem, const Memory& memory, Objective) {
  const auto fits = [&](Index r, Index c) {
    return total(cost(problem, {{"Br", r}, {"Bc", c}})).peak <= Words(memory.M);
  };
  const auto [n, m, d] = problem.shape;
  const Index r =
      even(n, largest(std::min(n, memory.M), [&](Index tried) { return fits(tried, 1); }));
  const Index c =
      even(m, largest(std::min(m, memory.M), [&](Index tried) { return fits(r, tried); }));
  return {{"Br", r}, {"Bc", c}};
}

}  // namespace

Kernel skeleton() {
  return {.name = "matmul/skeleton",
          .summary = "C = A B: a row block of A stays, columns of B pass",
          .operands = {{"A", &Shape::n, &Shape::d}, {"B", &Shape::d, &Shape::m}},
          .returns = {{"C", &Shape::n, &Shape::m}},
          .schedule = {.code = code},
          .formula = {.cost = cost, .nest = loop_nest},
          .fitting = {.fit = fit}};
}

}  // namespace redblue
