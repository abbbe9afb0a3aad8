// g from nothing in a fast memory that holds X, Y, g and most of the keys: queries pass in row
// blocks, of which A1_I stays until W_I has met it, so that no operand but the keys that do not
// stay is read twice. The sums are those of backward/rows-onepass.
//
//   reads and writes   2 n d + 2 m d + 3 d^2 + 2 (m - resident) d (T - 1),   T = ceil(n / Br)
//
// With all keys resident, or T = 1, that is each word once.

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
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const NestTile A1("A1", I, d), S("S", I, d), G("G", I, d), U("U", I, d), Z("Z", I, d);
  const NestTile maximum("max", I), sum("sum", I), mean("mean", I), g("g", d, d);
  NestWriter::Tiles stays = resident_tiles(by);
  stays.push_back(g);
  NestWriter nest;
  resident_nest(nest, by);
  nest.loop(I, stays, [&] {
    nest.phase("S", [&] { nest.step("S_I = A1_I X", {A1}); });
    nest.phase("G", [&] { nest.step("G_I = dO_I Y^T", {{"dO", I, d}}); });
    nest.phase("core", [&] {
      each_key_block_nest(nest, by, I, {A1, S, G, U, Z, maximum, sum, mean},
                          "e = exp(S_I A2_J^T - max_I); q = G_I " + values_text(problem) +
                              "^T - mean_I; U_I += e q A2_J; Z_I += e A2_J");
      nest.step("W_I = U_I / sum_I");
    });
    nest.phase("g", [&] { nest.step("g += A1_I^T W_I"); });
  });
  nest.phase("g", [&] { nest.write({g}); });
  return nest.lines();
}

// W_I = p_I A2.
Tile core(Machine& machine, const ResidentPlan& by, Resident& resident, Index unit, const Tile& s_t,
          const Tile& g_t) {
  const Phase phase(machine, "core");
  const Range I = by.units()[unit];
  GradientSums sums(machine, by, s_t.cols());
  resident.each_key_block(unit, [&](const KeyTiles& keys) { sums.add(keys, I, s_t, g_t); });
  return sums.take();
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const ResidentPlan by(plan.problem, plan.blocks);
  const Index d = plan.problem.shape.d;
  Resident resident(machine, by, io);
  Tile gradient = machine.initialize("g", d, d);
  const Units units = by.units();
  for (Index unit = 0; unit < units.size(); ++unit) {
    const Range I = units[unit];
    Tile a1_t;
    Tile s_t = machine.initialize("S", d, I.size(), Holds::operands);
    {
      const Phase phase(machine, "S");
      a1_t = machine.read(transposed(io.in("A1").row_block(I)));
      multiply(transposed(resident.X()), a1_t, s_t);
    }
    Tile g_t = machine.initialize("G", d, I.size(), Holds::operands);
    {
      const Phase phase(machine, "G");
      const Tile do_t = machine.read(transposed(io.in("dO").row_block(I)));
      multiply(resident.Y(), do_t, g_t);
    }
    const Tile W = core(machine, by, resident, unit, s_t, g_t);
    s_t.reset();
    g_t.reset();
    const Phase phase(machine, "g");
    multiply_add(a1_t, W, gradient);
  }
  const Phase phase(machine, "g");
  machine.write(gradient, io.out("g").whole());
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const Index d = problem.shape.d;
  const ResidentPlan by(problem, blocks);
  const Units::Sum of = by.units().sum();
  const Words nd = Words(of.rows) * d;
  const Words dd = Words(d) * d;
  const Words r = of.largest;
  const Words stays = by.resident_words() + dd;
  return {
      resident_cost(by),
      // A1 and S; dO and G with them.
      {.path = "S", .reads = nd, .writes = 0, .peak = stays + 2 * r * d, .flops = 2 * nd * d},
      {.path = "G", .reads = nd, .writes = 0, .peak = stays + 4 * r * d, .flops = 2 * nd * d},
      // A1, S and G beside the sums; A2_J and A3_J of the keys that pass.
      with_index({.path = "core",
                  .reads = by.passing_keys() * problem.key_words(),
                  .writes = 0,
                  .peak = stays + 3 * r * d + GradientSums::words(by, r) + by.block_words() +
                          of.index_live,
                  .flops = 8 * of.pairs * d},
                 of),
      // A1 and W.
      {.path = "g", .reads = 0, .writes = dd, .peak = stays + 2 * r * d, .flops = 2 * nd * d},
  };
}

}  // namespace

Kernel backward_rows_resident() {
  return {.name = "backward/rows-resident",
          .summary = "from nothing: X, Y, g and most keys stay, A1_I too, so that it is read once",
          .pass = Pass::backward,
          .operands = {kA1, kA2, kA3, kX, kY, kdO},
          .returns = {kg},
          .shares_keys = true,
          .kin = "backward/rows-onepass",
          .schedule = {.code = code},
          .formula = {.cost = cost, .nest = loop_nest},
          .fitting = {.fit =
                          [](const Problem& problem, const Memory& memory, Objective objective) {
                            return most_resident(problem, memory.M, objective, cost);
                          }},
          .numerics = {.recentred_blocks =
                           [](const Problem& problem, const Blocks& blocks) {
                             return Words(ResidentPlan(problem, blocks).key_blocks());
                           },
                       .Y_meets_rows = true}};
}

}  // namespace redblue
