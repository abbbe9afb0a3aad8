#pragma once
// The average error of float32 roundings, and the error that a check allows:
// docs/theory/reference.md.
// Variances are in units of the square of the unit roundoff.

#include <algorithm>
#include <cmath>

namespace redblue {

inline constexpr double kUnit = 0x1p-24;
inline constexpr double kTimes = 16;  // the root mean square error that is allowed
// More of that where most rows of an operand are equal: then roundings are, too.
inline constexpr double kTimesOfEqual = 2;
// Linear attention is allowed more, too: where words have a trend, the roundings of one product
// reach the next product with equal signs.
inline constexpr double kTimesOfChain = 2;
inline constexpr double kRounding = 0.25;  // one rounding
inline constexpr double kTiny = 0x1p-122;  // exceeds what an underflow loses

// A sum has the variance (terms / 16 + 1/4) times the squares of its partial sums.
inline double of_terms(double terms) {
  return terms / 16 + kRounding;
}
// The variance of a scalar product. `norms2`: the squared norms of both factors, multiplied.
inline double of_dot(double norms2, double value, double depth) {
  return 0.1 * norms2 + of_terms(depth) * value * value;
}

// The error that a word with this variance may have. The word is a sum of `terms` terms, and their
// squares add up to `terms2`. Equal terms have equal roundings, which add up as the terms do.
inline double allowed(double variance, double value, double terms2, double terms) {
  const double size = std::abs(value);
  const double all = std::sqrt(terms * terms2);
  const double alike = all > 0 ? size * std::pow(std::min(1.0, size / all), 8) : 0;
  return kUnit * (kTimes * std::sqrt(variance) + terms / 2 * alike);
}

}  // namespace redblue
