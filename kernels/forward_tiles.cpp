#include "kernels/forward_tiles.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/scores.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

// O = exp(s - L) h: L of a block's rows stays with it.
PhaseCost output_cost(const Extents& of, const StationaryBlocks& by) {
  const auto [n, d, m] = of;
  const Words r = std::min(n, by.rows);
  const Words c = std::min(d, by.cols);
  const Words s = std::min(m, by.depth);
  const Words p = std::min(r, Words(by.piece));
  const Words nm = Words(n) * m;
  return {.path = "O",
          .reads = (nm + n) * ceil_div(d, by.cols) + Words(m) * d * ceil_div(n, by.rows),
          .writes = Words(n) * d,
          .peak = r * c + r + s * c + p * s,
          .flops = 2 * nm * d};
}

void output(Machine& machine, const StationaryBlocks& by, const SlowMatrix& s, const SlowMatrix& L,
            const SlowMatrix& h, SlowMatrix& O) {
  const Phase phase(machine, "O");
  for (const Range I : blocks(O.rows(), by.rows)) {
    for (const Range J : blocks(O.cols(), by.cols)) {
      const Tile l_i = machine.read(L.row_block(I));
      Tile o = machine.initialize("O", I.size(), J.size());
      for (const Range K : blocks(h.rows(), by.depth)) {
        const Tile h_kj = machine.read(h.block(K, J));
        for (const Range P : blocks(I.size(), by.piece)) {
          Tile f = machine.read(s.block(part_of(I, P), K));
          exponentiate(f, l_i.part(P), f);
          multiply_add(f, h_kj, o.part(P));
        }
      }
      machine.write(o, O.block(I, J));
    }
  }
}

template <Objective objective>
Blocks fit(const Shape& shape, Index M) {
  const Products of(shape);
  Blocks blocks;
  put_product("S", of.S, M, objective, blocks);
  put_scores("s", of.scores, M, objective, Measured::kCost, blocks);
  put_product("h", of.h, M, objective, blocks);
  fit_stationary(of.W, M, objective, [&](const StationaryBlocks& by) {
    return output_cost(of.W, by);
  }).put("O", blocks);
  return blocks;
}

std::vector<PhaseCost> cost(const Shape& shape, const Blocks& blocks) {
  const Products of(shape);
  return {product_phase_cost("S", of.S, blocks),
          scores_phase_cost("s", of.scores, Measured::kCost, blocks),
          product_phase_cost("h", of.h, blocks),
          output_cost(of.W, StationaryBlocks::get("O", blocks))};
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
  output(machine, StationaryBlocks::get("O", by), s, L, h, io.out("O"));
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
      .fit = fit<Objective::words>,
      .cost = cost,
      .intermediates = intermediates,
      .code = code,
      .rescales = [](const Shape& shape, const Blocks& blocks) -> Words {
        return ceil_div(shape.m, blocks["s.cols"]) - 1;
      },
      .fit_time = fit<Objective::time>,
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
