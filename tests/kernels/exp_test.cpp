// exp of the arithmetic, by exponentiate with row = 0 on a tile. It is compared with the
// double-precision exp over the float32 values from -104 to 89, in every instruction set.
//
// An ulp of a result is the distance of the floats around the exact value: 2^(e - 23) for a value
// in [2^e, 2^(e+1)).

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/machine.hpp"
#include "tests/support/use_simd.hpp"

namespace redblue {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// exp is 0 below kLeast. The rounding of x / ln 2 may move this limit by a few ulp of x.
constexpr double kLeast = 0x1.6a09e667f3bcdp-126;  // 2^-125.5
constexpr double kNear = 0x1p-15;
constexpr float kLargest = std::numeric_limits<float>::max();

float float_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}
std::uint32_t bits_of(float x) {
  return std::bit_cast<std::uint32_t>(x);
}

// Computes exp of many words in place. A tile of one panel lies row after row.
class Exponentials {
 public:
  static constexpr Index kWords = 1024 * kPanel;

  void operator()(std::span<float> words) {
    ASSERT_LE(words.size(), static_cast<std::size_t>(kWords));
    float* const at = View(tile_).at(0, 0);
    std::ranges::copy(words, at);
    std::fill(at + words.size(), at + kWords, 0.0F);
    exponentiate(tile_, zero_, tile_);
    std::copy_n(at, words.size(), words.begin());
  }
  float operator()(float x) {
    (*this)(std::span(&x, 1));
    return x;
  }

 private:
  Machine machine_{kWords + kWords / kPanel};
  Tile tile_ = machine_.initialize("s", kWords / kPanel, kPanel);
  Tile zero_ = machine_.initialize("row", kWords / kPanel);
};

// The errors found in a walk over floats.
struct Walk {
  double largest_error = 0;  // in ulp
  float where = 0;
  std::uint64_t words = 0;
  std::string wrong;  // the first wrong word
};

double ulp_of(double exact) {
  const auto exponent = std::bit_cast<std::uint64_t>(exact) & 0x7ff0000000000000U;
  return std::bit_cast<double>(exponent) * 0x1p-23;
}

// Walks over every `step`th float, from the bits `first` to the bits `last`, away from zero. Each
// result is also compared with the one before.
void walk(Walk& result, Exponentials& exponentials, std::uint32_t first, std::uint32_t last,
          std::uint32_t step) {
  std::vector<float> x;
  std::vector<float> f;
  float previous = std::numeric_limits<float>::quiet_NaN();
  const bool rising = float_of(last) >= float_of(first);
  const auto flush = [&] {
    f = x;
    exponentials(f);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp(static_cast<double>(x[i]));
      bool right = false;
      if (exact < kLeast * (1 - kNear)) {
        right = bits_of(f[i]) == 0;
      } else if (exact < kLeast * (1 + kNear) && f[i] == 0) {
        right = true;
      } else if (exact > static_cast<double>(kLargest)) {
        right = f[i] == kInfinity || f[i] == kLargest;
      } else {
        const double error = std::abs(static_cast<double>(f[i]) - exact) / ulp_of(exact);
        right = error < 1;
        if (error > result.largest_error) {
          result.largest_error = error;
          result.where = x[i];
        }
      }
      // Monotone within an ulp: from `low` to `high` it falls by at most one float.
      if (!std::isnan(previous)) {
        const float low = rising ? previous : f[i];
        const float high = rising ? f[i] : previous;
        right = right && (low <= high || bits_of(low) - bits_of(high) <= 1);
      }
      previous = f[i];
      if (!right && result.wrong.empty()) {
        result.wrong = "exp(" + std::to_string(x[i]) + ") is " + std::to_string(f[i]) +
                       ", exactly " + std::to_string(exact);
      }
    }
    result.words += x.size();
    x.clear();
  };
  for (std::uint64_t bits = first; bits <= last; bits += step) {
    x.push_back(float_of(static_cast<std::uint32_t>(bits)));
    if (x.size() == static_cast<std::size_t>(Exponentials::kWords)) {
      flush();
    }
  }
  flush();
}

class Exp : public testing::TestWithParam<std::string> {
 protected:
  Exp() { EXPECT_TRUE(use_.known()); }
  UseSimd use_{GetParam()};
  Exponentials exponentials_;
};

// Every seventh float, in about 3 s. With REDBLUE_EXP_ALL in the environment, all 2.2e9 floats, in
// one or two minutes for each target. The largest error over all floats is 0.910 ulp with fused
// multiply-adds (AVX2, at 5.1998), and 0.906 ulp without (SSE4, at 4.50587).
TEST_P(Exp, IsWithinAnUlp) {
  const bool all = std::getenv("REDBLUE_EXP_ALL") != nullptr;
  const std::uint32_t step = all ? 1 : 7;
  Walk result;
  for (const float end : {-104.0F, 89.0F}) {
    const std::uint32_t sign = bits_of(std::copysign(0.0F, end));
    // Nearer to 0 than 2^-30 every word is 1. A few words are enough, unless all are requested.
    walk(result, exponentials_, sign, bits_of(std::copysign(0x1p-30F, end)), all ? 1 : 99991);
    walk(result, exponentials_, bits_of(std::copysign(0x1p-30F, end)), bits_of(end), step);
  }
  // All floats around the ends and the middles of the intervals in which k is constant.
  constexpr std::uint32_t kAround = 2000;
  for (int halves = -300; halves <= 256; ++halves) {
    if (halves != 0) {
      const auto x = static_cast<float>(halves * 0.34657359027997264);
      walk(result, exponentials_, bits_of(x) - kAround, bits_of(x) + kAround, 1);
    }
  }
  EXPECT_EQ(result.wrong, "");
  EXPECT_LT(result.largest_error, 1.0);
  std::cout << GetParam() << ": at most " << result.largest_error << " ulp, at " << result.where
            << ", of " << result.words << " words\n";
}

// The result is exactly 0 below 2^-125.5, and normal from there on. Above the logarithm of the
// largest float it is infinity.
TEST_P(Exp, IsZeroForTheSmallestAndInfinityAboveTheLargest) {
  const double limit = std::log(kLeast);
  EXPECT_GE(exponentials_(static_cast<float>(limit + kNear)), std::numeric_limits<float>::min());
  for (const float x :
       {static_cast<float>(limit - kNear), -87.25F, -87.4F, -88.0F, -103.9F, -104.0F, -150.0F,
        -1e4F, -1e30F, std::numeric_limits<float>::lowest(), -kInfinity}) {
    EXPECT_EQ(bits_of(exponentials_(x)), 0U) << x;
  }
  const float highest = 0x1.62e42ep+6F;  // the last float below the logarithm of the largest
  EXPECT_LE(std::exp(static_cast<double>(highest)), static_cast<double>(kLargest));
  EXPECT_LE(exponentials_(highest), kLargest);
  const float above = std::nextafter(highest, kInfinity);
  EXPECT_GT(std::exp(static_cast<double>(above)), static_cast<double>(kLargest));
  for (const float x : {above, 88.8F, 89.0F, 128.0F, 1e4F, 1e30F, kLargest, kInfinity}) {
    EXPECT_EQ(exponentials_(x), kInfinity) << x;
  }
}

TEST_P(Exp, IsExactlyOneAtZero) {
  for (const float x : {0.0F, -0.0F, float_of(1), float_of(0x80000001), 1e-30F, -1e-30F}) {
    EXPECT_EQ(exponentials_(x), 1.0F) << x;
  }
}

// Quiet and signalling NaNs of both signs, with payloads, in every lane. Other lanes are
// unaffected.
TEST_P(Exp, IsNaNForNaNs) {
  for (const std::uint32_t bits : {0x7fc00000U, 0xffc00000U, 0x7fc12345U, 0xffffffffU, 0x7fffffffU,
                                   0x7f800001U, 0xff800001U, 0x7fa5a5a5U}) {
    for (std::size_t lane = 0; lane < 2 * kPanel; ++lane) {
      std::vector<float> words(2 * kPanel, 0.0F);
      words[lane] = float_of(bits);
      exponentials_(words);
      for (std::size_t i = 0; i < words.size(); ++i) {
        EXPECT_EQ(std::isnan(words[i]), i == lane) << bits << " in lane " << lane;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Exp, testing::ValuesIn(simd_targets()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace redblue
