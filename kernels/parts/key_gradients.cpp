#include "kernels/parts/key_gradients.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/level_costs.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/partial_sums.hpp"
#include "kernels/parts/rows.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// The number of value matrices read, and of their gradients written, when keys are not counted.
int values_read(KeySums sums) {
  return sums.needs_p() && !sums.one_of_keys ? 1 : 0;
}
int values_written(KeySums sums) {
  return sums.dV && !sums.one_of_keys ? 1 : 0;
}

// The words of a key with its tiles that stay: K_J, V_J, dK_J, dV_J.
Words key_words(const Problem& problem, KeySums sums) {
  return Words(problem.shape.d) * (1 + (sums.dK ? problem.sum_words : 0)) +
         Words(problem.shape.dv) * (values_read(sums) + values_written(sums) * problem.sum_words);
}

// The words of a streaming query.
Words query_words(const Problem& problem, KeySums sums) {
  return Words(problem.shape.d) + problem.shape.dv + (sums.needs_p() ? 2 : 1) * problem.row_words();
}

// The problem or the blocks with queries and keys exchanged: keys are then the resident rows.
Problem exchanged(const Problem& problem) {
  Problem other = problem;
  std::swap(other.shape.n, other.shape.m);
  other.mask = problem.mask.full() ? Mask() : problem.mask.transposed();
  return other;
}
RowPlan exchanged(const Problem& problem, const KeyBlocks& by) {
  RowPlan plan(exchanged(problem), by.keys, by.rows, problem.shape.d);
  for (const LevelBlocks& in : by.inner) {
    plan.inner.push_back(
        {.rows = in.keys, .keys = in.rows, .weights = in.weights, .apart = in.apart});
  }
  return plan;
}
KeyBlocks exchanged(const RowPlan& plan) {
  KeyBlocks by{.rows = plan.keys, .keys = plan.rows};
  for (const LevelBlocks& in : plan.inner) {
    by.inner.push_back(
        {.rows = in.keys, .keys = in.rows, .weights = in.weights, .apart = in.apart});
  }
  return by;
}

// The words of the strips of f and p for a block of c keys, if at most r queries stream together.
// In inner levels, strips have the queries of the innermost level.
Words strips(const RowPlan& by, Words c, Index r, KeySums sums) {
  const Index queries = by.inner.empty() ? r : by.strip_keys();
  return by.strip_rows(c) * queries * (sums.needs_p() ? 2 : 1);
}

// The words that each step takes of a key and of a query. The steps are f, p, dK and dV.
std::vector<LevelSums::Step> steps(const Problem& problem, KeySums sums) {
  const Words d = problem.shape.d, dv = problem.shape.dv, one = problem.row_words();
  const auto scores = [&](Words width) -> LevelSums::Step {  // with L or v of each query
    return {.read = width, .passing = width, .beside = one, .passing_at_a_time = kByRows};
  };
  const auto sum = [](Words changed, Words summed) -> LevelSums::Step {
    return {.changed = changed,
            .summed = summed,
            .passing = changed + summed,
            .passing_at_a_time = kByColumns,
            .sums_at_a_time = kInRegisters};
  };
  std::vector<LevelSums::Step> steps = {scores(d)};
  if (sums.needs_p()) {
    steps.push_back(scores(dv));
    steps.push_back(sum(0, d));
  }
  if (sums.dV && sums.one_of_keys) {  // added to dK
    steps.push_back(sum(d, 0));
  } else if (sums.dV) {
    steps.push_back(sum(0, dv));
  }
  return steps;
}

// The peak has the keys, the index of the queries that meet them, and Q_I. Add the larger of two:
// - dO_I, or L_I or v_I, and two tiles of scores
// - dQ_I and one tile of scores
//
// With strips, the peak has all tiles of I and the strips.
Words peak(const Problem& problem, const KeyBlocks& by, KeySums sums, Index r, Index c) {
  const Words d = problem.shape.d;
  const Words stays = c * key_words(problem, sums) + problem.mask.index().live();
  if (sums.in_strips) {
    Problem unmasked = problem;
    unmasked.mask = Mask();
    return stays + r * query_words(problem, sums) + strips(exchanged(unmasked, by), c, r, sums);
  }
  const Words beside = std::max<Words>(problem.shape.dv, problem.row_words());
  const Words with_dQ = sums.dQ ? r * d * problem.sum_words + Words(r) * c : Words(0);
  return stays + r * d + std::max(r * beside + Words(sums.needs_p() ? 2 : 1) * r * c, with_dQ);
}

// Adds f^T dO_I to the sums of the keys C, which are some of the keys J. Returns p_IC, made from
// f_IC, if it is needed. Without a softmax, `f` holds the scores on entry. p is made from them, and
// then they become f.
Tile score_gradient(Machine& machine, const KeyGradients& x, KeySums sums, Range I,
                    const LivePairs& live, Range C, Tile& f, const Tile& v_t, Tile& to_dV) {
  const Problem& problem = live.problem();
  Tile p;
  if (sums.needs_p()) {
    p = machine.initialize("p", f.rows(), f.cols(), Holds::scores);  // p_IC (r, c)
  }
  {
    const Tile do_i = machine.read(x.dO.row_block(I));  // dO_I (r, d)
    if (sums.needs_p()) {
      multiply_add(do_i, v_t.part({0, v_t.rows()}, C), p);
    }
    if (!problem.normalised()) {
      if (sums.needs_p()) {
        activation_gradient(problem.activation, f, p, p);
        live.set_dead(p, 0);
      }
      if (sums.dV) {
        activate(problem.activation, f, f);
        live.set_dead(f, 0);
      }
    }
    if (sums.dV) {
      multiply_add(transposed(f), do_i, to_dV.part(C));
    }
  }
  if (sums.needs_p() && problem.normalised()) {
    const Tile v_i = machine.read(x.v->row_block(I));  // v_I (r)
    softmax_gradient(f, p, v_i, p);
    live.set_dead(p, 0);
  }
  return p;
}

// Some queries that meet the keys of a unit. `first` says whether these are the first keys that
// they meet. `later` are the queries that also meet later keys.
struct Passing {
  Range I;
  bool first;
  Ranges later;
};
std::vector<Passing> passing(const Problem& problem, const Units& units, Range J, Index rows) {
  const Ranges met = units.met(J);
  Ranges before, after;
  if (!problem.mask.full() && problem.mask.irregular()) {
    // The first and the last key of a query say it in less time than all keys.
    const LivePairs live(problem, {0, problem.shape.n}, J);
    before = live.met_before();
    after = live.met_after();
  } else {
    const Index last = units[units.size() - 1].end;
    before = J.begin == 0 ? Ranges() : units.met({0, J.begin});
    after = J.end == last ? Ranges() : units.met({J.end, last});
  }
  std::vector<Passing> all;
  for (const bool first : {true, false}) {
    const Pieces pieces(first ? without(met, before) : common(met, before), rows);
    for (Index k = 0; k < pieces.size(); ++k) {
      all.push_back({pieces[k], first, common(after, {pieces[k]})});
    }
  }
  return all;
}

// Computes dQ_I += p K_C. At the first keys that these queries meet, there is no dQ_I to read yet.
void add_to_dQ(Machine& machine, const KeyGradients& x, const Passing& queries, const Tile& k_t,
               Range C, Tile p) {
  const auto& [I, first, later] = queries;
  Tile p_t = machine.initialize("p^T", p.cols(), p.rows(), Holds::scores);  // p_IC^T (c, r)
  transpose(p, p_t);
  p.reset();
  const Block sums = x.dQ->row_block(I).holding(Holds::sums);
  Tile dq_t = first ? machine.initialize("dQ", k_t.rows(), I.size())
                    : machine.read(transposed(ConstBlock(sums)));  // (d, r)
  multiply_add(k_t.part({0, k_t.rows()}, C), p_t, dq_t);
  write_sums(machine, dq_t, *x.dQ, I, later, Orientation::transposed);
}

// A block of keys with its resident tiles.
struct StayingKeys {
  Range J;
  Tile k_t, v_t, dk, dv;
};

// Streams the queries that meet the keys.
void pass_queries(Machine& machine, const Problem& problem, const KeyBlocks& by,
                  const KeyGradients& x, KeySums sums, const Units& units, StayingKeys& keys) {
  const bool shared = sums.one_of_keys;
  auto& [J, k_t, v_t, dk, dv] = keys;
  for (const Passing& queries : passing(problem, units, J, by.rows)) {
    const Range I = queries.I;
    const LivePairs live = LivePairs::near(problem, I, J, kPanel);
    const Range C{live.keys().begin - J.begin, live.keys().end - J.begin};
    Tile q_i = machine.read(x.Q.row_block(I));  // Q_I (r, d)
    if (x.scale && shared) {
      scale(q_i, *x.scale);
    }
    Tile f = machine.initialize("f", I.size(), C.size(), Holds::scores);  // f_IC (r, c)
    multiply_add(q_i, k_t.part({0, k_t.rows()}, C), f);
    if (problem.normalised()) {
      const Tile l_i = machine.read(x.L->row_block(I));  // L_I (r)
      exponentiate(f, l_i, f);
      live.set_dead(f, 0);
    }
    Tile p = score_gradient(machine, x, sums, I, live, C, f, shared ? k_t : v_t, shared ? dk : dv);
    f.reset();
    if (sums.dK) {
      multiply_add(transposed(p), q_i, dk.part(C));
    }
    if (sums.dQ) {
      if (x.scale && shared) {
        scale(p, *x.scale);
      }
      add_to_dQ(machine, x, queries, k_t, C, std::move(p));
    }
  }
}

// Some streaming queries with their tiles.
struct PassingQueries {
  Range I;
  Tile q, dO, L, v;  // (r, d), (r, d), (r), (r)
};

// Streams queries past strips of some keys, with the plan in which queries and keys are exchanged.
class PassStrips {
 public:
  // At most `queries` queries stream together.
  PassStrips(Machine& machine, const RowPlan& by, const KeyGradients& x, KeySums sums,
             StayingKeys& keys, Index queries)
      : machine_(machine),
        by_(by),
        problem_(by.problem),
        x_(x),
        sums_(sums),
        keys_(keys),
        queries_(by.inner.empty() ? queries : by.strip_keys()),
        f_(machine, strip("f")),
        p_(machine, sums.needs_p() ? strip("p") : Tile()),
        begun_(machine, keys.J.size()) {}

  void pass(const PassingQueries& queries) {
    const Staying of = tiles();
    const auto passing = [&](const Tile& tile) {
      return Near{tile, Axis::passing, Axis::whole, Use::reads, queries.I.begin};
    };
    const auto staying = [](const Tile& tile) {
      return Near{tile, Axis::whole, Axis::staying, Use::reads};
    };
    const auto summed = [](const Tile& tile, Use use = Use::sums) {
      return Near(tile, Axis::staying, Axis::whole, use).at_a_time(kInRegisters);
    };
    // L and v are not passed in parts: each panel of scores uses them once, after its product.
    NearSteps steps = {
        {staying(of.k_t), passing(queries.q).at_a_time(kByRows), passing(queries.L)}};
    if (sums_.needs_p()) {
      steps.push_back(
          {staying(of.v_t), passing(queries.dO).at_a_time(kByRows), passing(queries.v)});
      steps.push_back({summed(of.dk), passing(queries.q).at_a_time(kByColumns)});
    }
    if (sums_.dV) {
      steps.push_back({summed(of.dv, sums_.one_of_keys ? Use::changes : Use::sums),
                       passing(queries.dO).at_a_time(kByColumns)});
    }
    LevelWalk walk(machine_, by_.inner, &LevelBlocks::rows, &LevelBlocks::keys, steps, &begun_);
    walk.each(
        {0, of.J.size()}, queries.I,
        [&](Range C, Range met) { return keys_near(problem_, part_of(of.J, C), met); },
        [&](Range C, Range met) {
          for (const Range part : blocks(C.size(), by_.strip())) {
            const Range K = part_of(C, part);
            const LivePairs live = LivePairs::near(problem_, part_of(of.J, K), met);
            if (!live.none()) {
              add_strip(walk, live, K, queries);
            }
          }
        });
  }

 private:
  // K_J^T, V_J^T, dK_J and dV_J. If values are keys, V_J^T is K_J^T and dV_J is dK_J.
  struct Staying {
    Range J;
    const Tile &k_t, &v_t;
    Tile &dk, &dv;
  };
  [[nodiscard]] Staying tiles() {
    const bool shared = sums_.one_of_keys;
    return {keys_.J, keys_.k_t, shared ? keys_.k_t : keys_.v_t, keys_.dk,
            shared ? keys_.dk : keys_.dv};
  }
  // In inner levels, c multiplies scores and p, which are there already. Q_I is not.
  [[nodiscard]] bool scales_scores() const { return sums_.one_of_keys && !by_.inner.empty(); }
  Tile strip(std::string_view name) {
    return machine_.initialize(name, queries_, by_.strip_rows(keys_.J.size()).value(),
                               Holds::scores);
  }

  // Adds the terms of the near queries to the sums of the keys K. `live` are pairs of keys and
  // queries. Strips have a row for each query.
  void add_strip(LevelWalk& walk, const LivePairs& live, Range K, const PassingQueries& queries) {
    const Staying of = tiles();
    const Range Q{live.keys().begin - queries.I.begin, live.keys().end - queries.I.begin};
    const ConstView q = queries.q.part(Q), dO = queries.dO.part(Q);
    const auto columns = [K](const Tile& tile) { return tile.part({0, tile.rows()}, K); };
    const View f = f_.tile.part({0, Q.size()}, {0, K.size()});
    std::size_t number = 0;
    const auto step = [&](const auto& arithmetic) {
      walk.step(number++, K, live.keys(), arithmetic);
    };
    step([&] {
      multiply(q, columns(of.k_t), f, by_.passing_rows());
      if (scales_scores()) {
        scale(f, *x_.scale);
      }
      make_factor(problem_, f, queries.L, Q);
    });
    if (sums_.needs_p()) {
      const View p = p_.tile.part({0, Q.size()}, {0, K.size()});
      step([&] {
        multiply(dO, columns(of.v_t), p, by_.passing_rows());
        make_p(problem_, f, p, queries.v, Q, p);
      });
      live.set_dead(transposed(p), 0);
      if (scales_scores()) {
        scale(p, *x_.scale);
      }
      step([&] { multiply_add(transposed(p), q, of.dk.part(K), by_.passing_columns()); });
    }
    if (sums_.dV) {
      if (!problem_.normalised()) {
        activate(problem_.activation, f, f);
      }
      live.set_dead(transposed(f), 0);
      step([&] { multiply_add(transposed(f), dO, of.dv.part(K), by_.passing_columns()); });
    }
  }

  Machine& machine_;
  const RowPlan& by_;
  const Problem& problem_;
  const KeyGradients& x_;
  KeySums sums_;
  StayingKeys& keys_;
  Index queries_;  // of a strip
  NearTile f_, p_;
  Begun begun_;
};

void pass_strips(Machine& machine, const RowPlan& by, const KeyGradients& x, KeySums sums,
                 const Units& units, StayingKeys& keys) {
  const Ranges met = units.met(keys.J);
  if (met.empty()) {
    return;
  }
  const Index longest = std::ranges::max_element(met, {}, &Range::size)->size();
  PassStrips strips(machine, by, x, sums, keys, std::min(longest, by.keys));
  for (const Range I : Pieces(met, by.keys)) {
    const auto read = [&](const SlowMatrix* matrix) {
      return matrix == nullptr ? Tile() : machine.read(matrix->row_block(I));
    };
    PassingQueries queries{I, read(&x.Q), read(&x.dO), read(x.L),
                           read(sums.needs_p() ? x.v : nullptr)};
    if (x.scale && sums.one_of_keys && by.inner.empty()) {
      scale(queries.q, *x.scale);
    }
    strips.pass(queries);
  }
}

// Multiplies keys, or their sums, by a factor. Each key is a column of the tile, or a row.
void scale_keys(Machine& machine, const RowPlan& by, Tile& keys, Near near, float factor) {
  const bool in_columns = near.columns == Axis::staying;
  each_rows(machine, by.inner, &LevelBlocks::rows, in_columns ? keys.cols() : keys.rows(), {near},
            [&](Range C) {
              scale(in_columns ? keys.part({0, keys.rows()}, C) : keys.part(C), factor);
            });
}

}  // namespace

KeySums key_sums(const Problem& problem) {
  const bool shared = problem.sharing != Sharing::none;
  return {.dQ = problem.wants("dQ"),
          .dK = problem.wants("dK"),
          .dV = problem.wants(shared ? "dK" : "dV"),
          .one_of_keys = shared};
}

Range all_key_blocks(const Problem& problem, const KeyBlocks& by) {
  return {0, ceil_div(problem.shape.m, by.keys)};
}

void key_gradients(Machine& machine, const Problem& problem, const KeyBlocks& by,
                   const KeyGradients& x, Range which) {
  const Units units = Units::of_keys(problem, by.keys);
  const RowPlan near = exchanged(problem, by);
  const bool shared = problem.sharing != Sharing::none;
  const KeySums sums{.dQ = x.dQ != nullptr,
                     .dK = x.dK != nullptr,
                     .dV = (shared ? x.dK : x.dV) != nullptr,
                     .one_of_keys = shared,
                     .in_strips = x.in_strips};
  for (Index unit = which.begin; unit < which.end; ++unit) {
    StayingKeys keys{.J = units[unit], .k_t = {}, .v_t = {}, .dk = {}, .dv = {}};
    auto& [J, k_t, v_t, dk, dv] = keys;
    k_t = machine.read(transposed(x.K.row_block(J)), near.cut_rows());  // K_J^T (d, c)
    if (x.scale && !shared) {
      scale_keys(machine, near, k_t, {k_t, Axis::whole, Axis::staying, Use::changes}, *x.scale);
    }
    if (values_read(sums) > 0) {
      v_t = machine.read(transposed(x.V.row_block(J)), near.cut_rows());  // V_J^T (d, c)
    }
    if (sums.dK) {
      dk = machine.initialize("dK", J.size(), x.dK->cols());  // dK_J (c, d)
    }
    if (values_written(sums) > 0) {
      dv = machine.initialize("dV", J.size(), x.dV->cols());  // dV_J (c, d)
    }
    Tile index = units.read_index(machine, J);
    if (sums.in_strips) {
      pass_strips(machine, near, x, sums, units, keys);
    } else {
      pass_queries(machine, problem, by, x, sums, units, keys);
    }
    index.reset();
    if (sums.dK) {
      if (x.scale && !shared && x.scales_dK) {
        scale_keys(machine, near, dk, {dk, Axis::staying, Axis::whole, Use::changes}, *x.scale);
      }
      machine.write(dk, x.dK->row_block(J));
    }
    if (values_written(sums) > 0) {
      machine.write(dv, x.dV->row_block(J));
    }
  }
}

PhaseCost key_gradients_cost(std::string path, const Problem& problem, const KeyBlocks& by,
                             KeySums sums, Range units) {
  return key_gradients_cost(std::move(path), problem, by, sums,
                            Units::of_keys(problem, by.keys).sum(units));
}

PhaseCost key_gradients_cost(std::string path, const Problem& problem, const KeyBlocks& by,
                             KeySums sums, const Units::Sum& of) {
  const Words d = problem.shape.d;
  const Words dv = problem.shape.dv;
  const bool needs_p = sums.needs_p();
  const Words sum_words = problem.sum_words;
  // The queries at all keys but the first that they meet.
  const Words again = !sums.dQ              ? Words(0)
                      : of.met.overflowed() ? of.met
                                            : Words(of.met.value() - problem.shape.n);
  return with_index(
      {.path = std::move(path),
       .reads = of.rows * (d + dv * values_read(sums)) +
                of.met * (d + dv + (needs_p ? 2 : 1) * problem.row_words()) + again * d * sum_words,
       .writes = of.rows * ((sums.dK ? d : Words(0)) + dv * values_written(sums)) *
                     (sums.of_parts ? sum_words : Words(1)) +
                 again * d * sum_words + (sums.dQ ? Words(problem.shape.n) * d : Words(0)),
       .peak = of.peak([&](const Units::Unit& unit) {
         return peak(problem, by, sums, std::min(unit.longest, by.rows), unit.rows);
       }),
       .flops = of.pairs * (2 * d * (1 + (sums.dK ? 1 : 0) + (sums.dQ ? 1 : 0)) +
                            2 * dv * ((needs_p ? 1 : 0) + (sums.dV ? 1 : 0)))},
      of);
}

PhaseCost key_gradients_level_cost(std::string path, const Problem& problem, const KeyBlocks& by,
                                   KeySums sums, Range units, std::size_t level) {
  const RowPlan near = exchanged(problem, by);
  const Words d = problem.shape.d, dv = problem.shape.dv;
  const Units::Sum of = near.units().sum(units);
  PhaseCost cost = level_core_cost(std::move(path), {near, level}, units,
                                   {.read = d + dv * values_read(sums),
                                    .summed = (sums.dK ? d : Words(0)) + dv * values_written(sums),
                                    .passing = query_words(problem, sums),
                                    .strips = strips(near, of.largest, by.rows, sums),
                                    .steps = steps(problem, sums)});
  if (!sums.one_of_keys) {  // K and dK are multiplied by c
    const Words scaled = of.rows * d * (sums.dK ? 2 : 1);
    cost.reads += scaled;
    cost.writes += scaled;
  }
  return cost;
}

namespace {

KeyBlocks fit_inside(const Problem& problem, const Memory& memory, Objective objective,
                     KeySums sums) {
  const auto of_plan = [&](const auto& cost) {
    return [&, cost](const Problem& other, const Blocks& blocks, auto... level) {
      const Problem of = exchanged(other);
      const KeyBlocks by = exchanged(RowPlan(other, blocks));
      return std::vector<PhaseCost>{cost(of, by, all_key_blocks(of, by), level...)};
    };
  };
  const Problem other = exchanged(problem);
  const Blocks blocks = fit_levels(
      other, memory, objective, of_plan([&](const Problem& of, const KeyBlocks& by, Range units) {
        return key_gradients_cost("", of, by, sums, units);
      }),
      of_plan([&](const Problem& of, const KeyBlocks& by, Range units, std::size_t level) {
        return key_gradients_level_cost("", of, by, sums, units, level);
      }));
  return exchanged(RowPlan(other, blocks));
}

}  // namespace

// The words moved depend only on the keys of a block.
KeyBlocks fit_key_gradients(const Problem& problem, const Memory& memory, Objective objective,
                            KeySums sums) {
  if (!memory.inner.empty()) {
    return fit_inside(problem, memory, objective, sums);
  }
  constexpr Index kBusyRows = 48;
  const Shape& shape = problem.shape;
  const Index M = memory.M;
  const auto fits = [&](Index r, Index c) {
    return peak(problem, {.rows = r, .keys = c}, sums, r, c) <= Words(M);
  };
  if (objective == Objective::time) {
    Index r = std::min(shape.n, kBusyRows);
    while (r > 1 && !fits(r, std::min(shape.m, r))) {
      r /= 2;
    }
    Index c = largest(std::min(shape.m, M), [&](Index tried) { return fits(r, tried); });
    c = std::min(c, most_dealt_out(problem, shape.m, Units::of_keys));
    if (c < shape.m && c > kPanel) {
      c = c / kPanel * kPanel;
    }
    c = in_even_blocks(shape.m, c);
    return {.rows = r, .keys = c};
  }
  const Index c =
      even(shape.m, largest(std::min(shape.m, M), [&](Index tried) { return fits(1, tried); }));
  const Index r =
      even(shape.n, largest(std::min(shape.n, M), [&](Index tried) { return fits(tried, c); }));
  return {.rows = r, .keys = c};
}

namespace {

// The loops over keys and over the queries that stream. In groups, dK is a part of a sum and is not
// scaled.
void nest_of(NestWriter& nest, const Problem& problem, KeySums sums, const Units::Sum& of,
             const NestLoop& J, const NestLoop& I, bool in_groups) {
  const Index d = problem.shape.d;
  const bool scaled = problem.inputs == Inputs::plain;
  const std::string keys(input_names(problem).keys);
  NestExtent again = I;  // at all keys but the first
  again.all = problem.mask.full() ? 0 : of.met.value() - problem.shape.n;
  const Index dv = problem.shape.dv;
  const auto passing = [&](std::string_view name, Index cols) {
    const NestTile tile(name, I, cols);
    return in_groups ? tile.of_words(of.met * cols) : tile;
  };
  const NestTile Q = passing("Q", d), dO = passing("dO", dv),
                 L = passing("L", problem.row_columns()), v = passing("v", problem.row_columns()),
                 dQ("dQ", I, d);
  const NestTile dQ_again =
      problem.mask.full() ? NestTile("dQ", I, d).but_once(J) : NestTile("dQ", again, d);
  const NestTile K(keys, J, d), V("V", J, dv), dK("dK", J, d), dV("dV", J, dv);
  const std::string values(sums.one_of_keys ? keys : kV.name);
  NestWriter::Tiles reads = {K}, stays = {K}, writes;
  if (values_read(sums) > 0) {
    reads.push_back(V);
    stays.push_back(V);
  }
  for (const auto& [made, tile] :
       {std::pair(sums.dK, dK), std::pair(values_written(sums) > 0, dV)}) {
    if (made) {
      stays.push_back(tile);
      writes.push_back(tile);
    }
  }
  const std::string of_dV = !sums.dV           ? ""
                            : sums.one_of_keys ? "dK_J += f^T dO_I"
                                               : "dV_J += f^T dO_I";
  const std::string c = scaled && sums.one_of_keys ? "c " : "";
  const std::string of_dK = sums.dK ? "dK_J += " + c + "p^T Q_I" : "";
  nest.loop(J, [&] {
    nest.read(reads);
    if (scaled && !sums.one_of_keys) {
      nest.step("K_J = c K_J");
    }
    index_nest(nest, of);
    nest.loop(I, stays, [&] {
      const bool normalised = problem.normalised();
      const std::string f_of_s = normalised || !sums.dV ? "" : "f = phi(s); ";
      const std::string s = (scaled && sums.one_of_keys ? "c Q_I " : "Q_I ") + keys + "_J^T";
      nest.step(normalised ? "f = exp(" + s + " - L_I)" : "s = " + s, {Q, L});
      if (!sums.needs_p()) {
        nest.step(f_of_s + of_dV, {dO});
        return;
      }
      if (normalised) {
        nest.step(of_dV + (sums.dV ? "; " : "") + "p = f (dO_I " + values + "_J^T - v_I)", {dO, v});
      } else {
        nest.step("p = phi'(s) (dO_I " + values + "_J^T)" + (sums.dV ? "; " + f_of_s + of_dV : ""),
                  {dO});
      }
      if (sums.dQ) {
        nest.step(of_dK + (sums.dK ? "; " : "") + "dQ_I += " + c + "p " + keys + "_J", {dQ_again},
                  {dQ});
      } else {
        nest.step(of_dK);
      }
    });
    if (scaled && sums.dK && !sums.one_of_keys && !in_groups) {
      nest.step("dK_J = c dK_J");
    }
    if (!writes.empty()) {
      nest.write(writes);
    }
  });
}

}  // namespace

void key_gradients_nest(NestWriter& nest, const Problem& problem, const KeyBlocks& by,
                        KeySums sums) {
  const Units::Sum of = Units::of_keys(problem, by.keys).sum();
  const NestLoop J("J", "keys", problem.shape.m, by.keys);
  const NestLoop I = problem.mask.full()
                         ? NestLoop("I", "queries", problem.shape.n, by.rows)
                         : J.met("I", "live queries", of.met.value(), of.longest, by.rows);
  nest_of(nest, problem, sums, of, J, I, false);
}

void key_gradients_nest(NestWriter& nest, const Problem& problem, const KeyBlocks& by, KeySums sums,
                        const NestLoop& of_queries, const NestLoop& J, const Units::Sum& of) {
  const NestLoop I = of_queries.met(
      "I", (problem.mask.full() ? "queries of " : "live queries of ") + of_queries.variable,
      of.met.value(), of.longest, by.rows);
  nest_of(nest, problem, sums, of, J, I, true);
}

}  // namespace redblue
