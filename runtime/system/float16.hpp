#pragma once
// Numbers of two bytes as float32, which holds every one of them: the conversions are exact, and
// keep the sign of a zero and the bits of a NaN.

#include <bit>
#include <cstdint>

namespace redblue {

// The upper half of a float32.
constexpr float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16U);
}

// IEEE 754 binary16: 1 bit of sign, 5 of exponent, 10 of fraction.
constexpr float from_float16(std::uint16_t bits) {
  constexpr std::uint32_t kMagnitude = 0x7fff, kInfinity = 0x7c00, kLeastNormal = 0x0400;
  constexpr unsigned kMoreFraction = 13;                       // bits, in a float32
  constexpr std::uint32_t kBias = (127U - 15U) << 23U;         // of the exponent
  constexpr std::uint32_t kTopExponent = (255U - 31U) << 23U;  // of infinities and NaNs
  constexpr float kUnit = 0x1p-24F;                            // of a subnormal's fraction
  const std::uint32_t magnitude = bits & kMagnitude;
  const std::uint32_t wide =
      magnitude >= kInfinity ? (magnitude << kMoreFraction) + kTopExponent
      : magnitude >= kLeastNormal
          ? (magnitude << kMoreFraction) + kBias
          : std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * kUnit);
  return std::bit_cast<float>(wide | (std::uint32_t{bits} & ~kMagnitude) << 16U);
}

}  // namespace redblue
