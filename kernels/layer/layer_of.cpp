// Builds the kernel of a whole layer from a kernel of dQ, dK and dV, the inner kernel. The phases Q
// and V write Q = A1 X and V = A3 Y to slow memory. The inner kernel computes dQ, dA2 and dV, with
// K = A2. The phases dX and dY then compute the gradients of A1, X, A3 and Y from dQ and dV
// (kernels/parts/projection.hpp). If the inner kernel splits into stages, so does the layer.

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention.hpp"
#include "kernels/parts/projection.hpp"
#include "kernels/parts/stationary.hpp"
#include "kernels/registry.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace in_layer_of {
namespace {

constexpr Projection kProjections[] = {{"Q", "A1", "X", "dQ", "dA1", "dX", &Shape::n},
                                       {"V", "A3", "Y", "dV", "dA3", "dY", &Shape::m}};

// Returns the problem of the inner kernel: plain inputs Q, K = A2 and V, and scores without a
// scale.
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

// Returns whether V is needed. Only q needs it, and only dQ and dK need q.
bool needs_V(const Problem& problem) {
  const Problem plain = inner(problem);
  return plain.wants(kdQ.name) || plain.wants(kdK.name);
}

// Returns O and L if the kernel takes them as operands.
std::vector<Signature> made_before(const Kernel& gradients,
                                   Activation activation = Activation::softmax) {
  return gradients.needs_forward(activation) ? std::vector<Signature>{kO, kL}
                                             : std::vector<Signature>();
}

Plan inner(const Plan& plan) {
  Plan of_plain = plan;
  of_plain.problem = inner(plan.problem);
  return of_plain;
}

// Returns the operands of the inner kernel.
Operands inner(const Plan& plan, const Operands& io, const Kernel& gradients) {
  Operands plain({&io.out("Q"), &io.out("V"), &io.in("dO")}, {&io.out("dQ"), &io.out("dV")});
  plain.give("K", io.in("A2"));
  for (const Signature& operand : made_before(gradients, plan.problem.activation)) {
    plain.give(io.in(operand.name));
  }
  if (inner(plan.problem).wants(kdK.name)) {
    plain.take("dK", io.out("dA2"));
  }
  return plain;
}

// ---- in stages ------------------------------------------------------------------------------

// Returns a stage of the inner kernel as a stage of the layer.
SplitStage stage_between(const SplitStage& stage, const Kernel& gradients) {
  return {
      .units = [stage](const Problem& problem,
                       const Blocks& blocks) { return stage.units(inner(problem), blocks); },
      .part =
          [stage, gradients](Machine& machine, const Plan& plan, const Operands& io, Range units,
                             SlowMatrix*) {
            const Plan of_plain = inner(plan);
            Operands plain = inner(plan, io, gradients);
            for (const Split::Copies& left :
                 gradients.schedule.split->left_of(of_plain.problem, plan.blocks)) {
              plain.take(io.out(left.matrix.name));
            }
            stage.part(machine, of_plain, plain, units, nullptr);
          },
      .part_cost = [stage](const Problem& problem, const Blocks& blocks, Range units,
                           bool) { return stage.part_cost(inner(problem), blocks, units, false); }};
}

// Returns one stage for the whole inner kernel, if it does not split.
SplitStage all_between(const Kernel& gradients, Workspace& workspace) {
  return {.units = [](const Problem&, const Blocks&) -> Index { return 1; },
          .part =
              [&](Machine& machine, const Plan& plan, const Operands& io, Range, SlowMatrix*) {
                gradients.schedule.code(machine, inner(plan), inner(plan, io, gradients),
                                        workspace);
              },
          .part_cost = nullptr};
}

// Returns the stages of a layer: projections, the inner kernel's stages `between`, gradients of the
// projections.
Split around(const std::vector<SplitStage>& between) {
  Split split{.stages = {projection_stage(kProjections[0], [](const Problem&) { return true; }),
                         projection_stage(kProjections[1], needs_V)},
              .left_as_results = {kQ, kV, kdQ, kdV},
              .by_units = {kdQ.name, kdV.name, kdA2.name}};
  std::ranges::copy(between, std::back_inserter(split.stages));
  for (const Projection& of : kProjections) {
    std::ranges::move(gradients_stages(of), std::back_inserter(split.stages));
  }
  return split;
}

Split split(const Kernel& gradients) {
  const Split& of = *gradients.schedule.split;
  std::vector<SplitStage> between;
  for (const SplitStage& stage : of.stages) {
    between.push_back(stage_between(stage, gradients));
  }
  Split split = around(between);
  for (const Left& left : of.left) {
    split.left.push_back(
        {.matrix = left.matrix,
         .rows =
             [first = split.stages[0].units, second = split.stages[1].units, rows = left.rows](
                 const Problem& problem, const Blocks& blocks, Index units) {
               const Index before = first(problem, blocks) + second(problem, blocks);
               return rows(inner(problem), blocks, std::max<Index>(units - before, 0));
             },
         .copies = [copies = left.copies](const Problem& problem, const Blocks& blocks) -> Index {
           return copies ? copies(inner(problem), blocks) : 1;
         }});
  }
  return split;
}

KernelSchedule schedule(const Kernel& gradients) {
  if (gradients.schedule.split) {
    return in_stages(split(gradients));
  }
  return {.code = [gradients](Machine& machine, const Plan& plan, const Operands& io,
                              Workspace& workspace) {
    in_stages(around({all_between(gradients, workspace)})).code(machine, plan, io, workspace);
  }};
}

// ---- cost -----------------------------------------------------------------------------------

// The projections before the inner kernel runs, and the ones with gradients after it.
std::vector<Projection> made_first(const Problem& problem) {
  return {std::begin(kProjections), needs_V(problem) ? std::end(kProjections) : kProjections + 1};
}
std::vector<Projection> made_last(const Problem& problem) {
  std::vector<Projection> all(std::begin(kProjections), std::end(kProjections));
  std::erase_if(all, [&](const Projection& of) { return !of.wanted(problem); });
  return all;
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks, const Kernel& gradients) {
  std::vector<PhaseCost> phases;
  const auto add = [&](std::vector<PhaseCost> more) {
    std::ranges::move(more, std::back_inserter(phases));
  };
  for (const Projection& of : made_first(problem)) {
    add({product_phase_cost(of.C, of.extents(problem), blocks)});
  }
  add(gradients.formula.cost(inner(problem), blocks));
  for (const Projection& of : made_last(problem)) {
    add(gradients_cost(of, problem, blocks));
  }
  return phases;
}

// Renames K to A2 and dK to dA2.
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
  NestWriter before, after;
  for (const Projection& of : made_first(problem)) {
    product_phase_nest(before, {of.C, of.A, of.W}, of.extents(problem), blocks);
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
    for (NestLine::Move& move : line.moves) {
      move.matrix = with_own_names(move.matrix);
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
    plan_product(of.C, of.extents(problem), memory.M, objective, blocks);
  }
  for (const auto& [name, size] : gradients.fitting.fit(inner(problem), memory, objective)) {
    blocks.add(name, size);
  }
  for (const Projection& of : made_last(problem)) {
    plan_gradients(of, problem, memory.M, objective, blocks);
  }
  return blocks;
}

// For results that the inner kernel writes, returns the rows of its writes.
Index written(const Signature& result, const Problem& problem, const Blocks& blocks,
              const Kernel& gradients) {
  const bool between =
      result.name == kdQ.name || result.name == kdV.name || result.name == kdA2.name;
  return between && gradients.schedule.split
             ? gradients.fitting.written(result.name == kdA2.name ? kdK : result, inner(problem),
                                         blocks)
             : 1;
}

}  // namespace
}  // namespace in_layer_of

Kernel layer_of(const Kernel& gradients, std::string_view name, std::string_view summary) {
  using namespace in_layer_of;
  Kernel layer{
      .name = name,
      .summary = summary,
      .pass = Pass::layer,
      .operands = {kA1, kA2, kA3, kX, kY, kdO},
      .returns = {kdX, kdY, kdA1, kdA2, kdA3},
      .takes_activations = gradients.takes_activations,
      .kin = gradients.kin,
      .schedule = schedule(gradients),
      .formula = {
          .cost = [gradients](const Problem& problem,
                              const Blocks& blocks) { return cost(problem, blocks, gradients); },
          .intermediates =
              [gradients](const Problem& problem, const Blocks& blocks) {
                const Words rows = Words(problem.shape.n) + problem.shape.m;
                return 2 * rows * problem.shape.d +
                       gradients.formula.intermediates(inner(problem), blocks);
              },
          .nest = [gradients](
                      const Problem& problem,
                      const Blocks& blocks) { return loop_nest(problem, blocks, gradients); }},
      .fitting = {
          .fit = [gradients](
                     const Problem& problem, const Memory& memory,
                     Objective objective) { return fit(problem, memory, objective, gradients); },
          .written =
              [gradients](const Signature& result, const Problem& problem, const Blocks& blocks) {
                return written(result, problem, blocks, gradients);
              }},
      .numerics = gradients.numerics};
  std::ranges::copy(made_before(gradients), std::back_inserter(layer.operands));
  if (!gradients.optional_results.empty()) {
    layer.optional_results = {kdX.name, kdY.name, kdA1.name, kdA2.name, kdA3.name};
  }
  return layer;
}

}  // namespace redblue
