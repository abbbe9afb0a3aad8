#include "kernels/parts/row_gradient.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/parts/level_costs.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// Computes g_K += A1_IK^T W_I. g_K stays while rows stream. The tile of A1_I has the columns K; if
// it is transposed, K are its rows from `first` on.
void multiply_rows(Machine& machine, const RowPlan& by, const Tile& a1, bool is_transposed,
                   Index first, const Tile& W, Tile& g_k) {
  Begun begun(machine, g_k.rows());
  const auto near_a1 = is_transposed ? Near{a1, Axis::staying, Axis::passing, Use::reads, -first}
                                     : Near{a1, Axis::passing, Axis::staying, Use::reads};
  LevelWalk(machine, by.inner, &LevelBlocks::weights, &LevelBlocks::rows,
            {{{g_k, Axis::staying, Axis::whole, Use::sums},
              {W, Axis::passing, Axis::whole, Use::reads},
              near_a1}},
            &begun)
      .each({0, g_k.rows()}, {0, W.rows()}, [&](Range K, Range I) {
        const ConstView of_W = W.part(I);
        const View g = g_k.part(K);
        if (is_transposed) {
          const ConstView a1_t = a1.part(Range{first + K.begin, first + K.end}, I);
          I.begin == 0 ? multiply(a1_t, of_W, g) : multiply_add(a1_t, of_W, g);
        } else {
          const Transposed<ConstView> a1_t = transposed(a1.part(I, K));
          I.begin == 0 ? multiply(a1_t, of_W, g) : multiply_add(a1_t, of_W, g);
        }
      });
}

// Computes sum += part for some rows of g.
void add_rows(Machine& machine, const RowPlan& by, Tile& sum, const Tile& part) {
  each_rows(machine, by.inner, &LevelBlocks::weights, sum.rows(),
            {{sum, Axis::staying, Axis::whole, Use::changes},
             {part, Axis::staying, Axis::whole, Use::reads}},
            [&](Range K) { add(sum.part(K), part.part(K)); });
}

// Writes g_K of one unit to its d rows of `partials`. Without partials it adds g_K to g, which is a
// partial result until the last unit.
void put_gradient(Machine& machine, const GroupedRows& grouped, Index unit, Tile g_k, Range K,
                  SlowMatrix& g, SlowMatrix* partials) {
  if (partials != nullptr) {
    const Index first = unit * g.rows();
    machine.write(g_k, partials->row_block({first + K.begin, first + K.end}));
    return;
  }
  const Block partial = g.row_block(K).holding(Holds::sums);
  if (unit > 0) {
    const Tile sum = machine.read(partial);
    add_rows(machine, grouped.by, g_k, sum);
  }
  machine.write(g_k, unit + 1 == grouped.units() ? g.row_block(K) : partial);
}

}  // namespace

void add_gradient(Machine& machine, const GroupedRows& grouped, const Operands& io, Index unit,
                  const Tile& W, Tile a1_t, SlowMatrix* partials) {
  const Phase phase(machine, "g");
  const RowPlan& by = grouped.by;
  const Range I = grouped.rows(unit);
  SlowMatrix& g = io.out("g");
  const Index d = g.rows();
  for (const Range K : blocks(by.kept, by.weights)) {
    Tile g_k = machine.initialize("g", K.size(), d);
    multiply_rows(machine, by, a1_t, true, K.begin, W, g_k);
    put_gradient(machine, grouped, unit, std::move(g_k), K, g, partials);
  }
  a1_t.reset();
  const Range rest{by.kept, d};
  for (const Range part : blocks(rest.size(), by.weights)) {
    const Range K = part_of(rest, part);
    Tile g_k = machine.initialize("g", K.size(), d);
    {
      const Tile a1 = machine.read(io.in("A1").block(I, K), by.cut_weights());
      multiply_rows(machine, by, a1, false, 0, W, g_k);
    }
    put_gradient(machine, grouped, unit, std::move(g_k), K, g, partials);
  }
}

PhaseCost add_gradient_cost(const GroupedRows& grouped, Range units, bool partials) {
  const RowPlan& by = grouped.by;
  const Index d = by.problem.shape.d;
  const Words dd = Words(d) * d, sum_words = by.problem.sum_words;
  const Units::Sum of = grouped.sum(units);
  const Words rows = of.rows;
  const Words r = of.largest;
  // The first unit writes g and does not read it.
  const Units::Sum adding =
      grouped.sum({partials ? units.end : std::max(units.begin, Index{1}), units.end});
  const bool adds = adding.units > 0;
  // The last of all units finishes g.
  const Index whole = !partials && of.units > 0 && units.end == grouped.units() ? 1 : 0;
  const Words r_adding = adding.largest;
  // The peak: W with the kept columns of A1 and a block of g. Later W with a block of other columns
  // of A1 and a block of g, or with two blocks of g.
  const Words k = by.kept;
  const Words w_kept = std::min(by.weights, by.kept);
  const Words w = std::min(by.weights, d - by.kept);
  Words peak = std::max((r + w_kept) * d * sum_words + r * k, (r + w) * d * sum_words + r * w);
  if (adds) {
    peak = std::max({peak, (r_adding + 2 * w_kept) * d * sum_words + r_adding * k,
                     (r_adding + 2 * w) * d * sum_words});
  }
  return {.path = "g",
          .reads = rows * (d - by.kept) + dd * adding.units * sum_words,
          .writes = dd * ((of.units - whole) * sum_words + whole),
          .peak = peak,
          .flops = 2 * rows * dd};
}

void add_gradient_nest(NestWriter& nest, const GroupedRows& by, const NestLoop& I,
                       const NestTile& W) {
  const Index d = by.by.problem.shape.d;
  const auto add = [&](const NestLoop& K, const NestWriter::Tiles& stays, bool reads_A1) {
    const NestTile g("g", K, d);
    // All units but the first add to g.
    NestWriter::Tiles reads = {g.of_words(Words(by.units() - 1) * K.extent * d)};
    if (reads_A1) {
      reads.insert(reads.begin(), {"A1", I, K});
    }
    nest.loop(K, stays, [&] { nest.step("g_K += A1_IK^T " + W.text(), reads, {g}); });
  };
  nest.phase("g", [&] {
    add({"K", "columns kept", by.by.kept, by.by.weights}, {{"A1", I, by.by.kept}, W}, false);
    add({"K", "columns", d - by.by.kept, by.by.weights}, {W}, true);
  });
}

namespace {

// Makes some rows of g: the sum of the partials of some units, in their order. If g is `begun`,
// they are added to its words.
void sum_partials(Machine& machine, const Plan& plan, Range rows, Range units, bool begun,
                  const SlowMatrix& partials, SlowMatrix& g) {
  const Phase phase(machine, "reduce");
  const RowPlan by(plan.problem, plan.blocks);
  for (const Range part : blocks(rows.size(), by.weights)) {
    const Range K = part_of(rows, part);
    const auto of_unit = [&](Index unit) {
      const Index first = unit * g.rows();
      return partials.row_block({first + K.begin, first + K.end});
    };
    Tile sum = machine.read(begun ? ConstBlock(g.row_block(K).holding(Holds::sums))
                                  : of_unit(units.begin));
    for (Index unit = units.begin + (begun ? 0 : 1); unit < units.end; ++unit) {
      const Tile partial = machine.read(of_unit(unit));
      add_rows(machine, by, sum, partial);
    }
    machine.write(sum, g.row_block(K));
  }
}

std::vector<PhaseCost> sum_partials_cost(const Problem& problem, const Blocks& blocks, Index rows,
                                         Index units, bool begun) {
  const Index terms = units + (begun ? 1 : 0);
  const Words row = Words(problem.shape.d) * problem.sum_words;
  const Index weights = RowPlan(problem, blocks).weights;
  return {{.path = "reduce",
           .reads = row * rows * terms,
           .writes = Words(rows) * problem.shape.d,
           .peak = row * std::min(weights, rows) * std::min<Index>(terms, 2),
           .flops = 0}};
}

Index all_units(const Problem& problem, const Blocks& blocks) {
  return GroupedRows(problem, blocks).units();
}

}  // namespace

CostOfBlocks whole_cost(const decltype(SplitStage::part_cost)& part_cost) {
  return [part_cost](const Problem& problem, const Blocks& blocks) {
    return part_cost(problem, blocks, {0, all_units(problem, blocks)}, false);
  };
}

Kernel row_kernel(const RowUnit& unit, const decltype(SplitStage::part_cost)& part_cost,
                  const decltype(SplitStage::level_cost)& level_cost) {
  const CostOfBlocks cost = whole_cost(part_cost);
  const LevelCostOfBlocks levels = [level_cost](const Problem& problem, const Blocks& blocks,
                                                std::size_t level) {
    return level_cost(problem, blocks, {0, all_units(problem, blocks)}, false, level);
  };
  const auto part = [unit](Machine& machine, const Plan& plan, const Operands& io, Range units,
                           SlowMatrix* partials) {
    const GroupedRows by(plan.problem, plan.blocks);
    for (Index which = units.begin; which < units.end; ++which) {
      unit(machine, by, io, which, partials);
    }
  };
  Kernel kernel;
  kernel.pass = Pass::backward;
  kernel.shares_keys = true;
  kernel.schedule = in_stages(
      {.stages =
           {{.units = all_units, .part = part, .part_cost = part_cost, .level_cost = level_cost}},
       .reduce =
           [](Machine& machine, const Plan& plan, Range rows, const SlowMatrix& partials,
              SlowMatrix& g) {
             sum_partials(machine, plan, rows, {0, all_units(plan.problem, plan.blocks)}, false,
                          partials, g);
           },
       .reduce_cost =
           [](const Problem& problem, const Blocks& blocks, Range rows) {
             return sum_partials_cost(problem, blocks, rows.size(), all_units(problem, blocks),
                                      false);
           },
       .reduce_level_cost = [](const Problem& problem, const Blocks& blocks, Range rows,
                               std::size_t level) -> std::vector<PhaseCost> {
         const RowPlan by(problem, blocks);
         const Index more = all_units(problem, blocks) - 1;
         return {level_add_rows_cost("reduce", {by, level}, rows.size(), more)};
       },
       .add_partials =
           [](Machine& machine, const Plan& plan, Range units, bool begun,
              const SlowMatrix& partials, SlowMatrix& g) {
             sum_partials(machine, plan, {0, g.rows()}, units, begun, partials, g);
           },
       .add_partials_cost =
           [](const Problem& problem, const Blocks& blocks, Index units, bool begun) {
             return sum_partials_cost(problem, blocks, problem.shape.d, units, begun);
           }});
  kernel.formula = {.cost = cost, .level_cost = level_cost ? levels : nullptr};
  kernel.fitting = {
      .fit =
          [cost, levels](const Problem& problem, const Memory& memory, Objective objective) {
            const Index M = memory.M;
            return !memory.inner.empty() ? fit_levels(problem, memory, objective, cost, levels)
                   : memory.prefetch > 1 ? fewest_words_ahead(problem, M, memory.prefetch, cost)
                   : objective == Objective::time ? fastest(problem, M, cost)
                                                  : fewest_words_keeping(problem, M, cost);
          },
      .ahead = true,
      .window = row_window,
      .optional_blocks = {{kKept}},
      .inner_blocks = row_inner_blocks()};
  kernel.numerics = {.Y_meets_rows = true};
  return kernel;
}

}  // namespace redblue
