#pragma once
// f = phi(s) and its derivative for activations that are no softmax, and how they carry errors on:
// "Other activations" of docs/theory/reference.md.

#include <algorithm>
#include <cmath>

#include "kernels/problem.hpp"

namespace redblue {

struct Phi {
  double value, slope;
};

// `lipschitz` and `curvature` bound the first two derivatives, `swing` how far the first moves at
// all.
struct PhiErrors {
  double lipschitz, curvature, swing;
  double value_roundings, slope_roundings;
  double slope_size;  // what those of the slope are relative to
};

inline double sigmoid(double s) {
  const double e = std::exp(-std::abs(s));
  return (s < 0 ? e : 1) / (1 + e);
}

// Throws: ShapeMismatch for softmax, which is no function of a score alone.
inline Phi phi(Activation activation, double s) {
  switch (activation) {
    case Activation::relu:
      return {std::max(s, 0.0), s > 0 ? 1.0 : 0.0};
    case Activation::sigmoid:
      return {sigmoid(s), sigmoid(s) * sigmoid(-s)};
    case Activation::silu:
      return {s * sigmoid(s), sigmoid(s) * (1 + s * sigmoid(-s))};
    case Activation::softmax:
      break;
  }
  refuse_activation(activation);
}

// Throws: as phi().
inline PhiErrors errors_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return {1, 0, 1, 0, 0, 0};
    case Activation::sigmoid:
      return {0.25, 0.0963, 0.25, 7, 14, 0.25};
    case Activation::silu:
      return {1.1, 0.5, 1.2, 8, 17, 1.1};
    case Activation::softmax:
      break;
  }
  refuse_activation(activation);
}

// Whether an error of s may take it to the other side of 0, where relu has its edge.
inline bool may_jump(Activation activation, double s, double error) {
  return activation == Activation::relu && error > 0 && std::abs(s) <= error;
}

}  // namespace redblue
