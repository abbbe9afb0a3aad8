#include "kernels/parts/row_sums.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "memsim/machine.hpp"

namespace redblue {

namespace {

Index strip_rows(const RowPlan& by, Index rows) {
  return by.strip_rows(rows).value();
}

NearTile strip_of(Machine& machine, const RowPlan& by, std::string_view name, Index rows) {
  return {machine, machine.initialize(name, by.strip_keys(), strip_rows(by, rows), Holds::scores)};
}

// Streaming keys, which are the rows of a tile from `at` on.
Near of_keys(const KeyTiles& keys, const Tile& tile) {
  return {tile, Axis::passing, Axis::whole, Use::reads, keys.J.begin - keys.at.begin};
}
// Resident tiles of queries: a query is a column of a transposed tile, or a row.
Near columns_of(const Tile& tile) {
  return {tile, Axis::whole, Axis::staying, Use::reads};
}
Near rows_of(const Tile& tile, Use use) {
  return {tile, Axis::staying, Axis::whole, use};
}

// Calls visit(K, live pairs, rows of the tiles of keys, step) for each strip K of the queries I
// that meets some of the keys, in the innermost level. The visit calls step(number, arithmetic) for
// each step. steps() returns the tiles of each step. It is not called if there is only one level.
template <class Steps, class Visit>
void each_live_strip(Machine& machine, const RowPlan& by, const KeyTiles& keys, Range I,
                     const Steps& steps, Begun& begun, const Visit& visit) {
  LevelWalk walk(machine, by.inner, &LevelBlocks::rows, &LevelBlocks::keys,
                 by.inner.empty() ? NearSteps() : steps(), &begun);
  walk.each(
      {0, I.size()}, keys.J,
      [&](Range S, Range J) { return keys_near(by.problem, part_of(I, S), J); },
      [&](Range S, Range J) {
        for (const Range strip : blocks(S.size(), by.strip())) {
          const Range K = part_of(S, strip);
          const LivePairs live = LivePairs::near(by.problem, part_of(I, K), J);
          if (!live.none()) {
            visit(K, live, keys.rows_of(live.keys()),
                  [&](std::size_t number, const auto& arithmetic) {
                    walk.step(number, K, live.keys(), arithmetic);
                  });
          }
        }
      });
}

}  // namespace

ValueSums::ValueSums(Machine& machine, const RowPlan& by, Index rows)
    : machine_(machine),
      by_(by),
      begun_(machine, rows),
      sums_{machine.initialize("Z", rows, by.problem.shape.dv),
            RowNormaliser(machine, by.problem, rows)},
      strip_(strip_of(machine, by, "e", rows)),
      factors_(machine, row_values(machine, by.problem, "rescale", strip_rows(by, rows))) {}

void ValueSums::add(const KeyTiles& keys, Range I, const Tile& s_t) {
  const Tile& a2 = keys.a2;
  const Tile& a3 = keys.a3;
  Tile& Z = sums_.Z;
  const OnlineSoftmax::State kept = sums_.normaliser.state();
  const auto steps = [&]() -> NearSteps {
    return {{columns_of(s_t), of_keys(keys, a2).at_a_time(kByRows)},
            {rows_of(Z, Use::sums), rows_of(kept.maximum, Use::sums), rows_of(kept.sum, Use::sums),
             of_keys(keys, a3).at_a_time(kByColumns)}};
  };
  each_live_strip(machine_, by_, keys, I, steps, begun_,
                  [&](Range K, const LivePairs& live, Range at, const auto& step) {
                    const View e_t = strip_.tile.part({0, at.size()}, {0, K.size()});
                    step(0, [&] {
                      multiply(a2.part(at), s_t.part({0, s_t.rows()}, K), e_t, by_.passing_rows());
                    });
                    step(1, [&] {
                      sums_.normaliser.apply(transposed(e_t), K, live, factors_.tile, {Z.part(K)});
                      multiply_add(transposed(e_t), a3.part(at), Z.part(K), by_.passing_columns());
                    });
                  });
}

// The words of Z and of the normaliser. The strips: one strip, and its factors.
Words ValueSums::of_row(const RowPlan& by) {
  return Words(by.problem.shape.dv) * by.problem.sum_words + RowNormaliser::words(by.problem);
}
Words ValueSums::strips(const RowPlan& by, Words r) {
  return by.strip_rows(r) * (Words(by.strip_keys()) + by.problem.row_words());
}
LevelSums ValueSums::in_level(const RowPlan& by, Words r) {
  const Words d = by.problem.shape.d, dv = by.problem.shape.dv;
  return {.read = d,
          .summed = of_row(by),
          .passing = by.problem.key_words(),
          .strips = strips(by, r),
          .steps = {{.read = d, .passing = d, .passing_at_a_time = kByRows},
                    {.summed = of_row(by), .passing = dv, .passing_at_a_time = kByColumns}}};
}

GradientSums::GradientSums(Machine& machine, const RowPlan& by, Index rows)
    : machine_(machine),
      by_(by),
      begun_(machine, rows),
      U_(machine.initialize("U", rows, by.problem.shape.d)),
      Z_(machine.initialize("Z", rows, by.problem.shape.d)),
      softmax_(machine, rows),
      mean_(machine, rows),
      e_strip_(strip_of(machine, by, "e", rows)),
      q_strip_(strip_of(machine, by, "q", rows)),
      factors_(machine, machine.initialize("rescale", strip_rows(by, rows))),
      delta_(machine, machine.initialize("delta", strip_rows(by, rows))) {}

void GradientSums::add(const KeyTiles& keys, Range I, const Tile& s_t, const Tile& g_t) {
  const Tile& a2 = keys.a2;
  const Tile& a3 = keys.a3;
  const OnlineSoftmax::State kept = softmax_.state();
  const Tile& mean = mean_.mean();
  const auto steps = [&]() -> NearSteps {
    return {{columns_of(s_t), of_keys(keys, a2).at_a_time(kByRows)},
            {columns_of(g_t), rows_of(mean, Use::reads), of_keys(keys, a3).at_a_time(kByRows)},
            {rows_of(U_, Use::sums), rows_of(Z_, Use::sums), rows_of(kept.maximum, Use::sums),
             rows_of(kept.sum, Use::sums), rows_of(mean, Use::sums), of_keys(keys, a2)}};
  };
  each_live_strip(machine_, by_, keys, I, steps, begun_,
                  [&](Range K, const LivePairs& live, Range at, const auto& step) {
                    const View e_t = e_strip_.tile.part({0, at.size()}, {0, K.size()});
                    const View q_t = q_strip_.tile.part({0, at.size()}, {0, K.size()});
                    step(0, [&] {
                      multiply(a2.part(at), s_t.part({0, s_t.rows()}, K), e_t, by_.passing_rows());
                    });
                    step(1, [&] {
                      shifted_product(a3.part(at), g_t.part({0, g_t.rows()}, K), mean_.of(K), q_t,
                                      by_.passing_rows());
                    });
                    live.set_dead(transposed(e_t), kDeadScore);
                    live.set_dead(transposed(q_t), 0);
                    step(2, [&] {
                      softmax_.raise(transposed(e_t), K, factors_.tile.part({0, K.size()}),
                                     {U_.part(K), Z_.part(K)});
                      const View delta = delta_.tile.part({0, K.size()});
                      fill_in_row(transposed(delta), 0, {0, K.size()}, 0);
                      mean_.follow(softmax_, K, e_t, q_t, delta, U_.part(K), Z_.part(K));
                      multiply_add(transposed(e_t), a2.part(at), Z_.part(K));
                      multiply_add(transposed(q_t), a2.part(at), U_.part(K));
                    });
                  });
}

Tile GradientSums::take() {
  softmax_.divide(U_, by_.inner);
  return std::move(U_);
}

GradientSums::Known GradientSums::take_all() {
  Tile W = take();
  return {std::move(W), softmax_.log_sum_exp(by_.inner), mean_.take()};
}

GradientSums::Parts GradientSums::take_parts() {
  return {std::move(U_), std::move(Z_), std::move(softmax_), mean_.take()};
}

// The words of U, Z, the softmax and the mean. The strips: two strips, factors and delta.
Words GradientSums::of_row(const RowPlan& by) {
  return (Words(2) * by.problem.shape.d + OnlineSoftmax::kWords + RunningMean::kWords) *
         by.problem.sum_words;
}
Words GradientSums::strips(const RowPlan& by, Words r) {
  return by.strip_rows(r) * (Words(2) * by.strip_keys() + 2 * by.problem.row_words());
}
LevelSums GradientSums::in_level(const RowPlan& by, Words r) {
  const Words d = by.problem.shape.d, dv = by.problem.shape.dv;
  return {.read = d + dv,
          .summed = of_row(by),
          .passing = by.problem.key_words(),
          .strips = strips(by, r),
          .steps = {{.read = d, .passing = d, .passing_at_a_time = kByRows},
                    {.read = dv + RunningMean::kWords, .passing = dv, .passing_at_a_time = kByRows},
                    {.summed = of_row(by), .passing = d}}};
}

KnownGradientSums::KnownGradientSums(Machine& machine, const RowPlan& by, Index rows, Tile L,
                                     Tile v)
    : machine_(machine),
      by_(by),
      begun_(machine, rows),
      L_(std::move(L)),
      v_(std::move(v)),
      W_(machine.initialize("W", rows, by.problem.shape.d)),
      strip_(strip_of(machine, by, "p", rows)),
      registers_(machine, machine.initialize("q", std::min(kRegisterCharge, strip_.tile.words()), 1,
                                             Holds::scores)) {}

void KnownGradientSums::add(const KeyTiles& keys, Range I, const Tile& s_t, const Tile& g_t) {
  const Tile& a2 = keys.a2;
  const Tile& a3 = keys.a3;
  const auto steps = [&]() -> NearSteps {
    return {
        {columns_of(s_t), rows_of(L_, Use::reads), of_keys(keys, a2).at_a_time(kByRows)},
        {columns_of(g_t), rows_of(v_, Use::reads), of_keys(keys, a3).at_a_time(kByRows)},
        {rows_of(W_, Use::sums).at_a_time(kInRegisters), of_keys(keys, a2).at_a_time(kByColumns)}};
  };
  each_live_strip(machine_, by_, keys, I, steps, begun_,
                  [&](Range K, const LivePairs& live, Range at, const auto& step) {
                    const View p_t = strip_.tile.part({0, at.size()}, {0, K.size()});
                    const ConstView of_s = s_t.part({0, s_t.rows()}, K);
                    const ConstView of_g = g_t.part({0, g_t.rows()}, K);
                    const bool normalised = by_.problem.normalised();
                    const Index passing = by_.passing_rows();
                    step(0, [&] {
                      if (normalised) {
                        exponentiated_product(a2.part(at), of_s, L_.part(K), p_t, passing);
                      } else {
                        multiply(a2.part(at), of_s, p_t, passing);
                        activation_slope(by_.problem.activation, p_t, p_t);
                      }
                    });
                    step(1, [&] {
                      if (normalised) {
                        softmax_gradient_product(a3.part(at), of_g, v_.part(K), p_t,
                                                 registers_.tile, passing);
                      } else {
                        multiplied_product(a3.part(at), of_g, p_t, registers_.tile, passing);
                      }
                    });
                    live.set_dead(transposed(p_t), 0);
                    step(2, [&] {
                      multiply_add(transposed(p_t), a2.part(at), W_.part(K), by_.passing_columns());
                    });
                  });
}

// The words of W, L and v. The strips: one strip, and the words that a product keeps in registers.
Words KnownGradientSums::of_row(const RowPlan& by) {
  return Words(by.problem.shape.d) * by.problem.sum_words + 2 * by.problem.row_words();
}
Words KnownGradientSums::strips(const RowPlan& by, Words r) {
  const Words strip = by.strip_rows(r) * by.strip_keys();
  return strip + std::min(strip, Words(kRegisterCharge));
}
LevelSums KnownGradientSums::in_level(const RowPlan& by, Words r) {
  const Words d = by.problem.shape.d, dv = by.problem.shape.dv, one = by.problem.row_words();
  return {.read = d + dv + 2 * one,
          .summed = d,
          .passing = by.problem.key_words(),
          .strips = strips(by, r),
          .steps = {{.read = d + one, .passing = d, .passing_at_a_time = kByRows},
                    {.read = dv + one, .passing = dv, .passing_at_a_time = kByRows},
                    {.summed = d,
                     .passing = d,
                     .passing_at_a_time = kByColumns,
                     .sums_at_a_time = kInRegisters}}};
}

SumsFromNothing::SumsFromNothing(Machine& machine, const RowPlan& by, Index rows) {
  if (by.problem.normalised()) {
    of_softmax_.emplace(machine, by, rows);
  } else {
    of_others_.emplace(machine, by, rows, Tile(), Tile());
  }
}

void SumsFromNothing::add(const KeyTiles& keys, Range I, const Tile& s_t, const Tile& g_t) {
  if (of_softmax_) {
    of_softmax_->add(keys, I, s_t, g_t);
  } else {
    of_others_->add(keys, I, s_t, g_t);
  }
}

Tile SumsFromNothing::take() {
  return of_softmax_ ? of_softmax_->take() : of_others_->take();
}

Words SumsFromNothing::words(const RowPlan& by, Words r) {
  return by.problem.normalised() ? GradientSums::words(by, r) : KnownGradientSums::words(by, r);
}

}  // namespace redblue
