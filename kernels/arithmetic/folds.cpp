#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/arithmetic/accounting-inl.hpp"
#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/machine.hpp"
#include "memsim/unchecked.hpp"

// The lines between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE are compiled once for each
// instruction set, and the other lines once.
#include "kernels/arithmetic/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/arithmetic/folds.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/highway.h>

#include "kernels/arithmetic/exp-inl.hpp"
#include "kernels/arithmetic/panels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace redblue::HWY_NAMESPACE {
namespace {

// May lose a NaN on some processors (see arithmetic.hpp).
void raise_maximum(const ConstView& s, const View& maximum) {
  const Vector lowest = hn::Set(kLanes, -std::numeric_limits<float>::infinity());
  float* const known = words_of_column(maximum);
  for_rows(
      s, lowest,
      [&](Vector top, Index i, Index p, int v, Index lanes)
          HWY_ATTR { return hn::Max(top, only(load(Unchecked(s).at(i, p), v), lanes, lowest)); },
      [&](Index i, Vector top)
          HWY_ATTR { known[i] = std::max(known[i], hn::GetLane(hn::MaxOfLanes(kLanes, top))); });
}

void raise_maximum_transposed(const ConstView& s_t, const View& maximum) {
  for_columns(
      s_t, hn::Set(kLanes, -std::numeric_limits<float>::infinity()),
      [&](Index p) HWY_ATTR {
        return [s = lines(s_t, p)](Vector top, Index j, int v)
                   HWY_ATTR { return hn::Max(top, load(s[j], v)); };
      },
      [&](Index p, int v, Index lanes, Vector top) HWY_ATTR {
        float* const known = words_of_column(maximum) + p * kPanel;
        store(hn::Max(load(known, v), top), known, v, lanes);
      });
}

// Each column has one word of row, sum and dots. q_t and dots are used only if kDots.
template <bool kDots>
HWY_INLINE void exponentiate_columns(const View& s_t, const ConstView& row, const View& sum,
                                     const ConstView& q_t, const View& dots) {
  for (Index p = 0; p < s_t.panels(); ++p) {
    const Lines<float> s = lines(s_t, p);
    const Lines<const float> q = lines(q_t, p);
    const Index cols = Unchecked(s_t).panel_cols(p);
    for (int v = 0; v * kWidth < cols; ++v) {
      const Index lanes = lanes_in(cols, v);
      const Vector shift = load(words_of_column(row) + p * kPanel, v);
      float* const all = words_of_column(sum) + p * kPanel;
      float* const all_dots = words_of_column(dots) + p * kPanel;
      Vector sums = load(all, v);
      Vector products = load(all_dots, v);
      for (Index j = 0; j < s_t.rows(); ++j) {
        const Vector e = exp_up_to_89(kLanes, hn::Sub(load(s[j], v), shift));
        store(e, s[j], v, lanes);
        sums = hn::Add(sums, e);
        if constexpr (kDots) {
          products = hn::MulAdd(e, load(q[j], v), products);
        }
      }
      store(sums, all, v, lanes);
      if constexpr (kDots) {
        store(products, all_dots, v, lanes);
      }
    }
  }
}

void exponentiate_transposed(const View& s_t, const ConstView& row, const View& sum) {
  exponentiate_columns<false>(s_t, row, sum, s_t, sum);
}

void exponentiate_and_dot(const View& s_t, const ConstView& row, const View& sum,
                          const ConstView& q_t, const View& dots) {
  exponentiate_columns<true>(s_t, row, sum, q_t, dots);
}

// from_i = exp(from_i - less_i).
void exponentiate_differences(const View& from, const ConstView& less) {
  for_column(from, [to = words_of_column(from), shift = words_of_column(less)](Index i) HWY_ATTR {
    return exp(kLanes, hn::Sub(load(to + i, 0), load(shift + i, 0)));
  });
}

void add_row_sums(const ConstView& a, const View& sum) {
  const Vector zero = hn::Zero(kLanes);
  float* const known = words_of_column(sum);
  for_rows(
      a, zero,
      [&](Vector sums, Index i, Index p, int v, Index lanes)
          HWY_ATTR { return hn::Add(sums, only(load(Unchecked(a).at(i, p), v), lanes, zero)); },
      [&](Index i, Vector sums)
          HWY_ATTR { known[i] += hn::GetLane(hn::SumOfLanes(kLanes, sums)); });
}

void add_row_dots(const ConstView& a, const ConstView& b, const View& sum) {
  const Vector zero = hn::Zero(kLanes);
  float* const known = words_of_column(sum);
  for_rows(
      a, zero,
      [&](Vector sums, Index i, Index p, int v, Index lanes) HWY_ATTR {
        const Vector products =
            hn::Mul(load(Unchecked(a).at(i, p), v), load(Unchecked(b).at(i, p), v));
        return hn::Add(sums, only(products, lanes, zero));
      },
      [&](Index i, Vector sums)
          HWY_ATTR { known[i] += hn::GetLane(hn::SumOfLanes(kLanes, sums)); });
}

void add_row_dots_transposed(const ConstView& a_t, const ConstView& b_t, const View& sum) {
  for_columns(
      a_t, hn::Zero(kLanes),
      [&](Index p) HWY_ATTR {
        return [a = lines(a_t, p), b = lines(b_t, p)](Vector sums, Index j, int v)
                   HWY_ATTR { return hn::MulAdd(load(a[j], v), load(b[j], v), sums); };
      },
      [&](Index p, int v, Index lanes, Vector sums) HWY_ATTR {
        float* const known = words_of_column(sum) + p * kPanel;
        store(hn::Add(load(known, v), sums), known, v, lanes);
      });
}

}  // namespace
}  // namespace redblue::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace redblue {
namespace {

HWY_EXPORT(raise_maximum);
HWY_EXPORT(raise_maximum_transposed);
HWY_EXPORT(exponentiate_transposed);
HWY_EXPORT(exponentiate_and_dot);
HWY_EXPORT(exponentiate_differences);
HWY_EXPORT(add_row_sums);
HWY_EXPORT(add_row_dots);
HWY_EXPORT(add_row_dots_transposed);

}  // namespace

void raise_maximum(const ConstView& s, const View& maximum) {
  require(is_column_of(maximum, s.rows()), "one maximum a row");
  HWY_DYNAMIC_DISPATCH(raise_maximum)(s, maximum);
  account(elementwise(s.words()), maximum, [&] { tell_all({folds("maximum", maximum, {s})}); });
}

void raise_maximum(const Transposed<ConstView>& s_t, const View& maximum) {
  require(is_column_of(maximum, s_t.of.cols()), "one maximum a row");
  HWY_DYNAMIC_DISPATCH(raise_maximum_transposed)(s_t.of, maximum);
  account(elementwise(s_t.of.words()), maximum,
          [&] { tell_all({folds("maximum", maximum, {s_t})}); });
}

void raise_maximum(const ConstView& s, const View& maximum, const View& rescale) {
  require(is_column_of(maximum, s.rows()) && is_column_of(rescale, s.rows()),
          "one maximum and factor a row");
  std::copy_n(Unchecked(maximum).at(0, 0), maximum.rows(), Unchecked(rescale).at(0, 0));
  HWY_DYNAMIC_DISPATCH(raise_maximum)(s, maximum);
  HWY_DYNAMIC_DISPATCH(exponentiate_differences)(rescale, maximum);
  account(elementwise(s.words() + 2 * rescale.words()), maximum, [&] {
    tell_all({maps("copy", rescale, kOverwritten, {maximum}), folds("maximum", maximum, {s}),
              maps("exp_difference", rescale, kTaken, {maximum})});
  });
}

void raise_maximum(const Transposed<ConstView>& s_t, const View& maximum, const View& rescale) {
  require(is_column_of(maximum, s_t.of.cols()) && is_column_of(rescale, s_t.of.cols()),
          "one maximum and factor a row");
  std::copy_n(Unchecked(maximum).at(0, 0), maximum.rows(), Unchecked(rescale).at(0, 0));
  HWY_DYNAMIC_DISPATCH(raise_maximum_transposed)(s_t.of, maximum);
  HWY_DYNAMIC_DISPATCH(exponentiate_differences)(rescale, maximum);
  account(elementwise(s_t.of.words() + 2 * rescale.words()), maximum, [&] {
    tell_all({maps("copy", rescale, kOverwritten, {maximum}), folds("maximum", maximum, {s_t}),
              maps("exp_difference", rescale, kTaken, {maximum})});
  });
}

void exponentiate(const Transposed<View>& s_t, const ConstView& row, const View& sum) {
  require(is_column_of(row, s_t.of.cols()) && is_column_of(sum, s_t.of.cols()),
          "f = exp(s - row), sum += rowsum(f): the tiles conform");
  HWY_DYNAMIC_DISPATCH(exponentiate_transposed)(s_t.of, row, sum);
  account(elementwise(3 * s_t.of.words()), sum, [&] {
    tell_all({maps("exp_difference", s_t.of, kTaken, {of_columns(row)}), folds("sum", sum, {s_t})});
  });
}

void exponentiate(const Transposed<View>& s_t, const ConstView& row, const View& sum,
                  const Transposed<ConstView>& q_t, const View& dots) {
  require(is_column_of(row, s_t.of.cols()) && is_column_of(sum, s_t.of.cols()) &&
              is_column_of(dots, s_t.of.cols()) && same_shape(q_t.of, s_t.of),
          "f = exp(s - row), dots += rowsum(f * q): the tiles conform");
  HWY_DYNAMIC_DISPATCH(exponentiate_and_dot)(s_t.of, row, sum, q_t.of, dots);
  account(elementwise(5 * s_t.of.words()), sum, [&] {
    tell_all({maps("exp_difference", s_t.of, kTaken, {of_columns(row)}), folds("sum", sum, {s_t}),
              folds("dot", dots, {s_t, q_t})});
  });
}

void add_row_sums(const ConstView& a, const View& sum) {
  require(is_column_of(sum, a.rows()), "one sum a row");
  HWY_DYNAMIC_DISPATCH(add_row_sums)(a, sum);
  account(elementwise(a.words()), sum, [&] { tell_all({folds("sum", sum, {a})}); });
}

void add_row_dots(const ConstView& a, const ConstView& b, const View& sum) {
  require(same_shape(a, b) && is_column_of(sum, a.rows()),
          "sum += rowsum(a * b): the tiles conform");
  HWY_DYNAMIC_DISPATCH(add_row_dots)(a, b, sum);
  account(elementwise(2 * a.words()), sum, [&] { tell_all({folds("dot", sum, {a, b})}); });
}

void add_row_dots(const Transposed<ConstView>& a_t, const Transposed<ConstView>& b_t,
                  const View& sum) {
  require(same_shape(a_t.of, b_t.of) && is_column_of(sum, a_t.of.cols()),
          "sum += rowsum(a * b): the tiles conform");
  HWY_DYNAMIC_DISPATCH(add_row_dots_transposed)(a_t.of, b_t.of, sum);
  account(elementwise(2 * a_t.of.words()), sum, [&] { tell_all({folds("dot", sum, {a_t, b_t})}); });
}

void add_logarithm(const View& maximum, const ConstView& sum) {
  require(is_column_of(maximum, sum.rows()) && is_column_of(sum, sum.rows()), "one sum a maximum");
  for (Index i = 0; i < sum.rows(); ++i) {
    *Unchecked(maximum).at(i, 0) += std::log(*Unchecked(sum).at(i, 0));
  }
  account(elementwise(2 * maximum.words()), maximum,
          [&] { tell_all({maps("add_logarithm", maximum, kTaken, {sum})}); });
}

}  // namespace redblue
#endif
