// dQ, dK and dV with tiles of scores in fast memory, for caches below d^2: f = exp(s - L) goes to
// the slow store, then c p = c f (q - v) in its place, and what is left are products with a block
// that stays. In units of n^2, with x = d / sqrt(M) and n = m >> d:
//
//   5 x^2 + 6 for x < 1,   2 x^2 + 6 x + 3 for 1 < x < 2,   10 x + 3 beyond
//
// Of another activation than softmax s goes there, f is made as dV reads it, and p = phi'(s) q.
//
// Under a mask f and p are those of live pairs, and dead tiles do not move.

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/generated_product.hpp"
#include "kernels/parts/stages.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

// c p, in place of q.
EpilogueCost gradient_cost(const Problem& problem) {
  EpilogueCost cost = ScoreGradient::cost(problem);
  cost.names.text = text_for(problem, "read f; p = c f (p - v)", "read s; p = c phi'(s) p");
  return cost;
}

Mask transposed(const Mask& mask) {
  return mask.full() ? mask : mask.transposed();
}

// f^T of an activation, as s is read.
constexpr FactorCost kActivated{.reads = 1, .text = "f = phi(s)"};

// With keys for queries, and the other way round.
Plan transposed(Plan plan) {
  std::swap(plan.problem.shape.n, plan.problem.shape.m);
  plan.problem.mask = transposed(plan.problem.mask);
  return plan;
}

std::vector<Stage> stages(const Problem& problem) {
  const auto [n, m, d] = problem.shape;
  const Index dv = problem.shape.dv;
  Problem of_values = problem;  // dO V^T
  of_values.shape.d = dv;
  const Mask live_t = transposed(problem.mask);
  const ProductShape of_dV{m, dv, n};
  std::vector<Stage> stages;
  if (problem.normalised()) {
    stages = {scores_stage("f", problem, {"c Q", "K^T"}, Exponentiated::kCost),
              product_stage("dV", of_dV, {"f^T", "dO"}, live_t), row_dots_stage(problem)};
  } else {
    stages = {scores_stage("s", problem, {"c Q", "K^T"}, Unchanged::kCost),
              generated_product_stage("dV", of_dV, {"f^T", "dO"}, kActivated, live_t)};
  }
  stages.push_back(scores_stage("p", of_values, {"dO", "V^T"}, gradient_cost(problem)));
  stages.push_back(product_stage("dQ", {n, d, m}, {"p", "K"}, problem.mask));
  stages.push_back(product_stage("dK", {m, d, n}, {"p^T", "Q"}, live_t));
  return stages;
}

// dV = phi(s)^T dO.
void activated_dV(Machine& machine, const Plan& plan, const Operands& io, const SlowMatrix& s) {
  const Activation phi = plan.problem.activation;
  generated_product(
      machine, "dV", transposed(plan), io.in("dO"), io.out("dV"), [](Range) { return Tile(); },
      [&](const Tile&, const LivePairs& pairs, Range) {
        Tile f_t = machine.read(transposed(s.block(pairs.keys(), pairs.queries())));
        activate(phi, f_t, f_t);
        pairs.set_dead(View(f_t), 0);
        return f_t;
      });
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const Index n = plan.problem.shape.n;
  const Blocks& by = plan.blocks;
  const float c = plan.problem.scale();
  const SlowMatrix& dO = io.in("dO");
  const Mask& live = plan.problem.mask;
  const Mask live_t = transposed(live);
  SlowMatrix p = score_matrix(workspace, "p", plan.problem);
  const auto make_p = [&](const SlowMatrix* v) {
    ScoreGradient gradient(p, v, c);
    scores_phase(machine, "p", plan, dO, io.in("V"), gradient, p);
  };
  if (plan.problem.normalised()) {
    Exponentiated exponentiated(io.in("L"), c);
    scores_phase(machine, "f", plan, io.in("Q"), io.in("K"), exponentiated, p);
    product_phase(machine, "dV", by, transposed(p), dO, io.out("dV"), live_t);
    SlowMatrix v = workspace.matrix("v", n, 1).holding(Holds::sums);
    row_dots(machine, by, dO, io.in("O"), v);
    make_p(&v);
  } else {
    Unchanged unchanged(c);
    scores_phase(machine, "s", plan, io.in("Q"), io.in("K"), unchanged, p);
    activated_dV(machine, plan, io, p);
    make_p(nullptr);
  }
  product_phase(machine, "dQ", by, p, io.in("K"), io.out("dQ"), live);
  product_phase(machine, "dK", by, transposed(p), io.in("Q"), io.out("dK"), live_t);
}

}  // namespace

Kernel gradients_tiles() {
  return {.name = "gradients/tiles",
          .summary = "tiles of scores stay: f, then p, in the slow store; products for the rest",
          .pass = Pass::gradients,
          .operands = {kQ, kK, kV, kdO, kO, kL},
          .returns = {kdQ, kdK, kdV},
          .takes_activations = true,
          .kin = "backward/tiles",
          .schedule = {.code = code},
          .formula = {.cost = cost_of(stages),
                      .intermediates =
                          [](const Problem& problem, const Blocks&) {
                            return problem.pairs() + Words(problem.shape.n) * problem.row_words();
                          },
                      .nest = nest_of(stages)},
          .fitting = fitting_of(stages)};
}

}  // namespace redblue
