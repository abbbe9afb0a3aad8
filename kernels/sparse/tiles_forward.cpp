// forward/sparse-tiles: tiles compute the scores and write them to slow memory. Then tiles of Z =
// softmax(s) A3 stay: w columns of a block of queries. The stored scores stream, with the words of
// A3 in these columns for the keys that the block meets. Last, O = Z Y.
//
//   reads   ceil(d / w) (pairs + pattern) + d sum |keys of a block| + n (L)
//   writes  n d
//   peak    r w + 2 r + w + 4   (with a bit for each query: 3)

#include <algorithm>
#include <string>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/registry.hpp"
#include "kernels/sparse/arithmetic.hpp"
#include "kernels/sparse/tiles.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

constexpr const char* kWidth = "w";

// For a block of queries, L, Z and the pointer to the block's end stay. The pattern and the scores
// of a key stream with its words of A3.
Words values_peak(const Problem& problem, Index r, Index w, Index live_pattern) {
  return Words(r) * (problem.row_words() + w) + 1 + live_pattern + r + w;
}

PhaseCost values_cost(const Problem& problem, const StoredScores& stored, Index width) {
  const Shape& shape = problem.shape;
  const Index w = std::min(width, shape.d), passes = ceil_div(shape.d, width);
  Words peak = Words(stored.size) * (problem.row_words() + w) + 1;
  stored.live.each_size(stored.size, stored.last_size, [&](Index r) {
    peak = std::max(peak, values_peak(problem, r, w, stored.live_pattern()));
  });
  return {.path = "Z",
          .reads = passes * (stored.pattern() + stored.pairs) + stored.met * shape.d +
                   Words(shape.n) * problem.row_words(),
          .writes = Words(shape.n) * shape.d,
          .peak = peak,
          .flops = 2 * stored.pairs * shape.d,
          .index_reads = passes * stored.pattern()};
}

StoredScores stored_with(const Problem& problem, const Blocks& blocks) {
  return {problem.sparsity, GroupCounts(problem.sparsity.S(), blocks["r"])};
}

void sum_values(Machine& machine, const Plan& plan, const SlowMatrix* s, const SlowMatrix& A3,
                const SlowMatrix* L, SlowMatrix& Z) {
  const Phase phase(machine, "Z");
  const Problem& problem = plan.problem;
  const StoredScores stored = stored_with(problem, plan.blocks);
  for (const Range I : blocks(problem.shape.n, stored.size)) {
    const ByColumns pairs(pairs_of(problem.sparsity, I), {0, I.size()});
    const Tile l = L == nullptr ? Tile() : machine.read(L->row_block(I));  // L_I (r)
    for (const Range K : blocks(problem.shape.d, plan.blocks[kWidth])) {
      Tile z = machine.initialize("Z", I.size(), K.size());  // Z_IK (r, w)
      const Tile end = machine.read_indices(1);
      for (Index key = 0; key < problem.shape.m; ++key) {
        if (!pairs.has(key)) {
          continue;
        }
        const auto queries = pairs[key];
        const Tile pattern =
            machine.read_indices(stored.pattern(std::ssize(queries)), stored.live_pattern());
        Tile f = machine.read(s->block(I, {key, key + 1}));         // f_Ij (r)
        const Tile a3 = machine.read(A3.block({key, key + 1}, K));  // A3_jK (1, w)
        if (problem.normalised()) {
          exponentiate(f, l, f);
        }
        for (const ByColumns::Entry& of : queries) {
          add_scaled_row(z, of.row, f, of.row, a3);
        }
        machine.computed(Operations{.flops = 2 * std::ssize(queries) * K.size()});
      }
      machine.write(z, Z.block(I, K));
    }
  }
}

void values_nest(NestWriter& nest, const Problem& problem, const StoredScores& stored,
                 Index width) {
  const PhaseCost cost = values_cost(problem, stored, width);
  const NestLoop I("I", "queries", problem.shape.n, stored.size);
  const NestLoop K("K", "columns", problem.shape.d, std::min(width, problem.shape.d));
  const NestTile L("L", I, problem.row_words()), Z("Z", I, K);
  const Words A3 = stored.met * problem.shape.d;
  const Words s = cost.reads.value() - A3.value() - problem.shape.n * problem.row_words();
  nest.phase("Z", [&] {
    nest.loop(I, [&] {
      nest.read({L});
      nest.loop(K, {L}, [&] {
        nest.loop({"j", "keys", problem.shape.m, 1}, {Z}, [&] {
          nest.step(problem.normalised() ? "Z_IK += f_Ij A3_jK, of f_Ij = exp(s_Ij - L_I)"
                                         : "Z_IK += f_Ij A3_jK",
                    {tile_words("s", s), tile_words("A3", A3)});
        });
        nest.write({Z});
      });
    });
  });
}

Stage values_stage(const Problem& problem) {
  return {.put = [](Index, Objective, Blocks&) {},  // planned with the tiles of scores
          .cost = [=](const Blocks& blocks) -> std::vector<PhaseCost> {
            return {values_cost(problem, stored_with(problem, blocks), blocks[kWidth])};
          },
          .nest =
              [=](NestWriter& nest, const Blocks& blocks) {
                values_nest(nest, problem, stored_with(problem, blocks), blocks[kWidth]);
              }};
}

// Takes the widest columns that fit, and returns the words that stored scores move with them.
WordsBeside beside_values(const Problem& problem) {
  return [=](const GroupCounts& S, Index M, Blocks& blocks) -> std::optional<Words> {
    const StoredScores stored(problem.sparsity, S);
    const auto fits = [&](Index w) {
      return values_peak(problem, S.size, w, stored.live_pattern()) <= Words(M);
    };
    const Index w = largest(std::min(problem.shape.d, M), fits);
    set_block(blocks, kWidth, w);
    if (!fits(w)) {
      return std::nullopt;
    }
    const PhaseCost cost = values_cost(problem, stored, w);
    return cost.reads + cost.writes + stored.pairs + stored.pattern();
  };
}

std::vector<Stage> forward_stages(const Problem& problem) {
  const auto [n, m, d] = problem.shape;
  return {sparse_tiles_stage(problem, Pass::forward, beside_values(problem)), values_stage(problem),
          product_stage("O", {n, d, d}, {"Z", "Y"})};
}

void forward_code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.problem.shape;
  std::optional<SlowMatrix> s = stored_scores(workspace, "s", plan.problem);
  over_tiles(machine, plan, io, workspace, s ? &*s : nullptr);
  SlowMatrix Z = workspace.matrix("Z", n, d);
  sum_values(machine, plan, s ? &*s : nullptr, io.in("A3"),
             plan.problem.normalised() ? &io.out("L") : nullptr, Z);
  s.reset();
  product_phase(machine, "O", plan.blocks, Z, io.in("Y"), io.out("O"));
}

}  // namespace

Kernel forward_sparse_tiles() {
  Kernel kernel;
  kernel.name = "forward/sparse-tiles";
  kernel.summary = "tiles of scores stay, then tiles of Z = softmax(s) A3, and O = Z Y";
  kernel.pass = Pass::forward;
  kernel.takes_sparse = true;
  kernel.takes_activations = true;
  kernel.operands = {kSparseA1, kSparseX, kSparseA2, kA3, kY};
  kernel.returns = {kO, kL};
  kernel.schedule.code = forward_code;
  kernel.formula.cost = cost_of(forward_stages);
  kernel.formula.intermediates = [](const Problem& problem, const Blocks&) {
    return std::max(sparse_tiles_intermediates(problem, Pass::forward),
                    problem.sparsity.pairs() + Words(problem.shape.n) * problem.shape.d);
  };
  kernel.formula.nest = nest_of(forward_stages);
  kernel.fitting = fitting_of(forward_stages);
  kernel.numerics = {.rescales = rescales_of_tiles, .Y_meets_rows = true};
  return kernel;
}

}  // namespace redblue
