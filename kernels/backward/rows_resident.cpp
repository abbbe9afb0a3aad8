#include "kernels/backward/rows_resident.hpp"

#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/resident.hpp"
#include "kernels/parts/running_sums.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// W_I = p_I A2.
Tile core(Machine& machine, const ResidentPlan& by, const Resident& resident, const Tile& s_t,
          const Tile& g_t) {
  const Phase phase(machine, "core");
  GradientSums sums(machine, by, s_t.cols());
  resident.each_key_block(
      [&](const Tile& a2, const Tile& a3, Range J) { sums.add(a2, a3, J, s_t, g_t); });
  return sums.take();
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const ResidentPlan by(plan.shape, plan.blocks);
  const Index d = plan.shape.d;
  const Resident resident(machine, by, io);
  Tile gradient = machine.initialize("g", d, d);
  for (const Range I : by.units()) {
    Tile a1_t;
    Tile s_t = machine.initialize("S", d, I.size());
    {
      const Phase phase(machine, "S");
      a1_t = machine.read(transposed(io.in("A1").row_block(I)));
      multiply(transposed(resident.X()), a1_t, s_t);
    }
    Tile g_t = machine.initialize("G", d, I.size());
    {
      const Phase phase(machine, "G");
      const Tile do_t = machine.read(transposed(io.in("dO").row_block(I)));
      multiply(resident.Y(), do_t, g_t);
    }
    const Tile W = core(machine, by, resident, s_t, g_t);
    s_t.reset();
    g_t.reset();
    const Phase phase(machine, "g");
    multiply_add(a1_t, W, gradient);
  }
  const Phase phase(machine, "g");
  machine.write(gradient, io.out("g").whole());
}

template <bool kShared>
std::vector<PhaseCost> cost(const Shape& shape, const Blocks& blocks) {
  const auto [n, m, d] = shape;
  const ResidentPlan by(shape, blocks);
  const Words nd = Words(n) * d;
  const Words dd = Words(d) * d;
  const Words r = std::min(by.rows, n);
  const Index sources = kShared ? 1 : 2;  // A2 and A3, or one for both
  const Words stays = by.resident_words(sources) + dd;
  return {
      resident_cost(by, sources),
      // A1 and S; dO and G with them.
      {.path = "S", .reads = nd, .writes = 0, .peak = stays + 2 * r * d, .flops = 2 * nd * d},
      {.path = "G", .reads = nd, .writes = 0, .peak = stays + 4 * r * d, .flops = 2 * nd * d},
      // A1, S and G beside the sums; A2_J and A3_J of the keys that pass.
      {.path = "core",
       .reads = by.passing_words(sources) * by.units().size(),
       .writes = 0,
       .peak = stays + 3 * r * d + GradientSums::words(by, r) + by.block_words(sources),
       .flops = 8 * nd * m},
      // A1 and W.
      {.path = "g", .reads = 0, .writes = dd, .peak = stays + 2 * r * d, .flops = 2 * nd * d},
  };
}

template <bool kShared>
Kernel kernel(std::string_view name, std::string_view summary, std::vector<Signature> given) {
  return {
      .name = name,
      .summary = summary,
      .given = std::move(given),
      .returns = {kg},
      .fit = [](const Shape& shape,
                Index M) { return most_resident(shape, M, Objective::words, cost<kShared>); },
      .cost = cost<kShared>,
      .intermediates = [](const Shape&, const Blocks&) { return Words(0); },
      .code = code,
      .Y_meets_rows = true,
      .recentred_blocks =
          [](const Shape& shape, const Blocks& blocks) {
            return Words(ResidentPlan(shape, blocks).key_blocks());
          },
      .fit_time = [](const Shape& shape,
                     Index M) { return most_resident(shape, M, Objective::time, cost<kShared>); },
  };
}

}  // namespace

Kernel backward_rows_resident() {
  return kernel<false>(
      "backward/rows-resident",
      "from nothing: X, Y, g and most keys stay, A1_I too, so that it is read once",
      {kA1, kA2, kA3, kX, kY, kdO});
}

Kernel backward_rows_resident_shared() {
  return kernel<true>("backward/rows-resident-shared",
                      "backward/rows-resident where A3 is A2: keys are their own values",
                      {kA1, kA2, kX, kY, kdO});
}

}  // namespace redblue
