// C = A B with three B x B blocks in fast memory, B = floor(sqrt(M / 3)).

#include "kernels/fit.hpp"
#include "kernels/parts/product.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

Nest loop_nest(const Problem& problem, const Blocks& blocks) {
  NestWriter nest;
  nest.phase("C", [&] {
    const Shape& shape = problem.shape;
    product_nest(nest, {"C", "A", "B"}, {shape.n, shape.m, shape.d}, square(blocks["B"]));
  });
  return nest.lines();
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const Phase phase(machine, "C");
  product(machine, square(plan.blocks["B"]), io.in("A"), io.in("B"), io.out("C"));
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  return {
      product_cost("C", {problem.shape.n, problem.shape.m, problem.shape.d}, square(blocks["B"]))};
}

}  // namespace

Kernel matmul_blocked() {
  return {.name = "matmul/blocked",
          .summary = "C = A B, three square blocks",
          .operands = {{"A", &Shape::n, &Shape::d}, {"B", &Shape::d, &Shape::m}},
          .returns = {{"C", &Shape::n, &Shape::m}},
          .schedule = {.code = code},
          .formula = {.cost = cost, .nest = loop_nest},
          .fitting = {.fit =
                          [](const Problem&, const Memory& memory, Objective) {
                            return Blocks{{"B", square_side(memory.M, 3)}};
                          },
                      .window = square_window}};
}

}  // namespace redblue
