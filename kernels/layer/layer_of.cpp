// Kernels of a whole layer out of those of dQ, dK and dV. Q = A1 X and V = A3 Y are made in phases
// Q and V, and go to the slow store, with K = A2 the kernel makes dQ, dA2 and dV, and of dQ and dV
// come the gradients of what they were made of, in phases dX and dY.
//
// Of C = A W with r rows, where dC is known: dW = A^T dC and dA = dC W^T. Where there is room, W
// and the sum dW stay, and rows of dC, dA and A pass:
//
//   reads   2 r d + d^2;   writes  r d + d^2;   peak  2 d^2 + 2 d Br
//
// Else these are two products, which read dC twice; and one, where one of the two is wanted.
//
// Where the kernel between splits, so does the layer: products by their rows, and dW and dA
// together by the columns of A, of which each machine has rows of W and dW. Then no sum is cut, and
// all have the bits that they have on one machine; dC comes once for each of them.

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/stationary.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

// C = A W, and the gradients of these.
struct Projection {
  std::string_view C, A, W, dC, dA, dW;
  Index Shape::*row_count;

  [[nodiscard]] Index rows(const Shape& shape) const { return shape.*row_count; }
  // Whether a gradient of what it is made of is wanted.
  [[nodiscard]] bool wanted(const Problem& problem) const {
    return problem.wants(dA) || problem.wants(dW);
  }
};
constexpr Projection kProjections[] = {{"Q", "A1", "X", "dQ", "dA1", "dX", &Shape::n},
                                       {"V", "A3", "Y", "dV", "dA3", "dY", &Shape::m}};

ProductShape forward_extents(const Projection& of, const Shape& shape) {
  return {.rows = of.rows(shape), .cols = shape.d, .depth = shape.d};
}
ProductShape weight_extents(const Projection& of, const Shape& shape) {
  return {.rows = shape.d, .cols = shape.d, .depth = of.rows(shape)};
}

// The rows that pass while W and dW stay.
std::string together(const Projection& of) {
  return std::string(of.dW) + ".Br";
}

// With so many columns of A and dA, which are rows of W and dW.
Words peak_together(Index d, Words rows, Words cols) {
  return 2 * cols * d + rows * d + rows * cols;
}
PhaseCost cost_together(const Projection& of, const Shape& shape, const Blocks& blocks,
                        Index cols) {
  const Words d = shape.d;
  const Words rows = of.rows(shape);
  const Words c = cols;
  return {.path = std::string(of.dW),
          .reads = rows * d + rows * c + c * d,
          .writes = rows * c + c * d,
          .peak = peak_together(shape.d, std::min(rows, Words(blocks[together(of)])), c),
          .flops = 4 * rows * c * d};
}

void plan_gradients(const Projection& of, const Problem& problem, Index M, Objective objective,
                    Blocks& blocks) {
  const Shape& shape = problem.shape;
  const Index d = shape.d;
  const Index rows = of.rows(shape);
  const auto fits = [&](Index tried) { return peak_together(d, tried, d) <= Words(M); };
  if (problem.wants(of.dW) && problem.wants(of.dA) && fits(1)) {
    blocks.add(together(of), even(rows, largest(rows, fits)));
    return;
  }
  if (problem.wants(of.dW)) {
    plan_product(of.dW, weight_extents(of, shape), M, objective, blocks);
  }
  if (problem.wants(of.dA)) {
    plan_product(of.dA, forward_extents(of, shape), M, objective, blocks);
  }
}

std::vector<PhaseCost> gradients_cost(const Projection& of, const Problem& problem,
                                      const Blocks& blocks) {
  const Shape& shape = problem.shape;
  if (!blocks.contains(together(of))) {
    std::vector<PhaseCost> phases;
    if (problem.wants(of.dW)) {
      phases.push_back(product_phase_cost(of.dW, weight_extents(of, shape), blocks));
    }
    if (problem.wants(of.dA)) {
      phases.push_back(product_phase_cost(of.dA, forward_extents(of, shape), blocks));
    }
    return phases;
  }
  return {cost_together(of, shape, blocks, shape.d)};
}

void gradients_nest(NestWriter& nest, const Projection& of, const Problem& problem,
                    const Blocks& blocks) {
  const Shape& shape = problem.shape;
  const std::string W_T = std::string(of.W) + "^T";
  const std::string A_T = std::string(of.A) + "^T";
  if (!blocks.contains(together(of))) {
    if (problem.wants(of.dW)) {
      product_phase_nest(nest, {of.dW, A_T, of.dC}, weight_extents(of, shape), blocks);
    }
    if (problem.wants(of.dA)) {
      product_phase_nest(nest, {of.dA, of.dC, W_T}, forward_extents(of, shape), blocks);
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

// For some columns J of A.
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

void make_gradients(Machine& machine, const Projection& of, const Plan& plan, const Operands& io,
                    const SlowMatrix& dC) {
  const Blocks& by = plan.blocks;
  if (by.contains(together(of))) {
    make_together(machine, of, plan, io, dC, {0, plan.problem.shape.d});
    return;
  }
  if (plan.problem.wants(of.dW)) {
    product_phase(machine, of.dW, by, transposed(io.in(of.A)), dC, io.out(of.dW));
  }
  if (plan.problem.wants(of.dA)) {
    product_phase(machine, of.dA, by, dC, transposed(io.in(of.W)), io.out(of.dA));
  }
}

// Of Q, K = A2 and V as they are: scores have no factor.
Problem inner(Problem problem) {
  problem.inputs = Inputs::plain;
  problem.softmax_scale = 1;
  if (!problem.wanted.all()) {
    Wanted wanted;
    for (const Projection& of : kProjections) {
      if (of.wanted(problem)) {
        wanted.add(of.dC);
      }
    }
    if (problem.wants(kdA2.name)) {
      wanted.add(kdK.name);
    }
    problem.wanted = wanted;
  }
  return problem;
}

// Whether V is needed: for q, of which dQ and dK are made.
bool needs_V(const Problem& problem) {
  const Problem plain = inner(problem);
  return plain.wants(kdQ.name) || plain.wants(kdK.name);
}

// O and L, where the kernel is given these.
std::vector<Signature> made_before(const Kernel& gradients) {
  return gradients.needs_forward() ? std::vector<Signature>{kO, kL} : std::vector<Signature>();
}

Plan inner(const Plan& plan) {
  Plan of_plain = plan;
  of_plain.problem = inner(plan.problem);
  return of_plain;
}

// What the kernel between finds.
Operands inner(const Plan& plan, const Operands& io, const Kernel& gradients, const SlowMatrix& Q,
               const SlowMatrix& V, SlowMatrix& dQ, SlowMatrix& dV) {
  Operands plain({&Q, &V, &io.in("dO")}, {&dQ, &dV});
  plain.give("K", io.in("A2"));
  for (const Signature& operand : made_before(gradients)) {
    plain.give(io.in(operand.name));
  }
  if (inner(plan.problem).wants(kdK.name)) {
    plain.take("dK", io.out("dA2"));
  }
  return plain;
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace,
          const Kernel& gradients) {
  const auto [n, m, d] = plan.problem.shape;
  SlowMatrix dQ = workspace.matrix("dQ", n, d);
  SlowMatrix dV = workspace.matrix("dV", m, d);
  {
    SlowMatrix Q = workspace.matrix("Q", n, d);
    SlowMatrix V = workspace.matrix("V", m, d);
    product_phase(machine, "Q", plan.blocks, io.in("A1"), io.in("X"), Q);
    if (needs_V(plan.problem)) {
      product_phase(machine, "V", plan.blocks, io.in("A3"), io.in("Y"), V);
    }
    gradients.schedule.code(machine, inner(plan), inner(plan, io, gradients, Q, V, dQ, dV),
                            workspace);
  }
  for (const auto& [of, dC] : {std::pair(kProjections[0], &dQ), std::pair(kProjections[1], &dV)}) {
    if (of.wanted(plan.problem)) {
      make_gradients(machine, of, plan, io, *dC);
    }
  }
}

// ---- in stages, for several machines --------------------------------------------------------

// C, where it is needed.
SplitStage stage_of_C(const Projection& of) {
  return {
      .units = [of](const Problem& problem, const Blocks& blocks) -> Index {
        return of.C != kV.name || needs_V(problem)
                   ? product_units(of.C, forward_extents(of, problem.shape), blocks)
                   : 0;
      },
      .part =
          [of](Machine& machine, const Plan& plan, const Operands& io, Range units, SlowMatrix*) {
            product_part(machine, of.C, plan.blocks, io.in(of.A), io.in(of.W), io.out(of.C), units);
          },
      .part_cost = [of](const Problem& problem, const Blocks& blocks, Range units,
                        bool) -> std::vector<PhaseCost> {
        return {product_part_cost(of.C, forward_extents(of, problem.shape), blocks, units)};
      },
      .at_once = {of.C}};
}

// The columns of A in some units, which are panels.
Range columns_of(Range units, Index d) {
  return {std::min(d, units.begin * kPanel), std::min(d, units.end * kPanel)};
}

// dW, and dA where both are made together.
SplitStage stage_of_dW(const Projection& of) {
  return {
      .units = [of](const Problem& problem, const Blocks& blocks) -> Index {
        return blocks.contains(together(of)) ? ceil_div(problem.shape.d, kPanel)
               : problem.wants(of.dW)
                   ? product_units(of.dW, weight_extents(of, problem.shape), blocks)
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
        const Shape& shape = problem.shape;
        return {blocks.contains(together(of))
                    ? cost_together(of, shape, blocks, columns_of(units, shape.d).size())
                    : product_part_cost(of.dW, weight_extents(of, shape), blocks, units)};
      },
      .at_once = {of.dW, of.dA}};
}

// dA, where it is made apart.
SplitStage stage_of_dA(const Projection& of) {
  return {
      .units = [of](const Problem& problem, const Blocks& blocks) -> Index {
        return problem.wants(of.dA) && !blocks.contains(together(of))
                   ? product_units(of.dA, forward_extents(of, problem.shape), blocks)
                   : 0;
      },
      .part =
          [of](Machine& machine, const Plan& plan, const Operands& io, Range units, SlowMatrix*) {
            product_part(machine, of.dA, plan.blocks, io.out(of.dC), transposed(io.in(of.W)),
                         io.out(of.dA), units);
          },
      .part_cost = [of](const Problem& problem, const Blocks& blocks, Range units,
                        bool) -> std::vector<PhaseCost> {
        return {product_part_cost(of.dA, forward_extents(of, problem.shape), blocks, units)};
      },
      .at_once = {of.dA}};
}

// A stage of the kernel between.
SplitStage stage_between(const SplitStage& stage, const Kernel& gradients) {
  return {
      .units = [stage](const Problem& problem,
                       const Blocks& blocks) { return stage.units(inner(problem), blocks); },
      .part =
          [stage, gradients](Machine& machine, const Plan& plan, const Operands& io, Range units,
                             SlowMatrix*) {
            const Plan of_plain = inner(plan);
            const Split& split = *gradients.schedule.split;
            Operands plain =
                inner(plan, io, gradients, io.out("Q"), io.out("V"), io.out("dQ"), io.out("dV"));
            if (split.copies(of_plain.problem, plan.blocks) > 0) {
              for (const Signature& matrix : split.left) {
                plain.take(io.out(matrix.name));
              }
            }
            stage.part(machine, of_plain, plain, units, nullptr);
          },
      .part_cost = [stage](const Problem& problem, const Blocks& blocks, Range units,
                           bool) { return stage.part_cost(inner(problem), blocks, units, false); }};
}

Split split(const Kernel& gradients) {
  const Split& between = *gradients.schedule.split;
  Split split{.stages = {stage_of_C(kProjections[0]), stage_of_C(kProjections[1])},
              .left = between.left,
              .left_as_results = {kQ, kV, kdQ, kdV}};
  for (const SplitStage& stage : between.stages) {
    split.stages.push_back(stage_between(stage, gradients));
  }
  for (const Projection& of : kProjections) {
    split.stages.push_back(stage_of_dW(of));
    split.stages.push_back(stage_of_dA(of));
  }
  split.left_rows = [first = split.stages[0].units, second = split.stages[1].units,
                     rows = between.left_rows](const Problem& problem, const Blocks& blocks,
                                               Index units) {
    const Index before = first(problem, blocks) + second(problem, blocks);
    return rows(inner(problem), blocks, std::max<Index>(units - before, 0));
  };
  split.left_copies = [between](const Problem& problem, const Blocks& blocks) {
    return between.copies(inner(problem), blocks);
  };
  return split;
}

// ---- what it costs --------------------------------------------------------------------------

// What is made before the kernel runs, and after it.
std::vector<Projection> made_first(const Problem& problem) {
  return {std::begin(kProjections), needs_V(problem) ? std::end(kProjections) : kProjections + 1};
}
std::vector<Projection> made_last(const Problem& problem) {
  std::vector<Projection> all(std::begin(kProjections), std::end(kProjections));
  std::erase_if(all, [&](const Projection& of) { return !of.wanted(problem); });
  return all;
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks, const Kernel& gradients) {
  const Shape& shape = problem.shape;
  std::vector<PhaseCost> phases;
  const auto add = [&](std::vector<PhaseCost> more) {
    std::ranges::move(more, std::back_inserter(phases));
  };
  for (const Projection& of : made_first(problem)) {
    add({product_phase_cost(of.C, forward_extents(of, shape), blocks)});
  }
  add(gradients.formula.cost(inner(problem), blocks));
  for (const Projection& of : made_last(problem)) {
    add(gradients_cost(of, problem, blocks));
  }
  return phases;
}

// K is A2 here, and dK is dA2.
std::string with_own_names(const std::string& text) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::string renamed;
  for (auto at = text.begin(); at != text.end();) {
    const auto end =
        std::find_if(at, text.end(), [&](char c) { return is_letter(c) != is_letter(*at); });
    const std::string word(at, end);
    renamed += word == "K" ? "A2" : word == "dK" ? "dA2" : word;
    at = end;
  }
  return renamed;
}

Nest loop_nest(const Problem& problem, const Blocks& blocks, const Kernel& gradients) {
  const Shape& shape = problem.shape;
  NestWriter before, after;
  for (const Projection& of : made_first(problem)) {
    product_phase_nest(before, {of.C, of.A, of.W}, forward_extents(of, shape), blocks);
  }
  for (const Projection& of : made_last(problem)) {
    gradients_nest(after, of, problem, blocks);
  }
  Nest lines = before.lines();
  for (NestLine& line : gradients.formula.nest(inner(problem), blocks)) {
    line.text = with_own_names(line.text);
    for (NestLine::Stay& stay : line.stays) {
      stay.name = with_own_names(stay.name);
    }
    lines.push_back(std::move(line));
  }
  lines.insert(lines.end(), after.lines().begin(), after.lines().end());
  return lines;
}

Blocks fit(const Problem& problem, const Memory& memory, Objective objective,
           const Kernel& gradients) {
  Blocks blocks;
  for (const Projection& of : made_first(problem)) {
    plan_product(of.C, forward_extents(of, problem.shape), memory.M, objective, blocks);
  }
  for (const auto& [name, size] : gradients.fitting.fit(inner(problem), memory, objective)) {
    blocks.add(name, size);
  }
  for (const Projection& of : made_last(problem)) {
    plan_gradients(of, problem, memory.M, objective, blocks);
  }
  return blocks;
}

}  // namespace

Kernel layer_of(const Kernel& gradients, std::string_view name, std::string_view summary) {
  Kernel layer{.name = name,
               .summary = summary,
               .pass = Pass::layer,
               .operands = {kA1, kA2, kA3, kX, kY, kdO},
               .returns = {kdX, kdY, kdA1, kdA2, kdA3},
               .kin = gradients.kin,
               .schedule = {.code =
                                [gradients](Machine& machine, const Plan& plan, const Operands& io,
                                            Workspace& workspace) {
                                  code(machine, plan, io, workspace, gradients);
                                }},
               .formula = {.cost =
                               [gradients](const Problem& problem, const Blocks& blocks) {
                                 return cost(problem, blocks, gradients);
                               },
                           .intermediates =
                               [gradients](const Problem& problem, const Blocks& blocks) {
                                 const Words rows = Words(problem.shape.n) + problem.shape.m;
                                 return 2 * rows * problem.shape.d +
                                        gradients.formula.intermediates(inner(problem), blocks);
                               },
                           .nest =
                               [gradients](const Problem& problem, const Blocks& blocks) {
                                 return loop_nest(problem, blocks, gradients);
                               }},
               .fitting = {.fit =
                               [gradients](const Problem& problem, const Memory& memory,
                                           Objective objective) {
                                 return fit(problem, memory, objective, gradients);
                               }},
               .numerics = gradients.numerics};
  if (gradients.schedule.split) {
    layer.schedule.split = split(gradients);
  }
  std::ranges::copy(made_before(gradients), std::back_inserter(layer.operands));
  if (!gradients.optional_results.empty()) {
    layer.optional_results = {kdX.name, kdY.name, kdA1.name, kdA2.name, kdA3.name};
  }
  return layer;
}

}  // namespace redblue
