// Computes dQ, dK and dV with tiles of scores in fast memory, for caches below d^2. First, f =
// exp(s - L) is written to slow memory. Then c p = c f (q - v) overwrites it. The other steps are
// products with a resident block. Words in units of n^2, with x = d / sqrt(M) and n = m >> d:
//
//   5 x^2 + 6 for x < 1,   2 x^2 + 6 x + 3 for 1 < x < 2,   10 x + 3 beyond
//
// With an activation other than softmax, s is written instead of f. The product dV computes f when
// it reads s, and p is phi'(s) q.
//
// If values are keys, f stays in slow memory together with p. One block of dK + dV = p^T Q + f^T dO
// is resident while both products are added to it. This moves 2 m d words fewer than two sums, or
// than one sum that is read again.
//
// Under a mask, f and p exist only for live pairs, and dead tiles are not moved.

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/generated_product.hpp"
#include "kernels/parts/product_levels.hpp"
#include "kernels/parts/stages.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace in_gradients_tiles {
namespace {

// Returns the cost of the epilogue that overwrites q with c p.
EpilogueCost gradient_cost(const Problem& problem) {
  EpilogueCost cost = ScoreGradient::cost(problem);
  cost.names.text = text_for(problem, "read f; p = c f (p - v)", "read s; p = c phi'(s) p");
  return cost;
}

Mask transposed(const Mask& mask) {
  return mask.full() ? mask : mask.transposed();
}

// f^T of an activation, computed when s is read.
constexpr FactorCost kActivated{.reads = 1, .text = "f = phi(s)", .near = Activated::kCost.near};

void activate_near(Machine& machine, const ProductLevels& levels, Activation phi,
                   const LivePairs& pairs, Tile& f_t) {
  pass_over(
      machine, levels, &ProductBlocks::depth, 0, f_t.rows(), f_t.cols(),
      [&]() -> std::vector<Near> { return {of_pairs(f_t, Use::changes)}; },
      [&](Range keys, Range queries) {
        const View near = f_t.part(keys, queries);
        activate(phi, near, near);
        pairs.part(keys, queries).set_dead(near, 0);
      });
}

// Returns the plan with queries and keys swapped.
Plan transposed(Plan plan) {
  std::swap(plan.problem.shape.n, plan.problem.shape.m);
  plan.problem.mask = transposed(plan.problem.mask);
  return plan;
}

// ---- one sum for dK + dV --------------------------------------------------------------------

PhaseCost joined_cost(const ProductShape& of, const StationaryBlocks& by, const Mask& live_t) {
  PhaseCost cost = generated_product_cost("dK", of, by, {.reads = 2}, live_t);
  cost.reads += met_by_blocks(live_t, of.rows, by.rows, of.depth) * of.cols;
  cost.flops += 2 * all_pairs(live_t, of.rows, of.depth) * of.cols;
  return cost;
}

void joined_nest(NestWriter& nest, const Problem& problem, const ProductShape& of,
                 const StationaryBlocks& by, const Mask& live_t) {
  const auto of_live = [&](const NestTile& tile, Words all) {
    return live_t.full() ? tile : tile.of_words(all);
  };
  const NestLoop I("I", "rows", of.rows, by.rows);
  const NestLoop J("J", "columns", of.cols, by.cols);
  const NestLoop K("K", "depth", of.depth, by.depth);
  const NestLoop P = I.pieces("P", by.piece);
  const NestTile dK("dK", I, J);
  const Index passes = ceil_div(of.cols, by.cols);
  const auto add = [&](std::string_view left, std::string_view right, std::string_view text) {
    const NestTile a = of_live({left, P, K}, all_pairs(live_t, of.rows, of.depth) * Words(passes));
    const NestTile b =
        of_live({right, K, J}, met_by_blocks(live_t, of.rows, by.rows, of.depth) * of.cols);
    nest.read({b});
    nest.loop(P, {b}, [&] { nest.step(std::string(text) + sum_text({"dK", P, J}, a, b), {a}); });
  };
  const Units::Sum groups = Units::of_rows(live_t, of.rows, of.depth, by.rows).sum();
  nest.loop(I, [&] {
    nest.loop(J, [&] {
      index_nest(nest, groups, passes);
      nest.loop(K, {dK}, [&] {
        add("f^T", "dO", problem.normalised() ? "" : "f = phi(s); ");
        add("p^T", "Q", "");
      });
      nest.write({dK});
    });
  });
}

Stage joined_stage(const Problem& problem) {
  const auto [n, m, d] = problem.shape;
  const ProductShape of = ProductShape{m, d, n}.weighing(problem.sum_words);
  const Mask live_t = transposed(problem.mask);
  return stationary_stage(
      "dK", of,
      {.cost = [=](const StationaryBlocks& by,
                   const Mask& mask) { return joined_cost(of, by, mask); },
       .level_cost =
           [=](const StationaryBlocks& by, const Mask& mask, std::size_t level) {
             const FactorCost f{.near = problem.normalised() ? PassCost() : kActivated.near,
                                .products = 2};
             return generated_product_level_cost("dK", of, by, f, level, mask);
           }},
      [=](NestWriter& nest, const StationaryBlocks& by) {
        joined_nest(nest, problem, of, by, live_t);
      },
      live_t);
}

// Computes dK + dV. In `of_keys`, queries and keys are swapped. With an activation other than
// softmax, `f` holds s.
void joined_product(Machine& machine, const Plan& of_keys, const Operands& io, const SlowMatrix& f,
                    const SlowMatrix& p) {
  const Phase phase(machine, "dK");
  const Problem& problem = of_keys.problem;
  const auto by = StationaryBlocks::get("dK", of_keys.blocks);
  const CutEvery cut_cols = cut_of(by.inner, &ProductBlocks::cols);
  const CutEvery cut_depth = cut_of(by.inner, &ProductBlocks::depth);
  const Units keys = Units::of_queries(problem, by.rows);
  SlowMatrix& dK = io.out("dK");
  for (const Range I : keys) {
    const Ranges met = problem.keys(I);
    const LiveRows dO(io.in("dO"), problem.mask, met);
    const LiveRows Q(io.in("Q"), problem.mask, met);
    for (const Range J : blocks(dK.cols(), by.cols)) {
      const Tile index = keys.read_index(machine, I);
      Tile sum =
          machine.initialize("dK", I.size(), J.size(), Holds::sums, cut_cols);  // dK_IJ (r, c)
      std::vector<bool> begun(static_cast<std::size_t>(ceil_div(I.size(), by.piece)));
      for (const Range K : blocks(Q->rows(), by.depth)) {
        if (LivePairs(problem, I, K).none()) {
          continue;
        }
        for (const bool of_values : {true, false}) {
          const Tile b = machine.read((of_values ? *dO : *Q).block(K, J), cut_cols);  // (s, c)
          for (const Range P : blocks(I.size(), by.piece)) {
            const LivePairs pairs(problem, part_of(I, P), K);
            if (pairs.none()) {
              continue;
            }
            Tile a =
                machine.read(transposed((of_values ? f : p).block(pairs.keys(), pairs.queries())),
                             cut_depth);  // (p, s)
            if (of_values && !problem.normalised()) {
              activate_near(machine, by.inner, problem.activation, pairs, a);
            }
            if (by.inner.empty()) {
              multiply_add(a, b, sum.part(P));
              continue;
            }
            auto has_begun = begun[static_cast<std::size_t>(P.begin / by.piece)];
            add_product(machine, by.inner, Stays::C, {a, pairs.queries().begin, K.begin},
                        {b, K.begin, J.begin}, {sum, I.begin, J.begin}, pairs.queries(), J, K,
                        !has_begun);
            has_begun = true;
          }
        }
      }
      machine.write(sum, dK.block(I, J));
    }
  }
}

// ---- the stages -----------------------------------------------------------------------------

std::vector<Stage> stages(const Problem& problem) {
  const auto [n, m, d] = problem.shape;
  const Index dv = problem.shape.dv;
  Problem of_values = problem;  // dO V^T
  of_values.shape.d = dv;
  const Mask live_t = transposed(problem.mask);
  const Index sums = problem.sum_words;
  const ProductShape of_dQ = ProductShape{n, d, m}.weighing(sums);
  const ProductShape of_dK = ProductShape{m, d, n}.weighing(sums);
  const ProductShape of_dV = ProductShape{m, dv, n}.weighing(sums);
  std::vector<Stage> stages;
  if (problem.sharing != Sharing::none) {
    stages = {scores_stage(
        problem.normalised() ? "f" : "s", problem, {"c Q", "K^T"},
        (problem.normalised() ? Exponentiated::kCost : Unchanged::kCost).times_scale())};
    if (problem.normalised()) {
      stages.push_back(row_dots_stage(problem));
    }
    stages.push_back(scores_stage("p", of_values, {"dO", "K^T"}, gradient_cost(problem)));
    stages.push_back(product_stage("dQ", of_dQ, {"p", "K"}, problem.mask));
    stages.push_back(joined_stage(problem));
    return stages;
  }
  if (problem.normalised()) {
    stages = {scores_stage("f", problem, {"c Q", "K^T"}, Exponentiated::kCost.times_scale()),
              product_stage("dV", of_dV, {"f^T", "dO"}, live_t), row_dots_stage(problem)};
  } else {
    stages = {scores_stage("s", problem, {"c Q", "K^T"}, Unchanged::kCost.times_scale()),
              generated_product_stage("dV", of_dV, {"f^T", "dO"}, kActivated, live_t)};
  }
  stages.push_back(scores_stage("p", of_values, {"dO", "V^T"}, gradient_cost(problem)));
  stages.push_back(product_stage("dQ", of_dQ, {"p", "K"}, problem.mask));
  stages.push_back(product_stage("dK", of_dK, {"p^T", "Q"}, live_t));
  return stages;
}

// dV = phi(s)^T dO.
void activated_dV(Machine& machine, const Plan& plan, const Operands& io, const SlowMatrix& s) {
  const Activation phi = plan.problem.activation;
  generated_product(
      machine, "dV", transposed(plan), io.in("dO"), io.out("dV"), [](Range) { return Tile(); },
      [&](const Tile&, const LivePairs& pairs, Range, const ProductLevels& levels) {
        Tile f_t = machine.read(transposed(s.block(pairs.keys(), pairs.queries())),
                                cut_of(levels, &ProductBlocks::depth));
        activate_near(machine, levels, phi, pairs, f_t);
        return f_t;
      });
}

void code_shared(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const Blocks& by = plan.blocks;
  const float c = plan.problem.scale();
  const SlowMatrix& Q = io.in("Q");
  const SlowMatrix& K = io.in("K");
  const SlowMatrix& dO = io.in("dO");
  SlowMatrix f = score_matrix(workspace, "f", plan.problem);
  SlowMatrix p = score_matrix(workspace, "p", plan.problem);
  if (plan.problem.normalised()) {
    Exponentiated exponentiated(io.in("L"), c);
    scores_phase(machine, "f", plan, Q, K, exponentiated, f);
    SlowMatrix v = workspace.matrix("v", plan.problem.shape.n, 1).holding(Holds::sums);
    row_dots(machine, by, dO, io.in("O"), v);
    ScoreGradient gradient(f, &v, c);
    scores_phase(machine, "p", plan, dO, K, gradient, p);
  } else {
    Unchanged unchanged(c);
    scores_phase(machine, "s", plan, Q, K, unchanged, f);
    ScoreGradient gradient(f, nullptr, c);
    scores_phase(machine, "p", plan, dO, K, gradient, p);
  }
  product_phase(machine, "dQ", by, p, K, io.out("dQ"), plan.problem.mask);
  joined_product(machine, transposed(plan), io, f, p);
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  if (plan.problem.sharing != Sharing::none) {
    return code_shared(machine, plan, io, workspace);
  }
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
}  // namespace in_gradients_tiles

Kernel gradients_tiles() {
  using namespace in_gradients_tiles;
  return {.name = "gradients/tiles",
          .summary = "tiles of scores stay: f, then p, in slow memory; products for the rest",
          .pass = Pass::gradients,
          .operands = {kQ, kK, kV, kdO, kO, kL},
          .returns = {kdQ, kdK, kdV},
          .shares_keys = true,
          .takes_activations = true,
          .kin = "backward/tiles",
          .schedule = {.code = code},
          .formula = {.cost = cost_of(stages),
                      .level_cost = level_cost_of(stages),
                      .intermediates =
                          [](const Problem& problem, const Blocks&) {
                            const Index scores = problem.sharing == Sharing::none ? 1 : 2;
                            return scores * problem.pairs() +
                                   Words(problem.shape.n) * problem.row_columns();
                          },
                      .nest = nest_of(stages)},
          .fitting = level_fitting_of(stages)};
}

}  // namespace redblue
