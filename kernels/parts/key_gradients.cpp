#include "kernels/parts/key_gradients.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/units.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// K_J, V_J, dK_J, dV_J; which queries pass; Q_I with dO_I and two tiles of scores, or later with
// dQ_I and one.
Words peak(const Problem& problem, Index r, Index c, AddsTo what) {
  const Words d = problem.shape.d;
  const Words dv = problem.shape.dv;
  const Words with_dQ = what == AddsTo::dQ_dK_dV ? r * d + Words(r) * c : Words(0);
  return 2 * c * (d + dv) + problem.mask.index().live() + r * d +
         std::max(r * dv + Words(2) * r * c, with_dQ);
}

// p_IJ, of f_IJ; and dV_J += f^T dO_I.
Tile score_gradient(Machine& machine, const KeyGradients& x, Range I, const LivePairs& live,
                    const Tile& f, const Tile& v_t, Tile& dv) {
  Tile p = machine.initialize("p", f.rows(), f.cols(), Holds::scores);  // p_IJ (r, c)
  {
    const Tile do_i = machine.read(x.dO.row_block(I));  // dO_I (r, d)
    multiply_add(transposed(f), do_i, dv);
    multiply_add(do_i, v_t, p);
  }
  const Tile v_i = machine.read(x.v.row_block(I));  // v_I (r)
  softmax_gradient(f, p, v_i, p);
  live.set_dead<View>(p, 0);
  return p;
}

// dQ_I += p K_J. Nothing is there to be read before the first key that these queries meet.
void add_to_dQ(Machine& machine, const KeyGradients& x, Range I, bool first, const Tile& k_t,
               Tile p) {
  Tile p_t = machine.initialize("p^T", p.cols(), p.rows(), Holds::scores);  // p_IJ^T (c, r)
  transpose(p, p_t);
  p.reset();
  Tile dq_t = first ? machine.initialize("dQ", k_t.rows(), I.size())
                    : machine.read(transposed(std::as_const(*x.dQ).row_block(I)));  // (d, r)
  multiply_add(k_t, p_t, dq_t);
  machine.write(dq_t, transposed(x.dQ->row_block(I)));
}

// Some queries that meet the keys of a unit, and whether these are the first that they meet.
struct Passing {
  Range I;
  bool first;
};
std::vector<Passing> passing(const Units& units, Range J, Index rows) {
  const Ranges met = units.met(J);
  const Ranges before = J.begin == 0 ? Ranges() : units.met({0, J.begin});
  std::vector<Passing> all;
  for (const bool first : {true, false}) {
    const Pieces pieces(first ? without(met, before) : common(met, before), rows);
    for (Index k = 0; k < pieces.size(); ++k) {
      all.push_back({pieces[k], first});
    }
  }
  return all;
}

}  // namespace

Range all_key_blocks(const Problem& problem, KeyBlocks by) {
  return {0, ceil_div(problem.shape.m, by.keys)};
}

void key_gradients(Machine& machine, const Problem& problem, KeyBlocks by, const KeyGradients& x,
                   Range which) {
  const Units units = Units::of_keys(problem, by.keys);
  for (Index unit = which.begin; unit < which.end; ++unit) {
    const Range J = units[unit];
    Tile k_t = machine.read(transposed(x.K.row_block(J)));  // K_J^T (d, c)
    if (x.scale) {
      scale(k_t, *x.scale);
    }
    const Tile v_t = machine.read(transposed(x.V.row_block(J)));  // V_J^T (d, c)
    Tile dk = machine.initialize("dK", J.size(), x.dK.cols());    // dK_J (c, d)
    Tile dv = machine.initialize("dV", J.size(), x.dV.cols());    // dV_J (c, d)
    Tile index = units.read_index(machine, J);
    for (const auto& [I, first] : passing(units, J, by.rows)) {
      const LivePairs live(problem, I, J);
      const Tile q_i = machine.read(x.Q.row_block(I));                      // Q_I (r, d)
      Tile f = machine.initialize("f", I.size(), J.size(), Holds::scores);  // f_IJ (r, c)
      {
        const Tile l_i = machine.read(x.L.row_block(I));  // L_I (r)
        multiply_add(q_i, k_t, f);
        exponentiate(f, l_i, f);
        live.set_dead<View>(f, 0);
      }
      Tile p = score_gradient(machine, x, I, live, f, v_t, dv);
      f.reset();
      multiply_add(transposed(p), q_i, dk);
      if (x.dQ != nullptr) {
        add_to_dQ(machine, x, I, first, k_t, std::move(p));
      }
    }
    index.reset();
    if (x.scale) {
      scale(dk, *x.scale);
    }
    machine.write(dk, x.dK.row_block(J));
    machine.write(dv, x.dV.row_block(J));
  }
}

PhaseCost key_gradients_cost(std::string path, const Problem& problem, KeyBlocks by, AddsTo what,
                             Range units) {
  const Words d = problem.shape.d;
  const Words dv = problem.shape.dv;
  const Units::Sum of = Units::of_keys(problem, by.keys).sum(units);
  const bool adds_to_dQ = what == AddsTo::dQ_dK_dV;
  // Queries after the first keys that they meet.
  const Words again = !adds_to_dQ           ? Words(0)
                      : of.met.overflowed() ? of.met
                                            : Words(of.met.value() - problem.shape.n);
  return with_index({.path = std::move(path),
                     .reads = of.rows * (d + dv) + of.met * (d + dv + 2) + again * d,
                     .writes = of.rows * (d + dv) + (adds_to_dQ ? of.met * d : Words(0)),
                     .peak = peak(problem, std::min(of.longest, by.rows), of.largest, what),
                     .flops = of.pairs * (4 * (d + dv) + (adds_to_dQ ? 2 * d : Words(0)))},
                    of);
}

// The words depend on the keys alone.
KeyBlocks fit_key_gradients(const Problem& problem, Index M, Objective objective, AddsTo what) {
  constexpr Index kBusyRows = 48;
  const Shape& shape = problem.shape;
  const auto fits = [&](Index r, Index c) { return peak(problem, r, c, what) <= Words(M); };
  if (objective == Objective::time) {
    Index r = std::min(shape.n, kBusyRows);
    while (r > 1 && !fits(r, std::min(shape.m, r))) {
      r /= 2;
    }
    Index c = largest(std::min(shape.m, M), [&](Index tried) { return fits(r, tried); });
    if (c < shape.m && c > kPanel) {
      c = c / kPanel * kPanel;
    }
    return {.rows = r, .keys = c};
  }
  const Index c =
      even(shape.m, largest(std::min(shape.m, M), [&](Index tried) { return fits(1, tried); }));
  const Index r =
      even(shape.n, largest(std::min(shape.n, M), [&](Index tried) { return fits(tried, c); }));
  return {.rows = r, .keys = c};
}

void key_gradients_nest(NestWriter& nest, const Problem& problem, KeyBlocks by, AddsTo what) {
  const Index d = problem.shape.d;
  const Units::Sum of = Units::of_keys(problem, by.keys).sum();
  const NestLoop J("J", "keys", problem.shape.m, by.keys);
  const NestLoop I = problem.mask.full()
                         ? NestLoop("I", "queries", problem.shape.n, by.rows)
                         : J.met("I", "live queries", of.met.value(), of.longest, by.rows);
  const bool scaled = problem.inputs == Inputs::plain;
  const std::string keys(input_names(problem).keys);
  NestExtent again = I;  // after the first keys that they meet
  again.all = problem.mask.full() ? 0 : of.met.value() - problem.shape.n;
  const Index dv = problem.shape.dv;
  const NestTile Q("Q", I, d), dO("dO", I, dv), L("L", I), v("v", I), dQ("dQ", I, d);
  const NestTile dQ_again =
      problem.mask.full() ? NestTile("dQ", I, d).but_once(J) : NestTile("dQ", again, d);
  const NestTile K(keys, J, d), V("V", J, dv), dK("dK", J, d), dV("dV", J, dv);
  nest.loop(J, [&] {
    nest.read({K, V});
    if (scaled) {
      nest.step("K_J = c K_J");
    }
    index_nest(nest, of);
    nest.loop(I, {K, V, dK, dV}, [&] {
      nest.step("f = exp(Q_I " + keys + "_J^T - L_I)", {Q, L});
      nest.step("dV_J += f^T dO_I; p = f (dO_I V_J^T - v_I)", {dO, v});
      if (what == AddsTo::dQ_dK_dV) {
        nest.step("dK_J += p^T Q_I; dQ_I += p " + keys + "_J", {dQ_again}, {dQ});
      } else {
        nest.step("dK_J += p^T Q_I");
      }
    });
    if (scaled) {
      nest.step("dK_J = c dK_J");
    }
    nest.write({dK, dV});
  });
}

}  // namespace redblue
