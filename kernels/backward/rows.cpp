// g with rows in fast memory: for a row block I, S_I = A1_I X, G_I = dO_I Y^T and the sums that
// become W_I = p_I A2 stay while keys pass (q_ij = G_i . A3_j, so that h = A3 Y is never made).
//
// The family has two axes. First: O and L are given, and W is one sum, in three products of n m d;
// or nothing is given beyond dO, and W is made of two sums, in four (kernels/parts/row_sums.hpp).
// Second: A1_I^T W_I is added to g at once; or W goes to the slow store and g = A1^T W is a
// product, for fast memories below 3 d^2, where T = ceil(n / Br) is large. There S and G, too, are
// products where that moves fewer words than these:
//
//                    reads and writes
//   rows             2 m d T + 4 d^2 T - d^2 + (4 d - kept) n + n
//   rows-onepass     2 m d T + 4 d^2 T - d^2 + (3 d - kept) n
//   rows-w           2 m d T + 2 d^2 T + 4 d n + n, and those of the product
//   rows-onepass-w   2 m d T + 2 d^2 T + 3 d n, and those of the product
//
// `kept` columns of A1_I stay until they meet W_I. Under a mask each row block brings the keys that
// it meets.

#include "kernels/parts/rows.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/projected_rows.hpp"
#include "kernels/parts/row_sums.hpp"
#include "kernels/parts/scores.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

// The loops over row blocks and keys, up to W_I, with `first` as the phases S and G, and `last` as
// what becomes of W_I.
template <class First, class Last>
void rows_nest(NestWriter& nest, const RowPlan& by, Start start, const First& first,
               const Last& last) {
  const Problem& problem = by.problem;
  const Index d = problem.shape.d;
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const NestLoop J = key_loop(by, I);
  const NestTile kept("A1", I, by.kept), S("S", I, d), G("G", I, d), W("W", I, d);
  const NestTile L("L", I, problem.row_words()), v("v", I, problem.row_words());
  nest.loop(I, [&] {
    first(I, kept, S);
    nest.phase("core", [&] {
      if (start == Start::given) {
        nest.read({L});
      }
      index_nest(nest, by.units().sum());
      if (start == Start::given) {
        nest.loop(J, {kept, S, G, L, v, W}, [&] {
          nest.step(p_text(problem, "S_I A2_J^T", "G_I " + values_text(problem) + "^T") +
                        "; W_I += p A2_J",
                    key_tiles(problem, J));
        });
      } else {
        const NestTile U("U", I, d), Z("Z", I, d), maximum("max", I), sum("sum", I),
            mean("mean", I);
        nest.loop(J, {kept, S, G, U, Z, maximum, sum, mean}, [&] {
          nest.step("e = exp(S_I A2_J^T - max_I); q = G_I " + values_text(problem) +
                        "^T - mean_I; U_I += e q A2_J; Z_I += e A2_J",
                    key_tiles(problem, J));
        });
        nest.step("W_I = U_I / sum_I");
      }
    });
    last(I, W);
  });
}

void gradients_nest(NestWriter& nest, const RowPlan& by, Start start, const NestLoop& I,
                    const NestWriter::Tiles& stays) {
  if (start == Start::given) {
    row_gradients_nest(nest, by, I, stays);
  } else {
    rows_times_nest(nest, by, I, {"G", "dO", "Y", true}, stays);
  }
}

// G_I^T, and v where O and L are given.
RowGradients gradients(Machine& machine, const RowPlan& by, const Operands& io, Start start,
                       Range I) {
  if (start == Start::given) {
    return row_gradients(machine, by, io, I);
  }
  return {rows_times_transposed(machine, by, "G", io.in("dO"), I, io.in("Y")), {}};
}

template <class Sums>
Tile over_keys(Machine& machine, const RowPlan& by, const Operands& io, Range I, Sums sums,
               const Tile& s_t, const Tile& g_t) {
  for (const KeyTiles& keys : KeyStream(machine, by, io, I)) {
    sums.add(keys, I, s_t, g_t);
  }
  return sums.take();
}

// W_I = p_I A2. S_I and G_I are taken by value: they are given back when W_I is there.
Tile core(Machine& machine, const RowPlan& by, const Operands& io, Start start, Range I, Tile s_t,
          RowGradients of_rows) {
  const Phase phase(machine, "core");
  auto& [g_t, v] = of_rows;
  if (start == Start::given) {
    Tile l = read_of_rows(machine, by.problem, io, "L", I);
    return over_keys(machine, by, io, I,
                     KnownGradientSums(machine, by, I.size(), std::move(l), std::move(v)), s_t,
                     g_t);
  }
  return over_keys(machine, by, io, I, GradientSums(machine, by, I.size()), s_t, g_t);
}

std::vector<PhaseCost> part_cost(const Problem& problem, const Blocks& blocks, Start start,
                                 Range units, bool partials) {
  const Index d = problem.shape.d;
  const RowPlan by(problem, blocks);
  const bool given = start == Start::given;
  const Units::Sum of = by.units().sum(units);
  const Words r = of.largest;
  PhaseCost G = given ? row_gradients_cost(by, of) : rows_times_cost("G", by, of);
  const Words kept = r * by.kept;  // of A1
  G.peak += r * d + kept;          // S
  const Words sums = given ? KnownGradientSums::words(by, r) : GradientSums::words(by, r);
  const Index products = given ? KnownGradientSums::kProducts : GradientSums::kProducts;
  return {
      rows_times_cost("S", by, of),
      G,
      // S, G and what is kept of A1 beside the sums; A2_J and A3_J.
      with_index(
          {.path = "core",
           .reads = (given ? of.rows * problem.row_words() : 0) + of.met * problem.key_words(),
           .writes = 0,
           .peak = 2 * r * d + kept + sums + by.key_words(of.longest) + of.index_live,
           .flops = 2 * products * of.pairs * d},
          of),
      add_gradient_cost(by, units, partials),
  };
}

// ---- g at once ---------------------------------------------------------------------------

Nest adding_nest(const Problem& problem, const Blocks& blocks, Start start) {
  const RowPlan by(problem, blocks);
  NestWriter nest;
  rows_nest(
      nest, by, start,
      [&](const NestLoop& I, const NestTile& kept, const NestTile& S) {
        rows_times_nest(nest, by, I, {"S", "A1", "X"}, {});
        gradients_nest(nest, by, start, I, {kept, S});
      },
      [&](const NestLoop& I, const NestTile& W) { add_gradient_nest(nest, by, I, W); });

  return nest.lines();
}

Kernel adding_to_g(Start start) {
  Kernel kernel = row_kernel(
      [start](Machine& machine, const RowPlan& by, const Operands& io, Index unit,
              SlowMatrix* partials) {
        const Range I = by.units()[unit];
        const Start from = start_of(by.problem, start);
        auto [s_t, a1_t] = row_scores(machine, by, io, I);
        RowGradients of_rows = gradients(machine, by, io, from, I);
        const Tile W = core(machine, by, io, from, I, std::move(s_t), std::move(of_rows));
        add_gradient(machine, by, io, unit, W, std::move(a1_t), partials);
      },
      [start](const Problem& problem, const Blocks& blocks, Range units, bool partials) {
        return part_cost(problem, blocks, start_of(problem, start), units, partials);
      });
  kernel.formula.nest = [start](const Problem& problem, const Blocks& blocks) {
    return adding_nest(problem, blocks, start_of(problem, start));
  };
  return kernel;
}

// ---- W in the slow store -----------------------------------------------------------------

constexpr ProductShape gradient_product(const Problem& problem) {
  return {.rows = problem.shape.d, .cols = problem.shape.d, .depth = problem.shape.n};
}

Nest storing_nest(const Problem& problem, const Blocks& blocks, Start start) {
  const RowPlan by(problem, blocks);
  NestWriter nest;
  projected_rows_nest(nest, by, blocks, {"S", "A1", "X"});
  projected_rows_nest(nest, by, blocks, {"G", "dO", "Y", true});
  const bool stores_v = made_before("G", blocks) && start == Start::given && problem.normalised();
  if (stores_v) {
    nest.phase("v", [&] { row_dots_nest(nest, problem, blocks); });
  }
  rows_nest(
      nest, by, start,
      [&](const NestLoop& I, const NestTile&, const NestTile& S) {
        read_projected_rows_nest(nest, by, blocks, I, {"S", "A1", "X"}, {});
        if (made_before("G", blocks)) {
          read_projected_rows_nest(nest, by, blocks, I, {"G", "dO", "Y", true}, {S});
        } else {
          gradients_nest(nest, by, start, I, {S});
        }
        if (stores_v) {
          nest.phase("v", [&] { nest.read({{"v", I}}); });
        }
      },
      [&](const NestLoop&, const NestTile& W) { nest.phase("W", [&] { nest.write({W}); }); });
  product_phase_nest(nest, {"g", "A1^T", "W"}, gradient_product(problem), blocks);
  return nest.lines();
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace,
          Start start) {
  const Index n = plan.problem.shape.n;
  const Blocks& blocks = plan.blocks;
  const RowPlan by(plan.problem, blocks);
  const SlowMatrix& A1 = io.in("A1");
  const SlowMatrix& dO = io.in("dO");
  const bool stores_G = made_before("G", blocks);
  SlowMatrix W = workspace.matrix("W", n, plan.problem.shape.d);
  {
    const ProjectedRows S(machine, by, blocks, "S", A1, io.in("X"), workspace);
    const ProjectedRows G(machine, by, blocks, "G", dO, transposed(io.in("Y")), workspace);
    std::optional<SlowMatrix> v;
    if (stores_G && start == Start::given && plan.problem.normalised()) {
      v = workspace.matrix("v", n, 1).holding(Holds::sums);
      row_dots(machine, blocks, dO, io.in("O"), *v);
    }
    const auto gradients_of = [&](Range I) -> RowGradients {
      if (!stores_G) {
        return gradients(machine, by, io, start, I);
      }
      Tile g_t = G.read(machine, I);
      if (!v) {
        return {std::move(g_t), {}};
      }
      const Phase phase(machine, "v");
      return {std::move(g_t), machine.read(std::as_const(*v).row_block(I))};
    };
    for (const Range I : by.units()) {
      Tile s_t = S.read(machine, I);
      const Tile w = core(machine, by, io, start, I, std::move(s_t), gradients_of(I));
      const Phase phase(machine, "W");
      machine.write(w, W.row_block(I));
    }
  }
  product_phase(machine, "g", blocks, transposed(A1), W, io.out("g"));
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks, Start start) {
  const RowPlan by(problem, blocks);
  const Range units{0, by.units().size()};
  const std::vector<PhaseCost> rows = part_cost(problem, blocks, start, units, false);
  const Index r = by.units().sum().largest;
  const Words rd = Words(r) * problem.shape.d;
  std::vector<PhaseCost> phases = {projected_rows_cost("S", by, blocks)};
  if (made_before("G", blocks)) {
    phases.push_back(projected_rows_cost("G", by, blocks, rd));
    if (start == Start::given && problem.normalised()) {
      PhaseCost v = row_dots_cost(problem, blocks);
      v.reads += problem.shape.n;
      v.peak = std::max(v.peak, 2 * rd + r);
      phases.push_back(v);
    }
  } else {
    phases.push_back(rows[1]);
  }
  phases.push_back(rows[2]);
  phases.push_back({.path = "W",
                    .reads = 0,
                    .writes = Words(problem.shape.n) * problem.shape.d,
                    .peak = rd,
                    .flops = 0});
  phases.push_back(product_phase_cost("g", gradient_product(problem), blocks));
  return phases;
}

Blocks fit(const Problem& problem, Index M, Objective objective, Start start) {
  const auto fit_rows = objective == Objective::words ? fewest_words : fastest;
  Blocks blocks = fit_rows(problem, M, [start](const Problem& of, const Blocks& by) {
    return part_cost(of, by, start, {0, RowPlan(of, by).units().size()}, false);
  });
  const RowPlan by(problem, blocks);
  const bool given = start == Start::given && problem.normalised();
  plan_projected_rows("S", by, M, objective, blocks);
  // Where G is made before, dO and O pass once more for v, which is written and read.
  const Words for_v = given ? Words(problem.shape.n) * (problem.shape.d + 2) : Words(0);
  plan_projected_rows("G", by, M, objective, blocks, for_v);
  if (given && made_before("G", blocks)) {
    plan_row_dots(problem, M, blocks);
  }
  plan_product("g", gradient_product(problem), M, objective, blocks);
  return blocks;
}

Words intermediates(const Problem& problem, const Blocks& blocks, Start start) {
  const Words nd = Words(problem.shape.n) * problem.shape.d;
  const bool stores_G = made_before("G", blocks);
  return nd + (made_before("S", blocks) ? nd : 0) + (stores_G ? nd : 0) +
         (stores_G && start == Start::given ? problem.shape.n * problem.row_words() : 0);
}

Kernel storing_W(Start start) {
  Kernel kernel;
  kernel.pass = Pass::backward;
  kernel.shares_keys = true;
  kernel.schedule.code = [start](Machine& machine, const Plan& plan, const Operands& io,
                                 Workspace& workspace) {
    code(machine, plan, io, workspace, start_of(plan.problem, start));
  };
  kernel.formula.cost = [start](const Problem& problem, const Blocks& blocks) {
    return cost(problem, blocks, start_of(problem, start));
  };
  kernel.formula.intermediates = [start](const Problem& problem, const Blocks& blocks) {
    return intermediates(problem, blocks, start_of(problem, start));
  };
  kernel.formula.nest = [start](const Problem& problem, const Blocks& blocks) {
    return storing_nest(problem, blocks, start_of(problem, start));
  };
  kernel.fitting.fit = [start](const Problem& problem, const Memory& memory, Objective objective) {
    return fit(problem, memory.M, objective, start_of(problem, start));
  };
  kernel.numerics = {.Y_meets_rows = true};
  return kernel;
}

Words key_blocks(const Problem& problem, const Blocks& blocks) {
  return problem.key_pieces(blocks["Bc"]);
}

}  // namespace

Kernel backward_rows(std::string_view name, std::string_view summary, Start start, Sink sink) {
  Kernel kernel = sink == Sink::gradient ? adding_to_g(start) : storing_W(start);
  kernel.name = name;
  kernel.summary = summary;
  kernel.operands = {kA1, kA2, kA3, kX, kY, kdO};
  kernel.returns = {kg};
  kernel.takes_activations = true;

  kernel.axes = {{"q", "made"}, {"sink", sink == Sink::gradient ? "g" : "W"}};
  if (start == Start::given) {
    kernel.operands.insert(kernel.operands.end(), {kO, kL});
  } else {
    kernel.numerics.recentred_blocks = key_blocks;
    kernel.kin = sink == Sink::stored ? "backward/rows-onepass" : "";
  }
  return kernel;
}

}  // namespace redblue
