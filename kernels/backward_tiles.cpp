#include "kernels/backward_tiles.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/scores.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

// p = f (q - v), with f where p will be.
class ScoreGradient : public ScoreUse {
 public:
  static constexpr UseCost kCost{.columns = 1, .tiles = 1, .reads = 1, .row_reads = 1};
  ScoreGradient(const SlowMatrix& f, const SlowMatrix& v) : f_(f), v_(v) {}
  OfRows enter(Machine& machine, Range I, Range, const StayingRows*) override {
    return {machine.read(v_.row_block(I)), {}};
  }
  void use(Machine& machine, Tile& q, Range part, Range I, Range J, OfRows& of,
           Range within) override {
    const Tile f = machine.read(f_.block(I, J));
    softmax_gradient(f, q.part(part), of.first.part(within), q.part(part));
  }

 private:
  const SlowMatrix& f_;
  const SlowMatrix& v_;
};

// q as it is, and v = rowsum(f q) with f = exp(s - L).
class Weighed : public ScoreUse {
 public:
  static constexpr UseCost kCost{
      .columns = 2, .tiles = 1, .reads = 1, .row_reads = 1, .row_reads_again = 1, .row_writes = 1};
  Weighed(const SlowMatrix& s, const SlowMatrix& L, SlowMatrix& v) : s_(s), L_(L), v_(v) {}
  OfRows enter(Machine& machine, Range I, Range J, const StayingRows*) override {
    Tile l = machine.read(L_.row_block(I));
    return {std::move(l), J.begin == 0 ? machine.initialize("v", I.size())
                                       : machine.read(std::as_const(v_).row_block(I))};
  }
  void use(Machine& machine, Tile& q, Range part, Range I, Range J, OfRows& of,
           Range within) override {
    Tile f = machine.read(s_.block(I, J));
    exponentiate(f, of.first.part(within), f);
    add_row_dots(f, q.part(part), of.second.part(within));
  }
  void leave(Machine& machine, OfRows& of, Range I, Range) override {
    machine.write(of.second, v_.row_block(I));
  }

 private:
  const SlowMatrix& s_;
  const SlowMatrix& L_;
  SlowMatrix& v_;
};

// S, f and W take turns; f is p at last.
template <Objective objective>
Blocks fit(const Shape& shape, Index M) {
  const Products of(shape);
  Blocks blocks;
  put_product("S", of.S, M, objective, blocks);
  put_scores("f", of.scores, M, objective, Exponentiated::kCost, blocks);
  put_product("h", of.h, M, objective, blocks);
  put_row_dots(shape, M, blocks);
  put_scores("p", of.scores, M, objective, ScoreGradient::kCost, blocks);
  put_product("W", of.W, M, objective, blocks);
  put_product("g", of.g, M, objective, blocks);
  return blocks;
}

std::vector<PhaseCost> cost(const Shape& shape, const Blocks& blocks) {
  const Products of(shape);
  return {product_phase_cost("S", of.S, blocks),
          scores_phase_cost("f", of.scores, Exponentiated::kCost, blocks),
          product_phase_cost("h", of.h, blocks),
          row_dots_cost(shape, blocks),
          scores_phase_cost("p", of.scores, ScoreGradient::kCost, blocks),
          product_phase_cost("W", of.W, blocks),
          product_phase_cost("g", of.g, blocks)};
}

void gradient(Machine& machine, const Plan& plan, const Operands& io, const SlowMatrix& p,
              Workspace& workspace) {
  SlowMatrix W = workspace.matrix("W", plan.shape.n, plan.shape.d);
  product_phase(machine, "W", plan.blocks, p, io.in("A2"), W);
  product_phase(machine, "g", plan.blocks, transposed(io.in("A1")), W, io.out("g"));
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.shape;
  const Blocks& by = plan.blocks;
  SlowMatrix p = workspace.matrix("p", n, m);
  {
    SlowMatrix S = workspace.matrix("S", n, d);
    product_phase(machine, "S", by, io.in("A1"), io.in("X"), S);
    Exponentiated f(io.in("L"));
    scores_phase(machine, "f", by, S, io.in("A2"), f, p);
  }
  {
    SlowMatrix h = workspace.matrix("h", m, d);
    SlowMatrix v = workspace.matrix("v", n, 1);
    product_phase(machine, "h", by, io.in("A3"), io.in("Y"), h);
    row_dots(machine, by, io.in("dO"), io.in("O"), v);
    ScoreGradient of_scores(p, v);
    scores_phase(machine, "p", by, io.in("dO"), h, of_scores, p);
  }
  gradient(machine, plan, io, p, workspace);
}

Words intermediates(const Shape& shape, const Blocks&) {
  const auto [n, m, d] = shape;
  return Words(n) * m + std::max(Words(n) * d, Words(m) * d + n);
}

// Where A3 is A2: with S and G = dO Y^T in the slow store, one pass of A2 makes s and q = G A2^T.

PhaseCost both_cost(const Extents& of, const StationaryBlocks& by) {
  const auto [n, m, d] = of;
  const Words r = std::min(n, by.rows);
  const Words c = std::min(m, by.cols);
  const Words s = std::min(d, by.depth);
  const Words p = std::min(r, Words(by.piece));
  const Words nm = Words(n) * m;
  return {
      .path = "p",
      .reads = (Words(n) * d + n) * 2 * ceil_div(m, by.cols) + Words(m) * d * ceil_div(n, by.rows),
      .writes = nm,
      .peak = 2 * r * c + std::max(s * c + p * s, 2 * p),
      .flops = 4 * nm * d};
}

struct Slow {
  const SlowMatrix &S, &G, &A2, &L, &v;
  SlowMatrix& p;
};

void both(Machine& machine, const StationaryBlocks& by, const Slow& x) {
  const Phase phase(machine, "p");
  for (const Range I : blocks(x.S.rows(), by.rows)) {
    for (const Range J : blocks(x.A2.rows(), by.cols)) {
      Tile s = machine.initialize("s", I.size(), J.size());
      Tile q = machine.initialize("q", I.size(), J.size());
      for (const Range K : blocks(x.S.cols(), by.depth)) {
        const Tile a2 = machine.read(transposed(x.A2.block(J, K)));
        for (const Range P : blocks(I.size(), by.piece)) {
          const Range rows = part_of(I, P);
          {
            const Tile of_S = machine.read(x.S.block(rows, K));
            multiply_add(of_S, a2, s.part(P));
          }
          const Tile of_G = machine.read(x.G.block(rows, K));
          multiply_add(of_G, a2, q.part(P));
        }
      }
      for (const Range P : blocks(I.size(), by.piece)) {
        const Range rows = part_of(I, P);
        const Tile l = machine.read(x.L.row_block(rows));
        const Tile v = machine.read(x.v.row_block(rows));
        exponentiate(s.part(P), l, s.part(P));
        softmax_gradient(s.part(P), q.part(P), v, q.part(P));
      }
      machine.write(q, x.p.block(I, J));
    }
  }
}

template <Objective objective>
Blocks fit_shared(const Shape& shape, Index M) {
  const Products of(shape);
  Blocks blocks;
  put_product("S", of.S, M, objective, blocks);
  put_product("G", of.S, M, objective, blocks);
  put_row_dots(shape, M, blocks);
  fit_stationary(of.scores, M, objective, [&](const StationaryBlocks& by) {
    return both_cost(of.scores, by);
  }).put("p", blocks);
  put_product("W", of.W, M, objective, blocks);
  put_product("g", of.g, M, objective, blocks);
  return blocks;
}

std::vector<PhaseCost> cost_shared(const Shape& shape, const Blocks& blocks) {
  const Products of(shape);
  return {product_phase_cost("S", of.S, blocks),
          product_phase_cost("G", of.S, blocks),
          row_dots_cost(shape, blocks),
          both_cost(of.scores, StationaryBlocks::get("p", blocks)),
          product_phase_cost("W", of.W, blocks),
          product_phase_cost("g", of.g, blocks)};
}

void code_shared(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.shape;
  const Blocks& by = plan.blocks;
  SlowMatrix p = workspace.matrix("p", n, m);
  {
    SlowMatrix S = workspace.matrix("S", n, d);
    SlowMatrix G = workspace.matrix("G", n, d);
    SlowMatrix v = workspace.matrix("v", n, 1);
    product_phase(machine, "S", by, io.in("A1"), io.in("X"), S);
    product_phase(machine, "G", by, io.in("dO"), transposed(io.in("Y")), G);
    row_dots(machine, by, io.in("dO"), io.in("O"), v);
    both(machine, StationaryBlocks::get("p", by), {S, G, io.in("A2"), io.in("L"), v, p});
  }
  gradient(machine, plan, io, p, workspace);
}

Words intermediates_shared(const Shape& shape, const Blocks&) {
  const auto [n, m, d] = shape;
  return Words(n) * m + Words(2) * n * d + n;
}

// From nothing: s and q whole, and then p where q was.

void put_gradient(const Shape& shape, Index M, Blocks& blocks) {
  const auto fits = [&](Index rows, Index cols) {
    return Words(2) * rows * cols + Words(2) * rows <= Words(M);
  };
  const Index cols = largest(std::min(shape.m, M), [&](Index tried) { return fits(1, tried); });
  blocks.add("p.rows",
             largest(std::min(shape.n, M), [&](Index tried) { return fits(tried, cols); }));
  blocks.add("p.cols", cols);
}

PhaseCost gradient_cost(const Shape& shape, const Blocks& blocks) {
  const Words nm = Words(shape.n) * shape.m;
  const Words rows = std::min(shape.n, blocks["p.rows"]);
  return {.path = "p",
          .reads = 2 * nm + Words(2) * shape.n,
          .writes = nm,
          .peak = 2 * rows * std::min(shape.m, blocks["p.cols"]) + 2 * rows,
          .flops = 0};
}

// p = exp(s - L) (q - v), in place of q.
void score_gradient(Machine& machine, const Blocks& by, const SlowMatrix& s, const SlowMatrix& L,
                    const SlowMatrix& v, SlowMatrix& q) {
  const Phase phase(machine, "p");
  for (const Range I : blocks(s.rows(), by["p.rows"])) {
    const Tile l_i = machine.read(L.row_block(I));
    const Tile v_i = machine.read(v.row_block(I));
    for (const Range J : blocks(s.cols(), by["p.cols"])) {
      Tile f = machine.read(s.block(I, J));
      exponentiate(f, l_i, f);
      Tile p = machine.read(std::as_const(q).block(I, J));
      softmax_gradient(f, p, v_i, p);
      machine.write(p, q.block(I, J));
    }
  }
}

// W = p A2 with p = exp(s - L) (q - v), made of pieces of s and q as they pass.
PhaseCost made_product_cost(const Extents& of, const StationaryBlocks& by) {
  const auto [n, d, m] = of;
  const Words r = std::min(n, by.rows);
  const Words c = std::min(d, by.cols);
  const Words s = std::min(m, by.depth);
  const Words p = std::min(r, Words(by.piece));
  const Words nm = Words(n) * m;
  return {
      .path = "W",
      .reads = (2 * nm + Words(2) * n) * ceil_div(d, by.cols) + Words(m) * d * ceil_div(n, by.rows),
      .writes = Words(n) * d,
      .peak = r * c + 2 * r + s * c + 2 * p * s,
      .flops = 2 * nm * d};
}

struct Scores {
  const SlowMatrix &s, &q, &L, &v;
};

void made_product(Machine& machine, const StationaryBlocks& by, const Scores& x,
                  const SlowMatrix& A2, SlowMatrix& W) {
  const Phase phase(machine, "W");
  for (const Range I : blocks(W.rows(), by.rows)) {
    for (const Range J : blocks(W.cols(), by.cols)) {
      const Tile l_i = machine.read(x.L.row_block(I));
      const Tile v_i = machine.read(x.v.row_block(I));
      Tile w = machine.initialize("W", I.size(), J.size());
      for (const Range K : blocks(A2.rows(), by.depth)) {
        const Tile a2 = machine.read(A2.block(K, J));
        for (const Range P : blocks(I.size(), by.piece)) {
          const Range rows = part_of(I, P);
          Tile f = machine.read(x.s.block(rows, K));
          exponentiate(f, l_i.part(P), f);
          Tile p = machine.read(x.q.block(rows, K));
          softmax_gradient(f, p, v_i.part(P), p);
          multiply_add(p, a2, w.part(P));
        }
      }
      machine.write(w, W.block(I, J));
    }
  }
}

template <Objective objective, bool kStores>
Blocks fit_sq(const Shape& shape, Index M) {
  const Products of(shape);
  Blocks blocks;
  put_product("S", of.S, M, objective, blocks);
  put_scores("s", of.scores, M, objective, Measured::kCost, blocks);
  put_product("h", of.h, M, objective, blocks);
  put_scores("q", of.scores, M, objective, Weighed::kCost, blocks);
  if (kStores) {
    put_gradient(shape, M, blocks);
    put_product("W", of.W, M, objective, blocks);
  } else {
    fit_stationary(of.W, M, objective, [&](const StationaryBlocks& by) {
      return made_product_cost(of.W, by);
    }).put("W", blocks);
  }
  put_product("g", of.g, M, objective, blocks);
  return blocks;
}

template <bool kStores>
std::vector<PhaseCost> cost_sq(const Shape& shape, const Blocks& blocks) {
  const Products of(shape);
  std::vector<PhaseCost> phases = {product_phase_cost("S", of.S, blocks),
                                   scores_phase_cost("s", of.scores, Measured::kCost, blocks),
                                   product_phase_cost("h", of.h, blocks),
                                   scores_phase_cost("q", of.scores, Weighed::kCost, blocks)};
  if (kStores) {
    phases.push_back(gradient_cost(shape, blocks));
    phases.push_back(product_phase_cost("W", of.W, blocks));
  } else {
    phases.push_back(made_product_cost(of.W, StationaryBlocks::get("W", blocks)));
  }
  phases.push_back(product_phase_cost("g", of.g, blocks));
  return phases;
}

template <bool kStores>
void code_sq(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.shape;
  const Blocks& by = plan.blocks;
  const SlowMatrix& A2 = io.in("A2");
  SlowMatrix q = workspace.matrix("q", n, m);
  SlowMatrix s = workspace.matrix("s", n, m);
  SlowMatrix L = workspace.matrix("L", n, 1);
  SlowMatrix v = workspace.matrix("v", n, 1);  // holds the sums until L is known
  {
    SlowMatrix S = workspace.matrix("S", n, d);
    product_phase(machine, "S", by, io.in("A1"), io.in("X"), S);
    Measured measured(m, L, v);
    scores_phase(machine, "s", by, S, A2, measured, s);
  }
  {
    SlowMatrix h = workspace.matrix("h", m, d);
    product_phase(machine, "h", by, io.in("A3"), io.in("Y"), h);
    Weighed weighed(s, L, v);
    scores_phase(machine, "q", by, io.in("dO"), h, weighed, q);
  }
  SlowMatrix W = workspace.matrix("W", n, d);
  if (kStores) {
    score_gradient(machine, by, s, L, v, q);
    product_phase(machine, "W", by, q, A2, W);
  } else {
    made_product(machine, StationaryBlocks::get("W", by), {s, q, L, v}, A2, W);
  }
  product_phase(machine, "g", by, transposed(io.in("A1")), W, io.out("g"));
}

Words intermediates_sq(const Shape& shape, const Blocks&) {
  const auto [n, m, d] = shape;
  return Words(2) * n * m + Words(2) * n + Words(std::max(n, m)) * d;
}

Words rescales(const Shape& shape, const Blocks& blocks) {
  return ceil_div(shape.m, blocks["s.cols"]) - 1;
}

template <bool kStores>
Kernel from_nothing(std::string_view name, std::string_view summary) {
  return {
      .name = name,
      .summary = summary,
      .given = {kA1, kA2, kA3, kX, kY, kdO},
      .returns = {kg},
      .fit = fit_sq<Objective::words, kStores>,
      .cost = cost_sq<kStores>,
      .intermediates = intermediates_sq,
      .code = code_sq<kStores>,
      .rescales = rescales,
      .fit_time = fit_sq<Objective::time, kStores>,
  };
}

}  // namespace

Kernel backward_tiles() {
  return {
      .name = "backward/tiles",
      .summary = "tiles of scores stay: f, then p, in the slow store; products for the rest",
      .given = {kA1, kA2, kA3, kX, kY, kdO, kO, kL},
      .returns = {kg},
      .fit = fit<Objective::words>,
      .cost = cost,
      .intermediates = intermediates,
      .code = code,
      .fit_time = fit<Objective::time>,
  };
}

Kernel backward_tiles_shared() {
  return {
      .name = "backward/tiles-shared",
      .summary = "backward/tiles where A3 is A2: tiles of s and q stay together",
      .given = {kA1, kA2, kX, kY, kdO, kO, kL},
      .returns = {kg},
      .fit = fit_shared<Objective::words>,
      .cost = cost_shared,
      .intermediates = intermediates_shared,
      .code = code_shared,
      .Y_meets_rows = true,
      .fit_time = fit_shared<Objective::time>,
  };
}

Kernel backward_tiles_sqp() {
  return from_nothing<true>("backward/tiles-sqp",
                            "backward/tiles from nothing: raw s and q in the slow store, then p");
}

Kernel backward_tiles_sq() {
  return from_nothing<false>("backward/tiles-sq",
                             "backward/tiles-sqp without p: made of s and q as W = p A2 needs it");
}

}  // namespace redblue
