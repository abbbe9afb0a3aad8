#include "kernels/backward_rows_q.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/scores.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Queries of a strip of scores, which lives beside the rows that stay.
constexpr Index kNarrow = kPanel;

// q - v. Where rows of dO stay, v is made of them as O passes; beside tiles it is read.
class Centred : public ScoreUse {
 public:
  static UseCost cost(const Products& of, const StationaryBlocks& by) {
    return {.columns = 1, .row_reads = rows_stay(of.scores, by) ? of.scores.depth : 1};
  }
  Centred(const SlowMatrix& O, const SlowMatrix& v) : O_(O), v_(v) {}
  OfRows enter(Machine& machine, Range I, Range, const StayingRows* rows) override {
    if (rows == nullptr) {
      return {machine.read(v_.row_block(I)), {}};
    }
    Tile v = machine.initialize("v", I.size());
    if (rows->transposed) {
      for (const Range K : blocks(O_.cols(), rows->room)) {
        const Tile o_t = machine.read(transposed(O_.block(I, K)));
        add_row_dots(transposed(rows->tile.part(K)), transposed(o_t), v);
      }
    } else {
      for (const Range P : blocks(I.size(), rows->room)) {
        const Tile o = machine.read(O_.row_block({I.begin + P.begin, I.begin + P.end}));
        add_row_dots(rows->tile.part(P), o, v.part(P));
      }
    }
    return {std::move(v), {}};
  }
  void use(Machine&, const View& q, Range, Range, OfRows& of, Range within) override {
    subtract_rows(q, of.first.part(within));
  }

 private:
  const SlowMatrix& O_;
  const SlowMatrix& v_;
};

struct Slow {
  const SlowMatrix &S, &A2, &q;
  SlowMatrix& W;
};

// W_I = p_I A2, with q - v.
void core(Machine& machine, const Blocks& by, const Slow& x, const SlowMatrix& L) {
  const Phase phase(machine, "W");
  for (const Range I : blocks(x.S.rows(), by["W.Br"])) {
    const Tile s_t = machine.read(transposed(x.S.row_block(I)));
    const Tile l = machine.read(L.row_block(I));
    Tile W = machine.initialize("W", I.size(), x.S.cols());
    for (const Range J : blocks(x.A2.rows(), by["W.Bc"])) {
      const Tile a2 = machine.read(x.A2.row_block(J));
      for (const Range K : blocks(I.size(), kNarrow)) {
        Tile p_t = machine.initialize("p", J.size(), K.size());
        exponentiated_product(a2, s_t.part({0, s_t.rows()}, K), l.part(K), p_t);
        {
          const Range rows{I.begin + K.begin, I.begin + K.end};
          const Tile q_t = machine.read(transposed(x.q.block(rows, J)));
          multiply_words(p_t, q_t);
        }
        multiply_add(transposed(p_t), a2, W.part(K));
      }
    }
    machine.write(W, x.W.row_block(I));
  }
}

// From nothing: q relative to its running mean, and sums with and without it.
void core_onepass(Machine& machine, const Blocks& by, const Slow& x) {
  const Phase phase(machine, "W");
  const Index d = x.S.cols();
  for (const Range I : blocks(x.S.rows(), by["W.Br"])) {
    const Tile s_t = machine.read(transposed(x.S.row_block(I)));
    Tile U = machine.initialize("U", I.size(), d);
    Tile Z = machine.initialize("Z", I.size(), d);
    Tile maximum = machine.initialize("max", I.size(), 1, kLowest);
    Tile sum = machine.initialize("sum", I.size());
    Tile mean = machine.initialize("mean", I.size());
    for (const Range J : blocks(x.A2.rows(), by["W.Bc"])) {
      const Tile a2 = machine.read(x.A2.row_block(J));
      for (const Range K : blocks(I.size(), kNarrow)) {
        Tile e_t = machine.initialize("e", J.size(), K.size());
        Tile q_t = machine.read(
            transposed(x.q.block({I.begin + K.begin, I.begin + K.end}, J)));
        Tile rescale = machine.initialize("rescale", K.size());
        Tile delta = machine.initialize("delta", K.size());
        multiply(a2, s_t.part({0, d}, K), e_t);
        subtract_rows(transposed(q_t), mean.part(K));
        raise_maximum(transposed(std::as_const(e_t)), maximum.part(K), rescale);
        scale_rows(sum.part(K), rescale);
        scale_rows(U.part(K), rescale);
        scale_rows(Z.part(K), rescale);
        exponentiate(transposed(e_t), maximum.part(K), sum.part(K),
                     transposed(std::as_const(q_t)), delta);
        divide_rows(delta, sum.part(K), delta);
        add(mean.part(K), delta);
        subtract_scaled_rows(U.part(K), delta, Z.part(K));
        softmax_gradient(transposed(std::as_const(e_t)), delta, transposed(q_t));
        multiply_add(transposed(e_t), a2, Z.part(K));
        multiply_add(transposed(q_t), a2, U.part(K));
      }
    }
    divide_rows(U, sum, U);
    machine.write(U, x.W.row_block(I));
  }
}

// S, W and L; A2_J; p and q.
Words core_peak(Index d, Words r, Words c) {
  return 2 * r * d + r + c * d + 2 * c * std::min(r, Words(kNarrow));
}
// S, U and Z, maximum, sum and mean; A2_J; e and q, factors and delta.
Words core_onepass_peak(Index d, Words r, Words c) {
  return 3 * r * d + 3 * r + c * d + (2 * c + 2) * std::min(r, Words(kNarrow));
}

using CorePeak = Words (*)(Index d, Words r, Words c);

void put_core(const Shape& shape, Index M, Objective objective, CorePeak peak, Blocks& blocks) {
  const auto [n, m, d] = shape;
  const auto fits = [&, d = d](Index r, Index c) { return peak(d, r, c) <= Words(M); };
  Index keys = objective == Objective::time ? std::min<Index>(m, 48) : 1;
  while (keys > 1 && Words(keys) * d * 4 > Words(M)) {
    keys /= 2;
  }
  const Index r =
      even(n, largest(std::min(n, M), [&](Index tried) { return fits(tried, keys); }));
  blocks.add("W.Br", r);
  blocks.add("W.Bc", largest(std::min(m, M), [&](Index tried) { return fits(r, tried); }));
}

PhaseCost core_cost(const Shape& shape, const Blocks& blocks, CorePeak peak, Index products) {
  const auto [n, m, d] = shape;
  const Words nm = Words(n) * m;
  return {.path = "W",
          .reads = Words(n) * d + Words(m) * d * ceil_div(n, blocks["W.Br"]) + nm,
          .writes = Words(n) * d,
          .peak = peak(d, std::min(n, blocks["W.Br"]), std::min(m, blocks["W.Bc"])),
          .flops = 2 * products * nm * d};
}

template <Objective objective>
Blocks fit(const Shape& shape, Index M) {
  const Products of(shape);
  Blocks blocks;
  put_product("S", of.S, M, objective, blocks);
  put_product("h", of.h, M, objective, blocks);
  put_row_dots(shape, M, blocks);
  fit_stationary(of.scores, M, objective, [&](const StationaryBlocks& by) {
    PhaseCost q = scores_cost("", of.scores, by, Centred::cost(of, by));
    if (!rows_stay(of.scores, by)) {
      q.reads += row_dots_cost(shape, blocks).reads;
    }
    return q;
  }).put("q", blocks);
  put_core(shape, M, objective, core_peak, blocks);
  put_product("g", of.g, M, objective, blocks);
  return blocks;
}

std::vector<PhaseCost> cost(const Shape& shape, const Blocks& blocks) {
  const Products of(shape);
  const auto by = StationaryBlocks::get("q", blocks);
  PhaseCost W = core_cost(shape, blocks, core_peak, 2);
  W.reads += shape.n;
  std::vector<PhaseCost> phases = {product_phase_cost("S", of.S, blocks),
                                   product_phase_cost("h", of.h, blocks)};
  if (!rows_stay(of.scores, by)) {
    phases.push_back(row_dots_cost(shape, blocks));
  }
  phases.push_back(scores_cost("q", of.scores, by, Centred::cost(of, by)));
  phases.push_back(W);
  phases.push_back(product_phase_cost("g", of.g, blocks));
  return phases;
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.shape;
  const Blocks& by = plan.blocks;
  const SlowMatrix& dO = io.in("dO");
  SlowMatrix S = workspace.matrix("S", n, d);
  SlowMatrix q = workspace.matrix("q", n, m);
  product_phase(machine, "S", by, io.in("A1"), io.in("X"), S);
  {
    SlowMatrix h = workspace.matrix("h", m, d);
    SlowMatrix v = workspace.matrix("v", n, 1);
    product_phase(machine, "h", by, io.in("A3"), io.in("Y"), h);
    if (!rows_stay(Products(plan.shape).scores, StationaryBlocks::get("q", by))) {
      row_dots(machine, by, dO, io.in("O"), v);
    }
    Centred centred(io.in("O"), v);
    scores_phase(machine, "q", by, dO, h, centred, q);
  }
  SlowMatrix W = workspace.matrix("W", n, d);
  core(machine, by, {S, io.in("A2"), q, W}, io.in("L"));
  product_phase(machine, "g", by, transposed(io.in("A1")), W, io.out("g"));
}

Words intermediates(const Shape& shape) {
  const auto [n, m, d] = shape;
  return Words(n) * m + Words(n) * d + std::max(Words(m) * d + n, Words(n) * d);
}

template <Objective objective>
Blocks fit_onepass(const Shape& shape, Index M) {
  const Products of(shape);
  Blocks blocks;
  put_product("S", of.S, M, objective, blocks);
  put_product("h", of.h, M, objective, blocks);
  put_product("q", of.scores, M, objective, blocks);
  put_core(shape, M, objective, core_onepass_peak, blocks);
  put_product("g", of.g, M, objective, blocks);
  return blocks;
}

std::vector<PhaseCost> cost_onepass(const Shape& shape, const Blocks& blocks) {
  const Products of(shape);
  return {product_phase_cost("S", of.S, blocks), product_phase_cost("h", of.h, blocks),
          product_phase_cost("q", of.scores, blocks),
          core_cost(shape, blocks, core_onepass_peak, 3), product_phase_cost("g", of.g, blocks)};
}

void code_onepass(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace) {
  const auto [n, m, d] = plan.shape;
  const Blocks& by = plan.blocks;
  SlowMatrix S = workspace.matrix("S", n, d);
  SlowMatrix q = workspace.matrix("q", n, m);
  product_phase(machine, "S", by, io.in("A1"), io.in("X"), S);
  {
    SlowMatrix h = workspace.matrix("h", m, d);
    product_phase(machine, "h", by, io.in("A3"), io.in("Y"), h);
    product_phase(machine, "q", by, io.in("dO"), transposed(h), q);
  }
  SlowMatrix W = workspace.matrix("W", n, d);
  core_onepass(machine, by, {S, io.in("A2"), q, W});
  product_phase(machine, "g", by, transposed(io.in("A1")), W, io.out("g"));
}

Words intermediates_onepass(const Shape& shape) {
  const auto [n, m, d] = shape;
  return Words(n) * m + Words(n) * d + std::max(Words(m) * d, Words(n) * d);
}

Words recentred_blocks(const Shape& shape, const Blocks& blocks) {
  return ceil_div(shape.m, blocks["W.Bc"]);
}

}  // namespace

Kernel backward_rows_q() {
  return {
      .name = "backward/rows-q",
      .summary = "q - v in the slow store; row blocks of S and W stay, keys and q pass",
      .given = {kA1, kA2, kA3, kX, kY, kdO, kO, kL},
      .returns = {kg},
      .fit = fit<Objective::words>,
      .cost = cost,
      .intermediates = intermediates,
      .code = code,
      .fit_time = fit<Objective::time>,
  };
}

Kernel backward_rows_q_onepass() {
  return {
      .name = "backward/rows-q-onepass",
      .summary = "backward/rows-q from nothing: q relative to its running mean, two sums stay",
      .given = {kA1, kA2, kA3, kX, kY, kdO},
      .returns = {kg},
      .fit = fit_onepass<Objective::words>,
      .cost = cost_onepass,
      .intermediates = intermediates_onepass,
      .code = code_onepass,
      .recentred_blocks = recentred_blocks,
      .fit_time = fit_onepass<Objective::time>,
  };
}

}  // namespace redblue
