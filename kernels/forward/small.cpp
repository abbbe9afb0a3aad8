// Computes O and L for a fast memory too small to hold rows. It works on square blocks with B =
// floor(sqrt(M / 4)), and stores scores and probabilities in slow memory. This is the forward half
// of Algorithms 2 and 3. Under a mask, it skips blocks of scores without a live pair.

#include <algorithm>
#include <iterator>

#include "kernels/attention.hpp"
#include "kernels/parts/product.hpp"
#include "kernels/parts/scores.hpp"
#include "kernels/parts/small_cache.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace in_forward_small {
namespace {

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.problem.shape;
  const Index B = plan.blocks["B"];

  SlowMatrix f = workspace.matrix("f", n, m).holding(Holds::scores);
  {
    SlowMatrix S = workspace.matrix("S", n, d);
    {
      const Phase phase(machine, "S");
      product(machine, square(B), io.in("A1"), io.in("X"), S);
    }
    softmax(machine, plan.problem, B, "s", S, io.in("A2"), f,
            plan.problem.normalised() ? &io.out("L") : nullptr, workspace, false);
  }
  SlowMatrix h = workspace.matrix("h", m, d);
  {
    const Phase phase(machine, "h");
    product(machine, square(B), io.in("A3"), io.in("Y"), h);
  }
  const Phase phase(machine, "O");
  const Units queries = Units::of_queries(plan.problem, B);
  for (const Range I : queries) {
    const Pieces keys = queries.met_blocks(I, B);
    for (const Range D : blocks(d, B)) {
      const Tile index = queries.read_index(machine, I);
      const Tile o = product_block(machine, "O", f, h, I, D, keys);  // O_ID (b, e)
      machine.write(o, io.out("O").block(I, D));
    }
  }
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const auto [n, m, d] = problem.shape;
  const Index B = blocks["B"];
  const Products of(problem);
  const Units::Tiles tiles = live_tiles(problem, B);
  PhaseCost O = product_cost("O", of.O, square(B));
  O.reads = tiles.words * ceil_div(d, B) + d * tiles.met;
  O.flops = 2 * d * tiles.words;
  const Units::Sum queries = Units::of_queries(problem, B).sum();
  O.peak += queries.index_live;
  std::vector<PhaseCost> phases = {product_cost("S", of.S, square(B))};
  std::ranges::move(softmax_cost("", "s", problem, B, true), std::back_inserter(phases));
  phases.push_back(product_cost("h", of.h, square(B)));
  phases.push_back(with_index(O, queries, ceil_div(d, B)));
  return phases;
}

// First f with S and s, then f with h. For an activation other than softmax, f overwrites s.
Words workspace_words(const Problem& problem, const Blocks&) {
  const auto [n, m, d] = problem.shape;
  const Words nm = Words(n) * m;
  return nm + std::max(nm * problem.row_columns() + Words(n) * d, Words(m) * d);
}

}  // namespace
}  // namespace in_forward_small

Kernel forward_small() {
  using namespace in_forward_small;
  return {.name = "forward/small",
          .summary = "scores and probabilities in slow memory, square blocks",
          .pass = Pass::forward,
          .operands = {kA1, kA2, kA3, kX, kY},
          .returns = {kO, kL},
          .takes_activations = true,
          .schedule = {.code = code},
          .formula = {.cost = cost, .intermediates = workspace_words},
          .fitting = {.fit = small_cache_blocks, .window = square_window},
          .numerics = {.rescales = small_cache_rescales}};
}

}  // namespace redblue
