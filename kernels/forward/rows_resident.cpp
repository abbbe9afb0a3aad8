// O and L in a fast memory that holds X, Y and most of the keys: queries pass in row blocks. The
// sums are those of forward/rows.
//
//   reads and writes   2 n d + n + 2 m d + 2 d^2 + 2 (m - resident) d (T - 1),   T = ceil(n / Br)
//
// With all keys resident, or T = 1, that is each word once. Of a window it is so with room for
// the keys that two row blocks next to each other both meet. attention/rows-resident is the same
// without 2 d^2.

#include <algorithm>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/resident.hpp"
#include "kernels/parts/row_sums.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

Nest loop_nest(const Problem& problem, const Blocks& blocks) {
  const Index d = problem.shape.d;
  const ResidentPlan by(problem, blocks);
  const bool weighted = problem.inputs == Inputs::weighted;
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const Index dv = problem.shape.dv;
  const NestTile S(input_names(problem).rows, I, d), Z("Z", I, dv), maximum("max", I),
      sum("sum", I);
  NestWriter nest;
  resident_nest(nest, by);
  nest.loop(I, resident_tiles(by), [&] {
    if (weighted) {
      nest.phase("S", [&] { nest.step("S_I = A1_I X", {{"A1", I, d}}); });
    } else {
      query_rows_nest(nest, by, I);
    }
    nest.phase("core", [&] {
      each_key_block_nest(
          nest, by, I, {S, Z, maximum, sum},
          "e = exp(" + scores_text(problem) + " - max_I); Z_I += e " + values_text(problem));
    });
    nest.phase("O", [&] {
      nest.step("L_I = max_I + log(sum_I)", {}, {{"L", I}});
      nest.step(weighted ? "O_I = (Z_I / sum_I) Y" : "O_I = Z_I / sum_I", {}, {{"O", I, dv}});
    });
  });

  return nest.lines();
}

// Z_I = sum of e_j A3_j over all keys, e = exp(s - maximum).
ValueSums::Sums core(Machine& machine, const ResidentPlan& by, Resident& resident, Index unit,
                     const Tile& s_t) {
  const Phase phase(machine, "core");
  const Range I = by.units()[unit];
  ValueSums sums(machine, by, s_t.cols());
  resident.each_key_block(unit, [&](const KeyTiles& keys) { sums.add(keys, I, s_t); });
  return sums.take();
}

// S_I^T, with X in fast memory; or c Q_I^T.
Tile rows(Machine& machine, const ResidentPlan& by, const Resident& resident, const Operands& io,
          Range I) {
  if (by.problem.inputs == Inputs::plain) {
    return query_rows(machine, by, io, I);
  }
  const Phase phase(machine, "S");
  const Tile a1_t = machine.read(transposed(io.in("A1").row_block(I)));
  Tile s_t = machine.initialize("S", by.problem.shape.d, I.size(), Holds::operands);
  multiply(transposed(resident.X()), a1_t, s_t);
  return s_t;
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const ResidentPlan by(plan.problem, plan.blocks);
  const bool weighted = plan.problem.inputs == Inputs::weighted;
  Resident resident(machine, by, io);
  const Units units = by.units();
  for (Index unit = 0; unit < units.size(); ++unit) {
    const Range I = units[unit];

    Tile s_t = rows(machine, by, resident, io, I);
    auto [Z, softmax] = core(machine, by, resident, unit, s_t);
    s_t.reset();
    const Phase phase(machine, "O");
    softmax.divide(Z);
    machine.write(softmax.log_sum_exp(), io.out("L").row_block(I));
    if (weighted) {
      Tile o = machine.initialize("O", I.size(), Z.cols());
      multiply(Z, resident.Y(), o);
      Z = std::move(o);
    }
    machine.write(Z, io.out("O").row_block(I));
  }
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const auto [n, m, d] = problem.shape;
  const Index dv = problem.shape.dv;
  const ResidentPlan by(problem, blocks);
  const bool weighted = problem.inputs == Inputs::weighted;
  const Units::Sum of = by.units().sum();
  const Words rd = Words(of.rows) * d;
  const Words r = of.largest;
  const Words stays = by.resident_words();
  return {
      resident_cost(by),
      // A1 and S; or Q.
      {.path = std::string(input_names(problem).rows),
       .reads = rd,
       .writes = 0,
       .peak = stays + (weighted ? 2 : 1) * r * d,
       .flops = weighted ? 2 * rd * d : 0},
      // S beside the sums; A2_J and A3_J of the keys that pass.
      with_index(
          {.path = "core",
           .reads = by.passing_keys() * problem.key_words(),
           .writes = 0,
           .peak = stays + r * d + ValueSums::words(by, r) + by.block_words() + of.index_live,
           .flops = 2 * of.pairs * (Words(d) + dv)},
          of),
      // Z with maximum and sum; then with O.
      {.path = "O",
       .reads = 0,
       .writes = Words(n) * dv + n,
       .peak = stays + r * dv + std::max(2 * r, weighted ? r * d : Words(0)),
       .flops = weighted ? 2 * rd * d : 0},
  };
}

}  // namespace

Kernel forward_rows_resident() {
  return {.name = "forward/rows-resident",
          .summary = "X, Y and most keys stay; row blocks pass",
          .pass = Pass::forward,
          .operands = {kA1, kA2, kA3, kX, kY},
          .returns = {kO, kL},
          .shares_keys = true,
          .kin = "forward/rows",
          .schedule = {.code = code},
          .formula = {.cost = cost, .nest = loop_nest},
          .fitting = {.fit =
                          [](const Problem& problem, const Memory& memory, Objective objective) {
                            return most_resident(problem, memory.M, objective, cost);
                          }},
          .numerics = {.rescales =
                           [](const Problem& problem, const Blocks& blocks) {
                             return Words(ResidentPlan(problem, blocks).key_blocks() - 1);
                           },
                       .Y_meets_rows = true}};
}

}  // namespace redblue
