#include "kernels/backward/rows_onepass.hpp"

#include "kernels/attention.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/parts/running_sums.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// W_I = p_I A2.
Tile core(Machine& machine, const RowPlan& by, const Operands& io, Range I, Tile s_t, Tile g_t) {
  const Phase phase(machine, "core");
  GradientSums sums(machine, by, I.size());
  for (const auto& [J, a2, a3] : KeyStream(machine, by, io)) {
    sums.add(a2, a3, {0, J.size()}, s_t, g_t);
  }
  return sums.take();
}

template <bool kShared>
std::vector<PhaseCost> part_cost(const Shape& shape, const Blocks& blocks, Range units,
                                 bool partials) {
  const auto [n, m, d] = shape;
  const RowPlan by(shape, blocks);
  const Words r = by.largest_of(units);
  const Index sources = kShared ? 1 : 2;  // A2 and A3, or one for both
  PhaseCost G = rows_times_cost("G", by, units);
  const Words kept = r * by.kept;  // of A1
  G.peak += r * d + kept;          // S
  return {
      rows_times_cost("S", by, units),
      G,
      // S, G and what is kept of A1 beside the sums; A2_J and A3_J.
      {.path = "core",
       .reads = sources * Words(m) * d * units.size(),
       .writes = 0,
       .peak = 2 * r * d + kept + GradientSums::words(by, r) + by.key_words(sources),
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
