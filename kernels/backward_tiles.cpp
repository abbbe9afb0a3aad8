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
  void use(Machine& machine, const View& q, Range I, Range J, OfRows& of, Range within) override {
    const Tile f = machine.read(f_.block(I, J));
    softmax_gradient(f, q, of.first.part(within), q);
  }

 private:
  const SlowMatrix& f_;
  const SlowMatrix& v_;
};

// q as it is, and v = rowsum(f q) with f = exp(s - L).
class Weighed : public ScoreUse {
 public:
  static constexpr UseCost kCost{.columns = 2,
                                 .tiles = 1,
                                 .reads = 1,
                                 .row_reads = 1,
                                 .row_reads_again = 1,
                                 .row_writes = 1};
  Weighed(const SlowMatrix& s, const SlowMatrix& L, SlowMatrix& v) : s_(s), L_(L), v_(v) {}
  OfRows enter(Machine& machine, Range I, Range J, const StayingRows*) override {
    Tile l = machine.read(L_.row_block(I));
    return {std::move(l), J.begin == 0 ? machine.initialize("v", I.size())
                                       : machine.read(std::as_const(v_).row_block(I))};
  }
  void use(Machine& machine, const View& q, Range I, Range J, OfRows& of, Range within) override {
    Tile f = machine.read(s_.block(I, J));
    exponentiate(f, of.first.part(within), f);
    add_row_dots(f, q, of.second.part(within));
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

Words intermediates(const Shape& shape) {
  const auto [n, m, d] = shape;
  return Words(n) * m + std::max(Words(n) * d, Words(m) * d + n);
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

template <Objective objective>
Blocks fit_sq(const Shape& shape, Index M) {
  const Products of(shape);
  Blocks blocks;
  put_product("S", of.S, M, objective, blocks);
  put_scores("s", of.scores, M, objective, Measured::kCost, blocks);
  put_product("h", of.h, M, objective, blocks);
  put_scores("q", of.scores, M, objective, Weighed::kCost, blocks);
  put_gradient(shape, M, blocks);
  put_product("W", of.W, M, objective, blocks);
  put_product("g", of.g, M, objective, blocks);
  return blocks;
}

std::vector<PhaseCost> cost_sq(const Shape& shape, const Blocks& blocks) {
  const Products of(shape);
  return {product_phase_cost("S", of.S, blocks),
          scores_phase_cost("s", of.scores, Measured::kCost, blocks),
          product_phase_cost("h", of.h, blocks),
          scores_phase_cost("q", of.scores, Weighed::kCost, blocks),
          gradient_cost(shape, blocks),
          product_phase_cost("W", of.W, blocks),
          product_phase_cost("g", of.g, blocks)};
}

void code_sq(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.shape;
  const Blocks& by = plan.blocks;
  SlowMatrix q = workspace.matrix("q", n, m);
  {
    SlowMatrix s = workspace.matrix("s", n, m);
    SlowMatrix L = workspace.matrix("L", n, 1);
    SlowMatrix v = workspace.matrix("v", n, 1);  // holds the sums until L is known
    {
      SlowMatrix S = workspace.matrix("S", n, d);
      product_phase(machine, "S", by, io.in("A1"), io.in("X"), S);
      Measured measured(m, L, v);
      scores_phase(machine, "s", by, S, io.in("A2"), measured, s);
    }
    {
      SlowMatrix h = workspace.matrix("h", m, d);
      product_phase(machine, "h", by, io.in("A3"), io.in("Y"), h);
      Weighed weighed(s, L, v);
      scores_phase(machine, "q", by, io.in("dO"), h, weighed, q);
    }
    score_gradient(machine, by, s, L, v, q);
  }
  gradient(machine, plan, io, q, workspace);
}

Words intermediates_sq(const Shape& shape) {
  const auto [n, m, d] = shape;
  const Words nm = Words(n) * m;
  return std::max(2 * nm + Words(2) * n + Words(std::max(n, m)) * d, nm + Words(n) * d);
}

Words rescales(const Shape& shape, const Blocks& blocks) {
  return ceil_div(shape.m, blocks["s.cols"]) - 1;
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

Kernel backward_tiles_sq() {
  return {
      .name = "backward/tiles-sq",
      .summary = "backward/tiles from nothing: raw scores and q in the slow store, then p",
      .given = {kA1, kA2, kA3, kX, kY, kdO},
      .returns = {kg},
      .fit = fit_sq<Objective::words>,
      .cost = cost_sq,
      .intermediates = intermediates_sq,
      .code = code_sq,
      .rescales = rescales,
      .fit_time = fit_sq<Objective::time>,
  };
}

}  // namespace redblue
