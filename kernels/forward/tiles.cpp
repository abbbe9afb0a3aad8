// Computes O and L with raw scores in slow memory, for caches below d^2. First, rows of S or tiles
// of scores are resident while A2 streams, and L is computed along the way. Then O = exp(s - L) h
// is a product that exponentiates the scores it reads. Words in units of n^2, with x = d / sqrt(M)
// and n = m >> d: (x + 1)^2 for x < 2, 4 x + 1 beyond.
//
// attention/tiles is the same without the products S and h. With an activation other than softmax,
// f is stored, and O = f h is an ordinary product. Under a mask, only scores of live pairs exist,
// and dead tiles are not moved.

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/generated_product.hpp"
#include "kernels/parts/stages.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace in_forward_tiles {
namespace {

// exp(s - L). L of the rows stays in fast memory with their block.
constexpr FactorCost kFactor{.columns = 1,
                             .reads = 1,
                             .row_reads = 1,
                             .text = "f = exp(s - L)",
                             .column_names = {"L"},
                             .near = Exponentiated::kCost.near};

std::vector<Stage> stages(const Problem& problem) {
  const Products of(problem);
  const InputNames names = input_names(problem);
  const EpilogueCost& of_scores = problem.normalised() ? Measured::kCost : Activated::kCost;
  const auto product_of_f = [&](const ProductShape& shape, const FactorNames& factors) {
    return problem.normalised()
               ? generated_product_stage("O", shape, factors, kFactor, problem.mask)
               : product_stage("O", shape, factors, problem.mask);
  };
  if (problem.inputs == Inputs::plain) {
    return {
        scores_stage("s", problem, {"c Q", "K^T"}, of_scores.times_scale()),
        product_of_f(of.O, {"f", names.values}),
    };
  }
  return {
      product_stage("S", of.S, {"A1", "X"}),
      scores_stage("s", problem, {"S", "A2^T"}, of_scores),
      product_stage("h", of.h, {names.values, "Y"}),
      product_of_f(of.W, {"f", "h"}),
  };
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.problem.shape;
  const Blocks& by = plan.blocks;
  const InputNames names = input_names(plan.problem);
  const bool weighted = plan.problem.inputs == Inputs::weighted;
  const bool normalised = plan.problem.normalised();
  SlowMatrix s = score_matrix(workspace, "s", plan.problem);
  {
    std::optional<SlowMatrix> sums;
    if (normalised) {
      sums = workspace.matrix("sum", n, 1).holding(Holds::sums);
    }
    std::optional<SlowMatrix> S;
    if (weighted) {
      S = workspace.matrix("S", n, d);
      product_phase(machine, "S", by, io.in("A1"), io.in("X"), *S);
    }
    const auto c = weighted ? std::nullopt : std::optional(plan.problem.scale());
    const auto make_scores = [&](ScoreEpilogue&& epilogue) {
      scores_phase(machine, "s", plan, S ? *S : io.in(names.queries), io.in(names.keys), epilogue,
                   s);
    };
    if (normalised) {
      make_scores(Measured(io.out("L"), *sums, c));
    } else {
      make_scores(Activated(plan.problem.activation, c));
    }
  }
  std::optional<SlowMatrix> h;
  if (weighted) {
    h = workspace.matrix("h", m, d);
    product_phase(machine, "h", by, io.in(names.values), io.in("Y"), *h);
  }
  if (!normalised) {
    return product_phase(machine, "O", by, s, h ? *h : io.in(names.values), io.out("O"),
                         plan.problem.mask);
  }
  const SlowMatrix& L = io.out("L");
  generated_product(
      machine, "O", plan, h ? *h : io.in(names.values), io.out("O"),
      [&](Range I) { return machine.read(L.row_block(I)); },
      [&](const Tile& l, const LivePairs& pairs, Range part, const ProductLevels& levels) {
        Tile f = machine.read(std::as_const(s).block(pairs.queries(), pairs.keys()),
                              cut_of(levels, &ProductBlocks::depth));  // s_PK (p, s)
        pass_over(
            machine, levels, &ProductBlocks::depth, 0, f.rows(), f.cols(),
            [&]() -> std::vector<Near> {
              return {of_pairs(f, Use::changes), near_rows(l, Use::reads, part.begin)};
            },
            [&](Range rows, Range keys) {
              const View near = f.part(rows, keys);
              pairs.part(rows, keys).set_dead(near, kDeadScore);
              exponentiate(near, l.part(part_of(part, rows)), near);
            });
        return f;
      });
}

Words intermediates(const Problem& problem, const Blocks&) {
  const auto [n, m, d] = problem.shape;
  const Words sums = Words(n) * problem.row_columns();
  if (problem.inputs == Inputs::plain) {
    return problem.pairs() + sums;
  }
  return problem.pairs() + std::max(Words(n) * d + sums, Words(m) * d);
}

}  // namespace
}  // namespace in_forward_tiles

Kernel forward_tiles() {
  using namespace in_forward_tiles;
  return {.name = "forward/tiles",
          .summary = "raw scores in slow memory, L made along the way; O = exp(s - L) h a product",
          .pass = Pass::forward,
          .operands = {kA1, kA2, kA3, kX, kY},
          .returns = {kO, kL},
          .shares_keys = true,
          .takes_activations = true,
          .schedule = {.code = code},
          .formula = {.cost = cost_of(stages),
                      .level_cost = level_cost_of(stages),
                      .intermediates = intermediates,
                      .nest = nest_of(stages)},
          .fitting = level_fitting_of(stages),
          .numerics = {.rescales = rescales_by_tiles}};
}

}  // namespace redblue
