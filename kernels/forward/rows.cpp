// O and L with rows in fast memory: for a row block I, S_I = A1_I X and the sum Z_I = e_I A3
// stay while keys pass (online softmax); then O_I = (Z_I / l_I) Y, so that h = A3 Y is never
// made. Nothing goes to the slow store but O and L:
//
//   reads and writes   2 m d T + 2 d^2 T + 2 n d + n,   T = ceil(n / Br)
//
// Under a mask each row block brings the keys that it meets.
//
// attention/rows is the same for S = c Q, A2 = K, A3 = V and O = Z / l: without 2 d^2 T.

#include "kernels/parts/rows.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/row_sums.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

Nest loop_nest(const Problem& problem, const Blocks& blocks) {
  const Index d = problem.shape.d;
  const RowPlan by(problem, blocks);
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const NestLoop J = key_loop(by, I);
  const NestLoop columns("J", "columns", d, by.weights);
  const Index dv = problem.shape.dv;
  const NestTile S(input_names(problem).rows, I, d), O("O", I, dv), L("L", I);
  const NestTile Z("Z", I, dv), maximum("max", I), sum("sum", I);
  NestWriter nest;
  nest.loop(I, [&] {
    query_rows_nest(nest, by, I);
    nest.phase("core", [&] {
      index_nest(nest, by.units().sum());
      nest.loop(J, {S, Z, maximum, sum}, [&] {
        nest.step("e = exp(" + scores_text(problem) + " - max_I); Z_I += e " + values_text(problem),
                  key_tiles(problem, J));
      });
    });
    nest.phase("O", [&] {
      nest.step("Z_I = Z_I / sum_I; L_I = max_I + log(sum_I)", {}, {L});
      if (problem.inputs == Inputs::plain) {
        nest.step("O_I = Z_I", {}, {O});
        return;
      }
      nest.loop(columns, {Z}, [&] {
        nest.step("O_IJ = Z_I Y_J", {{"Y", d, columns}}, {{"O", I, columns}});
      });
    });
  });

  return nest.lines();
}

// Z_I = sum of e_j A3_j over all keys, e = exp(s - maximum).
ValueSums::Sums core(Machine& machine, const RowPlan& by, const Operands& io, Range I, Tile s_t) {
  const Phase phase(machine, "core");
  ValueSums sums(machine, by, I.size());
  for (const KeyTiles& keys : KeyStream(machine, by, io, I)) {
    sums.add(keys, I, s_t);
  }
  return sums.take();
}

void unit(Machine& machine, const RowPlan& by, const Operands& io, Index unit, SlowMatrix*) {
  const Range I = by.units()[unit];
  Tile s_t = query_rows(machine, by, io, I);
  auto [Z, softmax] = core(machine, by, io, I, std::move(s_t));
  const Phase phase(machine, "O");
  softmax.divide(Z);
  machine.write(softmax.log_sum_exp(), io.out("L").row_block(I));
  if (by.problem.inputs == Inputs::plain) {
    machine.write(Z, io.out("O").row_block(I));
    return;
  }
  const SlowMatrix& Y = io.in("Y");
  for (const Range J : blocks(Y.cols(), by.weights)) {
    const Tile y = machine.read(Y.block({0, Y.rows()}, J));
    Tile o = machine.initialize("O", I.size(), J.size());
    multiply(Z, y, o);
    machine.write(o, io.out("O").block(I, J));
  }
}

std::vector<PhaseCost> part_cost(const Problem& problem, const Blocks& blocks, Range units, bool) {
  const Index d = problem.shape.d;
  const Index dv = problem.shape.dv;
  const RowPlan by(problem, blocks);
  const Units::Sum of = by.units().sum(units);
  const Words rows = of.rows;
  const Words r = of.largest;
  const bool weighted = problem.inputs == Inputs::weighted;
  const Words w = weighted ? std::min(by.weights, d) : 0;
  return {
      query_rows_cost(by, of),
      // S beside the sums; A2_J and A3_J.
      with_index(
          {.path = "core",
           .reads = of.met * problem.key_words(),
           .writes = 0,
           .peak = r * d + ValueSums::words(by, r) + by.key_words(of.longest) + of.index_live,
           .flops = 2 * of.pairs * (Words(d) + dv)},
          of),
      // Z with maximum and sum; then with some of Y and of O.
      {.path = "O",
       .reads = weighted ? Words(d) * d * of.units : 0,
       .writes = rows * dv + rows,
       .peak = r * dv + std::max(2 * r, w * d + r * w),
       .flops = weighted ? 2 * rows * d * d : 0},
  };
}

Words rescales(const Problem& problem, const Blocks& blocks) {
  return problem.key_pieces(blocks["Bc"]) - 1;
}

}  // namespace

Kernel forward_rows() {
  Kernel kernel = row_kernel(unit, part_cost, Pass::forward);
  kernel.name = "forward/rows";
  kernel.summary = "row blocks of S and of the sum e A3 stay, keys pass; O = (sum / l) Y at last";
  kernel.operands = {kA1, kA2, kA3, kX, kY};
  kernel.returns = {kO, kL};

  kernel.formula.nest = loop_nest;
  kernel.numerics.rescales = rescales;
  return kernel;
}

}  // namespace redblue
