// g from nothing in a fast memory that holds X, Y, g and most of the keys: queries pass in row
// blocks, of which A1_I stays until W_I has met it, so that no operand but the keys that do not
// stay is read twice. The sums are those of backward/rows-onepass.
//
//   reads and writes   2 n d + 2 m d + 3 d^2 + 2 (m - resident) d (T - 1),   T = ceil(n / Br)
//
// With all keys resident, or T = 1, that is each word once. Where that does not quite fit, a few
// columns of A1_I, `again` in the plan, do not stay and are read again: n words each.

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/resident.hpp"
#include "kernels/parts/row_sums.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// In a plan: the columns of A1_I that are read again. A plan without it has none.
constexpr std::string_view kAgain = "again";

// The columns of A1_I that stay.
Index staying(const Problem& problem, const Blocks& blocks) {
  const Index d = problem.shape.d;
  return d - (blocks.contains(kAgain) ? std::min(blocks[kAgain], d - 1) : 0);
}

Nest loop_nest(const Problem& problem, const Blocks& blocks) {
  const Index d = problem.shape.d;
  const ResidentPlan by(problem, blocks);
  const Index k = staying(problem, blocks);
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
      each_key_block_nest(nest, by, I, {{"A1", I, k}, S, G, U, Z, maximum, sum, mean},
                          "e = exp(S_I A2_J^T - max_I); q = G_I " + values_text(problem) +
                              "^T - mean_I; U_I += e q A2_J; Z_I += e A2_J");
      nest.step("W_I = U_I / sum_I");
    });
    nest.phase("g", [&] {
      nest.step("g += A1_I^T W_I",
                k < d ? NestWriter::Tiles{{"A1", I, d - k}} : NestWriter::Tiles{});
    });
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
  const Range kept{0, staying(plan.problem, plan.blocks)};
  const Range again{kept.end, d};
  const Units units = by.units();
  for (Index unit = 0; unit < units.size(); ++unit) {
    const Range I = units[unit];
    Tile kept_t, again_t;  // of A1_I^T
    Tile s_t = machine.initialize("S", d, I.size(), Holds::operands);
    {
      const Phase phase(machine, "S");
      kept_t = machine.read(transposed(io.in("A1").block(I, kept)));
      multiply(transposed(resident.X().part(kept)), kept_t, s_t);
      if (again.size() > 0) {
        again_t = machine.read(transposed(io.in("A1").block(I, again)));
        multiply_add(transposed(resident.X().part(again)), again_t, s_t);
      }
    }
    again_t.reset();
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
    multiply_add(kept_t, W, gradient.part(kept));
    kept_t.reset();
    if (again.size() > 0) {
      const Tile a1 = machine.read(io.in("A1").block(I, again));
      multiply_add(transposed(a1), W, gradient.part(again));
    }
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
  const Index k = staying(problem, blocks);
  return {
      resident_cost(by),
      // A1 and S; dO and G with them.
      {.path = "S", .reads = nd, .writes = 0, .peak = stays + 2 * r * d, .flops = 2 * nd * d},
      {.path = "G", .reads = nd, .writes = 0, .peak = stays + r * (k + 3 * d), .flops = 2 * nd * d},
      // A1, S and G beside the sums; A2_J and A3_J of the keys that pass.
      with_index({.path = "core",
                  .reads = by.passing_keys() * problem.key_words(),
                  .writes = 0,
                  .peak = stays + r * (k + 2 * d) + GradientSums::words(by, r) + by.block_words() +
                          of.index_live,
                  .flops = 8 * of.pairs * d},
                 of),
      // W and what is there of A1.
      {.path = "g",
       .reads = Words(of.rows) * (d - k),
       .writes = dd,
       .peak = stays + r * (d + std::max(k, d - k)),
       .flops = 2 * nd * d},
  };
}

// As most_resident() has it. Where a row at a time with all that neighbours share takes a little
// more than M, some of A1_I makes room: that is n words a column, and a key that does not stay is
// about as much as all columns.
Blocks fit(const Problem& problem, const Memory& memory, Objective objective) {
  const Blocks best = most_resident(problem, memory.M, objective, cost);
  const auto cost_of = [&](const Blocks& blocks) { return total(cost(problem, blocks)); };
  const auto fits = [&](const Blocks& blocks) { return cost_of(blocks).peak <= Words(memory.M); };
  const auto words = [&](const Blocks& blocks) {
    const PhaseCost all = cost_of(blocks);
    return all.reads + all.writes;
  };
  if (objective == Objective::time || !fits(best)) {
    return best;
  }
  const auto a_row = [&](Index resident, Index again) {
    Blocks blocks{{"Br", 1}, {"Bc", 1}, {"resident", resident}};
    if (again > 0) {
      blocks.add(std::string(kAgain), again);
    }
    return blocks;
  };
  const Index m = problem.shape.m;
  const Index d = problem.shape.d;
  const Words fewest = words(a_row(m, 0));
  const Index room =
      m + 1 - largest(m, [&](Index less) { return words(a_row(m + 1 - less, 0)) == fewest; });
  const Index kept = largest(d, [&](Index tried) { return fits(a_row(room, d - tried)); });
  const Blocks few = a_row(room, d - kept);
  return fits(few) && words(few) < words(best) ? few : best;
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
          .fitting = {.fit = fit, .optional_block = kAgain},
          .numerics = {.recentred_blocks =
                           [](const Problem& problem, const Blocks& blocks) {
                             return Words(ResidentPlan(problem, blocks).key_blocks());
                           },
                       .Y_meets_rows = true}};
}

}  // namespace redblue
