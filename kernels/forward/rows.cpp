// Computes O and L with rows in fast memory. For a row block I, S_I = A1_I X and the sum Z_I = e_I
// A3 are resident while keys stream (online softmax). Then O_I = (Z_I / l_I) Y, so h = A3 Y is
// never computed. Only O and L are written to slow memory:
//
//   reads and writes   2 m d T + 2 d^2 T + 2 n d + n,   T = ceil(n / Br)
//
// Under a mask, each row block reads only the keys that it meets.
//
// If there are fewer row blocks than threads, keys may be split into G groups. Each row block and
// group writes Z / l and L for its keys, and the results of a row block are merged in the order of
// groups. The keys stream as often as before. Without weights, groups move these additional words:
//
//   reads and writes   (G - 1) n d + 2 G n (d + 1)
//
// With weights, X is also read once more for each row block and further group.
//
// attention/rows is the same for S = c Q, A2 = K, A3 = V and O = Z / l, without 2 d^2 T.

#include "kernels/parts/rows.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/grouped_rows.hpp"
#include "kernels/parts/level_costs.hpp"
#include "kernels/parts/row_sums.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace in_forward_rows {
namespace {

// O and L of the groups, stacked one below the other.
constexpr Signature kPartOfO{"O of groups", &Shape::n, &Shape::dv, Holds::sums};
constexpr Signature kPartOfL{"L of groups", &Shape::n, nullptr, Holds::sums, true};

// ---- row blocks ----------------------------------------------------------------------------

// Returns Z_I = sum of e_j A3_j over some keys, with e = exp(s - maximum).
ValueSums::Sums core(Machine& machine, const RowPlan& by, const Operands& io, Range I,
                     const Ranges& keys_met, Tile s_t) {
  const Phase phase(machine, "core");
  ValueSums sums(machine, by, I.size());
  for (const KeyTiles& keys : KeyStream(machine, by, io, I, keys_met)) {
    sums.add(keys, I, s_t);
  }
  return sums.take();
}

// O_IJ = Z_I Y_J.
void multiply_rows(Machine& machine, const RowPlan& by, const Tile& Z, const Tile& y, Tile& o) {
  LevelWalk(machine, by.inner, &LevelBlocks::rows, &LevelBlocks::weights,
            {{{Z, Axis::staying, Axis::whole, Use::reads},
              {y, Axis::whole, Axis::passing, Use::reads},
              {o, Axis::staying, Axis::passing, Use::makes}}})
      .each({0, Z.rows()}, {0, y.cols()}, [&](Range I, Range J) {
        multiply(Z.part(I), y.part({0, y.rows()}, J), o.part(I, J));
      });
}

// Computes O and L from the sums.
void finish(Machine& machine, const RowPlan& by, const Operands& io, Range I,
            ValueSums::Sums sums) {
  auto& [Z, normaliser] = sums;
  const Phase phase(machine, "O");
  normaliser.divide(Z, by.inner);
  normaliser.write_L(io, "L", I, by.inner);
  if (by.problem.inputs == Inputs::plain) {
    machine.write(Z, io.out("O").row_block(I));
    return;
  }
  const SlowMatrix& Y = io.in("Y");
  for (const Range J : blocks(Y.cols(), by.weights)) {
    const Tile y = machine.read(Y.block({0, Y.rows()}, J), by.cut_weights());
    Tile o = machine.initialize("O", I.size(), J.size(), Holds::sums, by.cut_weights());
    multiply_rows(machine, by, Z, y, o);
    machine.write(o, io.out("O").block(I, J));
  }
}

// Writes the sums of a row block for one of several groups. A row that meets no key of the group
// gets O = 0 and L = minus infinity.
void leave(Machine& machine, const Operands& io, Range at, ValueSums::Sums sums) {
  auto& [Z, normaliser] = sums;
  const Phase phase(machine, "core");
  normaliser.divide_unless_0(Z);
  normaliser.write_L(io, kPartOfL.name, at);
  machine.write(Z, io.out(kPartOfO.name).row_block(at));
}

void rows_part(Machine& machine, const Plan& plan, const Operands& io, Range units) {
  const GroupedRows grouped(plan.problem, plan.blocks);
  const RowPlan& by = grouped.by;
  for (Index unit = units.begin; unit < units.end; ++unit) {
    const Range I = grouped.rows(unit);
    const Index group = grouped.group(unit);
    Tile s_t = query_rows(machine, by, io, I);
    const Ranges keys = common(by.problem.keys(I), {grouped.keys(group)});
    const RowPlan of_group = grouped.of_group(group);
    ValueSums::Sums sums = core(machine, of_group, io, I, keys, std::move(s_t));
    if (grouped.merges()) {
      leave(machine, io, grouped.left(group, I), std::move(sums));
    } else {
      finish(machine, by, io, I, std::move(sums));
    }
  }
}

// Words live: Z with maximum and sum; then Z with some columns of Y and of O.
PhaseCost finish_cost(const RowPlan& by, const Units::Sum& of) {
  const Words r = of.largest, d = by.problem.shape.d, dv = by.problem.shape.dv;
  const Words sum_words = by.problem.sum_words;
  const bool weighted = by.problem.inputs == Inputs::weighted;
  const Words w = weighted ? Words(std::min(by.weights, by.problem.shape.d)) : Words(0);
  return {.path = "O",
          .reads = weighted ? d * d * of.units : Words(0),
          .writes = of.rows * (dv + by.problem.row_words()),
          .peak = r * dv * sum_words +
                  std::max(r * RowNormaliser::words(by.problem), w * d + r * w * sum_words),
          .flops = weighted ? 2 * of.rows * d * d : Words(0)};
}

std::vector<PhaseCost> rows_cost(const Problem& problem, const Blocks& blocks, Range units) {
  const GroupedRows grouped(problem, blocks);
  const RowPlan& by = grouped.by;
  const Words d = problem.shape.d, dv = problem.shape.dv;
  const Words left = grouped.merges() ? dv * problem.sum_words + problem.row_words() : Words(0);
  // Words live: S and the sums; A2_J and A3_J.
  PhaseCost core{.path = "core", .reads = 0, .writes = 0, .peak = 0, .flops = 0};
  grouped.each_sum(units, [&](const Units::Sum& of, Index keys) {
    const auto peak = [&](const Units::Unit& unit) {
      const Words r = unit.rows;
      return r * d + ValueSums::words(by, r) + by.key_words(unit.longest, keys);
    };
    add(core, with_index({.path = "core",
                          .reads = of.met * problem.key_words(),
                          .writes = of.rows * left,
                          .peak = of.peak(peak) + of.index_live,
                          .flops = 2 * of.pairs * (d + dv)},
                         of));
  });
  const Units::Sum of = grouped.sum(units);
  std::vector<PhaseCost> phases = {query_rows_cost(by, of), core};
  if (!grouped.merges()) {
    phases.push_back(finish_cost(by, of));
  }
  return phases;
}

std::vector<PhaseCost> level_cost(const Problem& problem, const Blocks& blocks, Range units,
                                  std::size_t level) {
  const RowPlan by(problem, blocks);
  const PlanLevel in{by, level};
  const Units::Sum of = by.units().sum(units);
  const bool weighted = problem.inputs == Inputs::weighted;
  const Words d = problem.shape.d, dv = problem.shape.dv, one = problem.row_words();
  const Words n = of.rows, r = in.rows(of.largest);
  const PhaseCost queries =
      weighted ? level_rows_times_cost("S", in, of)
               : PhaseCost{.path = "Q", .reads = n * d, .writes = n * d, .peak = r * d, .flops = 0};
  // Z / sum, then L from the maximum and the sum; then Z Y.
  PhaseCost last{.path = "O",
                 .reads = n * (dv + 3) * one,
                 .writes = n * (dv + 1) * one,
                 .peak = r * (dv + 1) * one,
                 .flops = 0};
  if (weighted) {
    add(last, level_rows_times_cost("O", in, of));
  }
  return {queries, level_core_cost("core", in, units, ValueSums::in_level(by, of.largest)), last};
}

// ---- groups ------------------------------------------------------------------------------

Index merge_units(const Problem& problem, const Blocks& blocks) {
  const GroupedRows grouped(problem, blocks);
  return grouped.merges() ? grouped.row_blocks.size() : 0;
}

// Merges the groups of a row block. The L of groups weight their O, as scores weight values;
// without L, the O are added. It works on strips of rows, so that it needs no more of M than the
// keys did.
ValueSums::Sums merged(Machine& machine, const GroupedRows& grouped, const Operands& io, Range I) {
  const Phase phase(machine, "merge");
  const Index strip = grouped.by.strip();
  const SlowMatrix& parts_of_O = io.out(kPartOfO.name);
  const Problem& problem = grouped.by.problem;
  ValueSums::Sums sums{machine.initialize("Z", I.size(), problem.shape.dv),
                       RowNormaliser(machine, problem, I.size())};
  Tile& Z = sums.Z;
  Tile factors = row_values(machine, problem, "rescale", std::min(strip, I.size()));
  for (const Range K : blocks(I.size(), strip)) {
    for (Index group = 0; group < grouped.groups; ++group) {
      const Range at = grouped.left(group, part_of(I, K));
      Tile weights;
      if (problem.normalised()) {
        weights = machine.read(std::as_const(io.out(kPartOfL.name)).row_block(at));
      }
      Tile O = machine.read(parts_of_O.row_block(at));
      if (problem.normalised()) {
        OnlineSoftmax& softmax = sums.normaliser.softmax();
        softmax.raise(weights, K, factors.part({0, K.size()}), {Z.part(K)});
        softmax.add(weights, K);
        scale_rows(O, weights);
      }
      add(Z.part(K), O);
    }
  }
  return sums;
}

void merge_part(Machine& machine, const Plan& plan, const Operands& io, Range units) {
  const GroupedRows grouped(plan.problem, plan.blocks);
  for (Index unit = units.begin; unit < units.end; ++unit) {
    const Range I = grouped.rows(unit);
    finish(machine, grouped.by, io, I, merged(machine, grouped, io, I));
  }
}

std::vector<PhaseCost> merge_cost(const Problem& problem, const Blocks& blocks, Range units) {
  const GroupedRows grouped(problem, blocks);
  const Units::Sum of = grouped.row_blocks.sum(units);
  const Words r = of.largest, of_Z = Words(problem.shape.dv) * problem.sum_words;
  const Words with_sums = of_Z + RowNormaliser::words(problem);
  return {{.path = "merge",
           .reads = Words(of.rows) * grouped.groups * (of_Z + problem.row_words()),
           .writes = 0,
           .peak = r * with_sums + std::min(r, Words(grouped.by.strip())) * with_sums,
           .flops = 0},
          finish_cost(grouped.by, of)};
}

// ---- all of it -----------------------------------------------------------------------------

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  std::vector<PhaseCost> phases =
      rows_cost(problem, blocks, {0, GroupedRows(problem, blocks).units()});
  if (const Index units = merge_units(problem, blocks); units > 0) {
    std::ranges::move(merge_cost(problem, blocks, {0, units}), std::back_inserter(phases));
  }
  return phases;
}

std::vector<PhaseCost> level_cost_of_all(const Problem& problem, const Blocks& blocks,
                                         std::size_t level) {
  return level_cost(problem, blocks, {0, RowPlan(problem, blocks).units().size()}, level);
}

Left left_by_groups(const Signature& matrix) {
  return {.matrix = matrix,
          .rows =
              [](const Problem& problem, const Blocks& of, Index units) {
                const GroupedRows grouped(problem, of);
                const Index done = std::min(units, grouped.units());
                const Index group = grouped.group(done);
                return group * problem.shape.n +
                       std::min((done - group * grouped.row_blocks.size()) * grouped.by.rows,
                                problem.shape.n);
              },
          .copies =
              [](const Problem& problem, const Blocks& of) {
                const GroupedRows grouped(problem, of);
                return grouped.merges() ? grouped.groups : 0;
              }};
}

Split split() {
  const SplitStage of_rows{
      .units = [](const Problem& problem,
                  const Blocks& of) { return GroupedRows(problem, of).units(); },
      .part = [](Machine& machine, const Plan& plan, const Operands& io, Range units,
                 SlowMatrix*) { rows_part(machine, plan, io, units); },
      .part_cost = [](const Problem& problem, const Blocks& of, Range units,
                      bool) { return rows_cost(problem, of, units); },
      .level_cost = [](const Problem& problem, const Blocks& of, Range units, bool,
                       std::size_t level) { return level_cost(problem, of, units, level); },
      .brings = {kA1.name, kQ.name}};
  const SplitStage of_merges{
      .units = merge_units,
      .part = [](Machine& machine, const Plan& plan, const Operands& io, Range units,
                 SlowMatrix*) { merge_part(machine, plan, io, units); },
      .part_cost = [](const Problem& problem, const Blocks& of, Range units,
                      bool) { return merge_cost(problem, of, units); },
      .of = StageRows::own_queries,
      .merges = {kPartOfO.name, kPartOfL.name}};
  return {.stages = {of_rows, of_merges},
          .left = {left_by_groups(kPartOfO), left_by_groups(kPartOfL)},
          .on_grid = true};
}

Nest loop_nest(const Problem& problem, const Blocks& blocks) {
  const GroupedRows grouped(problem, blocks);
  const RowPlan& by = grouped.by;
  const Index d = problem.shape.d, dv = problem.shape.dv;
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const NestLoop G("G", "groups of keys", grouped.groups, 1);
  const NestLoop columns("J", "columns", d, by.weights);
  const Index one = problem.row_columns();
  const NestTile S(input_names(problem).rows, I, d), O("O", I, dv), L("L", I, one);
  const NestTile Z("Z", I, dv), maximum("max", I, one), sum("sum", I, one);
  NestWriter nest;
  const auto pass = [&](const NestLoop& J, const NestWriter::Tiles& keys) {
    nest.loop(J, {S, Z, maximum, sum},
              [&] { nest.step(weights_text(problem) + values_text(problem), keys); });
  };
  const auto finish = [&] {
    if (problem.normalised()) {
      nest.step("Z_I = Z_I / sum_I; L_I = max_I + log(sum_I)", {}, {L});
    }
    if (problem.inputs == Inputs::plain) {
      nest.step("O_I = Z_I", {}, {O});
      return;
    }
    nest.loop(columns, {Z}, [&] {
      nest.step("O_IJ = Z_I Y_J", {{"Y", d, columns}}, {{"O", I, columns}});
    });
  };
  if (!grouped.merges()) {
    const NestLoop J = key_loop(by, I);
    nest.loop(I, [&] {
      query_rows_nest(nest, by, I);
      nest.phase("core", [&] {
        index_nest(nest, by.units().sum());
        pass(J, key_tiles(problem, J));
      });
      nest.phase("O", finish);
    });
    return nest.lines();
  }
  const GroupNest of_group = group_nest(grouped, G);
  nest.loop(G, [&] {
    nest.loop(I, [&] {
      query_rows_nest(nest, by, I);
      nest.phase("core", [&] {
        index_nest(nest, grouped.sum({0, grouped.units()}));
        pass(of_group.J, of_group.keys);
        nest.step(
            std::string(text_for(problem, "O_I of G = Z_I / sum_I; L_I of G = max_I + log(sum_I)",
                                 "O_I of G = Z_I")),
            {}, {O, L});
      });
    });
  });
  const NestLoop P = I.pieces("P", by.strip());
  nest.loop(I, [&] {
    nest.phase("merge", [&] {
      nest.loop(P, {Z, maximum, sum}, [&] {
        nest.loop(G, [&] {
          nest.step(std::string(text_for(problem, "e = exp(L_P of G - max_P); Z_P += e O_P of G",
                                         "Z_P += O_P of G")),
                    {{"O", P, dv}, {"L", P, one}});
        });
      });
    });
    nest.phase("O", finish);
  });
  return nest.lines();
}

Words rescales(const Problem& problem, const Blocks& blocks) {
  const GroupedRows grouped(problem, blocks);
  if (!grouped.merges()) {
    return problem.key_pieces(blocks["Bc"]) - 1;
  }
  const Index keys = grouped.keys(0).size();
  const Index ranges = problem.mask.full() ? 0 : problem.mask.most_ranges();
  return std::min(keys, ceil_div(keys, blocks["Bc"]) + ranges) - 1 + grouped.groups - 1;
}

// Adds key groups to a plan if it has too few row blocks to occupy threads. Each group has several
// whole key blocks, so that registers stay busy. The groups are few enough that they add at most
// 1/16 to the words moved.
Blocks with_groups(const Problem& problem, Blocks blocks, Index M) {
  constexpr Index kEnoughRowBlocks = 8;
  constexpr Index kUnits = 64;
  constexpr Index kKeyBlocks = 8;
  constexpr Index kShare = 16;
  const Index T = GroupedRows(problem, blocks).row_blocks.size();
  const Index most = std::min(kUnits / T, problem.shape.m / (kKeyBlocks * blocks["Bc"]));
  if (T >= kEnoughRowBlocks || most < 2) {
    return blocks;
  }
  const auto words = [](const PhaseCost& all) { return all.reads + all.writes; };
  const Words without = words(total(cost(problem, blocks)));
  const auto in = [&](Index groups) {
    Blocks with = blocks;
    with.add(std::string(kKeyGroups), groups);
    return with;
  };
  const Index groups = largest(most, [&](Index tried) {
    const PhaseCost all = total(cost(problem, in(tried)));
    return all.peak <= Words(M) && kShare * words(all) <= (kShare + 1) * without;
  });
  return groups > 1 ? in(groups) : blocks;
}

}  // namespace
}  // namespace in_forward_rows

Kernel forward_rows() {
  using namespace in_forward_rows;
  return {.name = "forward/rows",
          .summary = "row blocks of S and of the sum e A3 stay, keys pass; O = (sum / l) Y at last",
          .pass = Pass::forward,
          .operands = {kA1, kA2, kA3, kX, kY},
          .returns = {kO, kL},
          .shares_keys = true,
          .takes_activations = true,
          .schedule = in_stages(split()),
          .formula = {.cost = cost,
                      .level_cost = level_cost_of_all,
                      .intermediates =
                          [](const Problem& problem, const Blocks& blocks) {
                            const GroupedRows grouped(problem, blocks);
                            return grouped.merges()
                                       ? Words(grouped.groups) * problem.shape.n *
                                             (Words(problem.shape.dv) + problem.row_columns())
                                       : Words(0);
                          },
                      .nest = loop_nest},
          .fitting = {.fit =
                          [](const Problem& problem, const Memory& memory, Objective objective) {
                            const Index M = memory.M;
                            return !memory.inner.empty() ? fit_levels(problem, memory, objective,
                                                                      cost, level_cost_of_all)
                                   : memory.prefetch > 1
                                       ? fewest_words_ahead(problem, M, memory.prefetch, cost)
                                   : objective == Objective::time
                                       ? with_groups(problem, fastest(problem, M, cost), M)
                                       : fewest_words(problem, M, cost);
                          },
                      .ahead = true,
                      .window = forward_row_window,
                      .optional_blocks = {{kKeyGroups, &Shape::m}},
                      .inner_blocks = row_inner_blocks(),
                      .apart_blocks = {kRowsApart}},
          .numerics = {.rescales = rescales,
                       .key_groups = [](const Problem& problem, const Blocks& blocks) -> Words {
                         return GroupedRows(problem, blocks).groups;
                       },
                       .Y_meets_rows = true}};
}

}  // namespace redblue
