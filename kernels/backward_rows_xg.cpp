#include "kernels/backward_rows_xg.hpp"

#include <algorithm>

#include "kernels/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/rows.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// g^T += (A1_I^T p_I A2)^T. Vectors run along keys, as each product's right factor has them.
void core(Machine& machine, const RowPlan& by, const Operands& io, Range I,
          const RowGradients& of_rows, const Tile& x, Tile& gradient_t) {
  const Phase phase(machine, "core");
  const auto& [g_t, v] = of_rows;
  const auto [n, m, d] = by.shape;
  const Tile a1 = machine.read(io.in("A1").row_block(I));
  const Tile l = machine.read(io.in("L").row_block(I));
  const Index keys = std::min(by.keys, m);
  const Index queries = std::min(by.strip(), I.size());
  Tile p_strip = machine.initialize("p", queries, keys);
  Tile q_strip = machine.initialize("q", queries, keys);
  Tile y_tile = machine.initialize("X A2^T", d, keys);
  Tile t_tile = machine.initialize("T", keys, d);
  for (const auto& [J, a2, a3] : KeyStream(machine, by, io, Orientation::transposed)) {
    const View y = y_tile.part({0, d}, {0, J.size()});
    const View t = t_tile.part({0, J.size()});
    multiply(x, a2, y);
    for (const Range K : blocks(I.size(), by.strip())) {
      const View p = p_strip.part({0, K.size()}, {0, J.size()});
      const View q = q_strip.part({0, K.size()}, {0, J.size()});
      multiply(a1.part(K), y, p);
      exponentiate(p, l.part(K), p);
      multiply(transposed(g_t.part({0, d}, K)), a3, q);
      softmax_gradient(p, q, v.part(K), p);
      if (K.begin == 0) {
        multiply(transposed(p), a1.part(K), t);
      } else {
        multiply_add(transposed(p), a1.part(K), t);
      }
    }
    multiply_add(a2, t, gradient_t);
  }
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const RowPlan by(plan.shape, plan.blocks);
  const Index d = plan.shape.d;
  Tile x;
  Tile gradient_t;
  {
    const Phase phase(machine, "X");
    x = machine.read(io.in("X").row_block({0, d}));
    gradient_t = machine.initialize("g", d, d);
  }
  for (const Range I : by.units()) {
    const RowGradients of_rows = row_gradients(machine, by, io, I);
    core(machine, by, io, I, of_rows, x, gradient_t);
  }
  x.reset();
  const Phase phase(machine, "g");
  machine.write(gradient_t, transposed(io.out("g").row_block({0, d})));
}

template <bool kShared>
std::vector<PhaseCost> cost(const Shape& shape, const Blocks& blocks) {
  const auto [n, m, d] = shape;
  const RowPlan by(shape, blocks);
  const Range units{0, by.units().size()};
  const Index T = units.size();
  const Words dd = Words(d) * d;
  const Words r = by.largest_of(units);
  const Words c = std::min(by.keys, m);
  const Words strip = std::min(r, Words(by.strip()));
  const Index sources = kShared ? 1 : 2;  // A2 and A3, or one for both
  PhaseCost G = row_gradients_cost(by, units);
  G.peak += 2 * dd;
  return {
      {.path = "X", .reads = dd, .writes = 0, .peak = 2 * dd, .flops = 0},
      G,
      // X and g, A1, G, L and v; A2_J and A3_J, X A2_J^T and T_J; two strips.
      {.path = "core",
       .reads = Words(n) * d + n + sources * Words(m) * d * T,
       .writes = 0,
       .peak = 2 * dd + 2 * r * d + 2 * r + by.key_words(sources) + 2 * c * d + 2 * c * strip,
       .flops = 6 * Words(n) * m * d + 4 * Words(m) * T * dd},
      {.path = "g", .reads = 0, .writes = dd, .peak = dd, .flops = 0},
  };
}

// A p_ij goes through the sum of its row block and then through that of all keys of all blocks.
Words chain(const Shape& shape, const Blocks& blocks) {
  const RowPlan by(shape, blocks);
  return Words(std::min(by.rows, shape.n)) + Words(shape.m) * by.units().size();
}

// X and g are whole.
Window window(const Signature& operand, const Shape& shape, const Blocks& blocks) {
  if (operand.name == kX.name || operand.name == kg.name) {
    return {shape.d, shape.d};
  }
  if (operand.name == kA1.name) {
    return window_of(operand, shape, blocks["Br"], shape.d);
  }
  return row_window(operand, shape, blocks);
}

template <bool kShared>
Kernel kernel(std::string_view name, std::string_view summary, std::vector<Signature> given) {
  return {
      .name = name,
      .summary = summary,
      .given = std::move(given),
      .returns = {kg},
      .fit = [](const Shape& shape, Index M) { return fewest_words(shape, M, cost<kShared>); },
      .cost = cost<kShared>,
      .intermediates = [](const Shape&, const Blocks&) { return Words(0); },
      .code = code,
      .chain = chain,
      .Y_meets_rows = true,
      .X_meets_keys = true,
      .folds_partial_sums = true,
      .fit_time = [](const Shape& shape, Index M) { return fastest(shape, M, cost<kShared>); },
      .window = window,
  };
}

}  // namespace

Kernel backward_rows_xg() {
  return kernel<false>("backward/rows-xg",
                       "X and g stay beside row blocks of A1 and G; keys meet X as they pass",
                       {kA1, kA2, kA3, kX, kY, kdO, kO, kL});
}

Kernel backward_rows_xg_shared() {
  return kernel<true>("backward/rows-xg-shared",
                      "backward/rows-xg where A3 is A2: one pass brings keys and values",
                      {kA1, kA2, kX, kY, kdO, kO, kL});
}

}  // namespace redblue
