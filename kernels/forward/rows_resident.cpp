#include "kernels/forward/rows_resident.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/resident.hpp"
#include "kernels/parts/running_sums.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// Z_I = sum of e_j A3_j over all keys, e = exp(s - maximum).
ValueSums::Sums core(Machine& machine, const ResidentPlan& by, const Resident& resident,
                     const Tile& s_t) {
  const Phase phase(machine, "core");
  ValueSums sums(machine, by, s_t.cols());
  resident.each_key_block(
      [&](const Tile& a2, const Tile& a3, Range J) { sums.add(a2, a3, J, s_t); });
  return sums.take();
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const ResidentPlan by(plan.shape, plan.blocks);
  const Index d = plan.shape.d;
  const Resident resident(machine, by, io);
  for (const Range I : by.units()) {
    Tile s_t = machine.initialize("S", d, I.size());
    {
      const Phase phase(machine, "S");
      const Tile a1_t = machine.read(transposed(io.in("A1").row_block(I)));
      multiply(transposed(resident.X()), a1_t, s_t);
    }
    auto [Z, maximum, sum] = core(machine, by, resident, s_t);
    s_t.reset();
    const Phase phase(machine, "O");
    divide_rows(Z, sum, Z);
    add_logarithm(maximum, sum);
    sum.reset();
    machine.write(maximum, io.out("L").row_block(I));
    maximum.reset();
    Tile o = machine.initialize("O", I.size(), d);
    multiply(Z, resident.Y(), o);
    machine.write(o, io.out("O").row_block(I));
  }
}

template <bool kShared>
std::vector<PhaseCost> cost(const Shape& shape, const Blocks& blocks) {
  const auto [n, m, d] = shape;
  const ResidentPlan by(shape, blocks);
  const Words nd = Words(n) * d;
  const Words r = std::min(by.rows, n);
  const Index sources = kShared ? 1 : 2;  // A2 and A3, or one for both
  const Words stays = by.resident_words(sources);
  return {
      resident_cost(by, sources),
      // A1 and S.
      {.path = "S", .reads = nd, .writes = 0, .peak = stays + 2 * r * d, .flops = 2 * nd * d},
      // S beside the sums; A2_J and A3_J of the keys that pass.
      {.path = "core",
       .reads = by.passing_words(sources) * by.units().size(),
       .writes = 0,
       .peak = stays + r * d + ValueSums::words(by, r) + by.block_words(sources),
       .flops = 4 * nd * m},
      // Z with maximum and sum; then with O.
      {.path = "O",
       .reads = 0,
       .writes = nd + n,
       .peak = stays + r * d + std::max(2 * r, r * d),
       .flops = 2 * nd * d},
  };
}

template <bool kShared>
Kernel kernel(std::string_view name, std::string_view summary, std::vector<Signature> given) {
  return {
      .name = name,
      .summary = summary,
      .given = std::move(given),
      .returns = {kO, kL},
      .fit = [](const Shape& shape,
                Index M) { return most_resident(shape, M, Objective::words, cost<kShared>); },
      .cost = cost<kShared>,
      .intermediates = [](const Shape&, const Blocks&) { return Words(0); },
      .code = code,
      .rescales =
          [](const Shape& shape, const Blocks& blocks) {
            return Words(ResidentPlan(shape, blocks).key_blocks() - 1);
          },
      .Y_meets_rows = true,
      .fit_time = [](const Shape& shape,
                     Index M) { return most_resident(shape, M, Objective::time, cost<kShared>); },
  };
}

}  // namespace

Kernel forward_rows_resident() {
  return kernel<false>("forward/rows-resident", "X, Y and most keys stay; row blocks pass",
                       {kA1, kA2, kA3, kX, kY});
}

Kernel forward_rows_resident_shared() {
  return kernel<true>("forward/rows-resident-shared",
                      "forward/rows-resident where A3 is A2: keys are their own values",
                      {kA1, kA2, kX, kY});
}

}  // namespace redblue
