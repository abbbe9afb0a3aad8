#pragma once
// exp in double precision for loops that the compiler should vectorise. g++ vectorises the exp of
// the C library only under -ffast-math, which loses infinities and the order of sums. This function
// has no branches and no tables.

#include <bit>
#include <cstdint>

namespace redblue {

// Returns e^x = 2^k e^r, with k the nearest whole number to x / ln 2 and |r| <= ln 2 / 2. The
// result is 1 at 0, and elsewhere within 2e-16 of e^x (1.6e-16 at most in trials, with fused
// multiply-adds or without). Requires: -700 <= x <= 0, where e^x and 2^k are normal numbers.
inline double normal_exp(double x) {
  // Adding this to a small number leaves the nearest whole number in the last bits.
  constexpr double kRounder = 0x1.8p+52;
  const double rounded = x * 0x1.71547652b82fep+0 + kRounder;
  const double k = rounded - kRounder;
  // ln 2 in two parts. k times the first part, of 32 bits, is exact, and so is the difference.
  const double high = x - k * 0x1.62e42feep-1;
  const double r = high - k * 0x1.a39ef35793c76p-33;
  // The series to r^13 / 13!. The rest of the series is at most 6e-18 of e^r.
  double e = 1.0 / 6227020800;
  e = e * r + 1.0 / 479001600;
  e = e * r + 1.0 / 39916800;
  e = e * r + 1.0 / 3628800;
  e = e * r + 1.0 / 362880;
  e = e * r + 1.0 / 40320;
  e = e * r + 1.0 / 5040;
  e = e * r + 1.0 / 720;
  e = e * r + 1.0 / 120;
  e = e * r + 1.0 / 24;
  e = e * r + 1.0 / 6;
  e = e * r + 1.0 / 2;
  e = r * r * e + r + 1;
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(rounded) << 52U;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(e) + exponent);
}

}  // namespace redblue
