#include "kernels/parts/v_first.hpp"

#include <string>

#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/machine.hpp"

namespace redblue {

void make_v(Machine& machine, const Operands& io, const Units& row_blocks, Range units) {
  const Phase phase(machine, "v");
  for (Index unit = units.begin; unit < units.end; ++unit) {
    const Range I = row_blocks[unit];
    Tile v = machine.initialize("v", I.size());
    const Tile dO = machine.read(transposed(io.in("dO").row_block(I)));
    const Tile O = machine.read(transposed(io.in("O").row_block(I)));
    add_row_dots(transposed(dO), transposed(O), v);
    machine.write(v, io.out("v").row_block(I));
  }
}

PhaseCost v_cost(const Problem& problem, const Units::Sum& of) {
  const Words dv = problem.shape.dv;
  return {.path = "v",
          .reads = 2 * dv * of.rows,
          .writes = of.rows,
          .peak = (2 * dv + 1) * of.largest,
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

SplitStage v_stage(const UnitsOfStage& units, std::string_view row_block) {
  const auto row_blocks = [row_block](const Problem& problem, const Blocks& blocks) {
    return Units::of_queries(problem, blocks[row_block]);
  };
  SplitStage of_v = stage(
      units,
      [row_blocks](Machine& machine, const Plan& plan, const Operands& io, Range of) {
        make_v(machine, io, row_blocks(plan.problem, plan.blocks), of);
      },
      [row_blocks](const Problem& problem, const Blocks& blocks, Range of) {
        return v_cost(problem, row_blocks(problem, blocks).sum(of));
      });
  of_v.of = StageRows::own_queries;
  return of_v;
}

}  // namespace redblue
