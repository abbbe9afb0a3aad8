// dQ, dK and dV in two passes, so that no sum leaves fast memory before it is whole: rows of Q, dO
// and dQ stay while keys pass; then keys, values and their gradients stay while queries pass, with
// v by the first pass. Scores are made twice: 14 products of n m d for 10.
//
//   dQ    reads 3 n d + n + 2 m d T,   T = ceil(n / Br);   writes n d + n
//   dKV   reads 2 m d + C (2 n d + 2 n),   C = ceil(m / Bc);   writes 2 m d
//
// rows-keys is given O and L, and its first pass makes v = rowsum(dO * O). rows-keys-onepass is
// given neither. Its first pass keeps q relative to its running mean, and two sums, as
// backward/rows-onepass does; v is the last mean:
//
//   dQ    reads 2 n d + 2 m d T;   writes n d + 2 n
//
// Where values are keys they come once, and one sum dK + dV stays: in each line 2 m d is m d, and
// with T and C for the M that is left.
//
// Under a mask each block brings what it meets. The first pass is there for dQ and for v, which dK
// takes; the second for dK and dV: what is not wanted is left out.
//
// In units of n^2, with x = d / sqrt(M) and n = m >> d: 14 x^2, and 16 x^2 from nothing.

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/key_gradients.hpp"
#include "kernels/parts/row_sums.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

RowPlan row_plan(const Problem& problem, const Blocks& blocks) {
  return {problem, blocks["dQ.Br"], blocks["dQ.Bc"], problem.shape.d};
}

KeyBlocks key_blocks(const Blocks& blocks) {
  return {.rows = blocks["dKV.Br"], .keys = blocks["dKV.Bc"]};
}

// The first pass makes dQ, or v alone.
std::string row_phase(const Problem& problem) {
  return problem.wants("dQ") ? "dQ" : "v";
}

// Whether the second pass takes v of the first.
bool leaves_v(const Problem& problem, Start start) {
  return problem.normalised() && (start == Start::nothing || problem.wants("dK"));
}

KeySums sums_of_keys(const Problem& problem) {
  KeySums sums = key_sums(problem);
  sums.dQ = false;
  return sums;
}

// L and v of all queries, which the first pass leaves for the second; given O and L, L is an
// operand.
constexpr Signature kOfRows{"v", &Shape::n, nullptr, Holds::sums, true};
const SlowMatrix* L_of(const Problem& problem, const Operands& io, Start start) {
  return !problem.normalised() ? nullptr : start == Start::given ? &io.in("L") : &io.out("L");
}

template <class Sums>
void over_keys(Machine& machine, const RowPlan& by, const Operands& io, Range I, const Tile& q_t,
               const Tile& do_t, Sums& sums) {
  for (const KeyTiles& keys : KeyStream(machine, by, io, I)) {
    sums.add(keys, I, q_t, do_t);
  }
}

// dQ_I = c p_I K; v_I; and L_I where it is not given.
void row_pass(Machine& machine, const RowPlan& by, const Operands& io, Start start, Range I) {
  const float c = by.problem.scale();
  Tile q_t;
  if (by.problem.wants("dQ")) {
    q_t = machine.read(transposed(io.in("Q").row_block(I)));  // Q_I^T (d, r)
    scale(q_t, c);
  }
  const Tile do_t = machine.read(transposed(io.in("dO").row_block(I)));  // dO_I^T (d, r)
  if (start_of(by.problem, start) == Start::nothing) {
    GradientSums sums(machine, by, I.size());
    over_keys(machine, by, io, I, q_t, do_t, sums);
    auto [dq, l, mean] = sums.take_all();
    machine.write(l, io.out("L").row_block(I));
    machine.write(mean, io.out("v").row_block(I));
    scale(dq, c);
    machine.write(dq, io.out("dQ").row_block(I));
    return;
  }
  Tile dots = of_rows(machine, by.problem, "v", I.size());  // v_I (r)
  if (by.problem.normalised()) {
    const Tile o_t = machine.read(transposed(io.in("O").row_block(I)));  // O_I^T (d, r)
    add_row_dots(transposed(do_t), transposed(o_t), dots);
  }
  if (leaves_v(by.problem, start)) {
    machine.write(dots, io.out("v").row_block(I));
  }
  if (!by.problem.wants("dQ")) {
    return;
  }
  Tile l = read_of_rows(machine, by.problem, io, "L", I);  // L_I (r)
  KnownGradientSums sums(machine, by, I.size(), std::move(l), std::move(dots));
  over_keys(machine, by, io, I, q_t, do_t, sums);
  Tile dq = sums.take();  // dQ_I (r, d)
  scale(dq, c);
  machine.write(dq, io.out("dQ").row_block(I));
}

void row_part(Machine& machine, const Plan& plan, const Operands& io, Start start, Range units) {
  const Phase phase(machine, row_phase(plan.problem));
  const RowPlan by = row_plan(plan.problem, plan.blocks);
  for (Index unit = units.begin; unit < units.end; ++unit) {
    row_pass(machine, by, io, start, by.units()[unit]);
  }
}

void key_part(Machine& machine, const Plan& plan, const Operands& io, Start start, Range units) {
  const Phase phase(machine, "dKV");
  const KeySums sums = sums_of_keys(plan.problem);
  key_gradients(machine, plan.problem, key_blocks(plan.blocks),
                {.Q = io.in("Q"),
                 .K = io.in("K"),
                 .V = io.in(input_names(plan.problem).values),
                 .dO = io.in("dO"),
                 .L = L_of(plan.problem, io, start),
                 .v = sums.dK && plan.problem.normalised() ? &io.out("v") : nullptr,
                 .dK = sums.dK ? &io.out("dK") : nullptr,
                 .dV = sums.dV && !sums.one_of_keys ? &io.out("dV") : nullptr,
                 .dQ = nullptr,
                 .scale = plan.problem.scale()},
                units);
}

// Q, dO and O with v, where O is given; then Q and dO beside the sums, and keys.
PhaseCost row_pass_cost(const RowPlan& by, Start start, Range units) {
  const Words d = by.problem.shape.d;
  const Words dv = by.problem.shape.dv;
  const bool given = start_of(by.problem, start) == Start::given;
  const Words one = by.problem.row_words();
  const Units::Sum of = by.units().sum(units);
  const Words r = of.largest;
  if (!by.problem.wants("dQ")) {  // v alone
    return {.path = row_phase(by.problem),
            .reads = of.rows * 2 * dv,
            .writes = of.rows,
            .peak = r * (2 * dv + 1),
            .flops = 0};
  }
  const Words sums = given ? KnownGradientSums::words(by, r) : GradientSums::words(by, r);
  const Index products = given ? KnownGradientSums::kProducts : GradientSums::kProducts;
  return with_index(
      {.path = "dQ",
       .reads =
           of.rows * (given ? d + dv + (dv + 1) * one : d + dv) + of.met * by.problem.key_words(),
       .writes = of.rows * (d + (!leaves_v(by.problem, start) ? 0
                                 : given                      ? 1
                                                              : 2)),
       .peak = std::max(given ? r * (d + dv + (dv + 1) * one) : Words(0),
                        r * (d + dv) + sums + by.key_words(of.longest) + of.index_live),
       .flops = 2 * of.pairs * ((products - 1) * d + dv)},
      of);
}

// Of the first pass, where what it makes is wanted.
Range row_units(const RowPlan& by) {
  const bool makes = by.problem.wants("dQ") || (by.problem.wants("dK") && by.problem.normalised());
  return {0, makes ? by.units().size() : 0};
}
// Of the second.
Range key_units(const Problem& problem, const Blocks& blocks) {
  return {0, sums_of_keys(problem).any() ? all_key_blocks(problem, key_blocks(blocks)).end : 0};
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks, Start start) {
  const RowPlan by = row_plan(problem, blocks);
  std::vector<PhaseCost> phases;
  if (const Range units = row_units(by); units.end > 0) {
    phases.push_back(row_pass_cost(by, start, units));
  }
  if (const Range units = key_units(problem, blocks); units.end > 0) {
    phases.push_back(
        key_gradients_cost("dKV", problem, key_blocks(blocks), sums_of_keys(problem), units));
  }
  return phases;
}

SplitStage row_stage(Start start) {
  return {.units = [](const Problem& problem,
                      const Blocks& blocks) { return row_units(row_plan(problem, blocks)).end; },
          .part = [start](Machine& machine, const Plan& plan, const Operands& io, Range units,
                          SlowMatrix*) { row_part(machine, plan, io, start, units); },
          .part_cost = [start](const Problem& problem, const Blocks& blocks, Range units,
                               bool) -> std::vector<PhaseCost> {
            return {row_pass_cost(row_plan(problem, blocks), start, units)};
          }};
}

SplitStage key_stage(Start start) {
  return {.units = [](const Problem& problem,
                      const Blocks& blocks) { return key_units(problem, blocks).end; },
          .part = [start](Machine& machine, const Plan& plan, const Operands& io, Range units,
                          SlowMatrix*) { key_part(machine, plan, io, start, units); },
          .part_cost = [](const Problem& problem, const Blocks& blocks, Range units,
                          bool) -> std::vector<PhaseCost> {
            return {key_gradients_cost("dKV", problem, key_blocks(blocks), sums_of_keys(problem),
                                       units)};
          }};
}

Split split(Start start) {
  const auto left = [start](const Signature& matrix) -> Left {
    return {.matrix = matrix,
            .rows = [](const Problem& problem, const Blocks& blocks,
                       Index units) { return std::min(problem.shape.n, units * blocks["dQ.Br"]); },
            .copies = [start](const Problem& problem, const Blocks&) -> Index {
              return leaves_v(problem, start) ? 1 : 0;
            }};
  };
  Split split{.stages = {row_stage(start), key_stage(start)}, .left = {left(kOfRows)}};
  if (start == Start::nothing) {
    split.left.push_back(left(kL));
  }
  return split;
}

Nest loop_nest(const Problem& problem, const Blocks& blocks, Start start) {
  const Index d = problem.shape.d;
  const RowPlan by = row_plan(problem, blocks);
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const NestLoop J = key_loop(by, I);
  const Index dv = problem.shape.dv;
  const NestTile Q("Q", I, d), dO("dO", I, dv), dQ("dQ", I, d), L("L", I, problem.row_words()),
      v("v", I, problem.row_words());
  const std::string values = values_text(problem);
  NestWriter nest;
  const auto of_rows = [&] {
    nest.loop(I, [&] {
      if (!problem.wants("dQ")) {
        nest.step("v_I = rowsum(dO_I * O_I)", {dO, {"O", I, dv}}, {v});
        return;
      }
      nest.read({Q, dO});
      if (start_of(problem, start) == Start::nothing) {
        index_nest(nest, by.units().sum());
        const NestTile U("U", I, d), Z("Z", I, d), maximum("max", I), sum("sum", I),
            mean("mean", I);
        nest.loop(J, {Q, dO, U, Z, maximum, sum, mean}, [&] {
          nest.step("e = exp(c Q_I K_J^T - max_I); q = dO_I " + values +
                        "^T - mean_I; U_I += e q K_J; "
                        "Z_I += e K_J",
                    key_tiles(problem, J));
        });
        nest.step("dQ_I = c U_I / sum_I; L_I = max_I + log(sum_I); v_I = mean_I", {}, {dQ, L, v});
        return;
      }
      if (problem.normalised()) {
        nest.step("v_I = rowsum(dO_I * O_I)", {{"O", I, dv}},
                  leaves_v(problem, start) ? NestWriter::Tiles{v} : NestWriter::Tiles{});
      }
      nest.read({L});
      index_nest(nest, by.units().sum());
      nest.loop(J, {Q, dO, L, v, dQ}, [&] {
        nest.step(p_text(problem, "c Q_I K_J^T", "dO_I " + values + "^T") + "; dQ_I += c p K_J",
                  key_tiles(problem, J));
      });
      nest.write({dQ});
    });
  };
  if (row_units(by).end > 0) {
    nest.phase(row_phase(problem), of_rows);
  }
  if (const KeySums sums = sums_of_keys(problem); sums.any()) {
    nest.phase("dKV", [&] { key_gradients_nest(nest, problem, key_blocks(blocks), sums); });
  }
  return nest.lines();
}

// Each pass has the whole of M.
Blocks fit(const Problem& problem, Index M, Objective objective, Start start) {
  const CostOfBlocks row_pass = [start](const Problem& of, const Blocks& blocks) {
    const RowPlan by(of, blocks["Br"], blocks["Bc"], of.shape.d);
    return std::vector<PhaseCost>{row_pass_cost(by, start, row_units(by))};
  };
  const Blocks rows = objective == Objective::time ? fastest(problem, M, row_pass)
                                                   : fewest_words(problem, M, row_pass);
  const KeyBlocks keys = fit_key_gradients(problem, M, objective, sums_of_keys(problem));
  return {
      {"dQ.Br", rows["Br"]}, {"dQ.Bc", rows["Bc"]}, {"dKV.Br", keys.rows}, {"dKV.Bc", keys.keys}};
}

Index written(const Signature& result, const Problem&, const Blocks& blocks) {
  return blocks[result.name == kdQ.name ? "dQ.Br" : "dKV.Bc"];
}

}  // namespace

Kernel gradients_rows_keys(std::string_view name, std::string_view summary, Start start) {
  Kernel kernel{
      .name = name,
      .summary = summary,
      .pass = Pass::gradients,
      .operands = {kQ, kK, kV, kdO},
      .returns = {kdQ, kdK, kdV},
      .shares_keys = true,
      .takes_activations = true,
      .kin = start == Start::given ? "backward/rows" : "backward/rows-onepass",
      .schedule = in_stages(split(start)),
      .formula = {
          .cost = [start](const Problem& problem,
                          const Blocks& blocks) { return cost(problem, blocks, start); },
          .intermediates =
              [start](const Problem& problem, const Blocks&) {
                return leaves_v(problem, start)
                           ? Words(problem.shape.n) * (start == Start::given ? 1 : 2)
                           : Words(0);
              },
          .nest = [start](const Problem& problem,
                          const Blocks& blocks) { return loop_nest(problem, blocks, start); }},
      .fitting = {.fit =
                      [start](const Problem& problem, const Memory& memory, Objective objective) {
                        return fit(problem, memory.M, objective, start);
                      },
                  .written = written},
      .numerics = {.recomputes = true}};
  if (start == Start::given) {
    kernel.operands.insert(kernel.operands.end(), {kO, kL});
    kernel.optional_results = {kdQ.name, kdK.name, kdV.name};
  } else {
    kernel.numerics.recentred_blocks = [](const Problem& problem, const Blocks& blocks) {
      return Words(problem.key_pieces(blocks["dQ.Bc"]));
    };
  }
  return kernel;
}

}  // namespace redblue
