// Computes g with resident blocks of keys. K_J = X A2_J^T, h_J = A3_J Y and T_J = p_J^T A1 stay,
// and rows of A1 and dO stream. Each block adds T_J^T A2_J to g once. The first block also reads
// the rows of O and computes v = rowsum(dO * O); v is written to slow memory if there is a second
// block. This suits many queries and few keys. After a forward pass it moves:
//
//   reads    T (2 n d + n + 2 d^2) + n d + 3 m d + (T - 1) (n + d^2),   T = ceil(m / Bc)
//   writes   T d^2, and n where T > 1
//
// Under a mask each block streams only the rows that meet it. `n T` then stands for the number of
// rows streamed for all blocks. v_I is computed where a row meets its first block.

#include "kernels/parts/columns.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/registry.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace in_backward_columns {
namespace {

// h_J^T = Y^T A3_J^T.
Tile values(Machine& machine, const ColumnPlan& by, const Operands& io, Range J) {
  return product_in_pieces(
      machine, by, "h", by.problem.shape.d, J.size(),
      [&](Range K) { return transposed(io.in("Y").row_block(K)); },
      [&](Range K) { return transposed(io.in("A3").block(J, K)); });
}

// Returns v_I for a softmax. A row's first block of keys computes it, and writes it for later
// blocks.
Tile row_sums(Machine& machine, const ColumnPlan& by, const Operands& io, const LivePairs& live,
              const Tile& do_i, SlowMatrix* kept) {
  if (kept == nullptr) {
    return {};
  }
  SlowMatrix& v = *kept;
  const Mask& mask = by.problem.mask;
  const Range I = live.queries();
  const Ranges before = live.met_before();
  const Ranges first = without(live.met(), before);
  Tile v_i = before.empty() ? machine.initialize("v", I.size())  // v_I (r)
                            : machine.read(LiveRows(std::as_const(v), mask, before)->row_block(I));
  if (!first.empty()) {
    const Tile o_i = machine.read(LiveRows(io.in("O"), mask, first)->row_block(I));  // O_I (r, d)
    add_row_dots(do_i, o_i, v_i);
    if (by.units().size() > 1) {
      machine.write(v_i, LiveRows(v, mask, first)->row_block(I));
    }
  }
  return v_i;
}

// Returns T_J. q is computed before p, so that A1_I and dO_I are never in fast memory together.
Tile core(Machine& machine, const ColumnPlan& by, const Operands& io, Range J, const Tile& k,
          const Tile& h_t, SlowMatrix* v) {
  const Phase phase(machine, "core");
  Tile T = machine.initialize("T", J.size(), by.problem.shape.d);  // T_J (c, d)
  const Tile index = by.units().read_index(machine, J);
  for (const Range I : blocks(by.problem.shape.n, by.rows)) {
    const LivePairs live(by.problem, I, J);
    if (live.none()) {
      continue;
    }
    const auto rows_of = [&](std::string_view name) {
      return machine.read(LiveRows(io.in(name), by.problem.mask, live.met())->row_block(I));
    };
    Tile do_i = rows_of("dO");  // dO_I (r, d)
    const Tile v_i = row_sums(machine, by, io, live, do_i, v);
    Tile q = machine.initialize("q", I.size(), J.size(), Holds::scores);  // q_IJ (r, c)
    multiply(do_i, h_t, q);
    do_i.reset();
    const Tile a1 = rows_of("A1");                                        // A1_I (r, d)
    const Tile l = v != nullptr ? rows_of("L") : Tile();                  // L_I (r)
    Tile p = machine.initialize("p", I.size(), J.size(), Holds::scores);  // p_IJ (r, c)
    multiply(a1, k, p);
    make_factor(by.problem, p, l);
    make_p(by.problem, p, q, v_i, p);
    live.set_dead(View(p), 0);
    multiply_add(transposed(p), a1, T);
  }
  return T;
}

// Adds T_J^T A2_J to g, some columns per step.
void add_gradient(Machine& machine, const ColumnPlan& by, const Operands& io, Range J,
                  const Tile& T) {
  const Phase phase(machine, "g");
  SlowMatrix& g = io.out("g");
  const Range all{0, by.problem.shape.d};
  for (const Range K : blocks(all.size(), by.weights)) {
    Tile g_k = machine.initialize("g", all.size(), K.size());  // g_K (d, w)
    {
      const Tile a2 = machine.read(io.in("A2").block(J, K));  // A2_JK (c, w)
      multiply(transposed(T), a2, g_k);
    }
    const Block partial = g.block(all, K).holding(Holds::sums);
    if (J.begin > 0) {
      const Tile sum = machine.read(partial);  // g_K (d, w)
      add(g_k, sum);
    }
    machine.write(g_k, J.end == by.problem.shape.m ? g.block(all, K) : partial);
  }
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const ColumnPlan by(plan.problem, plan.blocks);
  std::optional<SlowMatrix> v;
  if (plan.problem.normalised()) {
    v = workspace.matrix("v", plan.problem.shape.n, 1).holding(Holds::sums);
  }
  for (const Range J : by.units()) {
    Tile k = keys_of_scores(machine, by, io, J);
    Tile h_t = values(machine, by, io, J);
    const Tile T = core(machine, by, io, J, k, h_t, v ? &*v : nullptr);
    k.reset();
    h_t.reset();
    add_gradient(machine, by, io, J, T);
  }
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const auto [n, m, d] = problem.shape;
  const ColumnPlan by(problem, blocks);
  const Index T = by.units().size();
  const Words dd = Words(d) * d, one = problem.row_words();
  const Words of_O = Words(d) * problem.row_columns();
  const Index of_sum = problem.sum_words;
  const Passes of = by.passes();
  const Words r = by.rows;
  const Words c = by.keys;
  const Words w = by.weights;
  const Units::Sum units = by.units().sum();
  // The first block of keys does not read g.
  const Words second = std::min(c, Words(m - by.keys));
  return {
      product_in_pieces_cost("K", by, d, 0),
      product_in_pieces_cost("h", by, d, d),
      // Resident: K_J, h_J and T_J. With them dO and O with v, or A1 with v, L, q and p.
      with_index({.path = "core",
                  .reads = of.all * (2 * Words(d) + one) + n * of_O + of.again * one,
                  .writes = T > 1 ? Words(n) * one : Words(0),
                  .peak = c * d * (2 + of_sum) + units.index_live + r * one +
                          r * std::max(2 * of_O, d + one + 2 * c),
                  .flops = 6 * problem.pairs() * d},
                 units),
      // T_J with A2_J and one block of g, or with two blocks of g.
      {.path = "g",
       .reads = Words(m) * d + (T - 1) * dd * of_sum,
       .writes = (T - 1) * dd * of_sum + dd,
       .peak = std::max(c * d * of_sum + w * (c + d * of_sum),
                        T > 1 ? (second + 2 * w) * d * of_sum : Words(0)),
       .flops = 2 * Words(m) * dd},
  };
}

}  // namespace
}  // namespace in_backward_columns

Kernel backward_columns() {
  using namespace in_backward_columns;
  return {.name = "backward/columns",
          .summary = "key blocks of X A2^T, h and T = p^T A1 stay, queries pass: for few keys",
          .pass = Pass::backward,
          .operands = {kA1, kA2, kA3, kX, kY, kdO, kO, kL},
          .returns = {kg},
          .takes_activations = true,
          .schedule = {.code = code},
          .formula = {.cost = cost,
                      .intermediates =
                          [](const Problem& problem, const Blocks&) {
                            return Words(problem.shape.n) * problem.row_columns();
                          }},
          .fitting = {.fit =
                          [](const Problem& problem, const Memory& memory, Objective objective) {
                            return objective == Objective::time
                                       ? fastest_columns(problem, memory.M, cost)
                                       : widest_columns(problem, memory.M, cost);
                          },
                      .window = column_window},
          .numerics = {.X_meets_keys = true}};
}

}  // namespace redblue
