#include "kernels/matmul/blocked.hpp"

#include "kernels/fit.hpp"
#include "kernels/parts/product.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const Phase phase(machine, "C");
  product(machine, square(plan.blocks["B"]), io.in("A"), io.in("B"), io.out("C"));
}

std::vector<PhaseCost> cost(const Shape& shape, const Blocks& blocks) {
  return {product_cost("C", shape.n, shape.m, shape.d, square(blocks["B"]))};
}

}  // namespace

Kernel matmul_blocked() {
  return {
      .name = "matmul/blocked",
      .summary = "C = A B, three square blocks",
      .given = {{"A", &Shape::n, &Shape::d}, {"B", &Shape::d, &Shape::m}},
      .returns = {{"C", &Shape::n, &Shape::m}},
      .fit =
          [](const Shape&, Index M) {
            return Blocks{{"B", square_side(M, 3)}};
          },
      .cost = cost,
      .intermediates = [](const Shape&, const Blocks&) { return Words(0); },
      .code = code,
      .window = square_window,
  };
}

}  // namespace redblue
