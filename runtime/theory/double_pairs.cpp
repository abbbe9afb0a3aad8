#include "runtime/theory/double_pairs.hpp"

#include <cmath>

#include "kernels/arithmetic/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/theory/double_pairs.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace redblue::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::CappedTag<double, 8> kDoubles;
using Double = hn::Vec<decltype(kDoubles)>;
constexpr Index kWidth = static_cast<Index>(hn::MaxLanes(kDoubles));
// 12 rows for 32 vector registers, 6 for 16.
constexpr int kTileRows = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3 ? 12 : 6;

HWY_INLINE Double load(const double* from) {
  return hn::LoadU(kDoubles, from);
}
HWY_INLINE Double set(double x) {
  return hn::Set(kDoubles, x);
}
HWY_INLINE Double square(Double x) {
  return hn::Mul(x, x);
}
HWY_INLINE double sum(Double x) {
  return hn::GetLane(hn::SumOfLanes(kDoubles, x));
}
HWY_INLINE double largest(Double x) {
  return hn::GetLane(hn::MaxOfLanes(kDoubles, x));
}
HWY_INLINE void add_to(double* to, Double x) {
  hn::StoreU(hn::Add(load(to), x), kDoubles, to);
}

Index panel_width() {
  return 2 * kWidth;
}

HWY_INLINE void multiply_tile(const PanelProduct& of, const double* A, double* C) {
  Double sums[kTileRows][2];
  HWY_UNROLL(12)
  for (int r = 0; r < kTileRows; ++r) {
    sums[r][0] = hn::Zero(kDoubles);
    sums[r][1] = hn::Zero(kDoubles);
  }
  const double* B = of.B;
  for (Index k = 0; k < of.depth; ++k) {
    const Double left = load(B);
    const Double right = load(B + kWidth);
    HWY_UNROLL(12)
    for (int r = 0; r < kTileRows; ++r) {
      const Double a = set(A[r * of.row_step]);
      sums[r][0] = hn::MulAdd(a, left, sums[r][0]);
      sums[r][1] = hn::MulAdd(a, right, sums[r][1]);
    }
    A += of.depth_step;
    B += 2 * kWidth;
  }
  for (int r = 0; r < kTileRows; ++r) {
    double* const to = C + r * of.C_step;
    for (int half = 0; half < 2; ++half) {
      if (of.adds) {
        add_to(to + half * kWidth, sums[r][half]);
      } else {
        hn::StoreU(sums[r][half], kDoubles, to + half * kWidth);
      }
    }
  }
}

void multiply(const PanelProduct& of) {
  for (Index i = 0; i < of.rows; i += kTileRows) {
    multiply_tile(of, of.A + i * of.row_step, of.C + i * of.C_step);
  }
}

double softmax(const double* s, double* f, Index keys) {
  Double most = set(kDeadScore);
  for (Index j = 0; j < keys; j += kWidth) {
    most = hn::Max(most, load(s + j));
  }
  const double maximum = largest(most);
  const Double shift = set(maximum);
  Double sums = hn::Zero(kDoubles);
  for (Index j = 0; j < keys; j += kWidth) {
    const Double e = hn::Exp(kDoubles, hn::Max(hn::Sub(load(s + j), shift), set(-800)));
    const Double live = hn::IfThenElseZero(hn::Gt(load(s + j), set(kDeadScore)), e);
    hn::StoreU(live, kDoubles, f + j);
    sums = hn::Add(sums, live);
  }
  const double all = sum(sums);
  const Double inverse = set(1 / all);
  for (Index j = 0; j < keys; j += kWidth) {
    hn::StoreU(hn::Mul(load(f + j), inverse), kDoubles, f + j);
  }
  return maximum + std::log(all);
}

void exponentials(const double* s, double L, double* f, Index keys) {
  for (Index j = 0; j < keys; j += kWidth) {
    const Double x = hn::Min(hn::Max(hn::Sub(load(s + j), set(L)), set(-800)), set(700));
    const Double live =
        hn::IfThenElseZero(hn::Gt(load(s + j), set(kDeadScore)), hn::Exp(kDoubles, x));
    hn::StoreU(live, kDoubles, f + j);
  }
}

template <Activation kOf>
HWY_INLINE void activate_row(const double* s, double* f, double* slope, Index keys) {
  const Double one = set(1);
  for (Index j = 0; j < keys; j += kWidth) {
    const Double x = load(s + j);
    Double value, derivative;
    if constexpr (kOf == Activation::relu) {
      value = hn::Max(x, hn::Zero(kDoubles));
      derivative = hn::IfThenElseZero(hn::Gt(x, hn::Zero(kDoubles)), one);
    } else {
      const Double e = hn::Exp(kDoubles, hn::Max(hn::Neg(hn::Abs(x)), set(-800)));
      const Double larger = hn::Div(one, hn::Add(one, e));
      const Double smaller = hn::Mul(e, larger);
      const auto positive = hn::Ge(x, hn::Zero(kDoubles));
      const Double sigmoid = hn::IfThenElse(positive, larger, smaller);
      const Double other = hn::IfThenElse(positive, smaller, larger);
      if constexpr (kOf == Activation::sigmoid) {
        value = sigmoid;
        derivative = hn::Mul(sigmoid, other);
      } else {
        value = hn::Mul(x, sigmoid);
        derivative = hn::Mul(sigmoid, hn::MulAdd(x, other, one));
      }
    }
    const auto live = hn::Gt(x, set(kDeadScore));
    hn::StoreU(hn::IfThenElseZero(live, value), kDoubles, f + j);
    hn::StoreU(hn::IfThenElseZero(live, derivative), kDoubles, slope + j);
  }
}

void activate(Activation activation, const double* s, double* f, double* slope, Index keys) {
  switch (activation) {
    case Activation::softmax:
      return refuse_activation(activation);
    case Activation::relu:
      return activate_row<Activation::relu>(s, f, slope, keys);
    case Activation::sigmoid:
      return activate_row<Activation::sigmoid>(s, f, slope, keys);
    case Activation::silu:
      return activate_row<Activation::silu>(s, f, slope, keys);
  }
  refuse_activation(activation);
}

// The variance of a score, or of q, as PairRow defines it.
struct Variance {
  Double keys, others, dot;
  HWY_INLINE Double operator()(Double key, Double other, Double x) const {
    return hn::MulAdd(keys, key, hn::MulAdd(others, other, hn::Mul(dot, square(x))));
  }
};

// Returns the variance of f in units of f^2. It adds the errors of the argument and of the
// exponential of exp(s - L) to the error of the score.
HWY_INLINE Double softmax_error(Double of_score, Double s, Double L) {
  return hn::Add(of_score, hn::MulAdd(set(1.0 / 3), square(hn::Sub(s, L)), set(4)));
}

template <bool kBackward>
void add_softmax_row(const PairRow& row, const PairKeys& keys, const double* s, const double* f,
                     const double* q, Index first, Index end, SoftmaxSums& sums) {
  const Variance of_s{set(row.s_keys), set(row.s_others), set(row.dot)};
  const Variance of_q{set(row.q_keys), set(row.q_others), set(row.dot)};
  const Double L = set(row.L), zero = hn::Zero(kDoubles);
  Double errors = zero, largest_error = zero, most = zero, O = zero, O_terms = zero, kappa2 = zero;
  Double all_f2 = zero, mean2 = zero, mean_q = zero, mean_q2 = zero, errors_q = zero;
  Double errors_q2 = zero, q_errors = zero, q_terms = zero, largest_q = zero;
  for (Index j = first; j < end; j += kWidth) {
    const Double fj = load(f + j), sj = load(s + j), k2 = load(keys.kappa2 + j);
    const Double e = softmax_error(of_s(k2, load(keys.others2 + j), sj), sj, L);
    const Double fe = hn::Mul(fj, e);
    const Double f2e = hn::Mul(fj, fe);
    const Double f2 = square(fj);
    all_f2 = hn::Add(all_f2, f2);
    const Double v2 = load(keys.value2 + j);
    errors = hn::Add(errors, f2e);
    largest_error = hn::Max(largest_error, fe);
    most = hn::Max(most, hn::IfThenElseZero(hn::Gt(fj, set(1e-20)), e));
    O = hn::MulAdd(f2e, v2, O);
    O_terms = hn::MulAdd(f2, v2, O_terms);
    kappa2 = hn::MulAdd(fj, k2, kappa2);
    mean2 = hn::MulAdd(fj, load(keys.value_mean2 + j), mean2);
    if constexpr (kBackward) {
      const Double qj = load(q + j);
      const Double q_error = of_q(load(keys.nu2 + j), load(keys.value_others2 + j), qj);
      const Double fq = hn::Mul(fj, qj);
      mean_q = hn::Add(mean_q, fq);
      largest_q = hn::Max(largest_q, hn::Abs(qj));
      mean_q2 = hn::MulAdd(fq, qj, mean_q2);
      const Double eq = hn::Mul(f2e, qj);
      errors_q = hn::Add(errors_q, eq);
      errors_q2 = hn::MulAdd(eq, qj, errors_q2);
      q_errors = hn::MulAdd(f2, q_error, q_errors);
      q_terms = hn::MulAdd(fq, fq, q_terms);
    }
  }
  sums.errors += sum(errors);
  sums.f2 += sum(all_f2);
  sums.largest_error = HWY_MAX(sums.largest_error, largest(largest_error));
  sums.largest = HWY_MAX(sums.largest, largest(most));
  sums.O += sum(O);
  sums.O_terms += sum(O_terms);
  sums.kappa2 += sum(kappa2);
  sums.value_mean2 += sum(mean2);
  if constexpr (kBackward) {
    sums.q += sum(mean_q);
    sums.q2 += sum(mean_q2);
    sums.largest_q = HWY_MAX(sums.largest_q, largest(largest_q));
    sums.errors_q += sum(errors_q);
    sums.errors_q2 += sum(errors_q2);
    sums.q_errors += sum(q_errors);
    sums.q_terms += sum(q_terms);
  }
}

void add_softmax(const PairRow& row, const PairKeys& keys, const double* s, const double* f,
                 const double* q, Index first, Index end, SoftmaxSums& sums) {
  (q != nullptr ? add_softmax_row<true> : add_softmax_row<false>)(row, keys, s, f, q, first, end,
                                                                  sums);
}

// Constants for the variances of f and p of activations other than softmax. `curve` bounds phi'',
// and `step` bounds how far phi' moves. `rounded` is the variance of the roundings of phi and phi',
// relative to f and to at most `size`. The derivative of relu jumps at 0: a score that may be on
// its other side has p = q or 0.
struct Curve {
  double curve, step, rounded, size;
};
template <Activation kOf>
constexpr Curve curve_of() {
  return kOf == Activation::relu      ? Curve{0, 1, 0, 0}
         : kOf == Activation::sigmoid ? Curve{0.0963, 0.25, 6, 0.25}
                                      : Curve{0.5, 1.2, 9, 1.1};
}
constexpr double kUnit2 = 0x1p-48;  // the square of the unit roundoff

template <Activation kOf, bool kBackward>
void add_pairs_of(const PairRow& row, const PairKeys& keys, const double* s, const double* f,
                  const double* slope, double* q, Index first, Index end, RowSums& sums,
                  const KeySums& to) {
  constexpr bool kSoftmax = kOf == Activation::softmax;
  constexpr Curve kCurve = curve_of<kOf>();
  const Variance of_s{set(row.s_keys), set(row.s_others), set(row.dot)};
  const Variance of_q{set(row.q_keys), set(row.q_others), set(row.dot)};
  const Double L = set(row.L), v = set(row.v), zero = hn::Zero(kDoubles);
  const Double v2 = set(row.v_error + row.v * row.v), f_error = set(row.f_error);
  const Double rows2 = set(row.rows2), values2 = set(row.values2);
  const Double rows_error = set(row.rows_error);
  Double O = zero, O_terms = zero, W = zero, W_terms = zero;
  for (Index j = first; j < end; j += kWidth) {
    const Double fj = load(f + j), sj = load(s + j);
    const Double slope_j = kSoftmax ? fj : load(slope + j);
    const Double e = of_s(load(keys.kappa2 + j), load(keys.others2 + j), sj);
    const Double f2 = square(fj);
    // For other activations: how much p moves with s.
    Double F, moved = zero;
    if constexpr (kSoftmax) {
      F = hn::Mul(f2, hn::Add(softmax_error(e, sj, L), f_error));
    } else if constexpr (kOf == Activation::relu) {
      const auto near = hn::Le(square(sj), hn::Mul(set(36 * kUnit2), e));
      F = hn::IfThenElse(near, e, hn::Mul(square(slope_j), e));
      const auto nearer = hn::Le(square(sj), hn::Mul(set(2 * kUnit2), e));
      moved = hn::IfThenElse(nearer, set(8 / (256 * kUnit2)),
                             hn::IfThenElseZero(near, set(1 / (256 * kUnit2))));
    } else {
      const Double curved = hn::Mul(set(kCurve.curve * kCurve.curve), e);
      const Double further = hn::Mul(set(64 * kUnit2), hn::Mul(curved, e));
      F = hn::MulAdd(e, square(slope_j), hn::MulAdd(set(kCurve.rounded), f2, further));
      F = hn::IfThenElseZero(hn::Gt(sj, set(kDeadScore)), F);
      moved = hn::Add(hn::Min(curved, set(kCurve.step * kCurve.step / (256 * kUnit2))),
                      set(4 * kCurve.rounded * kCurve.size * kCurve.size));
    }
    if constexpr (!kSoftmax) {
      O = hn::MulAdd(F, load(keys.value2 + j), O);
      O_terms = hn::MulAdd(f2, load(keys.value2 + j), O_terms);
    }
    if constexpr (kBackward) {
      const Double qj = load(q + j);
      const Double q_error = of_q(load(keys.nu2 + j), load(keys.value_others2 + j), qj);
      const Double p = hn::Mul(slope_j, kSoftmax ? hn::Sub(qj, v) : qj);
      hn::StoreU(p, kDoubles, q + j);
      const Double p2 = square(p);
      const Double P =
          kSoftmax
              ? hn::MulAdd(p2, softmax_error(e, sj, L), hn::Mul(f2, hn::Add(q_error, square(qj))))
              : hn::MulAdd(square(slope_j), q_error, hn::MulAdd(moved, square(qj), p2));
      const Double key2 = load(keys.key2 + j);
      W = hn::MulAdd(P, key2, W);
      W_terms = hn::MulAdd(p2, key2, W_terms);
      const Double of_key =
          kSoftmax ? hn::MulAdd(f2, v2, hn::MulAdd(p2, hn::Add(f_error, set(1)), P)) : P;
      add_to(to.dV + j, hn::Mul(F, values2));
      add_to(to.dV_terms + j, hn::Mul(f2, values2));
      add_to(to.dK + j, hn::MulAdd(of_key, rows2, hn::Mul(p2, rows_error)));
      add_to(to.dK_terms + j, hn::Mul(p2, rows2));
    }
  }
  sums.O += sum(O);
  sums.O_terms += sum(O_terms);
  sums.W += sum(W);
  sums.W_terms += sum(W_terms);
}

template <Activation kOf>
void add_pairs_if(const PairRow& row, const PairKeys& keys, const double* s, const double* f,
                  const double* slope, double* q, Index first, Index end, RowSums& sums,
                  const KeySums& to) {
  (q != nullptr ? add_pairs_of<kOf, true> : add_pairs_of<kOf, false>)(row, keys, s, f, slope, q,
                                                                      first, end, sums, to);
}

void add_pairs(Activation activation, const PairRow& row, const PairKeys& keys, const double* s,
               const double* f, const double* slope, double* q, Index first, Index end,
               RowSums& sums, const KeySums& to) {
  switch (activation) {
    case Activation::softmax:
      return add_pairs_if<Activation::softmax>(row, keys, s, f, slope, q, first, end, sums, to);
    case Activation::relu:
      return add_pairs_if<Activation::relu>(row, keys, s, f, slope, q, first, end, sums, to);
    case Activation::sigmoid:
      return add_pairs_if<Activation::sigmoid>(row, keys, s, f, slope, q, first, end, sums, to);
    case Activation::silu:
      return add_pairs_if<Activation::silu>(row, keys, s, f, slope, q, first, end, sums, to);
  }
}

}  // namespace
}  // namespace redblue::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace redblue {
namespace {

HWY_EXPORT(panel_width);
HWY_EXPORT(multiply);
HWY_EXPORT(softmax);
HWY_EXPORT(exponentials);
HWY_EXPORT(activate);
HWY_EXPORT(add_softmax);
HWY_EXPORT(add_pairs);

}  // namespace

Index panel_width() {
  return HWY_DYNAMIC_DISPATCH(panel_width)();
}
void multiply(const PanelProduct& product) {
  HWY_DYNAMIC_DISPATCH(multiply)(product);
}
double softmax(const double* s, double* f, Index keys) {
  return HWY_DYNAMIC_DISPATCH(softmax)(s, f, keys);
}
void exponentials(const double* s, double L, double* f, Index keys) {
  HWY_DYNAMIC_DISPATCH(exponentials)(s, L, f, keys);
}
void activate(Activation activation, const double* s, double* f, double* slope, Index keys) {
  HWY_DYNAMIC_DISPATCH(activate)(activation, s, f, slope, keys);
}
void add_softmax(const PairRow& row, const PairKeys& keys, const double* s, const double* f,
                 const double* q, Index first, Index end, SoftmaxSums& sums) {
  HWY_DYNAMIC_DISPATCH(add_softmax)(row, keys, s, f, q, first, end, sums);
}
void add_pairs(Activation activation, const PairRow& row, const PairKeys& keys, const double* s,
               const double* f, const double* slope, double* q, Index first, Index end,
               RowSums& sums, const KeySums& of_keys) {
  HWY_DYNAMIC_DISPATCH(add_pairs)
  (activation, row, keys, s, f, slope, q, first, end, sums, of_keys);
}

}  // namespace redblue
#endif
