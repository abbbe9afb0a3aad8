#include "kernels/backward_rows.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/rows.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// G_I^T = Y dO_I^T and v = rowsum(dO * O).
Tile meet_weights(Machine& machine, const RowPlan& by, const Operands& io, Range I, Tile& v) {
  const Phase phase(machine, "G");
  const Tile do_t = machine.read(transposed(io.in("dO").row_block(I)));
  v = machine.initialize("v", I.size());
  {
    const Tile o_t = machine.read(transposed(io.in("O").row_block(I)));
    add_row_dots(transposed(do_t), transposed(o_t), v);
  }
  return times_transposed(machine, by, "G", do_t, io.in("Y"));
}

// W_I = p_I A2.
Tile core(Machine& machine, const RowPlan& by, const Operands& io, Range I, Tile s_t, Tile g_t,
          Tile v) {
  const Phase phase(machine, "core");
  const SlowMatrix& A2 = io.in("A2");
  const SlowMatrix& A3 = io.in("A3");
  const Tile l = machine.read(io.in("L").row_block(I));
  Tile W = machine.initialize("W", I.size(), A2.cols());
  const Index keys = std::min(by.keys, A2.rows());
  const Index queries = std::min(kStrip, I.size());
  Tile strip = machine.initialize("p", keys, queries);
  const Tile home =
      machine.initialize("q", std::min(kHomeRows, keys), std::min(kHomeCols, queries));
  for (const Range J : blocks(A2.rows(), by.keys)) {
    const Tile a2 = machine.read(A2.row_block(J));
    const Tile a3 = machine.read(A3.row_block(J));
    for (const Range K : blocks(I.size(), kStrip)) {
      const View p_t = strip.part({0, J.size()}, {0, K.size()});
      exponentiated_product(a2, s_t.part({0, s_t.rows()}, K), l.part(K), p_t);
      softmax_gradient_product(a3, g_t.part({0, g_t.rows()}, K), v.part(K), p_t, home);
      multiply_add(transposed(p_t), a2, W.part(K));
    }
  }
  return W;
}

void unit(Machine& machine, const RowPlan& by, const Operands& io, Index unit,
          SlowMatrix* partials) {
  const Range I = by.units()[unit];
  Tile s_t = rows_times(machine, by, "S", io.in("A1"), I, io.in("X"));
  Tile v;
  Tile g_t = meet_weights(machine, by, io, I, v);
  const Tile W = core(machine, by, io, I, std::move(s_t), std::move(g_t), std::move(v));
  add_gradient(machine, by, io, unit, W, partials);
}

std::vector<PhaseCost> part_cost(const Shape& shape, const Blocks& blocks, Range units,
                                 bool partials) {
  const auto [n, m, d] = shape;
  const RowPlan by(shape, blocks);
  const Index T = units.size();
  const Words rows = by.rows_of(units);
  const Words r = by.largest_of(units);
  const Words c = std::min(by.keys, m);
  const Words w = std::min(by.weights, d);
  const Words strip = std::min(r, Words(kStrip));
  const Words home = std::min(c, Words(kHomeRows)) * std::min(strip, Words(kHomeCols));
  return {
      rows_times_cost("S", by, units),
      // S; dO and v with O, then with G and some of Y.
      {.path = "G",
       .reads = 2 * rows * d + Words(d) * d * T,
       .writes = 0,
       .peak = 3 * r * d + r + w * d,
       .flops = 2 * rows * d * d},
      // S, G and W, L and v; A2_J and A3_J; a strip.
      {.path = "core",
       .reads = rows + 2 * Words(m) * d * T,
       .writes = 0,
       .peak = 3 * r * d + 2 * r + 2 * c * d + c * strip + home,
       .flops = 6 * rows * m * d},
      add_gradient_cost(by, units, partials),
  };
}

}  // namespace

Kernel backward_rows() {
  return row_kernel<unit, part_cost>(
      "backward/rows",
      "row blocks of S, G = dO Y^T and W = p A2 stay, keys pass; g is added to once each",
      {kA1, kA2, kA3, kX, kY, kdO, kO, kL}, {kg});
}

}  // namespace redblue
