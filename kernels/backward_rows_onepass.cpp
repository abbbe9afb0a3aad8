#include "kernels/backward_rows_onepass.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/rows.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// W_I = p_I A2.
Tile core(Machine& machine, const RowPlan& by, const Operands& io, Range I, Tile s_t, Tile g_t) {
  const Phase phase(machine, "core");
  const SlowMatrix& A2 = io.in("A2");
  const SlowMatrix& A3 = io.in("A3");
  Tile U = machine.initialize("U", I.size(), A2.cols());
  Tile Z = machine.initialize("Z", I.size(), A2.cols());
  Tile maximum = machine.initialize("max", I.size(), 1, kLowest);
  Tile sum = machine.initialize("sum", I.size());
  Tile mean = machine.initialize("mean", I.size());
  const Index keys = std::min(by.keys, A2.rows());
  const Index queries = std::min(kStrip, I.size());
  Tile e_strip = machine.initialize("e", keys, queries);
  Tile q_strip = machine.initialize("q", keys, queries);
  Tile factors = machine.initialize("rescale", queries);
  for (const Range J : blocks(A2.rows(), by.keys)) {
    const Tile a2 = machine.read(A2.row_block(J));
    const Tile a3 = machine.read(A3.row_block(J));
    for (const Range K : blocks(I.size(), kStrip)) {
      Tile delta = machine.initialize("delta", K.size());
      const View e_t = e_strip.part({0, J.size()}, {0, K.size()});
      const View q_t = q_strip.part({0, J.size()}, {0, K.size()});
      const View rescale = factors.part({0, K.size()});
      multiply(a2, s_t.part({0, s_t.rows()}, K), e_t);
      shifted_product(a3, g_t.part({0, g_t.rows()}, K), mean.part(K), q_t);
      raise_maximum(transposed(e_t), maximum.part(K), rescale);
      scale_rows(sum.part(K), rescale);
      scale_rows(U.part(K), rescale);
      scale_rows(Z.part(K), rescale);
      exponentiate(transposed(e_t), maximum.part(K), sum.part(K), transposed(q_t), delta);
      divide_rows(delta, sum.part(K), delta);
      add(mean.part(K), delta);
      subtract_scaled_rows(U.part(K), delta, Z.part(K));
      softmax_gradient(transposed(e_t), delta, transposed(q_t));

      multiply_add(transposed(e_t), a2, Z.part(K));
      multiply_add(transposed(q_t), a2, U.part(K));
    }
  }
  divide_rows(U, sum, U);
  return U;
}

void unit(Machine& machine, const RowPlan& by, const Operands& io, Index unit,
          SlowMatrix* partials) {
  const Range I = by.units()[unit];
  Tile s_t = rows_times(machine, by, "S", io.in("A1"), I, io.in("X"));
  Tile g_t = rows_times_transposed(machine, by, "G", io.in("dO"), I, io.in("Y"));
  const Tile W = core(machine, by, io, I, std::move(s_t), std::move(g_t));
  add_gradient(machine, by, io, unit, W, partials);
}

std::vector<PhaseCost> part_cost(const Shape& shape, const Blocks& blocks, Range units,
                                 bool partials) {
  const auto [n, m, d] = shape;
  const RowPlan by(shape, blocks);
  const Words r = by.largest_of(units);
  const Words c = std::min(by.keys, m);
  const Words strip = std::min(r, Words(kStrip));
  PhaseCost G = rows_times_cost("G", by, units);
  G.peak += r * d;  // S
  return {
      rows_times_cost("S", by, units),
      G,
      // S, G, U and Z, maximum, sum and mean; A2_J and A3_J; two strips, factors and delta.
      {.path = "core",
       .reads = 2 * Words(m) * d * units.size(),
       .writes = 0,
       .peak = 4 * r * d + 3 * r + 2 * c * d + 2 * c * strip + 2 * strip,
       .flops = 8 * Words(by.rows_of(units)) * m * d},
      add_gradient_cost(by, units, partials),
  };
}

}  // namespace

Kernel backward_rows_onepass() {
  Kernel kernel = row_kernel<unit, part_cost>(
      "backward/rows-onepass",
      "backward/rows from nothing: q relative to its running mean, two sums stay",
      {kA1, kA2, kA3, kX, kY, kdO}, {kg});
  kernel.recentred_blocks = [](const Shape& shape, const Blocks& blocks) {
    return Words(ceil_div(shape.m, blocks["Bc"]));
  };
  return kernel;
}

}  // namespace redblue
