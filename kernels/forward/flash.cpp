// Computes O and L as FlashAttention does. First S and h as in Algorithm 7. Then, in the core, a
// row block (S_I, O_I, running maximum and sum) is resident while column blocks (A2_J, then h_J)
// stream. Scores never leave fast memory. Under a mask, a row block streams only the columns that
// it meets.

#include <algorithm>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/online_softmax.hpp"
#include "kernels/parts/product.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace in_forward_flash {
namespace {

void core(Machine& machine, const Plan& plan, const SlowMatrix& S, const SlowMatrix& A2,
          const SlowMatrix& h, const Operands& io) {
  SlowMatrix& O = io.out("O");
  const Units units = Units::of_queries(plan.problem, plan.blocks["core.Br"]);
  for (const Range I : units) {
    const Tile s_i = machine.read(S.row_block(I));           // S_I (r, d)
    Tile o_i = machine.initialize("O", I.size(), O.cols());  // O_I (r, d)
    RowNormaliser softmax(machine, plan.problem, I.size());  // max_I, sum_I (r)
    const Tile index = units.read_index(machine, I);
    for (const Range J : Pieces(plan.problem.keys(I), plan.blocks["core.Bc"])) {
      Tile e = machine.initialize("e", I.size(), J.size(), Holds::scores);  // e_IJ (r, c)
      {
        const Tile a_j = machine.read(transposed(A2.row_block(J)));  // A2_J^T (d, c)
        multiply_add(s_i, a_j, e);
      }
      softmax.apply(e, LivePairs(plan.problem, I, J), o_i);
      const Tile h_j = machine.read(h.row_block(J));  // h_J (c, d)
      multiply_add(e, h_j, o_i);
    }
    softmax.divide(o_i);
    machine.write(o_i, O.row_block(I));
    softmax.write_L(io, "L", I);
  }
}

// Words live at the peak: S_I, O_I, maximum and sum, the scores, and either a column block or the
// rescaling factors.
Words core_peak(const Problem& problem, Index r, Index c) {
  const Words d = problem.shape.d, of_rows = Words(r) * problem.row_words();
  return Words(r) * d * (1 + problem.sum_words) + 2 * of_rows + Words(r) * c +
         std::max(Words(c) * d, of_rows);
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.problem.shape;
  const Index Br = plan.blocks["core.Br"];
  const Index Bc = plan.blocks["core.Bc"];
  SlowMatrix S = workspace.matrix("S", n, d, Window{std::min(n, Br), d});
  SlowMatrix h = workspace.matrix("h", m, d, Window{std::min(m, Bc), d});
  {
    const Phase phase(machine, "S");
    project(machine, {plan.blocks["S.Br"], plan.blocks["S.Bc"]}, io.in("A1"), io.in("X"), S);
  }
  {
    const Phase phase(machine, "h");
    project(machine, {plan.blocks["h.Br"], plan.blocks["h.Bc"]}, io.in("A3"), io.in("Y"), h);
  }
  const Phase phase(machine, "core");
  core(machine, plan, S, io.in("A2"), h, io);
}

// Only Br changes the words of the core, so Br is as large as possible.
Blocks fit(const Problem& problem, Index M) {
  const auto [n, m, d] = problem.shape;
  const Words index = problem.mask.index().live();
  const ProjectBlocks S = fit_project(n, d, M, problem.sum_words);
  const ProjectBlocks h = fit_project(m, d, M, problem.sum_words);
  const Index Br = even(n, largest(std::min(n, M), [&](Index r) {
                          return core_peak(problem, r, 1) + index <= Words(M);
                        }));
  const Index Bc = even(m, largest(std::min(m, M), [&](Index c) {
                          return core_peak(problem, Br, c) + index <= Words(M);
                        }));
  return {{"S.Br", S.rows}, {"S.Bc", S.cols}, {"h.Br", h.rows},
          {"h.Bc", h.cols}, {"core.Br", Br},  {"core.Bc", Bc}};
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const auto [n, m, d] = problem.shape;
  const Index Br = blocks["core.Br"];
  const Index Bc = blocks["core.Bc"];
  const Units::Sum of = Units::of_queries(problem, Br).sum();
  return {
      project_cost("S", n, d, {blocks["S.Br"], blocks["S.Bc"]}, problem.sum_words),
      project_cost("h", m, d, {blocks["h.Br"], blocks["h.Bc"]}, problem.sum_words),
      with_index({.path = "core",
                  .reads = Words(n) * d + 2 * d * of.met,
                  .writes = Words(n) * (d + problem.row_words()),
                  .peak = of.peak([&](const Units::Unit& unit) {
                    return core_peak(problem, unit.rows, std::min(unit.longest, Bc));
                  }) + of.index_live,
                  .flops = 4 * d * of.pairs},
                 of),
  };
}

Window window(const Signature& operand, const Problem& problem, const Blocks& by) {
  const auto of = [&](Index rows, Index cols) { return window_of(operand, problem, rows, cols); };
  const Index d = problem.shape.d;
  if (operand.name == kX.name) {
    return of(d, by["S.Bc"]);
  }
  if (operand.name == kY.name) {
    return of(d, by["h.Bc"]);
  }
  if (operand.name == kA1.name || operand.name == kA3.name) {
    return of(by[operand.name == kA1.name ? "S.Br" : "h.Br"], d);
  }
  return of(by[operand.name == kA2.name ? "core.Bc" : "core.Br"], d);
}

}  // namespace
}  // namespace in_forward_flash

Kernel forward_flash() {
  using namespace in_forward_flash;
  return {.name = "forward/flash",
          .summary = "row blocks stay, column blocks pass, online softmax",
          .pass = Pass::forward,
          .operands = {kA1, kA2, kA3, kX, kY},
          .returns = {kO, kL},
          .takes_activations = true,
          .schedule = {.code = code},
          .formula = {.cost = cost,
                      .intermediates =
                          [](const Problem& problem, const Blocks&) {
                            const auto [n, m, d] = problem.shape;
                            return (Words(n) + m) * d;
                          }},
          .fitting = {.fit = [](const Problem& problem, const Memory& memory,
                                Objective) { return fit(problem, memory.M); },
                      .window = window},
          .numerics = {.rescales = [](const Problem& problem, const Blocks& blocks) {
            return Words(problem.key_pieces(blocks["core.Bc"]) - 1);
          }}};
}

}  // namespace redblue
