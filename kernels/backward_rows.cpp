#include "kernels/backward_rows.hpp"

#include <algorithm>

#include "kernels/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/rows.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// G_I^T = Y dO_I^T and v = rowsum(dO * O).
Tile meet_weights(Machine& machine, Index Bw, const Operands& io, Range I, Tile& v) {
  const Tile do_t = machine.read(transposed(io.in("dO").row_block(I)));
  v = machine.initialize("v", I.size());
  {
    const Tile o_t = machine.read(transposed(io.in("O").row_block(I)));
    add_row_dots(transposed(do_t), transposed(o_t), v);
  }
  return times_transposed(machine, Bw, "G", do_t, io.in("Y"));
}

// W_I = p_I A2.
Tile core(Machine& machine, Index Bc, const Operands& io, Range I, const Tile& s_t, const Tile& g_t,
          const Tile& v) {
  const SlowMatrix& A2 = io.in("A2");
  const SlowMatrix& A3 = io.in("A3");
  const Tile l = machine.read(io.in("L").row_block(I));
  Tile W = machine.initialize("W", I.size(), A2.cols());
  const Index keys = std::min(Bc, A2.rows());
  const Index queries = std::min(kStrip, I.size());
  Tile strip = machine.initialize("p", keys, queries);
  const Tile home =
      machine.initialize("q", std::min(kHomeRows, keys), std::min(kHomeCols, queries));
  for (const Range J : blocks(A2.rows(), Bc)) {
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

void part(Machine& machine, const Plan& plan, const Operands& io, Range units,
          SlowMatrix* partials) {
  const RowPlan by(plan.shape, plan.blocks);
  for (Index unit = units.begin; unit < units.end; ++unit) {
    const Range I = by.units()[unit];
    Tile s_t;
    {
      const Phase phase(machine, "S");
      s_t = rows_times(machine, by.weights, "S", io.in("A1"), I, io.in("X"));
    }
    Tile v;
    Tile g_t;
    {
      const Phase phase(machine, "G");
      g_t = meet_weights(machine, by.weights, io, I, v);
    }
    Tile W;
    {
      const Phase phase(machine, "core");
      W = core(machine, by.keys, io, I, s_t, g_t, v);
    }
    s_t.reset();
    g_t.reset();
    v.reset();
    const Phase phase(machine, "g");
    add_gradient(machine, by.weights, io.in("A1"), I, W, unit, io.out("g"), partials);
  }
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
      add_gradient_cost("g", by, units, partials),
  };
}

}  // namespace

Kernel backward_rows() {
  return {
      .name = "backward/rows",
      .summary =
          "row blocks of S, G = dO Y^T and W = p A2 stay, keys pass; g is added to once each",
      .given = {kA1, kA2, kA3, kX, kY, kdO, kO, kL},
      .returns = {kg},
      .fit = [](const Shape& shape,
                Index M) { return fewest_words(shape, M, whole_cost<part_cost>); },
      .cost = whole_cost<part_cost>,
      .intermediates = [](const Shape&) { return Words(0); },
      .code = whole<part>,
      .fit_time = [](const Shape& shape,
                     Index M) { return fastest(shape, M, whole_cost<part_cost>); },
      .split = RowSplit{.part = part,
                        .part_cost = part_cost,
                        .reduce = reduce_gradient,
                        .reduce_cost = reduce_gradient_cost},
  };
}

}  // namespace redblue
