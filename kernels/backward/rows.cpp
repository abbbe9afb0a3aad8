#include "kernels/backward/rows.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/made_rows.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/parts/scores.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

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
  const Index queries = std::min(by.strip(), I.size());
  Tile strip = machine.initialize("p", keys, queries);
  const Tile home = machine.initialize("q", std::min(kHomeWords, strip.words()));
  for (const auto& [J, a2, a3] : KeyStream(machine, by, io)) {
    for (const Range K : blocks(I.size(), by.strip())) {
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
  auto [s_t, a1_t] = row_scores(machine, by, io, I);
  RowGradients of_rows = row_gradients(machine, by, io, I);
  const Tile W = core(machine, by, io, I, std::move(s_t), std::move(of_rows));
  add_gradient(machine, by, io, unit, W, std::move(a1_t), partials);
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
  const Words kept = r * by.kept;  // of A1
  G.peak += r * d + kept;          // S
  const Words strip = std::min(r, Words(by.strip()));
  const Words home = std::min(c * strip, Words(kHomeWords));
  return {
      rows_times_cost("S", by, units),
      G,
      // S, G and W, L and v, and what is kept of A1; A2_J and A3_J; a strip.
      {.path = "core",
       .reads = rows + sources * Words(m) * d * T,
       .writes = 0,
       .peak = 3 * r * d + 2 * r + kept + by.key_words(sources) + c * strip + home,
       .flops = 6 * rows * m * d},
      add_gradient_cost(by, units, partials),
  };
}

// ---- W in the slow store -----------------------------------------------------------------

constexpr Extents gradient_product(const Shape& shape) {
  return {.rows = shape.d, .cols = shape.d, .depth = shape.n};
}

void code_w(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const Index n = plan.shape.n;
  const Blocks& blocks = plan.blocks;
  const RowPlan by(plan.shape, blocks);
  const SlowMatrix& A1 = io.in("A1");
  const SlowMatrix& dO = io.in("dO");
  const bool stores_G = made_before("G", blocks);
  SlowMatrix W = workspace.matrix("W", n, plan.shape.d);
  {
    const MadeRows S(machine, by, blocks, "S", A1, io.in("X"), workspace);
    const MadeRows G(machine, by, blocks, "G", dO, transposed(io.in("Y")), workspace);
    std::optional<SlowMatrix> v;
    if (stores_G) {
      v = workspace.matrix("v", n, 1);
      row_dots(machine, blocks, dO, io.in("O"), *v);
    }
    const auto gradients = [&](Range I) -> RowGradients {
      if (!stores_G) {
        return row_gradients(machine, by, io, I);
      }
      Tile g_t = G.read(machine, I);
      const Phase phase(machine, "v");
      return {std::move(g_t), machine.read(std::as_const(*v).row_block(I))};
    };
    for (const Range I : by.units()) {
      Tile s_t = S.read(machine, I);
      const Tile w = core(machine, by, io, I, std::move(s_t), gradients(I));
      const Phase phase(machine, "W");
      machine.write(w, W.row_block(I));
    }
  }
  product_phase(machine, "g", blocks, transposed(A1), W, io.out("g"));
}

template <bool kShared>
std::vector<PhaseCost> cost_w(const Shape& shape, const Blocks& blocks) {
  const RowPlan by(shape, blocks);
  const Range units{0, by.units().size()};
  const std::vector<PhaseCost> rows = part_cost<kShared>(shape, blocks, units, false);
  const Words rd = Words(by.largest_of(units)) * shape.d;
  std::vector<PhaseCost> phases = {made_rows_cost("S", by, blocks)};
  if (made_before("G", blocks)) {
    phases.push_back(made_rows_cost("G", by, blocks, rd));
    PhaseCost v = row_dots_cost(shape, blocks);
    v.reads += shape.n;
    v.peak = std::max(v.peak, 2 * rd + by.largest_of(units));
    phases.push_back(v);
  } else {
    phases.push_back(rows[1]);
  }
  phases.push_back(rows[2]);
  phases.push_back(
      {.path = "W", .reads = 0, .writes = Words(shape.n) * shape.d, .peak = rd, .flops = 0});
  phases.push_back(product_phase_cost("g", gradient_product(shape), blocks));
  return phases;
}

template <bool kShared, Objective objective>
Blocks fit_w(const Shape& shape, Index M) {
  const auto fit = objective == Objective::words ? fewest_words : fastest;
  Blocks blocks = fit(shape, M, whole_cost<part_cost<kShared>>);
  const RowPlan by(shape, blocks);
  put_made_rows("S", by, M, objective, blocks);
  // Where G is made before, dO and O pass once more for v, which is written and read.
  put_made_rows("G", by, M, objective, blocks, Words(shape.n) * (shape.d + 2));
  if (made_before("G", blocks)) {
    put_row_dots(shape, M, blocks);
  }
  put_product("g", gradient_product(shape), M, objective, blocks);
  return blocks;
}

Words intermediates_w(const Shape& shape, const Blocks& blocks) {
  const Words nd = Words(shape.n) * shape.d;
  return nd + (made_before("S", blocks) ? nd : 0) + (made_before("G", blocks) ? nd + shape.n : 0);
}

template <bool kShared>
Kernel kernel_w(std::string_view name, std::string_view summary, std::vector<Signature> given) {
  return {
      .name = name,
      .summary = summary,
      .given = std::move(given),
      .returns = {kg},
      .fit = fit_w<kShared, Objective::words>,
      .cost = cost_w<kShared>,
      .intermediates = intermediates_w,
      .code = code_w,
      .Y_meets_rows = true,
      .fit_time = fit_w<kShared, Objective::time>,
  };
}

}  // namespace

Kernel backward_rows_w() {
  return kernel_w<false>("backward/rows-w",
                         "backward/rows with W in the slow store; g = A1^T W is a product",
                         {kA1, kA2, kA3, kX, kY, kdO, kO, kL});
}

Kernel backward_rows_w_shared() {
  return kernel_w<true>("backward/rows-w-shared",
                        "backward/rows-w where A3 is A2: one pass brings keys and values",
                        {kA1, kA2, kX, kY, kdO, kO, kL});
}

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
