#include "kernels/parts/projection.hpp"

#include <algorithm>
#include <string>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/stationary.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

ProductShape weight_extents(const Projection& of, const Problem& problem) {
  const Shape& shape = problem.shape;
  return ProductShape{.rows = shape.d, .cols = shape.d, .depth = of.rows(shape)}.weighing(
      problem.sum_words);
}

// The name of the block with the rows that stream while W and dW stay.
std::string together(const Projection& of) {
  return std::string(of.dW) + ".Br";
}

// The peak with this number of columns of A and dA, which are rows of W and dW.
Words peak_together(const Problem& problem, Words rows, Words cols) {
  const Words d = problem.shape.d, of_sum = problem.sum_words;
  return cols * d * (1 + of_sum) + rows * d + rows * cols * of_sum;
}
PhaseCost cost_together(const Projection& of, const Problem& problem, const Blocks& blocks,
                        Index cols) {
  const Words d = problem.shape.d;
  const Words rows = of.rows(problem.shape);
  const Words c = cols;
  return {.path = std::string(of.dW),
          .reads = rows * d + rows * c + c * d,
          .writes = rows * c + c * d,
          .peak = peak_together(problem, std::min(rows, Words(blocks[together(of)])), c),
          .flops = 4 * rows * c * d};
}

// Makes dA and dW for some columns J of A.
void make_together(Machine& machine, const Projection& of, const Plan& plan, const Operands& io,
                   const SlowMatrix& dC, Range J) {
  const SlowMatrix& A = io.in(of.A);
  SlowMatrix& dA = io.out(of.dA);
  SlowMatrix& dW = io.out(of.dW);
  const Phase phase(machine, of.dW);
  const Tile w_t = machine.read(transposed(io.in(of.W).row_block(J)));  // W_J^T (d, c)
  Tile dw = machine.initialize(dW.name(), J.size(), dW.cols());         // dW_J (c, d)
  for (const Range I : blocks(A.rows(), plan.blocks[together(of)])) {
    const Tile dc = machine.read(dC.row_block(I));  // dC_I (r, d)
    {
      Tile da = machine.initialize(dA.name(), I.size(), J.size());  // dA_IJ (r, c)
      multiply_add(dc, w_t, da);
      machine.write(da, dA.block(I, J));
    }
    const Tile a = machine.read(A.block(I, J));  // A_IJ (r, c)
    multiply_add(transposed(a), dc, dw);
  }
  machine.write(dw, dW.row_block(J));
}

}  // namespace

void plan_gradients(const Projection& of, const Problem& problem, Index M, Objective objective,
                    Blocks& blocks) {
  const Shape& shape = problem.shape;
  const Index d = shape.d;
  const Index rows = of.rows(shape);
  const auto fits = [&](Index tried) { return peak_together(problem, tried, d) <= Words(M); };
  if (problem.wants(of.dW) && problem.wants(of.dA) && fits(1)) {
    blocks.add(together(of), even(rows, largest(rows, fits)));
    return;
  }
  if (problem.wants(of.dW)) {
    plan_product(of.dW, weight_extents(of, problem), M, objective, blocks);
  }
  if (problem.wants(of.dA)) {
    plan_product(of.dA, of.extents(problem), M, objective, blocks);
  }
}

std::vector<PhaseCost> gradients_cost(const Projection& of, const Problem& problem,
                                      const Blocks& blocks) {
  if (!blocks.contains(together(of))) {
    std::vector<PhaseCost> phases;
    if (problem.wants(of.dW)) {
      phases.push_back(product_phase_cost(of.dW, weight_extents(of, problem), blocks));
    }
    if (problem.wants(of.dA)) {
      phases.push_back(product_phase_cost(of.dA, of.extents(problem), blocks));
    }
    return phases;
  }
  return {cost_together(of, problem, blocks, problem.shape.d)};
}

void gradients_nest(NestWriter& nest, const Projection& of, const Problem& problem,
                    const Blocks& blocks) {
  const Shape& shape = problem.shape;
  const std::string W_T = std::string(of.W) + "^T";
  const std::string A_T = std::string(of.A) + "^T";
  if (!blocks.contains(together(of))) {
    if (problem.wants(of.dW)) {
      product_phase_nest(nest, {of.dW, A_T, of.dC}, weight_extents(of, problem), blocks);
    }
    if (problem.wants(of.dA)) {
      product_phase_nest(nest, {of.dA, of.dC, W_T}, of.extents(problem), blocks);
    }
    return;
  }
  const Index d = shape.d;
  const NestLoop I("I", "rows", of.rows(shape), blocks[together(of)]);
  const NestTile W(of.W, d, d), dW(of.dW, d, d);
  const NestTile A(of.A, I, d), dA(of.dA, I, d), dC(of.dC, I, d);
  nest.phase(of.dW, [&] {
    nest.read({W});
    nest.loop(I, {W, dW}, [&] {
      nest.step(dA.text() + " = " + dC.text() + " " + W_T, {dC}, {dA});
      nest.step(std::string(of.dW) + " += " + A.text() + "^T " + dC.text(), {A});
    });
    nest.write({dW});
  });
}

// ---- in stages ------------------------------------------------------------------------------

SplitStage projection_stage(const Projection& of,
                            const std::function<bool(const Problem&)>& needed) {
  return {
      .units = [of, needed](const Problem& problem, const Blocks& blocks) -> Index {
        return needed(problem) ? product_units(of.C, of.extents(problem), blocks) : 0;
      },
      .part =
          [of](Machine& machine, const Plan& plan, const Operands& io, Range units, SlowMatrix*) {
            product_part(machine, of.C, plan.blocks, io.in(of.A), io.in(of.W), io.out(of.C), units);
          },
      .part_cost = [of](const Problem& problem, const Blocks& blocks, Range units,
                        bool) -> std::vector<PhaseCost> {
        return {product_part_cost(of.C, of.extents(problem), blocks, units)};
      },
      .at_once = {of.C}};
}

namespace {

// The columns of A in some units, which are panels.
Range columns_of(Range units, Index d) {
  return {std::min(d, units.begin * kPanel), std::min(d, units.end * kPanel)};
}

// The stage of dW, and of dA if both are made together.
SplitStage stage_of_dW(const Projection& of) {
  return {
      .units = [of](const Problem& problem, const Blocks& blocks) -> Index {
        return blocks.contains(together(of)) ? ceil_div(problem.shape.d, kPanel)
               : problem.wants(of.dW) ? product_units(of.dW, weight_extents(of, problem), blocks)
                                      : 0;
      },
      .part =
          [of](Machine& machine, const Plan& plan, const Operands& io, Range units, SlowMatrix*) {
            const SlowMatrix& dC = io.out(of.dC);
            if (plan.blocks.contains(together(of))) {
              make_together(machine, of, plan, io, dC, columns_of(units, plan.problem.shape.d));
            } else {
              product_part(machine, of.dW, plan.blocks, transposed(io.in(of.A)), dC, io.out(of.dW),
                           units);
            }
          },
      .part_cost = [of](const Problem& problem, const Blocks& blocks, Range units,
                        bool) -> std::vector<PhaseCost> {
        return {blocks.contains(together(of))
                    ? cost_together(of, problem, blocks, columns_of(units, problem.shape.d).size())
                    : product_part_cost(of.dW, weight_extents(of, problem), blocks, units)};
      },
      .at_once = {of.dW, of.dA}};
}

// The stage of dA, if it is made alone.
SplitStage stage_of_dA(const Projection& of) {
  return {
      .units = [of](const Problem& problem, const Blocks& blocks) -> Index {
        return problem.wants(of.dA) && !blocks.contains(together(of))
                   ? product_units(of.dA, of.extents(problem), blocks)
                   : 0;
      },
      .part =
          [of](Machine& machine, const Plan& plan, const Operands& io, Range units, SlowMatrix*) {
            product_part(machine, of.dA, plan.blocks, io.out(of.dC), transposed(io.in(of.W)),
                         io.out(of.dA), units);
          },
      .part_cost = [of](const Problem& problem, const Blocks& blocks, Range units,
                        bool) -> std::vector<PhaseCost> {
        return {product_part_cost(of.dA, of.extents(problem), blocks, units)};
      },
      .at_once = {of.dA}};
}

}  // namespace

std::vector<SplitStage> gradients_stages(const Projection& of) {
  return {stage_of_dW(of), stage_of_dA(of)};
}

}  // namespace redblue
