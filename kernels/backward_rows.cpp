#include "kernels/backward_rows.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/rows.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// W_I = p_I A2.
Tile core(Machine& machine, const RowPlan& by, const Operands& io, Range I, Tile s_t,
          RowGradients of_rows) {
  const Phase phase(machine, "core");
  const auto& [g_t, v] = of_rows;
  const auto [n, m, d] = by.shape;
  const Tile l = machine.read(io.in("L").row_block(I));
  Tile W = machine.initialize("W", I.size(), d);
  const Index keys = std::min(by.keys, m);
  const Index queries = std::min(kStrip, I.size());
  Tile strip = machine.initialize("p", keys, queries);
  const Tile home =
      machine.initialize("q", std::min(kHomeRows, keys), std::min(kHomeCols, queries));
  for (const Range J : blocks(m, by.keys)) {
    const KeyTiles tiles = read_keys(machine, io, J);
    for (const Range K : blocks(I.size(), kStrip)) {
      const View p_t = strip.part({0, J.size()}, {0, K.size()});
      exponentiated_product(tiles.a2, s_t.part({0, s_t.rows()}, K), l.part(K), p_t);
      softmax_gradient_product(tiles.a3(), g_t.part({0, g_t.rows()}, K), v.part(K), p_t, home);
      multiply_add(transposed(p_t), tiles.a2, W.part(K));
    }
  }
  return W;
}

void unit(Machine& machine, const RowPlan& by, const Operands& io, Index unit,
          SlowMatrix* partials) {
  const Range I = by.units()[unit];
  Tile s_t = rows_times(machine, by, "S", io.in("A1"), I, io.in("X"));
  RowGradients of_rows = row_gradients(machine, by, io, I);
  const Tile W = core(machine, by, io, I, std::move(s_t), std::move(of_rows));
  add_gradient(machine, by, io, unit, W, partials);
}

template <bool kShared>
std::vector<PhaseCost> part_cost(const Shape& shape, const Blocks& blocks, Range units,
                                 bool partials) {
  const auto [n, m, d] = shape;
  const RowPlan by(shape, blocks);
  const Index T = units.size();
  const Words rows = by.rows_of(units);
  const Words r = by.largest_of(units);
  const Words c = std::min(by.keys, m);
  const Index sources = kShared ? 1 : 2;  // A2 and A3, or one for both
  PhaseCost G = row_gradients_cost(by, units);
  G.peak += r * d;  // S
  const Words strip = std::min(r, Words(kStrip));
  const Words home = std::min(c, Words(kHomeRows)) * std::min(strip, Words(kHomeCols));
  return {
      rows_times_cost("S", by, units),
      G,
      // S, G and W, L and v; A2_J and A3_J; a strip.
      {.path = "core",
       .reads = rows + sources * Words(m) * d * T,
       .writes = 0,
       .peak = 3 * r * d + 2 * r + sources * c * d + c * strip + home,
       .flops = 6 * rows * m * d},
      add_gradient_cost(by, units, partials),
  };
}

}  // namespace

Kernel backward_rows() {
  return row_kernel<unit, part_cost<false>>(
      "backward/rows",
      "row blocks of S, G = dO Y^T and W = p A2 stay, keys pass; g is added to once each",
      {kA1, kA2, kA3, kX, kY, kdO, kO, kL}, {kg});
}

Kernel backward_rows_shared() {
  return row_kernel<unit, part_cost<true>>(
      "backward/rows-shared", "backward/rows where A3 is A2: one pass brings keys and values",
      {kA1, kA2, kX, kY, kdO, kO, kL}, {kg});
}

}  // namespace redblue
