// Computes g with resident rows. For a row block I, S_I = A1_I X, G_I = dO_I Y^T and the sums that
// become W_I = p_I A2 stay, while keys stream. Because q_ij = G_i . A3_j, h = A3 Y is never
// computed.
//
// The family has two axes:
//
// - Start. After a forward pass, W is one sum, and the core has three products of n m d. From
//   scratch, W is made of two sums, and the core has four products (kernels/parts/row_sums.hpp).
// - Sink. Either A1_I^T W_I is added to g at once, or W is written and g = A1^T W is a separate
//   product. The second suits fast memories below 3 d^2, where T = ceil(n / Br) is large. It also
//   makes S and G by separate products if that moves fewer words than these:
//
//                    reads and writes
//   rows             2 m d T + 4 d^2 T - d^2 + (4 d - kept) n + n
//   rows-onepass     2 m d T + 4 d^2 T - d^2 + (3 d - kept) n
//   rows-w           2 m d T + 2 d^2 T + 4 d n + n, plus the product's
//   rows-onepass-w   2 m d T + 2 d^2 T + 3 d n, plus the product's
//
// `kept` columns of A1_I stay until they are multiplied by W_I. Under a mask each row block reads
// only the keys that it meets.
//
// If W is added to g, the keys may be split into G groups, so that several machines can work on one
// row block. Each group computes S_I and G_I again, and a sum W_I over its keys alone, which is
// multiplied by A1_I. The number of key reads does not change. After a forward pass, a phase v
// comes first:
//
//   rows, G > 1      2 m d T + 4 d^2 T G - d^2 + (3 d - kept + 2) n G + 2 d n + n
//
// From scratch, each group writes the two sums over its keys with their maxima, sums and means
// (kernels/parts/group_means.hpp). Merging them gives L and v. Then each group computes W_I from
// its sums, and reads A1_I again to multiply it. No column of A1_I is kept:
//
//   rows-onepass, G > 1   2 m d T + 4 d^2 T G - d^2 + (7 d + 10) n G + 2 n

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/group_means.hpp"
#include "kernels/parts/level_costs.hpp"
#include "kernels/parts/projected_rows.hpp"
#include "kernels/parts/row_gradient.hpp"
#include "kernels/parts/row_sums.hpp"
#include "kernels/parts/scores.hpp"
#include "kernels/parts/split_stages.hpp"
#include "kernels/parts/v_first.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace in_backward_rows {
namespace {

bool makes_v_first(const GroupedRows& by, Start start) {
  return by.merges() && start == Start::given && by.by.problem.normalised();
}

// True if each key group writes its sums. W_I is then computed after the last group.
bool leaves_sums(const GroupedRows& by, Start start) {
  return by.merges() && start == Start::nothing;
}

// If groups write sums, A1_I is read again for W_I, so no column of it is kept.
GroupedRows groups_of(const Problem& problem, const Blocks& blocks, Start start) {
  GroupedRows grouped(problem, blocks);
  if (leaves_sums(grouped, start)) {
    grouped.by.kept = 0;
  }
  return grouped;
}

// Writes the loops over row blocks and keys, up to W_I. `first` writes the phases S and G. `last`
// writes the use of W_I.
template <class First, class Last>
void rows_nest(NestWriter& nest, const GroupedRows& grouped, Start start, const First& first,
               const Last& last) {
  const RowPlan& by = grouped.by;
  const Problem& problem = by.problem;
  const Index d = problem.shape.d;
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const NestTile kept("A1", I, by.kept), S("S", I, d), G("G", I, d), W("W", I, d);
  const NestTile L("L", I, problem.row_columns()), v("v", I, problem.row_columns());
  const Units::Sum met = grouped.sum({0, grouped.units()});
  const auto row_blocks = [&](const NestLoop& J, const NestWriter::Tiles& keys) {
    nest.loop(I, [&] {
      first(I, kept, S);
      nest.phase("core", [&] {
        if (start == Start::given) {
          nest.read(makes_v_first(grouped, start) ? NestWriter::Tiles{L, v} : NestWriter::Tiles{L});
        }
        index_nest(nest, met);
        if (start == Start::given) {
          nest.loop(J, {kept, S, G, L, v, W}, [&] {
            nest.step(p_text(problem, "S_I A2_J^T", "G_I " + values_text(problem) + "^T") +
                          "; W_I += p A2_J",
                      keys);
          });
        } else {
          const NestTile U("U", I, d), Z("Z", I, d), maximum("max", I), sum("sum", I),
              mean("mean", I);
          nest.loop(J, {kept, S, G, U, Z, maximum, sum, mean}, [&] {
            nest.step("e = exp(S_I A2_J^T - max_I); q = G_I " + values_text(problem) +
                          "^T - mean_I; U_I += e q A2_J; Z_I += e A2_J",
                      keys);
          });
          if (leaves_sums(grouped, start)) {
            nest.step("write U_I, Z_I, max_I, sum_I, mean_I of P", {}, {U, Z, maximum, sum, mean});
          } else {
            nest.step("W_I = U_I / sum_I");
          }
        }
      });
      if (!leaves_sums(grouped, start)) {
        last(I, W);
      }
    });
  };
  if (!grouped.merges()) {
    const NestLoop J = key_loop(by, I);
    row_blocks(J, key_tiles(problem, J));
    return;
  }
  if (makes_v_first(grouped, start)) {
    v_nest(nest, problem, I);
  }
  const NestLoop groups("P", "groups of keys", grouped.groups, 1);
  const GroupNest of_group = group_nest(grouped, groups);
  nest.loop(groups, [&] { row_blocks(of_group.J, of_group.keys); });
  if (leaves_sums(grouped, start)) {
    merge_groups_nest(nest, I, groups);
    nest.loop(groups, [&] {
      nest.loop(I, [&] {
        nest.phase("W", [&] { sum_of_group_nest(nest, problem, I, "W"); });
        last(I, W);
      });
    });
  }
}

void gradients_nest(NestWriter& nest, const GroupedRows& by, Start start, const NestLoop& I,
                    const NestWriter::Tiles& stays) {
  if (start == Start::given && !by.merges()) {
    row_gradients_nest(nest, by.by, I, stays);
  } else {
    rows_times_nest(nest, by.by, I, {"G", "dO", "Y", true}, stays);
  }
}

// Returns G_I^T. After a forward pass also v, unless a phase v came first.
RowGradients gradients(Machine& machine, const GroupedRows& by, const Operands& io, Start start,
                       Range I) {
  if (start == Start::given && !by.merges()) {
    return row_gradients(machine, by.by, io, I);
  }
  return {rows_times_transposed(machine, by.by, "G", io.in("dO"), I, io.in("Y")), {}};
}

template <class Sums>
Sums over_keys(Machine& machine, const RowPlan& by, const Operands& io, Range I,
               const Ranges& keys_met, Sums sums, const Tile& s_t, const Tile& g_t) {
  for (const KeyTiles& keys : KeyStream(machine, by, io, I, keys_met)) {
    sums.add(keys, I, s_t, g_t);
  }
  return sums;
}

// Returns W_I = p_I A2 over the keys of a group. S_I and G_I are taken by value, so that they are
// deleted when W_I is complete.
Tile core(Machine& machine, const GroupedRows& grouped, Index group, const Operands& io,
          Start start, Range I, Tile s_t, RowGradients of_rows) {
  const Phase phase(machine, "core");
  const RowPlan by = grouped.of_group(group);
  const Ranges keys = common(by.problem.keys(I), {grouped.keys(group)});
  auto& [g_t, v] = of_rows;
  if (start == Start::given) {
    Tile l = read_row_values(machine, by.problem, io, "L", I);
    if (makes_v_first(grouped, start)) {
      v = machine.read(std::as_const(io.out("v")).row_block(I));
    }
    return over_keys(machine, by, io, I, keys,
                     KnownGradientSums(machine, by, I.size(), std::move(l), std::move(v)), s_t, g_t)
        .take();
  }
  return over_keys(machine, by, io, I, keys, GradientSums(machine, by, I.size()), s_t, g_t).take();
}

PhaseCost core_cost(const GroupedRows& grouped, Start start, Range units) {
  const RowPlan& by = grouped.by;
  const Problem& problem = by.problem;
  const Words d = problem.shape.d;
  const bool given = start == Start::given;
  const Index products = given ? KnownGradientSums::kProducts : GradientSums::kProducts;
  const Index of_row =  // L, and v if a phase v came first
      given ? problem.row_words() * (makes_v_first(grouped, start) ? 2 : 1) : 0;
  const Words left = leaves_sums(grouped, start) ? words_of_group(problem) : Words(0);
  // S, G, the kept columns of A1, the sums, A2_J and A3_J.
  PhaseCost sum{.path = "core", .reads = 0, .writes = 0, .peak = 0, .flops = 0};
  grouped.each_sum(units, [&](const Units::Sum& of, Index keys) {
    const auto peak = [&](const Units::Unit& unit) {
      const Words r = unit.rows;
      const Words sums = given ? KnownGradientSums::words(by, r) : GradientSums::words(by, r);
      return r * (2 * d + by.kept) + sums + by.key_words(unit.longest, keys);
    };
    add(sum, with_index({.path = "core",
                         .reads = of.rows * of_row + of.met * problem.key_words(),
                         .writes = of.rows * left,
                         .peak = of.peak(peak) + of.index_live,
                         .flops = 2 * products * of.pairs * d},
                        of));
  });
  return sum;
}

// Returns the costs of the phases S, G and core, up to W or to the sums that groups write.
std::vector<PhaseCost> core_costs(const GroupedRows& grouped, Start start, Range units) {
  const RowPlan& by = grouped.by;
  const Units::Sum of = grouped.sum(units);
  const bool with_v = start == Start::given && !grouped.merges();
  PhaseCost G = with_v ? row_gradients_cost(by, of) : rows_times_cost("G", by, of);
  G.peak += of.largest * (Words(by.problem.shape.d) + by.kept);  // S, and the kept columns of A1
  return {rows_times_cost("S", by, of), G, core_cost(grouped, start, units)};
}

std::vector<PhaseCost> part_cost(const Problem& problem, const Blocks& blocks, Start start,
                                 Range units, bool partials) {
  const GroupedRows grouped = groups_of(problem, blocks, start);
  std::vector<PhaseCost> phases;
  if (leaves_sums(grouped, start)) {
    phases.push_back(sum_of_group_cost("W", grouped, units));
  } else {
    phases = core_costs(grouped, start, units);
  }
  phases.push_back(add_gradient_cost(grouped, units, partials));
  return phases;
}

// ---- an inner level ------------------------------------------------------------------------

std::vector<PhaseCost> level_cost(const Problem& problem, const Blocks& blocks, Start start,
                                  Range units, bool partials, std::size_t level) {
  const GroupedRows grouped(problem, blocks);
  const RowPlan& by = grouped.by;
  const PlanLevel in{by, level};
  const Units::Sum of = grouped.sum(units);
  const Words d = problem.shape.d;
  PhaseCost G = level_rows_times_cost("G", in, of);
  PhaseCost core =
      level_core_cost("core", in, units,
                      start == Start::given ? KnownGradientSums::in_level(by, of.largest)
                                            : GradientSums::in_level(by, of.largest));
  if (start == Start::given && problem.normalised()) {
    add(G, level_row_dots_cost("G", in, of));
  }
  if (start == Start::nothing) {  // U is divided by the sums of exponentials
    core.reads += of.rows * (d + 1);
    core.writes += of.rows * d;
  }
  const Index adding = partials ? 0 : units.size() - (units.begin == 0 ? 1 : 0);
  return {level_rows_times_cost("S", in, of), G, core, level_gradient_cost(in, of, adding)};
}

// ---- stages before g, for groups of keys ---------------------------------------------------

// Writes the sums of each row block and group.
void leave_sums(Machine& machine, const Plan& plan, const Operands& io, Range units) {
  const GroupedRows grouped = groups_of(plan.problem, plan.blocks, Start::nothing);
  for (Index unit = units.begin; unit < units.end; ++unit) {
    const Range I = grouped.rows(unit);
    const Index group = grouped.group(unit);
    const RowPlan by = grouped.of_group(group);
    const Tile s_t = row_scores(machine, by, io, I).s_t;
    const Tile g_t = rows_times_transposed(machine, by, "G", io.in("dO"), I, io.in("Y"));
    const Phase phase(machine, "core");
    const Ranges keys = common(by.problem.keys(I), {grouped.keys(group)});
    leave_group(machine, io, grouped.left(group, I),
                over_keys(machine, by, io, I, keys, GradientSums(machine, by, I.size()), s_t, g_t));
  }
}

// Returns the stages before g. After a forward pass they compute v. From scratch they compute the
// sums of groups, then L and v.
std::vector<SplitStage> stages_before(Start start) {
  if (start == Start::given) {
    return {v_stage(
        [](const Problem& problem, const Blocks& blocks) {
          const GroupedRows by(problem, blocks);
          return makes_v_first(by, Start::given) ? by.row_blocks.size() : 0;
        },
        [](const Problem& problem, const Blocks& blocks) { return RowPlan(problem, blocks); })};
  }
  const auto of_groups = [](const Problem& problem, const Blocks& blocks) -> Index {
    const GroupedRows by(problem, blocks);
    return leaves_sums(by, start_of(problem, Start::nothing)) ? by.groups : 0;
  };
  SplitStage leave{
      .units =
          [of_groups](const Problem& problem, const Blocks& blocks) {
            return of_groups(problem, blocks) > 0 ? GroupedRows(problem, blocks).units() : 0;
          },
      .part = [](Machine& machine, const Plan& plan, const Operands& io, Range units,
                 SlowMatrix*) { leave_sums(machine, plan, io, units); },
      .part_cost =
          [](const Problem& problem, const Blocks& blocks, Range units, bool) {
            return core_costs(groups_of(problem, blocks, Start::nothing), Start::nothing, units);
          },
      .brings = {kA1.name, kdO.name}};
  SplitStage merge = stage(
      [of_groups](const Problem& problem, const Blocks& blocks) {
        return of_groups(problem, blocks) > 0 ? GroupedRows(problem, blocks).row_blocks.size() : 0;
      },
      [](Machine& machine, const Plan& plan, const Operands& io, Range units) {
        merge_groups(machine, GroupedRows(plan.problem, plan.blocks), io, units);
      },
      [](const Problem& problem, const Blocks& blocks, Range units) {
        return merge_groups_cost(GroupedRows(problem, blocks), units);
      });
  merge.of = StageRows::own_queries;
  merge.merges = {kMaxima.name, kSums.name, kMeans.name};
  return {leave, merge};
}

// Returns the matrices that these stages leave. The last stage leaves L and v, or v alone. The
// stage before it leaves its sums.
std::vector<Left> left_before(const std::vector<SplitStage>& stages) {
  const UnitsOfStage units_before = stages.size() > 1
                                        ? stages.front().units
                                        : [](const Problem&, const Blocks&) -> Index { return 0; };
  const auto of_rows = [before = units_before,
                        last = stages.back().units](const Signature& matrix) -> Left {
    return {.matrix = matrix,
            .rows =
                [before](const Problem& problem, const Blocks& blocks, Index units) {
                  const Index done = std::max<Index>(units - before(problem, blocks), 0);
                  return std::min(problem.shape.n, done * blocks["Br"]);
                },
            .copies = [last](const Problem& problem, const Blocks& blocks) -> Index {
              return last(problem, blocks) > 0 ? 1 : 0;
            }};
  };
  std::vector<Left> left = {of_rows(kOfRows)};
  if (stages.size() == 1) {
    return left;
  }
  left.push_back(of_rows(kL));
  for (const Signature& matrix : kPartsOfGroups) {
    left.push_back({.matrix = matrix,
                    .rows =
                        [](const Problem& problem, const Blocks& blocks, Index units) {
                          const GroupedRows by(problem, blocks);
                          return rows_left(std::min(units, by.units()), by.row_blocks.size(),
                                           by.by.rows, problem.shape.n);
                        },
                    .copies =
                        [units_before](const Problem& problem, const Blocks& blocks) {
                          return units_before(problem, blocks) > 0
                                     ? GroupedRows(problem, blocks).groups
                                     : 0;
                        }});
  }
  return left;
}

Words words_left(const Problem& problem, const Blocks& blocks, Start start) {
  const GroupedRows by(problem, blocks);
  const Words n = problem.shape.n;
  return leaves_sums(by, start)     ? n * (2 + by.groups * columns_of_group(problem))
         : makes_v_first(by, start) ? n
                                    : Words(0);
}

void add_stages_before(Kernel& kernel, Start start) {
  const std::vector<SplitStage> before = stages_before(start);
  Split split = *kernel.schedule.split;
  split.on_grid = true;
  split.stages.front().brings = {kA1.name, kdO.name, kL.name, kOfRows.name};
  split.stages.insert(split.stages.begin(), before.begin(), before.end());
  split.left = left_before(before);
  kernel.formula.cost = cost_of_stages(split.stages);
  kernel.formula.level_cost = level_cost_of_stages(split.stages);
  kernel.formula.intermediates = [start](const Problem& problem, const Blocks& blocks) {
    return words_left(problem, blocks, start_of(problem, start));
  };
  kernel.schedule = in_stages(std::move(split));
}

// ---- g at once ---------------------------------------------------------------------------

Nest adding_nest(const Problem& problem, const Blocks& blocks, Start start) {
  const GroupedRows by = groups_of(problem, blocks, start);
  NestWriter nest;
  rows_nest(
      nest, by, start,
      [&](const NestLoop& I, const NestTile& kept, const NestTile& S) {
        rows_times_nest(nest, by.by, I, {"S", "A1", "X"}, {});
        gradients_nest(nest, by, start, I, {kept, S});
      },
      [&](const NestLoop& I, const NestTile& W) { add_gradient_nest(nest, by, I, W); });

  return nest.lines();
}

// From scratch, g adds up whole rows of W, each with few roundings.
Words chain(const Problem& problem, const Blocks& blocks, Start start) {
  const GroupedRows by(problem, blocks);
  if (start == Start::nothing && !by.merges()) {
    return 0;
  }
  return Words(by.keys(0).size()) + by.by.rows + by.units();
}

// Computes W_I from the sums of a group, and adds A1_I^T W_I to g.
void add_sum_of_group(Machine& machine, GroupedRows by, const Operands& io, Index unit,
                      SlowMatrix* partials) {
  by.by.kept = 0;
  Tile W;
  {
    const Phase phase(machine, "W");
    W = sum_of_group(machine, by, io, unit);
  }
  add_gradient(machine, by, io, unit, W, {}, partials);
}

Kernel adding_to_g(Start start) {
  Kernel kernel = row_kernel(
      [start](Machine& machine, const GroupedRows& by, const Operands& io, Index unit,
              SlowMatrix* partials) {
        const Start from = start_of(by.by.problem, start);
        if (leaves_sums(by, from)) {
          add_sum_of_group(machine, by, io, unit, partials);
          return;
        }
        const Range I = by.rows(unit);
        auto [s_t, a1_t] = row_scores(machine, by.by, io, I);
        RowGradients of_rows = gradients(machine, by, io, from, I);
        const Tile W =
            core(machine, by, by.group(unit), io, from, I, std::move(s_t), std::move(of_rows));
        add_gradient(machine, by, io, unit, W, std::move(a1_t), partials);
      },
      [start](const Problem& problem, const Blocks& blocks, Range units, bool partials) {
        return part_cost(problem, blocks, start_of(problem, start), units, partials);
      },
      [start](const Problem& problem, const Blocks& blocks, Range units, bool partials,
              std::size_t level) {
        return level_cost(problem, blocks, start_of(problem, start), units, partials, level);
      });
  kernel.formula.nest = [start](const Problem& problem, const Blocks& blocks) {
    return adding_nest(problem, blocks, start_of(problem, start));
  };
  add_stages_before(kernel, start);
  kernel.fitting.optional_blocks.push_back({kKeyGroups, &Shape::m});
  kernel.fitting.apart_blocks = {kRowsApart};
  kernel.numerics.chain = [start](const Problem& problem, const Blocks& blocks) {
    return chain(problem, blocks, start);
  };
  kernel.numerics.groups_fold = true;
  return kernel;
}

// ---- W in slow memory -------------------------------------------------------------------

ProductShape gradient_product(const Problem& problem) {
  return Products(problem).g;
}

Nest storing_nest(const Problem& problem, const Blocks& blocks, Start start) {
  const RowPlan by(problem, blocks);
  NestWriter nest;
  projected_rows_nest(nest, by, blocks, {"S", "A1", "X"});
  projected_rows_nest(nest, by, blocks, {"G", "dO", "Y", true});
  const bool stores_v = made_before("G", blocks) && start == Start::given && problem.normalised();
  if (stores_v) {
    nest.phase("v", [&] { row_dots_nest(nest, problem, blocks); });
  }
  rows_nest(
      nest, {problem, blocks}, start,
      [&](const NestLoop& I, const NestTile&, const NestTile& S) {
        read_projected_rows_nest(nest, by, blocks, I, {"S", "A1", "X"}, {});
        if (made_before("G", blocks)) {
          read_projected_rows_nest(nest, by, blocks, I, {"G", "dO", "Y", true}, {S});
        } else {
          gradients_nest(nest, {problem, blocks}, start, I, {S});
        }
        if (stores_v) {
          nest.phase("v", [&] { nest.read({{"v", I}}); });
        }
      },
      [&](const NestLoop&, const NestTile& W) { nest.phase("W", [&] { nest.write({W}); }); });
  product_phase_nest(nest, {"g", "A1^T", "W"}, gradient_product(problem), blocks);
  return nest.lines();
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace,
          Start start) {
  const Index n = plan.problem.shape.n;
  const Blocks& blocks = plan.blocks;
  const GroupedRows rows(plan.problem, blocks);
  const RowPlan& by = rows.by;
  const SlowMatrix& A1 = io.in("A1");
  const SlowMatrix& dO = io.in("dO");
  const bool stores_G = made_before("G", blocks);
  SlowMatrix W = workspace.matrix("W", n, plan.problem.shape.d);
  {
    const ProjectedRows S(machine, by, blocks, "S", A1, io.in("X"), workspace);
    const ProjectedRows G(machine, by, blocks, "G", dO, transposed(io.in("Y")), workspace);
    std::optional<SlowMatrix> v;
    if (stores_G && start == Start::given && plan.problem.normalised()) {
      v = workspace.matrix("v", n, 1).holding(Holds::sums);
      row_dots(machine, blocks, dO, io.in("O"), *v);
    }
    const auto gradients_of = [&](Range I) -> RowGradients {
      if (!stores_G) {
        return gradients(machine, rows, io, start, I);
      }
      Tile g_t = G.read(machine, I);
      if (!v) {
        return {std::move(g_t), {}};
      }
      const Phase phase(machine, "v");
      return {std::move(g_t), machine.read(std::as_const(*v).row_block(I))};
    };
    for (const Range I : by.units()) {
      Tile s_t = S.read(machine, I);
      const Tile w = core(machine, rows, 0, io, start, I, std::move(s_t), gradients_of(I));
      const Phase phase(machine, "W");
      machine.write(w, W.row_block(I));
    }
  }
  product_phase(machine, "g", blocks, transposed(A1), W, io.out("g"));
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks, Start start) {
  const RowPlan by(problem, blocks);
  const Range units{0, by.units().size()};
  const std::vector<PhaseCost> rows = part_cost(problem, blocks, start, units, false);
  const Index r = by.units().sum().largest;
  const Words rd = Words(r) * problem.shape.d;
  std::vector<PhaseCost> phases = {projected_rows_cost("S", by, blocks)};
  if (made_before("G", blocks)) {
    phases.push_back(projected_rows_cost("G", by, blocks, rd));
    if (start == Start::given && problem.normalised()) {
      PhaseCost v = row_dots_cost(problem, blocks);
      v.reads += problem.shape.n * problem.row_words();
      v.peak = std::max(v.peak, 2 * rd + r * problem.row_words());
      phases.push_back(v);
    }
  } else {
    phases.push_back(rows[1]);
  }
  phases.push_back(rows[2]);
  phases.push_back({.path = "W",
                    .reads = 0,
                    .writes = Words(problem.shape.n) * problem.shape.d,
                    .peak = rd * problem.sum_words,
                    .flops = 0});
  phases.push_back(product_phase_cost("g", gradient_product(problem), blocks));
  return phases;
}

Blocks fit(const Problem& problem, Index M, Objective objective, Start start) {
  const auto fit_rows = objective == Objective::words ? fewest_words : fastest;
  Blocks blocks = fit_rows(problem, M, [start](const Problem& of, const Blocks& by) {
    return part_cost(of, by, start, {0, RowPlan(of, by).units().size()}, false);
  });
  const RowPlan by(problem, blocks);
  const bool given = start == Start::given && problem.normalised();
  plan_projected_rows("S", by, M, objective, blocks);
  // If G is computed before, v needs dO and O once more, and v itself is written and read.
  const Words for_v =
      given ? Words(problem.shape.n) * (problem.shape.d + 2 * problem.row_words()) : Words(0);
  plan_projected_rows("G", by, M, objective, blocks, for_v);
  if (given && made_before("G", blocks)) {
    plan_row_dots(problem, M, blocks);
  }
  plan_product("g", gradient_product(problem), M, objective, blocks);
  return blocks;
}

Words intermediates(const Problem& problem, const Blocks& blocks, Start start) {
  const Words nd = Words(problem.shape.n) * problem.shape.d;
  const bool stores_G = made_before("G", blocks);
  return nd + (made_before("S", blocks) ? nd : 0) + (stores_G ? nd : 0) +
         (stores_G && start == Start::given ? problem.shape.n * problem.row_columns() : 0);
}

Kernel storing_W(Start start) {
  Kernel kernel;
  kernel.pass = Pass::backward;
  kernel.shares_keys = true;
  kernel.schedule.code = [start](Machine& machine, const Plan& plan, const Operands& io,
                                 Workspace& workspace) {
    code(machine, plan, io, workspace, start_of(plan.problem, start));
  };
  kernel.formula.cost = [start](const Problem& problem, const Blocks& blocks) {
    return cost(problem, blocks, start_of(problem, start));
  };
  kernel.formula.intermediates = [start](const Problem& problem, const Blocks& blocks) {
    return intermediates(problem, blocks, start_of(problem, start));
  };
  kernel.formula.nest = [start](const Problem& problem, const Blocks& blocks) {
    return storing_nest(problem, blocks, start_of(problem, start));
  };
  kernel.fitting.fit = [start](const Problem& problem, const Memory& memory, Objective objective) {
    return fit(problem, memory.M, objective, start_of(problem, start));
  };
  kernel.numerics = {.Y_meets_rows = true};
  return kernel;
}

Words key_blocks(const Problem& problem, const Blocks& blocks) {
  return moves_of_mean(GroupedRows(problem, blocks));
}

Words key_groups(const Problem& problem, const Blocks& blocks) {
  return GroupedRows(problem, blocks).groups;
}

}  // namespace
}  // namespace in_backward_rows

Kernel backward_rows(std::string_view name, std::string_view summary, Start start, Sink sink) {
  using namespace in_backward_rows;
  Kernel kernel = sink == Sink::gradient ? adding_to_g(start) : storing_W(start);
  kernel.name = name;
  kernel.summary = summary;
  kernel.operands = {kA1, kA2, kA3, kX, kY, kdO};
  kernel.returns = {kg};
  kernel.takes_activations = true;
  kernel.axes = {{"q", "made"}, {"sink", sink == Sink::gradient ? "g" : "W"}};
  if (start == Start::given) {
    kernel.operands.insert(kernel.operands.end(), {kO, kL});
  } else {
    kernel.numerics.recentred_blocks = key_blocks;
    kernel.numerics.key_groups = sink == Sink::gradient ? key_groups : nullptr;
    kernel.kin = sink == Sink::stored ? "backward/rows-onepass" : "";
  }
  return kernel;
}

}  // namespace redblue
