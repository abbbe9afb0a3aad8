// Computes g, and dQ, dK, dV for Q = A1 X, K = A2, V = A3 Y, with FlashAttention's loops, after a
// forward pass. A block of keys (K_J, V_J and their gradients) stays, and blocks of queries stream.
// Each block of keys reads dQ_I, adds to it and writes it. The last phase is g = A1^T dQ. Under a
// mask only the rows stream that meet a key of the block.
//
// The core is in kernels/parts/key_gradients.hpp. The kernel gradients/flash is v and the core,
// with Q, K, V as inputs.

#include <algorithm>
#include <optional>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/key_gradients.hpp"
#include "kernels/parts/product.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace in_backward_flash {
namespace {

// For g the core computes all sums.
KeySums core_sums(const Problem& problem) {
  return problem.inputs == Inputs::weighted ? KeySums{.dQ = true, .dK = true, .dV = true}
                                            : key_sums(problem);
}

bool makes_v(const Problem& problem) {
  return core_sums(problem).needs_p() && problem.normalised();
}

KeyBlocks core_blocks(const Blocks& blocks) {
  return {.rows = blocks["core.Br"], .keys = blocks["core.Bc"]};
}

// The phases S and h compute Q and V. K is A2.
Nest loop_nest(const Problem& problem, const Blocks& by) {
  const Index n = problem.shape.n, m = problem.shape.m, d = problem.shape.d;
  const Index dv = problem.shape.dv;
  NestWriter nest;
  const bool weighted = problem.inputs == Inputs::weighted;
  if (weighted) {
    nest.phase("S", [&] { project_nest(nest, {"Q", "A1", "X"}, n, d, {by["S.Br"], by["S.Bc"]}); });
    nest.phase("h", [&] { project_nest(nest, {"V", "A3", "Y"}, m, d, {by["h.Br"], by["h.Bc"]}); });
  }
  if (makes_v(problem)) {
    const NestLoop rows("I", "queries", n, by["v.Br"]);
    nest.phase("v", [&] {
      nest.loop(rows, [&] {
        nest.step("v_I = rowsum(dO_I * O_I)", {{"dO", rows, dv}, {"O", rows, dv}}, {{"v", rows}});
      });
    });
  }
  nest.phase("core",
             [&] { key_gradients_nest(nest, problem, core_blocks(by), core_sums(problem)); });
  if (!weighted) {
    return nest.lines();
  }
  nest.phase("g", [&] {
    product_nest(nest, {"g", "A1^T", "dQ"}, {d, d, n}, {by["g.rows"], by["g.cols"], by["g.depth"]});
  });
  return nest.lines();
}

// v = rowsum(dO * O).
void row_dots(Machine& machine, Index Br, const SlowMatrix& dO, const SlowMatrix& O,
              SlowMatrix& v) {
  for (const Range I : blocks(dO.rows(), Br)) {
    const Tile do_i = machine.read(dO.row_block(I));  // dO_I (r, d)
    const Tile o_i = machine.read(O.row_block(I));    // O_I (r, d)
    Tile v_i = machine.initialize("v", I.size());     // v_I (r)
    add_row_dots(do_i, o_i, v_i);
    machine.write(v_i, v.row_block(I));
  }
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.problem.shape;
  const Blocks& by = plan.blocks;
  const KeyBlocks core = core_blocks(by);
  const bool weighted = plan.problem.inputs == Inputs::weighted;
  const InputNames names = input_names(plan.problem);
  const SlowMatrix& dO = io.in("dO");
  const KeySums sums = core_sums(plan.problem);

  std::optional<SlowMatrix> Q, V;  // A1 X and A3 Y
  if (weighted) {
    Q = workspace.matrix("Q", n, d, Window{std::min(n, core.rows), d});
    V = workspace.matrix("V", m, d, Window{std::min(m, core.keys), d});
    {
      const Phase phase(machine, "S");
      project(machine, {by["S.Br"], by["S.Bc"]}, io.in("A1"), io.in("X"), *Q);
    }
    const Phase phase(machine, "h");
    project(machine, {by["h.Br"], by["h.Bc"]}, io.in("A3"), io.in("Y"), *V);
  }
  std::optional<SlowMatrix> v;
  if (makes_v(plan.problem)) {
    v = workspace.matrix("v", n, 1).holding(Holds::sums);
    const Phase phase(machine, "v");
    row_dots(machine, by["v.Br"], dO, io.in("O"), *v);
  }
  {
    const Phase phase(machine, "core");
    key_gradients(machine, plan.problem, core,
                  {.Q = Q ? *Q : io.in(names.queries),
                   .K = io.in(names.keys),
                   .V = V ? *V : io.in(names.values),
                   .dO = dO,
                   .L = plan.problem.normalised() ? &io.in("L") : nullptr,
                   .v = v ? &*v : nullptr,
                   .dK = sums.dK ? &io.out("dK") : nullptr,
                   .dV = sums.dV && !sums.one_of_keys ? &io.out("dV") : nullptr,
                   .dQ = sums.dQ ? &io.out("dQ") : nullptr,
                   .scale = weighted ? std::nullopt : std::optional(plan.problem.scale())},
                  all_key_blocks(plan.problem, core));
  }
  if (weighted) {
    const Phase phase(machine, "g");
    product(machine, {by["g.rows"], by["g.cols"], by["g.depth"]}, transposed(io.in("A1")),
            io.out("dQ"), io.out("g"));
  }
}

// g = A1^T dQ moves n d (ceil(d / rows) + ceil(d / cols)) + d^2 words. `rows` and `cols` enter
// alike, so one of them can be at most sqrt(M). The search tries that side from large to small,
// with the largest other side that fits. Then the blocks get the largest depth that fits.
ProductBlocks fit_gradient(Index n, Index d, Index M, Index sum_words) {
  const auto fits = [=](Index rows, Index cols, Index depth) {
    return Words(rows) * cols * sum_words + (Words(rows) + cols) * depth <= Words(M);
  };
  ProductBlocks best{1, 1, 1};
  if ((Words(d) * d).overflowed()) {
    return best;  // no block size makes the count fit
  }
  Words fewest_passes = 2 * Words(d);
  for (Index rows = even(d, std::min(d, square_side(M, 1)));
       Words(ceil_div(d, rows)) < fewest_passes; rows = even(d, rows - 1)) {
    const Index cols =
        even(d, largest(std::min(d, M), [&](Index tried) { return fits(rows, tried, 1); }));
    const Words passes = Words(ceil_div(d, rows)) + ceil_div(d, cols);
    if (fits(rows, cols, 1) && passes < fewest_passes) {
      fewest_passes = passes;
      best = {rows, cols, 1};
    }
    if (rows == 1) {
      break;
    }
  }
  best.depth =
      largest(std::min(n, M), [&](Index tried) { return fits(best.rows, best.cols, tried); });
  return best;
}

// The core's words depend on Bc alone, and v's words on no block size.
Blocks fit(const Problem& problem, Index M, Objective objective) {
  const auto [n, m, d] = problem.shape;
  const Index width = problem.shape.dv;
  const Index of_sum = problem.sum_words;
  const Index v = largest(std::min(n, M), [&](Index r) {
    return Words(2) * r * width + Words(r) * of_sum <= Words(M);
  });
  const KeyBlocks core = fit_key_gradients(problem, M, objective, core_sums(problem));
  Blocks blocks;
  if (makes_v(problem)) {
    blocks.add("v.Br", v);
  }
  blocks.add("core.Br", core.rows);
  blocks.add("core.Bc", core.keys);
  if (problem.inputs == Inputs::plain) {
    return blocks;
  }
  const ProjectBlocks S = fit_project(n, d, M, of_sum);
  const ProjectBlocks h = fit_project(m, d, M, of_sum);
  const ProductBlocks g = fit_gradient(n, d, M, of_sum);
  Blocks all{{"S.Br", S.rows}, {"S.Bc", S.cols}, {"h.Br", h.rows}, {"h.Bc", h.cols}};
  for (const auto& [name, size] : blocks) {
    all.add(name, size);
  }
  all.add("g.rows", g.rows);
  all.add("g.cols", g.cols);
  all.add("g.depth", g.depth);
  return all;
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const auto [n, m, d] = problem.shape;
  const Words dv = problem.shape.dv;
  const Index of_sum = problem.sum_words;
  const PhaseCost core =
      key_gradients_cost("core", problem, core_blocks(blocks), core_sums(problem),
                         all_key_blocks(problem, core_blocks(blocks)));
  const bool weighted = problem.inputs == Inputs::weighted;
  std::vector<PhaseCost> phases;
  if (weighted) {
    phases = {project_cost("S", n, d, {blocks["S.Br"], blocks["S.Bc"]}, of_sum),
              project_cost("h", m, d, {blocks["h.Br"], blocks["h.Bc"]}, of_sum)};
  }
  if (makes_v(problem)) {
    phases.push_back({.path = "v",
                      .reads = 2 * n * dv,
                      .writes = Words(n) * of_sum,
                      .peak = std::min(n, blocks["v.Br"]) * (2 * dv + of_sum),
                      .flops = 0});
  }
  phases.push_back(core);
  if (weighted) {
    phases.push_back(product_cost("g", ProductShape{d, d, n}.weighing(of_sum),
                                  {blocks["g.rows"], blocks["g.cols"], blocks["g.depth"]}));
  }
  return phases;
}

// The phase S reads A1 once, and the phase g reads it once for each block of its columns.
Window window(const Signature& operand, const Problem& problem, const Blocks& by) {
  const auto of = [&](Index rows, Index cols) { return window_of(operand, problem, rows, cols); };
  const Index d = problem.shape.d;
  if (operand.name == kX.name) {
    return of(d, by["S.Bc"]);
  }
  if (operand.name == kY.name) {
    return of(d, by["h.Bc"]);
  }
  if (operand.name == kA1.name) {
    return of(by["g.depth"], by["g.rows"]);
  }
  if (operand.name == kg.name) {
    return of(by["g.rows"], by["g.cols"]);
  }
  if (operand.name == kO.name) {
    return of(by.contains("v.Br") ? by["v.Br"] : by["core.Br"], problem.shape.dv);
  }
  if (operand.name == kA3.name) {
    return of(by["h.Br"], d);
  }
  return of(by[operand.rows == &Shape::m ? "core.Bc" : "core.Br"], operand.cols_of(problem.shape));
}

}  // namespace
}  // namespace in_backward_flash

Kernel backward_flash() {
  using namespace in_backward_flash;
  return {
      .name = "backward/flash",
      .summary = "FlashAttention's loops: column blocks stay, dQ is read and written once for each",
      .pass = Pass::backward,
      .operands = {kA1, kA2, kA3, kX, kY, kdO, kO, kL},
      .returns = {kg, kdQ, kdK, kdV},
      .takes_activations = true,
      .schedule = {.code = code},
      .formula = {.cost = cost,
                  .intermediates =
                      [](const Problem& problem, const Blocks&) {
                        const auto [n, m, d] = problem.shape;
                        const Words v = makes_v(problem) ? n : 0;
                        return problem.inputs == Inputs::plain ? v : (Words(n) + m) * d + v;
                      },
                  .nest = loop_nest},
      .fitting = {.fit = [](const Problem& problem, const Memory& memory,
                            Objective objective) { return fit(problem, memory.M, objective); },
                  .window = window}};
}

}  // namespace redblue
