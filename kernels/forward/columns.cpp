// Computes O and L with blocks of keys in fast memory: K_J = X A2_J^T and h_J = A3_J Y are resident
// while rows of A1 stream. Between two blocks, the sums of e h are stored in O, the maxima in L,
// and the sums of e in the workspace. For many queries and few keys:
//
//   reads    T (n d + 2 d^2) + 2 m d + (T - 1) (n d + 2 n),   T = ceil(m / Bc)
//   writes   T (n d + n) + (T - 1) n
//
// attention/columns is the same for c K_J, V_J and rows of Q, without 2 d^2 T.
//
// Under a mask, block J streams only the |R_J| rows that meet it. With R the sum of all |R_J|, R
// replaces n T, and R - n replaces n (T - 1). A row's sums begin with the first block that it meets
// and end with the last.

#include "kernels/parts/columns.hpp"

#include <optional>
#include <string>
#include <utility>

#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/online_softmax.hpp"
#include "kernels/registry.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace in_forward_columns {
namespace {

// Returns h_J = A3_J Y, or V_J.
Tile values(Machine& machine, const ColumnPlan& by, const Operands& io, Range J) {
  if (by.problem.inputs == Inputs::plain) {
    const Phase phase(machine, "V");
    return machine.read(io.in("V").row_block(J));  // V_J (c, d)
  }
  return product_in_pieces(
      machine, by, "h", J.size(), by.problem.shape.d,
      [&](Range K) { return io.in("A3").block(J, K); },
      [&](Range K) { return io.in("Y").row_block(K); });
}

void core(Machine& machine, const ColumnPlan& by, const Operands& io, Range J, const Tile& k,
          const Tile& h, SlowMatrix* sums) {
  const Phase phase(machine, "core");
  const Mask& mask = by.problem.mask;
  SlowMatrix& O = io.out("O");
  SlowMatrix* const L = by.problem.normalised() ? &io.out("L") : nullptr;
  const Tile index = by.units().read_index(machine, J);
  for (const Range I : blocks(by.problem.shape.n, by.rows)) {
    const LivePairs live(by.problem, I, J);
    if (live.none()) {
      continue;
    }
    Tile e = machine.initialize("e", I.size(), J.size(), Holds::scores);  // e_IJ (r, c)
    {
      const LiveRows queries(io.in(input_names(by.problem).queries), mask, live.met());
      const Tile a1 = machine.read(queries->row_block(I));  // A1_I (r, d)
      multiply(a1, k, e);
    }
    // max_I and sum_I (r), O_I (r, d).
    const Ranges before = live.met_before();
    RowNormaliser normaliser =
        before.empty() || L == nullptr
            ? RowNormaliser(machine, by.problem, I.size())
            : RowNormaliser(machine, by.problem,
                            &*LiveRows(std::as_const(*L), mask, before, kNoMaximum),
                            &*LiveRows(std::as_const(*sums), mask, before), I);
    Tile o = before.empty()
                 ? machine.initialize("O", I.size(), by.problem.shape.dv)
                 : machine.read(
                       LiveRows(std::as_const(O), mask, before)->row_block(I).holding(Holds::sums));
    normaliser.apply(e, live, o);
    multiply_add(e, h, o);
    const Ranges after = live.met_after();
    if (!after.empty()) {
      if (L != nullptr) {
        normaliser.write(&*LiveRows(*L, mask, after), &*LiveRows(*sums, mask, after), I);
      }
      machine.write(o, LiveRows(O, mask, after)->row_block(I).holding(Holds::sums));
    }
    if (const Ranges last = without(live.met(), after); !last.empty()) {
      normaliser.divide(o);
      if (L != nullptr) {
        normaliser.write_L(&*LiveRows(*L, mask, last), I);
      }
      machine.write(o, LiveRows(O, mask, last)->row_block(I));
    }
  }
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const ColumnPlan by(plan.problem, plan.blocks);
  std::optional<SlowMatrix> sums;
  if (plan.problem.normalised()) {
    sums = workspace.matrix("sum", plan.problem.shape.n, 1).holding(Holds::sums);
  }
  for (const Range J : by.units()) {
    const Tile k = keys_of_scores(machine, by, io, J);
    const Tile h = values(machine, by, io, J);
    core(machine, by, io, J, k, h, sums ? &*sums : nullptr);
  }
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const Index d = problem.shape.d;
  const ColumnPlan by(problem, blocks);
  const Passes of = by.passes();
  const Words dv = problem.shape.dv, one = problem.row_words();
  const Words kept = dv * problem.sum_words + 2 * one;  // words stored between two blocks of keys
  const Words r = by.rows;
  const Words c = by.keys;
  const Units::Sum units = by.units().sum();
  return {
      product_in_pieces_cost("K", by, d, 0),
      product_in_pieces_cost(problem.inputs == Inputs::weighted ? "h" : "V", by, problem.shape.dv,
                             d),
      // K_J and h_J; the scores with A1, then with O, maximum, sum and rescaling factors.
      with_index(
          {.path = "core",
           .reads = of.all * d + of.again * kept,
           .writes = problem.shape.n * (dv + one) + of.again * kept,
           .peak = c * (dv + d) + units.index_live + r * c + r * std::max(Words(d), kept + one),
           .flops = 2 * problem.pairs() * (dv + d)},
          units),
  };
}

}  // namespace
}  // namespace in_forward_columns

Kernel forward_columns() {
  using namespace in_forward_columns;
  return {.name = "forward/columns",
          .summary =
              "key blocks of X A2^T and h stay, queries pass; O is added to in place: for few keys",
          .pass = Pass::forward,
          .operands = {kA1, kA2, kA3, kX, kY},
          .returns = {kO, kL},
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
          .numerics = {.rescales =
                           [](const Problem& problem, const Blocks& blocks) {
                             return Words(ColumnPlan(problem, blocks).units().size() - 1);
                           },
                       .X_meets_keys = true}};
}

}  // namespace redblue
