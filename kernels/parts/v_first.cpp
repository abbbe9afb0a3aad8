#include "kernels/parts/v_first.hpp"

#include <string>

#include "kernels/parts/level_costs.hpp"
#include "memsim/machine.hpp"

namespace redblue {

void make_v(Machine& machine, const RowPlan& by, const Operands& io, Range units) {
  const Phase phase(machine, "v");
  const Units row_blocks = by.units();
  for (Index unit = units.begin; unit < units.end; ++unit) {
    const Range I = row_blocks[unit];
    Tile v = machine.initialize("v", I.size());
    const Tile dO = machine.read(transposed(io.in("dO").row_block(I)), by.cut_rows());
    const Tile O = machine.read(transposed(io.in("O").row_block(I)), by.cut_rows());
    add_row_dots(machine, by, dO, O, v);
    machine.write(v, io.out("v").row_block(I));
  }
}

PhaseCost v_cost(const Problem& problem, const Units::Sum& of) {
  const Words dv = problem.shape.dv, sum_words = problem.sum_words;
  return {.path = "v",
          .reads = 2 * dv * of.rows,
          .writes = of.rows * sum_words,
          .peak = (2 * dv + sum_words) * of.largest,
          .flops = 0};
}

void v_nest(NestWriter& nest, const Problem& problem, const NestLoop& I) {
  const Index dv = problem.shape.dv;
  nest.phase("v", [&] {
    nest.loop(I, [&] {
      nest.step("v_I = rowsum(dO_I * O_I)", {{"dO", I, dv}, {"O", I, dv}}, {{"v", I}});
    });
  });
}

SplitStage v_stage(const UnitsOfStage& units,
                   const std::function<RowPlan(const Problem& problem, const Blocks& blocks)>& by) {
  SplitStage of_v = stage(
      units,
      [by](Machine& machine, const Plan& plan, const Operands& io, Range of) {
        make_v(machine, by(plan.problem, plan.blocks), io, of);
      },
      [by](const Problem& problem, const Blocks& blocks, Range of) {
        return v_cost(problem, by(problem, blocks).units().sum(of));
      },
      [by](const Problem& problem, const Blocks& blocks, Range of, std::size_t level) {
        const RowPlan rows = by(problem, blocks);
        return level_row_dots_cost("v", {rows, level}, rows.units().sum(of));
      });
  of_v.of = StageRows::own_queries;
  return of_v;
}

}  // namespace redblue
