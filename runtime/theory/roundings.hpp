#pragma once
// The average error of float32 roundings, and the error that a check allows
// (docs/theory/reference.md). Variances are in units of the square of the unit roundoff.

#include <algorithm>
#include <cmath>

namespace redblue {

inline constexpr double kUnit = 0x1p-24;
inline constexpr double kTimes = 16;  // allowed error, in root mean square errors
// A further factor if most rows of an operand are equal: then their roundings are equal, too.
inline constexpr double kTimesOfEqual = 2;
// A further factor for linear attention: if words have a trend, the roundings of one product reach
// the next product with equal signs.
inline constexpr double kTimesOfChain = 2;
inline constexpr double kRounding = 0.25;  // the variance of one rounding
inline constexpr double kTiny = 0x1p-122;  // more than an underflow loses

// Returns the variance of a sum in units of the squares of its partial sums.
inline double of_terms(double terms) {
  return terms / 16 + kRounding;
}
// Returns the variance of a scalar product. `norms2` is the product of both factors' squared norms.
inline double of_dot(double norms2, double value, double depth) {
  return 0.1 * norms2 + of_terms(depth) * value * value;
}

// Returns the error that a word with this variance may have. The word is a sum of `terms` terms
// with squares that add up to `terms2`. Equal terms have equal roundings, which add up as the terms
// do.
inline double allowed(double variance, double value, double terms2, double terms) {
  const double size = std::abs(value);
  const double all = std::sqrt(terms * terms2);
  const double alike = all > 0 ? size * std::pow(std::min(1.0, size / all), 8) : 0;
  return kUnit * (kTimes * std::sqrt(variance) + terms / 2 * alike);
}

}  // namespace redblue
