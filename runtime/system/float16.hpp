#pragma once
// Converts 16-bit floats to float32. Every 16-bit value is a float32 value, so the conversions are
// exact. They keep the sign of a zero and the bits of a NaN.

#include <bit>
#include <cstdint>

namespace redblue {

// A bfloat16 is the upper half of a float32.
constexpr float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16U);
}

// A float16 is an IEEE 754 binary16: 1 bit of sign, 5 of exponent, 10 of fraction.
constexpr float from_float16(std::uint16_t bits) {
  constexpr std::uint32_t kMagnitude = 0x7fff, kInfinity = 0x7c00, kLeastNormal = 0x0400;
  constexpr unsigned kMoreFraction = 13;                       // extra fraction bits of a float32
  constexpr std::uint32_t kBias = (127U - 15U) << 23U;         // between the exponents
  constexpr std::uint32_t kTopExponent = (255U - 31U) << 23U;  // for infinities and NaNs
  constexpr float kUnit = 0x1p-24F;                            // of a subnormal number
  const std::uint32_t magnitude = bits & kMagnitude;
  const std::uint32_t wide =
      magnitude >= kInfinity ? (magnitude << kMoreFraction) + kTopExponent
      : magnitude >= kLeastNormal
          ? (magnitude << kMoreFraction) + kBias
          : std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * kUnit);
  return std::bit_cast<float>(wide | (std::uint32_t{bits} & ~kMagnitude) << 16U);
}

}  // namespace redblue
