// g from nothing in one pass over the keys: row blocks stay as in backward/rows, and with
// neither O nor L known, the two sums that make W stay, too:
//
//   W = (sum e q A2 - v sum e A2) / l,   v = (sum e q) / l,   l = sum e,   e = exp(s - maximum)
//
// Taken literally that cancels where all q of a row have much in common. So q is kept
// relative to its mean over the keys so far: U = sum e (q - mean) A2 follows the mean as it
// moves (by delta: U -= delta Z, Z = sum e A2), and at the end, where the mean is v, W = U / l.
// Four products in place of backward/rows' three; nothing goes to the slow store but g:
//
//   reads and writes   2 m d T + 4 d^2 T - d^2 + (3 d - kept) n,   T = ceil(n / Br)

#include "kernels/attention.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/parts/running_sums.hpp"
#include "kernels/registry.hpp"
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

std::vector<PhaseCost> part_cost(const Problem& problem, const Blocks& blocks, Range units,
                                 bool partials) {
  const auto [n, m, d] = problem.shape;
  const RowPlan by(problem, blocks);
  const Words r = by.largest_of(units);
  PhaseCost G = rows_times_cost("G", by, units);
  const Words kept = r * by.kept;  // of A1
  G.peak += r * d + kept;          // S
  return {
      rows_times_cost("S", by, units),
      G,
      // S, G and what is kept of A1 beside the sums; A2_J and A3_J.
      {.path = "core",
       .reads = problem.key_sources() * Words(m) * d * units.size(),
       .writes = 0,
       .peak = 2 * r * d + kept + GradientSums::words(by, r) + by.key_words(),
       .flops = 8 * Words(by.rows_of(units)) * m * d},
      add_gradient_cost(by, units, partials),
  };
}

Words recentred_blocks(const Problem& problem, const Blocks& blocks) {
  return ceil_div(problem.shape.m, blocks["Bc"]);
}

}  // namespace

Kernel backward_rows_onepass() {
  Kernel kernel = row_kernel(gradient_unit(core), part_cost, Pass::backward);
  kernel.name = "backward/rows-onepass";
  kernel.summary = "backward/rows from nothing: q relative to its running mean, two sums stay";
  kernel.operands = {kA1, kA2, kA3, kX, kY, kdO};
  kernel.returns = {kg};
  kernel.numerics.recentred_blocks = recentred_blocks;
  return kernel;
}

}  // namespace redblue
