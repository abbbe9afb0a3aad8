// O and L with raw scores in the slow store, for caches below d^2: rows of S, or tiles of scores,
// stay while A2 passes, and L is made along the way; then O = exp(s - L) h is a product that takes
// the exponentials of what it reads. In units of n^2, with x = d / sqrt(M) and n = m >> d:
// (x + 1)^2 for x < 2, 4 x + 1 beyond.

#include <algorithm>
#include <string_view>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/generated_product.hpp"
#include "kernels/parts/stages.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

// exp(s - L): L of a block's rows stays with it.
constexpr FactorCost kFactor{
    .columns = 1, .reads = 1, .row_reads = 1, .text = "f = exp(s - L)", .column_names = {"L"}};

std::string_view values_of(const Problem& problem) {
  return problem.sharing == Sharing::none ? "A3" : "A2";
}

std::vector<Stage> stages(const Problem& problem) {
  const Products of(problem);
  return {
      product_stage("S", of.S, {"A1", "X"}),
      scores_stage("s", of.scores, {"S", "A2^T"}, Measured::kCost),
      product_stage("h", of.h, {values_of(problem), "Y"}),
      generated_product_stage("O", of.W, {"f", "h"}, kFactor),
  };
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.problem.shape;
  const Blocks& by = plan.blocks;
  SlowMatrix& L = io.out("L");
  SlowMatrix s = workspace.matrix("s", n, m).holding(Holds::scores);
  {
    SlowMatrix S = workspace.matrix("S", n, d);
    SlowMatrix sums = workspace.matrix("sum", n, 1).holding(Holds::sums);
    product_phase(machine, "S", by, io.in("A1"), io.in("X"), S);
    Measured measured(m, L, sums);
    scores_phase(machine, "s", by, S, io.in("A2"), measured, s);
  }
  SlowMatrix h = workspace.matrix("h", m, d);
  product_phase(machine, "h", by, io.in(values_of(plan.problem)), io.in("Y"), h);
  generated_product(
      machine, "O", by, h, io.out("O"),
      [&](Range I) { return machine.read(std::as_const(L).row_block(I)); },
      [&](const Tile& l, Range K, Range rows, Range part) {
        Tile f = machine.read(s.block(rows, K));  // s_PK (p, s)
        exponentiate(f, l.part(part), f);
        return f;
      });
}

Words intermediates(const Problem& problem, const Blocks&) {
  const auto [n, m, d] = problem.shape;
  return Words(n) * m + std::max(Words(n) * d + n, Words(m) * d);
}

}  // namespace

Kernel forward_tiles() {
  return {
      .name = "forward/tiles",
      .summary = "raw scores in the slow store, L made along the way; O = exp(s - L) h a product",
      .pass = Pass::forward,
      .operands = {kA1, kA2, kA3, kX, kY},
      .returns = {kO, kL},
      .shares_keys = true,
      .schedule = {.code = code},
      .formula = {.cost = cost_of(stages), .intermediates = intermediates, .nest = nest_of(stages)},
      .fitting = fitting_of(stages),
      .numerics = {.rescales = rescales_by_tiles}};
}

}  // namespace redblue
