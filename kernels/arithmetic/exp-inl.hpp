// Computes exp of a vector, for source files that are compiled once for each instruction set. The
// guard includes this header once for each set (see Highway's foreach_target.h).
#if defined(REDBLUE_KERNELS_EXP_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef REDBLUE_KERNELS_EXP_INL_HPP
#undef REDBLUE_KERNELS_EXP_INL_HPP
#else
#define REDBLUE_KERNELS_EXP_INL_HPP
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace redblue::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Return the larger and the smaller of a bound and x, and NaN if x is NaN. The instructions of x86
// return the second operand if one is NaN. Others may return either.
constexpr bool kReturnsSecondForNaN = HWY_ARCH_X86 && HWY_TARGET < HWY_EMU128;
template <class Lanes>
HWY_INLINE hn::Vec<Lanes> at_least(Lanes lanes, float low, hn::Vec<Lanes> x) {
  const hn::Vec<Lanes> least = hn::Set(lanes, low);
  return kReturnsSecondForNaN ? hn::Max(least, x) : hn::IfThenElse(hn::Lt(x, least), least, x);
}
template <class Lanes>
HWY_INLINE hn::Vec<Lanes> at_most(Lanes lanes, float high, hn::Vec<Lanes> x) {
  const hn::Vec<Lanes> most = hn::Set(lanes, high);
  return kReturnsSecondForNaN ? hn::Min(most, x) : hn::IfThenElse(hn::Lt(most, x), most, x);
}

// e^x = 2^k e^r, with k the nearest whole number to x / ln 2 and |r| <= ln 2 / 2, where e^r = 1 + r
// + r^2 P(r). P is minimax for the relative error of e^r: 0.05 ulp before rounding. Returns 0 if k
// is below -125, and NaN for NaN. Requires: x is at most 89.
//
// The result is computed as 2^(k-1) times 2 e^r. The first factor is finite for k = 128, and its
// bits are 0 for k = -126.
template <class Lanes>
HWY_INLINE hn::Vec<Lanes> exp_up_to_89(Lanes lanes, hn::Vec<Lanes> exponent) {
  using Vector = hn::Vec<Lanes>;
  const hn::RebindToSigned<Lanes> integers;
  const auto constant = [=](float c) HWY_ATTR { return hn::Set(lanes, c); };
  const Vector x = at_least(lanes, -87.25F, exponent);
  // Adding this to a small number leaves the nearest whole number, plus 126, in the last bits.
  const Vector rounder = constant(0x1.8p+23F + 126);
  const Vector rounded = hn::MulAdd(x, constant(0x1.715476p+0F), rounder);
  const Vector power = hn::BitCast(lanes, hn::ShiftLeft<23>(hn::BitCast(integers, rounded)));
  const Vector k = hn::Sub(rounded, rounder);
  // ln 2 in two parts. The first part has 15 bits, so k times it is exact, with or without fused
  // multiply-adds.
  const Vector high = hn::NegMulAdd(k, constant(0x1.62e4p-1F), x);
  const Vector low = constant(0x1.7f7d1cp-20F);
  const Vector r = hn::NegMulAdd(k, low, high);
  Vector P = hn::MulAdd(r, constant(0x1.6a2352p-9F), constant(0x1.123a6cp-6F));  // 2 P
  P = hn::MulAdd(r, P, constant(0x1.5558f4p-4F));
  P = hn::MulAdd(r, P, constant(0x1.55549p-2F));
  P = hn::MulAdd(r, P, constant(0x1.fffffcp-1F));
#if HWY_NATIVE_FMA
  const Vector e = hn::MulAdd(r, hn::MulAdd(r, P, constant(2)), constant(2));
#else  // Without fused multiply-adds, at least `high` is exact.
  const Vector rest = hn::NegMulAdd(hn::Add(k, k), low, hn::Mul(hn::Mul(r, r), P));
  const Vector e = hn::Add(hn::Add(rest, hn::Add(high, high)), constant(2));
#endif
  return hn::Mul(e, power);
}

// The same for every x: infinity above the largest float.
template <class Lanes>
HWY_INLINE hn::Vec<Lanes> exp(Lanes lanes, hn::Vec<Lanes> x) {
  return exp_up_to_89(lanes, at_most(lanes, 89, x));
}

}  // namespace redblue::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
