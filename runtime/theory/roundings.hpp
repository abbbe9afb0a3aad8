#pragma once
// What roundings of float32 do on average, and what is allowed of it: docs/theory/reference.md.
// Variances are in units of the square of the unit roundoff.

#include <algorithm>
#include <cmath>

namespace redblue {

inline constexpr double kUnit = 0x1p-24;
inline constexpr double kTimes = 16;  // the root mean square error that is allowed
// More of that where most rows of an operand are equal: then roundings are, too.
inline constexpr double kTimesOfEqual = 2;
// And of linear attention: where words have a trend, roundings of one product go on into the next
// with equal signs.
inline constexpr double kTimesOfChain = 2;
inline constexpr double kRounding = 0.25;  // one rounding
inline constexpr double kTiny = 0x1p-122;  // exceeds what an underflow loses

// The variance of a sum of so many terms is terms / 16 + 1/4 times the squares of its partial sums.
inline double of_terms(double terms) {
  return terms / 16 + kRounding;
}
// Of a sum of products: by the squares of the norms of both factors, and of the sum.
inline double of_dot(double norms2, double value, double depth) {
  return 0.1 * norms2 + of_terms(depth) * value * value;
}

// What is allowed of a word with this variance that is a sum of so many terms, of which the squares
// add up to `terms2`. Where terms are equal, their roundings are, too, and add up like them.
inline double allowed(double variance, double value, double terms2, double terms) {
  const double size = std::abs(value);
  const double all = std::sqrt(terms * terms2);
  const double alike = all > 0 ? size * std::pow(std::min(1.0, size / all), 8) : 0;
  return kUnit * (kTimes * std::sqrt(variance) + terms / 2 * alike);
}

}  // namespace redblue
