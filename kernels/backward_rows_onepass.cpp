#include "kernels/backward_rows_onepass.hpp"

#include <algorithm>

#include "kernels/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/rows.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// W_I = p_I A2.
Tile core(Machine& machine, const RowPlan& by, const Operands& io, Range I, Tile s_t, Tile g_t) {
  const Phase phase(machine, "core");
  const auto [n, m, d] = by.shape;
  Tile U = machine.initialize("U", I.size(), d);
  Tile Z = machine.initialize("Z", I.size(), d);
  Tile maximum = machine.initialize("max", I.size(), 1, kNoMaximum);
  Tile sum = machine.initialize("sum", I.size());
  Tile mean = machine.initialize("mean", I.size());
  const Index keys = std::min(by.keys, m);
  const Index queries = std::min(by.strip(), I.size());
  Tile e_strip = machine.initialize("e", keys, queries);
  Tile q_strip = machine.initialize("q", keys, queries);
  Tile factors = machine.initialize("rescale", queries);
  for (const auto& [J, a2, a3] : KeyStream(machine, by, io)) {
    for (const Range K : blocks(I.size(), by.strip())) {
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

template <bool kShared>
std::vector<PhaseCost> part_cost(const Shape& shape, const Blocks& blocks, Range units,
                                 bool partials) {
  const auto [n, m, d] = shape;
  const RowPlan by(shape, blocks);
  const Words r = by.largest_of(units);
  const Words c = std::min(by.keys, m);
  const Words strip = std::min(r, Words(by.strip()));
  const Index sources = kShared ? 1 : 2;  // A2 and A3, or one for both
  PhaseCost G = rows_times_cost("G", by, units);
  G.peak += r * d;  // S
  return {
      rows_times_cost("S", by, units),
      G,
      // S, G, U and Z, maximum, sum and mean; A2_J and A3_J; two strips, factors and delta.
      {.path = "core",
       .reads = sources * Words(m) * d * units.size(),
       .writes = 0,
       .peak = 4 * r * d + 3 * r + by.key_words(sources) + 2 * c * strip + 2 * strip,
       .flops = 8 * Words(by.rows_of(units)) * m * d},
      add_gradient_cost(by, units, partials),
  };
}

Words recentred_blocks(const Shape& shape, const Blocks& blocks) {
  return ceil_div(shape.m, blocks["Bc"]);
}

}  // namespace

Kernel backward_rows_onepass() {
  Kernel kernel = row_kernel<gradient_unit<core>, part_cost<false>>(
      "backward/rows-onepass",
      "backward/rows from nothing: q relative to its running mean, two sums stay",
      {kA1, kA2, kA3, kX, kY, kdO}, {kg});
  kernel.recentred_blocks = recentred_blocks;
  return kernel;
}

Kernel backward_rows_onepass_shared() {
  Kernel kernel = row_kernel<gradient_unit<core>, part_cost<true>>(
      "backward/rows-onepass-shared",
      "backward/rows-onepass where A3 is A2: one pass brings keys and values",
      {kA1, kA2, kX, kY, kdO}, {kg});
  kernel.recentred_blocks = recentred_blocks;
  return kernel;
}

}  // namespace redblue
