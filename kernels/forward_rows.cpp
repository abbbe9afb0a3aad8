#include "kernels/forward_rows.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/rows.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// Z_I = sum of e_j A3_j over all keys, e = exp(s - maximum).
Tile core(Machine& machine, const RowPlan& by, const Operands& io, Range I, Tile s_t, Tile& maximum,
          Tile& sum) {
  const Phase phase(machine, "core");
  const auto [n, m, d] = by.shape;
  Tile Z = machine.initialize("Z", I.size(), d);
  maximum = machine.initialize("max", I.size(), 1, kNoMaximum);
  sum = machine.initialize("sum", I.size());
  const Index queries = std::min(by.strip(), I.size());
  Tile strip = machine.initialize("e", std::min(by.keys, m), queries);
  Tile factors = machine.initialize("rescale", queries);
  for (const auto& [J, a2, a3] : KeyStream(machine, by, io)) {
    for (const Range K : blocks(I.size(), by.strip())) {
      const View e_t = strip.part({0, J.size()}, {0, K.size()});
      const View rescale = factors.part({0, K.size()});
      multiply(a2, s_t.part({0, s_t.rows()}, K), e_t);
      raise_maximum(transposed(e_t), maximum.part(K), rescale);
      scale_rows(sum.part(K), rescale);
      scale_rows(Z.part(K), rescale);
      exponentiate(transposed(e_t), maximum.part(K), sum.part(K));
      multiply_add(transposed(e_t), a3, Z.part(K));
    }
  }
  return Z;
}

void unit(Machine& machine, const RowPlan& by, const Operands& io, Index unit, SlowMatrix*) {
  const Range I = by.units()[unit];
  Tile s_t = rows_times(machine, by, "S", io.in("A1"), I, io.in("X"));
  Tile maximum;
  Tile sum;
  Tile Z = core(machine, by, io, I, std::move(s_t), maximum, sum);
  const Phase phase(machine, "O");
  divide_rows(Z, sum, Z);
  add_logarithm(maximum, sum);
  sum.reset();
  machine.write(maximum, io.out("L").row_block(I));
  maximum.reset();
  const SlowMatrix& Y = io.in("Y");
  for (const Range J : blocks(Y.cols(), by.weights)) {
    const Tile y = machine.read(Y.block({0, Y.rows()}, J));
    Tile o = machine.initialize("O", I.size(), J.size());
    multiply(Z, y, o);
    machine.write(o, io.out("O").block(I, J));
  }
}

template <bool kShared>
std::vector<PhaseCost> part_cost(const Shape& shape, const Blocks& blocks, Range units, bool) {
  const auto [n, m, d] = shape;
  const RowPlan by(shape, blocks);
  const Index T = units.size();
  const Words rows = by.rows_of(units);
  const Words r = by.largest_of(units);
  const Words c = std::min(by.keys, m);
  const Words w = std::min(by.weights, d);
  const Index sources = kShared ? 1 : 2;  // A2 and A3, or one for both
  const Words strip = std::min(r, Words(by.strip()));
  return {
      rows_times_cost("S", by, units),
      // S and Z, maximum and sum; A2_J and A3_J; a strip and its factors.
      {.path = "core",
       .reads = sources * Words(m) * d * T,
       .writes = 0,
       .peak = 2 * r * d + 2 * r + by.key_words(sources) + c * strip + strip,
       .flops = 4 * rows * m * d},
      // Z with maximum and sum; then with some of Y and of O.
      {.path = "O",
       .reads = Words(d) * d * T,
       .writes = rows * d + rows,
       .peak = r * d + std::max(2 * r, w * d + r * w),
       .flops = 2 * rows * d * d},
  };
}

Words rescales(const Shape& shape, const Blocks& blocks) {
  return ceil_div(shape.m, blocks["Bc"]) - 1;
}

}  // namespace

Kernel forward_rows() {
  Kernel kernel = row_kernel<unit, part_cost<false>>(
      "forward/rows",
      "row blocks of S and of the sum e A3 stay, keys pass; O = (sum / l) Y at last",
      {kA1, kA2, kA3, kX, kY}, {kO, kL});
  kernel.rescales = rescales;
  return kernel;
}

Kernel forward_rows_shared() {
  Kernel kernel = row_kernel<unit, part_cost<true>>(
      "forward/rows-shared", "forward/rows where A3 is A2: one pass brings keys and values",
      {kA1, kA2, kX, kY}, {kO, kL});
  kernel.rescales = rescales;
  return kernel;
}

}  // namespace redblue
