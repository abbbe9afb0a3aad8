#include "kernels/forward/tiles.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/made_product.hpp"
#include "kernels/parts/stages.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

// exp(s - L): L of a block's rows stays with it.
constexpr FactorCost kFactor{.columns = 1, .reads = 1, .row_reads = 1};

std::vector<Stage> stages(const Shape& shape) {
  const Products of(shape);
  return {
      product_stage("S", of.S),
      scores_stage("s", of.scores, Measured::kCost),
      product_stage("h", of.h),
      stationary_stage(
          "O", of.W,
          [of](const StationaryBlocks& by) { return made_product_cost("O", of.W, by, kFactor); }),
  };
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.shape;
  const Blocks& by = plan.blocks;
  SlowMatrix& L = io.out("L");
  SlowMatrix s = workspace.matrix("s", n, m);
  {
    SlowMatrix S = workspace.matrix("S", n, d);
    SlowMatrix sums = workspace.matrix("sum", n, 1);
    product_phase(machine, "S", by, io.in("A1"), io.in("X"), S);
    Measured measured(m, L, sums);
    scores_phase(machine, "s", by, S, io.in("A2"), measured, s);
  }
  SlowMatrix h = workspace.matrix("h", m, d);
  product_phase(machine, "h", by, io.in(io.gives("A3") ? "A3" : "A2"), io.in("Y"), h);
  made_product(
      machine, "O", by, h, io.out("O"),
      [&](Range I) { return machine.read(std::as_const(L).row_block(I)); },
      [&](const Tile& l, Range K, Range rows, Range part) {
        Tile f = machine.read(s.block(rows, K));
        exponentiate(f, l.part(part), f);
        return f;
      });
}

Words intermediates(const Shape& shape, const Blocks&) {
  const auto [n, m, d] = shape;
  return Words(n) * m + std::max(Words(n) * d + n, Words(m) * d);
}

Kernel kernel(std::string_view name, std::string_view summary, std::vector<Signature> given) {
  return {
      .name = name,
      .summary = summary,
      .given = std::move(given),
      .returns = {kO, kL},
      .fit = fit_stages<stages, Objective::words>,
      .cost = cost_stages<stages>,
      .intermediates = intermediates,
      .code = code,
      .rescales = rescales_by_tiles,
      .fit_time = fit_stages<stages, Objective::time>,
  };
}

}  // namespace

Kernel forward_tiles() {
  return kernel("forward/tiles",
                "raw scores in the slow store, L made along the way; O = exp(s - L) h a product",
                {kA1, kA2, kA3, kX, kY});
}

Kernel forward_tiles_shared() {
  return kernel("forward/tiles-shared", "forward/tiles where A3 is A2, which makes h = A2 Y",
                {kA1, kA2, kX, kY});
}

}  // namespace redblue
