// Computes exp of a vector, for source files that are compiled once for each instruction set. The
// guard includes this header once for each set (see Highway's foreach_target.h).
#if defined(REDBLUE_KERNELS_EXP_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef REDBLUE_KERNELS_EXP_INL_HPP
#undef REDBLUE_KERNELS_EXP_INL_HPP
#else
#define REDBLUE_KERNELS_EXP_INL_HPP
#endif

#include <limits>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace redblue::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// e^x = 2^k e^r, with k the nearest whole number to x / ln 2 and |r| <= ln 2 / 2, where e^r = 1 + r
// + r^2 P(r). P is minimax for the relative error of e^r: 0.05 ulp before rounding. Returns 0
// instead of subnormal results, infinity above the largest float, and NaN for NaN.
template <class Lanes>
HWY_INLINE hn::Vec<Lanes> exp(Lanes lanes, hn::Vec<Lanes> x) {
  using Vector = hn::Vec<Lanes>;
  const hn::RebindToSigned<Lanes> integers;
  const auto constant = [=](float c) HWY_ATTR { return hn::Set(lanes, c); };
  // Adding this to a small number leaves the nearest whole number in the last bits.
  const Vector rounder = constant(0x1.8p+23F);
  const Vector rounded = hn::MulAdd(x, constant(0x1.715476p+0F), rounder);
  const Vector k = hn::Sub(rounded, rounder);
  // ln 2 in two parts. The first part has 15 bits, so k times it is exact, with or without fused
  // multiply-adds.
  const Vector high = hn::NegMulAdd(k, constant(0x1.62e4p-1F), x);
  const Vector low = constant(0x1.7f7d1cp-20F);
  const Vector r = hn::NegMulAdd(k, low, high);
  Vector P = hn::MulAdd(r, constant(0x1.6a2352p-10F), constant(0x1.123a6cp-7F));
  P = hn::MulAdd(r, P, constant(0x1.5558f4p-5F));
  P = hn::MulAdd(r, P, constant(0x1.55549p-3F));
  P = hn::MulAdd(r, P, constant(0x1.fffffcp-2F));
#if HWY_NATIVE_FMA
  const Vector e = hn::MulAdd(r, hn::MulAdd(r, P, constant(1)), constant(1));
#else  // Without fused multiply-adds, at least `high` is exact.
  const Vector rest = hn::NegMulAdd(k, low, hn::Mul(hn::Mul(r, r), P));
  const Vector e = hn::Add(hn::Add(rest, high), constant(1));
#endif
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(integers, rounded));
  const Vector scaled = hn::BitCast(lanes, hn::Add(hn::BitCast(integers, e), exponent));
  // -126 ln 2, rounded up, and the logarithm of the largest float, rounded down.
  const auto subnormal = hn::Lt(x, constant(-0x1.5d589ep+6F));
  const auto finite = hn::Le(x, constant(0x1.62e42ep+6F));
  const Vector beyond = hn::Add(x, constant(std::numeric_limits<float>::infinity()));
  return hn::IfThenElse(finite, hn::IfThenZeroElse(subnormal, scaled), beyond);
}

}  // namespace redblue::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
