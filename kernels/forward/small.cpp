#include "kernels/forward/small.hpp"

#include <algorithm>

#include "kernels/attention.hpp"
#include "kernels/parts/product.hpp"
#include "kernels/parts/small_cache.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.shape;
  const Index B = plan.blocks["B"];

  SlowMatrix f = workspace.matrix("f", n, m);
  {
    SlowMatrix S = workspace.matrix("S", n, d);
    {
      const Phase phase(machine, "S");
      product(machine, square(B), io.in("A1"), io.in("X"), S);
    }
    softmax(machine, B, "s", S, io.in("A2"), f, &io.out("L"), workspace);
  }
  SlowMatrix h = workspace.matrix("h", m, d);
  {
    const Phase phase(machine, "h");
    product(machine, square(B), io.in("A3"), io.in("Y"), h);
  }
  const Phase phase(machine, "O");
  product(machine, square(B), f, h, io.out("O"));
}

std::vector<PhaseCost> cost(const Shape& shape, const Blocks& blocks) {
  const auto [n, m, d] = shape;
  const Index B = blocks["B"];
  return {product_cost("S", n, d, d, square(B)), softmax_score_cost("s", shape, B),
          softmax_normalise_cost("f", shape, B, true), product_cost("h", m, d, d, square(B)),
          product_cost("O", n, d, m, square(B))};
}

// f with S and s, then f with h.
Words workspace_words(const Shape& shape, const Blocks&) {
  const auto [n, m, d] = shape;
  return std::max(Words(2) * n * m + Words(n) * d, Words(n) * m + Words(m) * d);
}

}  // namespace

Kernel forward_small() {
  return {
      .name = "forward/small",
      .summary = "scores and probabilities in the slow store, square blocks",
      .given = {kA1, kA2, kA3, kX, kY},
      .returns = {kO, kL},
      .fit = small_cache_blocks,
      .cost = cost,
      .intermediates = workspace_words,
      .code = code,
      .rescales = small_cache_rescales,
      .window = square_window,
  };
}

}  // namespace redblue
