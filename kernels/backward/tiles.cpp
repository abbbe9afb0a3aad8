// Computes g with tiles of scores in fast memory, for caches far below d^2. The n x m matrices of
// scores are written to slow memory tile by tile. All other steps are products with a resident
// block.
//
//   tiles         after a forward pass: f = exp(s - L), overwritten by p = f (q - v); W = p A2
//   tiles-shared  the same if A3 is A2: two tiles, of s and q, read A2 together and become p
//   tiles-sqp     from scratch: raw s, with L; q, with v; p overwrites q
//   tiles-sq      from scratch, without storing p: W = p A2 computes it from s and q when needed
//
// They move, in units of n^2 with x = d / sqrt(M) > 2 and n = m >> d: 6 x + 3, 6 x + 1, 6 x + 6,
// 6.8 x + 3. Under a mask only the scores of live pairs are moved, and no dead tile.

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/generated_product.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/stages.hpp"
#include "kernels/registry.hpp"
#include "kernels/units.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace in_backward_tiles {
namespace {

// Leaves q unchanged, and computes v = rowsum(f q) with f = exp(s - L).
class Weighed : public ScoreEpilogue {
 public:
  static EpilogueCost cost(const Problem& problem) {
    const Index dead = problem.mask.full() ? 0 : 1;  // dead words of q are set
    return {.columns = 2,
            .tiles = 1,
            .reads = 1,
            .row_reads = 1,
            .row_reads_again = 1,
            .row_writes = 1,
            .names = {.text = "read s; v += rowsum(exp(s - L) * q)",
                      .columns = {"L", "v"},
                      .row_reads = "L",
                      .row_writes = "v"},
            .near = {.beside = 1,
                     .row_words = 2,
                     .reads = 2,
                     .writes = dead,
                     .row_reads = 2,
                     .row_writes = 1}};
  }
  Weighed(const SlowMatrix& s, const SlowMatrix& L, SlowMatrix& v) : s_(s), L_(L), v_(v) {}
  RowTiles enter(Machine& machine, const LivePairs& pairs, const StayingRows*) override {
    const Range I = pairs.queries();
    Tile l = live_column(machine, L_, pairs);
    const Ranges before = pairs.met_before();
    return {std::move(l),
            before.empty()
                ? machine.initialize("v", I.size())
                : machine.read(
                      LiveRows(std::as_const(v_), pairs.problem().mask, before)->row_block(I))};
  }
  void apply(Machine& machine, Tile& q, Range part, const LivePairs& pairs, RowTiles& of,
             Range within) override {
    Tile f = machine.read(s_.block(pairs.queries(), pairs.keys()),
                          cut_of(levels(), &ProductBlocks::cols));  // s_PJ (p, c)
    const Use of_q = pairs.problem().mask.full() ? Use::reads : Use::changes;
    over(
        machine, pairs, 1,
        [&]() -> std::vector<Near> {
          return {of_pairs(q, of_q, part.begin), of_pairs(f, Use::reads),
                  near_rows(of.first, Use::reads, within.begin),
                  near_rows(of.second, Use::changes, within.begin)};
        },
        [&](Range rows, Range columns) {
          const View near_f = f.part(rows, columns), near_q = q.part(part_of(part, rows), columns);
          const LivePairs live = pairs.part(rows, columns);
          live.set_dead(near_f, kDeadScore);
          live.set_dead(near_q, 0);
          exponentiate(near_f, of.first.part(part_of(within, rows)), near_f);
          add_row_dots(near_f, near_q, of.second.part(part_of(within, rows)));
        });
  }
  void leave(Machine& machine, RowTiles& of, const LivePairs& pairs) override {
    machine.write(of.second,
                  LiveRows(v_, pairs.problem().mask, pairs.met())->row_block(pairs.queries()));
  }

 private:
  const SlowMatrix& s_;
  const SlowMatrix& L_;
  SlowMatrix& v_;
};

// Slow memory holds S, h or W in turn, and f, which becomes p.
std::vector<Stage> stages(const Problem& problem) {
  const Products of(problem);
  std::vector<Stage> stages = {
      product_stage("S", of.S, {"A1", "X"}),
      scores_stage("f", problem, {"S", "A2^T"},
                   problem.normalised() ? Exponentiated::kCost : Unchanged::kCost),
      product_stage("h", of.h, {"A3", "Y"}),
  };
  if (problem.normalised()) {
    stages.push_back(row_dots_stage(problem));
  }
  stages.push_back(scores_stage("p", problem, {"dO", "h^T"}, ScoreGradient::cost(problem)));
  stages.push_back(product_stage("W", of.W, {"p", "A2"}, problem.mask));
  stages.push_back(product_stage("g", of.g, {"A1^T", "W"}));
  return stages;
}

void gradient(Machine& machine, const Plan& plan, const Operands& io, const SlowMatrix& p,
              Workspace& workspace) {
  SlowMatrix W = workspace.matrix("W", plan.problem.shape.n, plan.problem.shape.d);
  product_phase(machine, "W", plan.blocks, p, io.in("A2"), W, plan.problem.mask);
  product_phase(machine, "g", plan.blocks, transposed(io.in("A1")), W, io.out("g"));
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.problem.shape;
  const Blocks& by = plan.blocks;
  const bool normalised = plan.problem.normalised();
  SlowMatrix p = score_matrix(workspace, "p", plan.problem);
  {
    SlowMatrix S = workspace.matrix("S", n, d);
    product_phase(machine, "S", by, io.in("A1"), io.in("X"), S);
    if (normalised) {
      Exponentiated f(io.in("L"));
      scores_phase(machine, "f", plan, S, io.in("A2"), f, p);
    } else {
      Unchanged s;
      scores_phase(machine, "f", plan, S, io.in("A2"), s, p);
    }
  }
  {
    SlowMatrix h = workspace.matrix("h", m, d);
    std::optional<SlowMatrix> v;
    product_phase(machine, "h", by, io.in("A3"), io.in("Y"), h);
    if (normalised) {
      v = workspace.matrix("v", n, 1).holding(Holds::sums);
      row_dots(machine, by, io.in("dO"), io.in("O"), *v);
    }
    ScoreGradient of_scores(p, v ? &*v : nullptr);
    scores_phase(machine, "p", plan, io.in("dO"), h, of_scores, p);
  }
  gradient(machine, plan, io, p, workspace);
}

Words intermediates(const Problem& problem, const Blocks&) {
  const auto [n, m, d] = problem.shape;
  return problem.pairs() + std::max(Words(n) * d, Words(m) * d + Words(n) * problem.row_columns());
}

// The shared schedule, for A3 = A2: S and G = dO Y^T are in slow memory, and one pass over A2
// computes both s and q = G A2^T.

// The number of reads of rows of S and G, and of rows of A2.
struct Comings {
  Words rows, keys;
};
Comings comings(const Problem& problem, const StationaryBlocks& by) {
  return {Units::of_keys(problem, by.cols).sum().met,
          Units::of_queries(problem, by.rows).sum().met};
}

PhaseCost both_cost(const Problem& problem, const StationaryBlocks& by) {
  const auto [n, m, d] = problem.shape;
  const Words r = std::min(n, by.rows);
  const Words c = std::min(m, by.cols);
  const Words s = std::min(d, by.depth);
  const Words p = std::min(r, Words(by.piece));
  const Comings of = comings(problem, by);
  const Words all = problem.pairs();
  const Units::Sum queries = Units::of_queries(problem, by.rows).sum();
  return with_index({.path = "p",
                     .reads = 2 * of.rows * (Words(d) + problem.row_words()) + of.keys * d,
                     .writes = all,
                     .peak = 2 * r * c + std::max(s * c + p * s, 2 * p * problem.row_words()) +
                             queries.index_live,
                     .flops = 4 * all * d},
                    queries);
}

PhaseCost both_level_cost(const Problem& problem, const StationaryBlocks& by, std::size_t level) {
  const auto [n, m, d] = problem.shape;
  const bool masked = !problem.mask.full();
  const Index one = problem.row_columns();
  LevelTally tally(by.inner, level);
  for (const auto& [I, rows] : alike(n, by.rows, masked)) {
    for (const auto& [J, columns] : alike(m, by.cols, masked)) {
      for (const auto& [P, pieces] : alike(I.size(), by.piece, masked)) {
        if (LivePairs(problem, part_of(I, P), J).none()) {
          continue;
        }
        const Words times = Words(rows) * columns * pieces;
        for (const auto& [K, slices] : alike(d, by.depth, false)) {
          tally.product({P.size(), J.size(), K.size()}, Stays::C, K.begin == 0, 2 * times * slices);
        }
        tally.pass(
            P.size(), J.size(), &ProductBlocks::cols,
            {.beside = 1, .row_words = 2 * one, .reads = 2, .writes = 1, .row_reads = 2 * one},
            times);
      }
    }
  }
  return tally.cost("p");
}

void both_nest(NestWriter& nest, const Problem& problem, const StationaryBlocks& by) {
  const auto [n, m, d] = problem.shape;
  const NestLoop I("I", "queries", n, by.rows);
  const NestLoop J("J", "keys", m, by.cols);
  const NestLoop K("K", "depth", d, by.depth);
  const NestLoop P = I.pieces("P", by.piece);
  const Comings of = comings(problem, by);
  const auto live = [&](const NestTile& tile, Words all) {
    return problem.mask.full() ? tile : tile.of_words(all);
  };
  const NestTile s("s", I, J), q("q", I, J);
  const NestTile p = live({"p", I, J}, problem.pairs()), A2 = live({"A2", J, K}, of.keys * d);
  const NestTile S = live({"S", P, K}, of.rows * d), G = live({"G", P, K}, of.rows * d);
  const Index one = problem.row_columns();
  const NestTile L = live({"L", P, one}, of.rows * one), v = live({"v", P, one}, of.rows * one);
  nest.loop(I, [&] {
    index_nest(nest, Units::of_queries(problem, by.rows).sum());
    nest.loop(J, [&] {
      nest.loop(K, {s, q}, [&] {
        nest.read({A2});
        nest.loop(P, {A2}, [&] {
          nest.step("s_PJ += S_PK A2_JK^T", {S});
          nest.step("q_PJ += G_PK A2_JK^T", {G});
        });
      });
      nest.loop(P, {s, q}, [&] { nest.step(p_text(problem, "s", "q", "P"), {L, v}); });
      nest.write({p});
    });
  });
}

struct Slow {
  const SlowMatrix &S, &G, &A2;
  const SlowMatrix *L, *v;  // null without a softmax
  SlowMatrix& p;
};

// Words of dead pairs may have any value, and are not written.
void both(Machine& machine, const Plan& plan, const Slow& x) {
  const Phase phase(machine, "p");
  const Problem& problem = plan.problem;
  const auto by = StationaryBlocks::get("p", plan.blocks);
  const CutEvery cut_cols = cut_of(by.inner, &ProductBlocks::cols);
  const CutEvery cut_depth = cut_of(by.inner, &ProductBlocks::depth);
  const Units queries = Units::of_queries(problem, by.rows);
  for (const Range I : queries) {
    const Tile index = queries.read_index(machine, I);
    const LiveRows A2(x.A2, problem.mask, problem.keys(I));
    for (const Range J : blocks(x.A2.rows(), by.cols)) {
      if (LivePairs(problem, I, J).none()) {
        continue;
      }
      const auto each_piece = [&](const auto& visit) {
        for (const Range P : blocks(I.size(), by.piece)) {
          if (const LivePairs live(problem, part_of(I, P), J); !live.none()) {
            visit(P, live);
          }
        }
      };
      Tile s = machine.initialize("s", I.size(), J.size(), Holds::scores, cut_cols);  // s_IJ (r, c)
      Tile q = machine.initialize("q", I.size(), J.size(), Holds::scores, cut_cols);  // q_IJ (r, c)
      for (const Range K : blocks(x.S.cols(), by.depth)) {
        const Tile a2 = machine.read(transposed(A2->block(J, K)), cut_cols);  // A2_JK^T (s, c)
        each_piece([&](Range within, const LivePairs& live) {
          const auto add = [&](const SlowMatrix& all, Tile& sums) {
            const LiveRows some(all, problem.mask, live.met());
            const Range P = live.queries();
            const Tile a = machine.read(some->block(P, K), cut_depth);  // S_PK or G_PK (p, s)
            if (by.inner.empty()) {
              multiply_add(a, a2, sums.part(within));
              return;
            }
            add_product(machine, by.inner, Stays::C, {a, P.begin, K.begin}, {a2, K.begin, J.begin},
                        {sums, I.begin, J.begin}, P, J, K, K.begin == 0);
          };
          add(x.S, s);
          add(x.G, q);
        });
      }
      each_piece([&](Range P, const LivePairs& live) {
        Tile l, v;  // L_P and v_P (p)
        if (problem.normalised()) {
          l = live_column(machine, *x.L, live);
          v = live_column(machine, *x.v, live);
        }
        pass_over(
            machine, by.inner, &ProductBlocks::cols, 1, P.size(), J.size(),
            [&]() -> std::vector<Near> {
              return {of_pairs(s, Use::reads, P.begin), of_pairs(q, Use::changes, P.begin),
                      near_rows(l, Use::reads), near_rows(v, Use::reads)};
            },
            [&](Range rows, Range columns) {
              const View factor = s.part(part_of(P, rows), columns);
              const View p = q.part(part_of(P, rows), columns);
              make_factor(problem, factor, l, rows);
              make_p(problem, factor, p, v, rows, p);
            });
      });
      machine.write(q, x.p.block(I, J));
    }
  }
}

std::vector<Stage> stages_shared(const Problem& problem) {
  const Products of(problem);
  std::vector<Stage> stages = {product_stage("S", of.S, {"A1", "X"}),
                               product_stage("G", of.S, {"dO", "Y^T"})};
  if (problem.normalised()) {
    stages.push_back(row_dots_stage(problem));
  }
  stages.push_back(stationary_stage(
      "p", of.scores,
      {.cost = [=](const StationaryBlocks& by,
                   const Mask& mask) { return both_cost(problem.with_mask(mask), by); },
       .level_cost =
           [=](const StationaryBlocks& by, const Mask& mask, std::size_t level) {
             return both_level_cost(problem.with_mask(mask), by, level);
           }},
      [=](NestWriter& nest, const StationaryBlocks& by) { both_nest(nest, problem, by); },
      problem.mask));
  stages.push_back(product_stage("W", of.W, {"p", "A2"}, problem.mask));
  stages.push_back(product_stage("g", of.g, {"A1^T", "W"}));
  return stages;
}

void code_shared(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.problem.shape;
  const Blocks& by = plan.blocks;
  SlowMatrix p = score_matrix(workspace, "p", plan.problem);
  {
    SlowMatrix S = workspace.matrix("S", n, d);
    SlowMatrix G = workspace.matrix("G", n, d);
    std::optional<SlowMatrix> v;
    product_phase(machine, "S", by, io.in("A1"), io.in("X"), S);
    product_phase(machine, "G", by, io.in("dO"), transposed(io.in("Y")), G);
    if (plan.problem.normalised()) {
      v = workspace.matrix("v", n, 1).holding(Holds::sums);
      row_dots(machine, by, io.in("dO"), io.in("O"), *v);
    }
    both(machine, plan, {S, G, io.in("A2"), v ? &io.in("L") : nullptr, v ? &*v : nullptr, p});
  }
  gradient(machine, plan, io, p, workspace);
}

Words intermediates_shared(const Problem& problem, const Blocks&) {
  const Words n = problem.shape.n;
  return problem.pairs() + 2 * n * problem.shape.d + n * problem.row_columns();
}

// From scratch: s and q are computed whole, and then p overwrites q.

// p overwrites q. f overwrites s and is not used again.
constexpr PassCost kNearGradient{
    .beside = 1, .row_words = 2, .reads = 2, .writes = 1, .row_reads = 2};

PhaseCost score_gradient_level_cost(const Problem& problem, const Blocks& blocks,
                                    std::size_t level) {
  const auto [n, m, d] = problem.shape;
  const bool masked = !problem.mask.full();
  LevelTally tally(levels_of_pairs("p", blocks), level);
  for (const auto& [I, rows] : alike(n, blocks["p.rows"], masked)) {
    for (const auto& [J, columns] : alike(m, blocks["p.cols"], masked)) {
      if (!LivePairs(problem, I, J).none()) {
        tally.pass(I.size(), J.size(), &ProductBlocks::cols, kNearGradient, Words(rows) * columns);
      }
    }
  }
  return tally.cost("p");
}

Stage score_gradient_stage(const Problem& problem) {
  const auto put = [=](Memory memory, Objective, Blocks& blocks) {
    memory.M = std::max<Index>(memory.M - problem.mask.index().live(), 1);
    plan_pairs("p", problem.shape.n, problem.shape.m, 2 * problem.sum_words, memory, blocks);
  };
  return {
      .put = put,
      .cost = [=](const Blocks& blocks) -> std::vector<PhaseCost> {
        const Words all = problem.pairs();
        const Units::Sum of = Units::of_queries(problem, blocks["p.rows"]).sum();
        return {with_index({.path = "p",
                            .reads = 2 * all + Words(2) * problem.shape.n * problem.sum_words,
                            .writes = all,
                            .peak = pairs_peak("p", problem.shape.n, problem.shape.m,
                                               2 * problem.sum_words, blocks) +
                                    of.index_live,
                            .flops = 0},
                           of)};
      },
      .nest =
          [=](NestWriter& nest, const Blocks& blocks) {
            const NestLoop I("I", "queries", problem.shape.n, blocks["p.rows"]);
            const NestLoop J("J", "keys", problem.shape.m, blocks["p.cols"]);
            const NestTile s = NestTile("s", I, J).of_words(problem.pairs());
            const NestTile q = NestTile("q", I, J).of_words(problem.pairs());
            const NestTile p = NestTile("p", I, J).of_words(problem.pairs());
            const NestTile L("L", I), v("v", I);
            nest.phase("p", [&] {
              nest.loop(I, [&] {
                nest.read({L, v});
                index_nest(nest, Units::of_queries(problem, blocks["p.rows"]).sum());
                nest.loop(J, {L, v}, [&] {
                  nest.step("p_IJ = exp(s_IJ - L_I) (q_IJ - v_I), where q_IJ was", {s, q}, {p});
                });
              });
            });
          },
      .put_levels = put,
      .level_cost = [=](const Blocks& blocks, std::size_t level) -> std::vector<PhaseCost> {
        return {score_gradient_level_cost(problem, blocks, level)};
      },
  };
}

// Computes p = exp(s - L) (q - v), which overwrites q.
void score_gradient(Machine& machine, const Plan& plan, const SlowMatrix& s, const SlowMatrix& L,
                    const SlowMatrix& v, SlowMatrix& q) {
  const Blocks& by = plan.blocks;
  const Phase phase(machine, "p");
  const ProductLevels inner = levels_of_pairs("p", by);
  const CutEvery cut = cut_of(inner, &ProductBlocks::cols);
  const Units queries = Units::of_queries(plan.problem, by["p.rows"]);
  for (const Range I : queries) {
    const Tile index = queries.read_index(machine, I);
    const Tile l_i = machine.read(L.row_block(I));  // L_I (r)
    const Tile v_i = machine.read(v.row_block(I));  // v_I (r)
    for (const Range J : blocks(s.cols(), by["p.cols"])) {
      if (LivePairs(plan.problem, I, J).none()) {
        continue;
      }
      Tile f = machine.read(s.block(I, J), cut);                 // s_IJ (r, c)
      Tile p = machine.read(std::as_const(q).block(I, J), cut);  // q_IJ (r, c)
      pass_over(
          machine, inner, &ProductBlocks::cols, kNearGradient.beside, I.size(), J.size(),
          [&]() -> std::vector<Near> {
            return {of_pairs(f, Use::reads), of_pairs(p, Use::changes), near_rows(l_i, Use::reads),
                    near_rows(v_i, Use::reads)};
          },
          [&](Range rows, Range columns) {
            const View near_f = f.part(rows, columns), near_p = p.part(rows, columns);
            exponentiate(near_f, l_i.part(rows), near_f);
            softmax_gradient(near_f, near_p, v_i.part(rows), near_p);
          });
      machine.write(p, q.block(I, J));
    }
  }
}

// Computes p = exp(s - L) (q - v) from pieces of s and q.
constexpr FactorCost kMadeOfScores{.columns = 2,
                                   .tiles = 1,
                                   .reads = 2,
                                   .row_reads = 2,
                                   .text = "read s, q; p = exp(s - L) (q - v)",
                                   .column_names = {"L", "v"},
                                   .near = kNearGradient};

constexpr FactorCost kMadeOfBareScores{.tiles = 1,
                                       .reads = 2,
                                       .text = "read s, q; p = phi'(s) q",
                                       .near = {.beside = 1, .reads = 2, .writes = 1}};

// The stages with p in slow memory, or with p computed from s and q when needed. Without a softmax
// p can be computed together with q; then the stages with p in slow memory are backward/tiles.
std::vector<Stage> stages_sq(const Problem& problem, bool stores_p) {
  const bool normalised = problem.normalised();
  if (stores_p && !normalised) {
    return stages(problem);
  }
  const Products of(problem);
  std::vector<Stage> stages = {
      product_stage("S", of.S, {"A1", "X"}),
      scores_stage("s", problem, {"S", "A2^T"}, normalised ? Measured::kCost : Unchanged::kCost),
      product_stage("h", of.h, {"A3", "Y"}),
      scores_stage("q", problem, {"dO", "h^T"},
                   normalised ? Weighed::cost(problem) : Unchanged::kCost),
  };
  if (stores_p) {
    stages.push_back(score_gradient_stage(problem));
    stages.push_back(product_stage("W", of.W, {"p", "A2"}, problem.mask));
  } else {
    stages.push_back(generated_product_stage(
        "W", of.W, {"p", "A2"}, normalised ? kMadeOfScores : kMadeOfBareScores, problem.mask));
  }
  stages.push_back(product_stage("g", of.g, {"A1^T", "W"}));
  return stages;
}

void code_sq(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace,
             bool stores_p) {
  const Problem& problem = plan.problem;
  const bool normalised = problem.normalised();
  if (stores_p && !normalised) {
    return code(machine, plan, io, workspace);
  }
  const auto [n, m, d] = problem.shape;
  const Blocks& by = plan.blocks;
  const SlowMatrix& A2 = io.in("A2");
  SlowMatrix q = score_matrix(workspace, "q", plan.problem);
  SlowMatrix s = score_matrix(workspace, "s", plan.problem);
  std::optional<SlowMatrix> L, v;  // v holds the sums until L is known
  if (normalised) {
    L = workspace.matrix("L", n, 1).holding(Holds::sums);
    v = workspace.matrix("v", n, 1).holding(Holds::sums);
  }
  {
    SlowMatrix S = workspace.matrix("S", n, d);
    product_phase(machine, "S", by, io.in("A1"), io.in("X"), S);
    if (normalised) {
      Measured measured(*L, *v);
      scores_phase(machine, "s", plan, S, A2, measured, s);
    } else {
      Unchanged unchanged;
      scores_phase(machine, "s", plan, S, A2, unchanged, s);
    }
  }
  {
    SlowMatrix h = workspace.matrix("h", m, d);
    product_phase(machine, "h", by, io.in("A3"), io.in("Y"), h);
    if (normalised) {
      Weighed weighed(s, *L, *v);
      scores_phase(machine, "q", plan, io.in("dO"), h, weighed, q);
    } else {
      Unchanged unchanged;
      scores_phase(machine, "q", plan, io.in("dO"), h, unchanged, q);
    }
  }
  SlowMatrix W = workspace.matrix("W", n, d);
  if (stores_p) {
    score_gradient(machine, plan, s, *L, *v, q);
    product_phase(machine, "W", by, q, A2, W, plan.problem.mask);
  } else {
    struct Rows {
      Tile l, v;
    };
    generated_product(
        machine, "W", plan, A2, W,
        [&](Range I) -> Rows {
          if (!normalised) {
            return {};
          }
          Tile l = machine.read(std::as_const(*L).row_block(I));
          return {std::move(l), machine.read(std::as_const(*v).row_block(I))};
        },
        [&](const Rows& of, const LivePairs& pairs, Range part, const ProductLevels& levels) {
          const Range P = pairs.queries();
          const CutEvery cut = cut_of(levels, &ProductBlocks::depth);
          Tile f = machine.read(std::as_const(s).block(P, pairs.keys()), cut);  // s_PK (p, s)
          Tile p = machine.read(std::as_const(q).block(P, pairs.keys()), cut);  // q_PK (p, s)
          pass_over(
              machine, levels, &ProductBlocks::depth, 1, f.rows(), f.cols(),
              [&]() -> std::vector<Near> {
                return {of_pairs(f, Use::reads), of_pairs(p, Use::changes),
                        near_rows(of.l, Use::reads, part.begin),
                        near_rows(of.v, Use::reads, part.begin)};
              },
              [&](Range rows, Range keys) {
                const View factor = f.part(rows, keys), near_p = p.part(rows, keys);
                const LivePairs live = pairs.part(rows, keys);
                make_factor(problem, factor, of.l, part_of(part, rows));
                make_p(problem, factor, near_p, of.v, part_of(part, rows), near_p);
                live.set_dead(near_p, 0);
              });
          return p;
        });
  }
  product_phase(machine, "g", by, transposed(io.in("A1")), W, io.out("g"));
}

Words intermediates_sq(const Problem& problem, const Blocks&) {
  const auto [n, m, d] = problem.shape;
  return 2 * problem.pairs() + Words(2) * n * problem.row_columns() + Words(std::max(n, m)) * d;
}

Kernel from_nothing(std::string_view name, std::string_view summary, bool stores_p) {
  const Stages stages = [stores_p](const Problem& problem) { return stages_sq(problem, stores_p); };
  return {.name = name,
          .summary = summary,
          .pass = Pass::backward,
          .operands = {kA1, kA2, kA3, kX, kY, kdO},
          .returns = {kg},
          .takes_activations = true,
          .schedule = {.code =
                           [stores_p](Machine& machine, const Plan& plan, const Operands& io,
                                      Workspace& workspace) {
                             code_sq(machine, plan, io, workspace, stores_p);
                           }},
          .formula = {.cost = cost_of(stages),
                      .level_cost = level_cost_of(stages),
                      .intermediates =
                          [stores_p](const Problem& problem, const Blocks& blocks) {
                            return stores_p && !problem.normalised()
                                       ? intermediates(problem, blocks)
                                       : intermediates_sq(problem, blocks);
                          },
                      .nest = nest_of(stages)},
          .fitting = level_fitting_of(stages),
          .numerics = {.rescales = rescales_by_tiles}};
}

}  // namespace
}  // namespace in_backward_tiles

Kernel backward_tiles() {
  using namespace in_backward_tiles;
  const auto shared = [](const Problem& problem) { return problem.sharing != Sharing::none; };
  const Stages stages_of = [=](const Problem& problem) {
    return shared(problem) ? stages_shared(problem) : stages(problem);
  };
  return {.name = "backward/tiles",
          .summary = "tiles of scores stay: f, then p, in slow memory; products for the rest",
          .pass = Pass::backward,
          .operands = {kA1, kA2, kA3, kX, kY, kdO, kO, kL},
          .returns = {kg},
          .shares_keys = true,
          .takes_activations = true,
          .schedule = {.code =
                           [=](Machine& machine, const Plan& plan, const Operands& io,
                               Workspace& workspace) {
                             (shared(plan.problem) ? code_shared : code)(machine, plan, io,
                                                                         workspace);
                           }},
          .formula = {.cost = cost_of(stages_of),
                      .level_cost = level_cost_of(stages_of),
                      .intermediates =
                          [=](const Problem& problem, const Blocks& blocks) {
                            return (shared(problem) ? intermediates_shared : intermediates)(problem,
                                                                                            blocks);
                          },
                      .nest = nest_of(stages_of)},
          .fitting = level_fitting_of(stages_of),
          .numerics = {.Y_meets_rows_if_shared = true}};
}

Kernel backward_tiles_sqp() {
  using namespace in_backward_tiles;
  return from_nothing("backward/tiles-sqp",
                      "backward/tiles from nothing: raw s and q in slow memory, then p", true);
}

Kernel backward_tiles_sq() {
  using namespace in_backward_tiles;
  return from_nothing("backward/tiles-sq",
                      "backward/tiles-sqp without p: made of s and q as W = p A2 needs it", false);
}

}  // namespace redblue
