// Computes the gradient of a source that is Q, K and V at once: the one sum dQ + dK + dV. A block
// of sources stays with Q, dO and its sum, 3 d words for each. All other sources pass with Q, dO, L
// and v. Each pair that meets makes both p_ij and p_ji. So the sum of a resident source gets its
// terms as query, as key and as value, and is never read again. Each p is made twice, once for each
// of its two sources. There are 5 products of n^2 d; gradients/rows-keys has 7.
//
//   for I in sources:                       // Br rows stay: Q_I, dO_I, L_I, v_I and the sum dQ_I
//     for J in sources:                     // Bc rows pass; those of I are copied from it
//       s = c Q_J Q_I^T
//       f = exp(s - L_J);  p = f (dO_J Q_I^T - v_J)        J as queries, I as keys and values
//       r = exp(s - L_I) (Q_J dO_I^T - v_I)                I as queries, J as keys and values
//       dQ_I += f^T dO_J + c (p + r)^T Q_J
//
//   v      reads  2 n d;               writes  n           v = rowsum(dO * O)
//   core   reads  T n (2 d + 2);       writes  n d         T = ceil(n / Br)
//
// Words in units of n^2, with x = d / sqrt(M) and n >> d: 6 x^2, because Br is about M / (3 d).
//
// Under a mask a block meets the sources that it meets as queries or as keys. A dead p_ij or p_ji
// is not made, but both sources pass whole. So under a causal mask gradients/rows-keys moves fewer
// words. Strips of scores have a row for each passing source.
//
// There are no inner levels: the copies of resident rows would move words of a level.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/parts/split_stages.hpp"
#include "kernels/parts/v_first.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace in_gradients_sources {
namespace {

// `by` is the plan for pairs of sources that meet. `queries` and `keys` say how they meet: which
// sources the resident rows meet as queries, and as keys.
struct SourcePlan {
  SourcePlan(const Problem& of, const Blocks& blocks)
      : problem(of),
        by(of.with_mask(of.mask.full() ? Mask() : of.mask.meeting()), blocks["Br"],
           std::min(blocks["Bc"], blocks["Br"]), of.shape.d),
        units(by.units()),
        queries(Units::of_queries(of, by.rows)),
        keys(Units::of_keys(of, by.rows)) {}

  const Problem& problem;
  RowPlan by;
  Units units, queries, keys;
};

// Some sources in fast memory. Resident ones have Q^T and dO^T instead of Q and dO.
struct Sources {
  Range rows;
  Tile Q, dO, L, v;
};

Tile v_of(Machine& machine, const Problem& problem, const Operands& io, Range I) {
  return problem.normalised() ? machine.read(std::as_const(io.out(kOfRows.name)).row_block(I))
                              : Tile();
}

Sources resident(Machine& machine, const Problem& problem, const Operands& io, Range I) {
  return {I, machine.read(transposed(io.in("Q").row_block(I))),
          machine.read(transposed(io.in("dO").row_block(I))),
          read_row_values(machine, problem, io, "L", I), v_of(machine, problem, io, I)};
}

Sources passing(Machine& machine, const Problem& problem, const Operands& io, Range J) {
  return {J, machine.read(io.in("Q").row_block(J)), machine.read(io.in("dO").row_block(J)),
          read_row_values(machine, problem, io, "L", J), v_of(machine, problem, io, J)};
}

// Copies some of the resident sources, as if they had passed. This moves no word.
Sources copied(Machine& machine, const Problem& problem, const Sources& from, Range part) {
  Sources own{part_of(from.rows, part),
              machine.initialize("Q", part.size(), from.Q.rows(), kUnset, Holds::operands),
              machine.initialize("dO", part.size(), from.dO.rows(), kUnset, Holds::operands),
              row_values(machine, problem, "L", part.size()),
              row_values(machine, problem, "v", part.size())};
  for (Index begin = part.begin; begin < part.end;) {  // a part lies within a panel
    const Range columns{begin, std::min((begin / kPanel + 1) * kPanel, part.end)};
    const Range at{columns.begin - part.begin, columns.end - part.begin};
    transpose(from.Q.part({0, from.Q.rows()}, columns), own.Q.part(at));
    transpose(from.dO.part({0, from.dO.rows()}, columns), own.dO.part(at));
    begin = columns.end;
  }
  if (problem.normalised()) {
    copy(from.L.part(part), own.L);
    copy(from.v.part(part), own.v);
  }
  return own;
}

class Sums {
 public:
  Sums(Machine& machine, const SourcePlan& plan, const Sources& resident)
      : plan_(plan),
        problem_(plan.problem),
        of_(resident),
        sum_(machine.initialize(kdQ.name, of_.rows.size(), problem_.shape.d)),
        s_(strip(machine, "s")),
        f_(strip(machine, "f")),
        p_(strip(machine, "p")) {}

  // Adds the terms of all pairs of a resident source and one of these.
  void meet(const Sources& others) {
    for (const Range S : blocks(of_.rows.size(), plan_.by.strip())) {
      const LivePairs met = LivePairs::near(plan_.by.problem, part_of(of_.rows, S), others.rows);
      if (!met.none()) {
        add(others, S, met);
      }
    }
  }
  [[nodiscard]] const Tile& sum() const { return sum_; }

 private:
  Tile strip(Machine& machine, std::string_view name) const {
    return machine.initialize(name, plan_.by.strip_keys(),
                              plan_.by.strip_rows(of_.rows.size()).value(), kUnset, Holds::scores);
  }

  void add(const Sources& others, Range S, const LivePairs& met) {
    const Range J = met.keys(), at{J.begin - others.rows.begin, J.end - others.rows.begin};
    const LivePairs as_queries(problem_, met.queries(), J), as_keys(problem_, J, met.queries());
    if (as_queries.none() && as_keys.none()) {
      return;  // a source that does not meet itself
    }
    const ConstView Q = others.Q.part(at), dO = others.dO.part(at);
    const ConstView q_t = of_.Q.part({0, of_.Q.rows()}, S);
    const ConstView do_t = of_.dO.part({0, of_.dO.rows()}, S);
    const auto part = [&](Tile& strip) { return strip.part({0, J.size()}, {0, S.size()}); };
    const View s = part(s_), f = part(f_), p = part(p_);
    multiply(Q, q_t, s);
    scale(s, problem_.scale());
    if (!as_keys.none()) {
      if (problem_.normalised()) {
        exponentiate(s, others.L.part(at), f);
      } else {
        activate(problem_.activation, s, f);
      }
      as_keys.set_dead(f, 0);
      multiply_add(transposed(f), dO, sum_.part(S));
      multiply(dO, q_t, p);
      make_p(problem_, problem_.normalised() ? f : s, p, others.v, at, p);
      as_keys.set_dead(p, 0);
    }
    if (!as_queries.none()) {  // s becomes r; f pays for registers
      if (problem_.normalised()) {
        exponentiate(transposed(s), of_.L.part(S));
        softmax_gradient_product(Q, do_t, of_.v.part(S), s, f_);
      } else {
        activation_slope(problem_.activation, s, s);
        multiplied_product(Q, do_t, s, f_);
      }
      as_queries.set_dead(transposed(s), 0);
      if (!as_keys.none()) {
        redblue::add(s, p);
      }
    }
    const View both = as_queries.none() ? p : s;
    scale(both, problem_.scale());
    multiply_add(transposed(both), Q, sum_.part(S));
  }

  const SourcePlan& plan_;
  const Problem& problem_;
  const Sources& of_;
  Tile sum_, s_, f_, p_;
};

void core(Machine& machine, const Plan& plan, const Operands& io, Range units) {
  const Phase phase(machine, "core");
  const Problem& problem = plan.problem;
  const SourcePlan by(problem, plan.blocks);
  for (Index unit = units.begin; unit < units.end; ++unit) {
    const Range I = by.units[unit];
    const Sources of = resident(machine, problem, io, I);
    const Tile met_by_queries = by.queries.read_index(machine, I);
    const Tile met_by_keys = by.keys.read_index(machine, I);
    Sums sums(machine, by, of);
    for (const Range part : blocks(I.size(), by.by.keys)) {
      sums.meet(copied(machine, problem, of, part));
    }
    for (const Range J : Pieces(without(by.units.met(I), {I}), by.by.keys)) {
      sums.meet(passing(machine, problem, io, J));
    }
    machine.write(sums.sum(), io.out(kdQ.name).row_block(I));
  }
}

// ---- words -------------------------------------------------------------------------------------

// A block meets its own rows, too, and each is read once. The peak has the first block, whose rows
// are copied in pieces of the most sources that pass together.
PhaseCost core_cost(const Problem& problem, const Blocks& blocks, Range units) {
  const SourcePlan by(problem, blocks);
  const Units::Sum of = by.units.sum(units), queries = by.queries.sum(units),
                   keys = by.keys.sum(units);
  const Words d = problem.shape.d, source = 2 * d + 2 * problem.row_words();
  const Words r = of.largest, c = by.by.strip_keys();
  const Words itself = problem.mask.full() ? 0 : of.rows;  // such a pair may be dead
  const Words together(of.pairs.overflowed() ? of.pairs : Words(of.pairs.value() - itself.value()));
  const PhaseCost cost{.path = "core",
                       .reads = of.met * source,
                       .writes = of.rows * d,
                       .peak = r * (source + d * problem.sum_words) + c * source +
                               3 * by.by.strip_rows(r) * c + queries.index_live + keys.index_live,
                       .flops = 2 * d * (2 * together + queries.pairs + 2 * keys.pairs)};
  return with_index(with_index(cost, queries), keys);
}

Index v_units(const Problem& problem, const Blocks& blocks) {
  return problem.normalised() ? ceil_div(problem.shape.n, blocks["Br"]) : 0;
}
Index core_units(const Problem& problem, const Blocks& blocks) {
  return ceil_div(problem.shape.n, blocks["Br"]);
}

std::vector<SplitStage> stages() {
  return {v_stage(v_units, [](const Problem& problem,
                              const Blocks& blocks) { return SourcePlan(problem, blocks).by; }),
          stage(core_units, core, core_cost)};
}

// The blocks of other kernels with resident rows, which see the sources that meet.
Blocks fit(const Problem& problem, const Memory& memory, Objective objective) {
  const CostOfBlocks of_sources = cost_of_stages(stages());
  const CostOfBlocks cost = [&](const Problem&, const Blocks& blocks) {
    return of_sources(problem, blocks);
  };
  const Problem met = SourcePlan(problem, {{"Br", 1}, {"Bc", 1}}).by.problem;
  Blocks blocks = objective == Objective::time ? fastest(met, memory.M, cost)
                                               : fewest_words(met, memory.M, cost);
  blocks.set("Bc", std::min(blocks["Bc"], blocks["Br"]));
  return blocks;
}

Nest loop_nest(const Problem& problem, const Blocks& blocks) {
  const SourcePlan by(problem, blocks);
  const Units::Sum of = by.units.sum();
  const Index n = problem.shape.n, d = problem.shape.d, one = problem.row_columns();
  const NestLoop I("I", "sources", n, by.by.rows);
  const NestLoop own = I.pieces("J", by.by.keys);
  const NestLoop others = I.met("J", "other sources", of.met.value() - n, of.longest, by.by.keys);
  const auto tiles = [&](const NestLoop& rows) -> NestWriter::Tiles {
    return {{"Q", rows, d}, {"dO", rows, d}, {"L", rows, one}, {"v", rows, one}};
  };
  const std::string terms =
      problem.normalised()
          ? "f = exp(s - L_J); p = f (dO_J Q_I^T - v_J) + exp(s - L_I) (Q_J dO_I^T - v_I)"
          : "f = phi(s); p = phi'(s) (dO_J Q_I^T + Q_J dO_I^T)";
  const std::string text = "s = c Q_J Q_I^T; " + terms + "; dQ_I += f^T dO_J + c p^T Q_J";
  NestWriter nest;
  if (problem.normalised()) {
    v_nest(nest, problem, I);
  }
  nest.phase("core", [&] {
    nest.loop(I, [&] {
      nest.read(tiles(I));
      index_nest(nest, by.queries.sum());
      index_nest(nest, by.keys.sum());
      NestWriter::Tiles stays = tiles(I);
      stays.emplace_back("dQ", I, d);
      nest.loop(own, stays, [&] { nest.step(text); });
      nest.loop(others, stays, [&] { nest.step(text, tiles(others)); });
      nest.write({{"dQ", I, d}});
    });
  });
  return nest.lines();
}

}  // namespace
}  // namespace in_gradients_sources

Kernel gradients_sources() {
  using namespace in_gradients_sources;
  const auto rows_of_v = [](const Problem& problem, const Blocks& blocks, Index units) {
    return std::min(units * blocks["Br"], problem.shape.n);
  };
  return {.name = "gradients/sources",
          .summary = "Q = K = V: rows of Q, dO and of the one sum stay, all other sources pass",
          .pass = Pass::gradients,
          .operands = {kQ, kdO, kO, kL},
          .returns = {kdQ},
          .of_one_source = true,
          .takes_activations = true,
          .kin = "gradients/rows-keys",
          .schedule = in_stages({.stages = stages(), .left = {{kOfRows, rows_of_v}}}),
          .formula = {.cost = cost_of_stages(stages()),
                      .intermediates =
                          [](const Problem& problem, const Blocks&) {
                            return Words(problem.shape.n) * problem.row_columns();
                          },
                      .nest = loop_nest},
          .fitting = {.fit = fit,
                      .written = [](const Signature&, const Problem&,
                                    const Blocks& blocks) { return blocks["Br"]; }},
          .numerics = {.recomputes = true}};
}

}  // namespace redblue
