#include <string_view>

#include "kernels/arithmetic/accounting-inl.hpp"
#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/machine.hpp"

// The lines between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE are compiled once for each
// instruction set, and the other lines once.
#include "kernels/arithmetic/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/arithmetic/activations.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/highway.h>

#include "kernels/arithmetic/exp-inl.hpp"
#include "kernels/arithmetic/panels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace redblue::HWY_NAMESPACE {
namespace {

// sigmoid(s) and sigmoid(-s), from exp(-|s|). The exponential never overflows, and no two nearly
// equal numbers are subtracted.
struct Sigmoids {
  Vector of_s, of_minus_s;
};
HWY_INLINE Sigmoids sigmoids(Vector s) {
  const Vector one = hn::Set(kLanes, 1);
  const Vector e = exp(kLanes, hn::Neg(hn::Abs(s)));
  const Vector larger = hn::Div(one, hn::Add(one, e));
  const Vector smaller = hn::Mul(e, larger);
  const auto negative = hn::Lt(s, hn::Zero(kLanes));
  return {hn::IfThenElse(negative, smaller, larger), hn::IfThenElse(negative, larger, smaller)};
}

// Functions and their derivatives. NaN stays NaN.
struct Relu {
  static HWY_INLINE Vector value(Vector s) {
    return hn::IfThenZeroElse(hn::Le(s, hn::Zero(kLanes)), s);
  }
  static HWY_INLINE Vector slope(Vector s) {
    const Vector above = hn::IfThenElse(hn::IsNaN(s), s, hn::Set(kLanes, 1));
    return hn::IfThenZeroElse(hn::Le(s, hn::Zero(kLanes)), above);
  }
};
struct Sigmoid {
  static HWY_INLINE Vector value(Vector s) { return sigmoids(s).of_s; }
  static HWY_INLINE Vector slope(Vector s) {
    const Sigmoids of = sigmoids(s);
    return hn::Mul(of.of_s, of.of_minus_s);
  }
};
struct Silu {
  static HWY_INLINE Vector value(Vector s) { return hn::Mul(s, sigmoids(s).of_s); }
  static HWY_INLINE Vector slope(Vector s) {
    const Sigmoids of = sigmoids(s);
    return hn::Mul(of.of_s, hn::MulAdd(s, of.of_minus_s, hn::Set(kLanes, 1)));
  }
};

template <class Phi>
HWY_INLINE void activate_as(const ConstView& s, const View& f) {
  for_vectors(f, [&](Index p) HWY_ATTR {
    return [s = lines(s, p)](Index i, int v) HWY_ATTR { return Phi::value(load(s[i], v)); };
  });
}

template <class Phi>
HWY_INLINE void slope_as(const ConstView& s, const View& slope) {
  for_vectors(slope, [&](Index p) HWY_ATTR {
    return [s = lines(s, p)](Index i, int v) HWY_ATTR { return Phi::slope(load(s[i], v)); };
  });
}

template <class Phi>
HWY_INLINE void gradient_as(const ConstView& s, const ConstView& q, const View& p) {
  for_vectors(p, [&](Index panel) HWY_ATTR {
    return [s = lines(s, panel), q = lines(q, panel)](Index i, int v)
               HWY_ATTR { return hn::Mul(Phi::slope(load(s[i], v)), load(q[i], v)); };
  });
}

// Calls `work` with a value of the function's type.
template <class Work>
HWY_INLINE void with_function(Activation phi, const Work& work) {
  switch (phi) {
    case Activation::relu:
      return work(Relu());
    case Activation::sigmoid:
      return work(Sigmoid());
    case Activation::silu:
      return work(Silu());
    case Activation::softmax:
      break;
  }
  refuse_activation(phi);
}

void activate(Activation phi, const ConstView& s, const View& f) {
  with_function(phi, [&](auto of) HWY_ATTR { activate_as<decltype(of)>(s, f); });
}

void activation_slope(Activation phi, const ConstView& s, const View& slope) {
  with_function(phi, [&](auto of) HWY_ATTR { slope_as<decltype(of)>(s, slope); });
}

void activation_gradient(Activation phi, const ConstView& s, const ConstView& q, const View& p) {
  with_function(phi, [&](auto of) HWY_ATTR { gradient_as<decltype(of)>(s, q, p); });
}

}  // namespace
}  // namespace redblue::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace redblue {
namespace {

HWY_EXPORT(activate);
HWY_EXPORT(activation_slope);
HWY_EXPORT(activation_gradient);

// An exponential and a division count as one operation each, as elsewhere.
struct ActivationOperations {
  Index value, slope;
  std::string_view value_name, slope_name, gradient_name;
};
ActivationOperations operations_of(Activation phi) {
  switch (phi) {
    case Activation::relu:
      return {1, 1, "relu", "relu_slope", "relu_gradient"};
    case Activation::sigmoid:
      return {4, 5, "sigmoid", "sigmoid_slope", "sigmoid_gradient"};
    case Activation::silu:
      return {5, 7, "silu", "silu_slope", "silu_gradient"};
    case Activation::softmax:
      break;
  }
  refuse_activation(phi);
}
}  // namespace

void activate(Activation phi, const ConstView& s, const View& f) {
  require(same_shape(s, f), "f = phi(s): the tiles conform");
  const ActivationOperations of = operations_of(phi);
  HWY_DYNAMIC_DISPATCH(activate)(phi, s, f);
  account(elementwise(of.value * f.words()), f,
          [&] { tell_all({maps(of.value_name, f, kOverwritten, {s})}); });
}

void activation_slope(Activation phi, const ConstView& s, const View& slope) {
  require(same_shape(s, slope), "slope = phi'(s): the tiles conform");
  const ActivationOperations of = operations_of(phi);
  HWY_DYNAMIC_DISPATCH(activation_slope)(phi, s, slope);
  account(elementwise(of.slope * slope.words()), slope,
          [&] { tell_all({maps(of.slope_name, slope, kOverwritten, {s})}); });
}

void activation_gradient(Activation phi, const ConstView& s, const ConstView& q, const View& p) {
  require(same_shape(s, q) && same_shape(s, p), "p = phi'(s) q: the tiles conform");
  const ActivationOperations of = operations_of(phi);
  HWY_DYNAMIC_DISPATCH(activation_gradient)(phi, s, q, p);
  account(elementwise((of.slope + 1) * p.words()), p, [&] {
    tell_all({maps(of.gradient_name, p, kOverwritten, {s, q})});
  });
}

}  // namespace redblue
#endif
