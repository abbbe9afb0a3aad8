// Tests the exact conversion of two-byte numbers to float32. Every pattern is compared with the
// definition of its format by ldexp, and with NumPy's own conversion, bit for bit.

#include "runtime/system/float16.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/system/npy.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

constexpr unsigned kPatterns = 1U << 16U;

// Returns the value of a pattern with this many bits of exponent and fraction, by IEEE 754.
double value_of(unsigned pattern, int exponent_bits, int fraction_bits) {
  const unsigned fraction = pattern & ((1U << fraction_bits) - 1);
  const unsigned exponent = pattern >> fraction_bits & ((1U << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = pattern >> (exponent_bits + fraction_bits) == 0 ? 1 : -1;
  if (exponent == (1U << exponent_bits) - 1) {
    return fraction == 0 ? sign * HUGE_VAL : std::copysign(std::nan(""), sign);
  }
  const unsigned whole = exponent == 0 ? fraction : fraction + (1U << fraction_bits);
  const int power = static_cast<int>(exponent == 0 ? 1 : exponent) - bias - fraction_bits;
  return sign * std::ldexp(static_cast<double>(whole), power);
}

// Checks that every pattern has its value, and the right sign if it is a NaN.
template <class Convert>
void expect_values(const Convert& convert, int exponent_bits, int fraction_bits) {
  for (unsigned pattern = 0; pattern < kPatterns; ++pattern) {
    const float got = convert(static_cast<std::uint16_t>(pattern));
    const double expected = value_of(pattern, exponent_bits, fraction_bits);
    ASSERT_EQ(std::signbit(got), std::signbit(expected)) << pattern;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << pattern;
    } else {
      ASSERT_EQ(static_cast<double>(got), expected) << pattern;
    }
  }
}

TEST(Float16, EveryPatternHasItsValue) {
  expect_values(from_float16, 5, 10);
}

TEST(BFloat16, EveryPatternHasItsValue) {
  expect_values(from_bfloat16, 8, 7);
}

TEST(BFloat16, IsTheUpperHalf) {
  for (unsigned pattern = 0; pattern < kPatterns; ++pattern) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(from_bfloat16(static_cast<std::uint16_t>(pattern))),
              pattern << 16U);
  }
}

class ConversionsNumPy : public ::testing::Test {
 protected:
  [[nodiscard]] Outcome run(const std::string& script) const {
    return Process{.words = {"/usr/bin/python3", "-c", script},
                   .environment = {},
                   .directory = directory_.path()}
        .run();
  }
  [[nodiscard]] std::vector<std::uint32_t> words(const std::string& file) const {
    const std::string bytes = content_of(directory_ / file);
    std::vector<std::uint32_t> found(bytes.size() / 4);
    std::memcpy(found.data(), bytes.data(), found.size() * 4);
    return found;
  }
  // Returns the bits of all words of an .npy file.
  [[nodiscard]] std::vector<std::uint32_t> read(const std::string& file) const {
    const NpyReader reader(directory_ / file);
    std::vector<float> out(static_cast<std::size_t>(reader.rows() * reader.cols()));
    reader.read_rows({0, reader.rows()}, out);
    std::vector<std::uint32_t> bits(out.size());
    std::memcpy(bits.data(), out.data(), out.size() * 4);
    return bits;
  }

  TemporaryDirectory directory_;
};

// All 65536 patterns of float16 have the bits of astype(float32), including NaNs.
TEST_F(ConversionsNumPy, Float16) {
  const Outcome outcome = run(R"(
import numpy as np
np.arange(65536, dtype='<u2').view('<f2').astype('<f4').tofile('words')
)");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::uint32_t> expected = words("words");
  ASSERT_EQ(expected.size(), kPatterns);
  for (unsigned pattern = 0; pattern < kPatterns; ++pattern) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(from_float16(static_cast<std::uint16_t>(pattern))),
              expected[pattern])
        << pattern;
  }
}

// Files of float16 and float64 from numpy.save are read with the bits of astype(float32). The
// numbers are all finite float16 in either byte order, and doubles of every exponent that rounds
// into float32. Some are halfway cases, and some become subnormal or 0.
TEST_F(ConversionsNumPy, Files) {
  const Outcome outcome = run(R"(
import numpy as np
half = np.arange(65536, dtype='<u2').view('<f2')
half = half[np.isfinite(half)].reshape(-1, 2)
np.save('little.npy', half)
np.save('big.npy', half.astype('>f2'))
np.save('fortran.npy', np.asfortranarray(half))
half.astype('<f4').tofile('half')
random = np.random.default_rng(1)
count = 200000
bits = random.integers(0, 2**52, count, dtype='<u8')
bits |= random.integers(1023 - 160, 1023 + 127, count, dtype='<u8') << np.uint64(52)
bits |= random.integers(0, 2, count, dtype='<u8') << np.uint64(63)
bits[::4] &= np.uint64(0xffffffffe0000000)
bits[1::4] &= np.uint64(0xfffffffff0000000)
bits[1::4] |= np.uint64(0x0000000010000000)
double = bits.view('<f8').reshape(-1, 4)
np.save('double.npy', double)
double.astype('<f4').tofile('double')
)");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::uint32_t> half = words("half");
  EXPECT_EQ(half.size(), 2 * 31U * 1024U);  // all exponents except the last
  EXPECT_EQ(read("little.npy"), half);
  EXPECT_EQ(read("big.npy"), half);
  EXPECT_EQ(read("fortran.npy"), half);
  EXPECT_EQ(words("double").size(), 200000U);
  EXPECT_EQ(read("double.npy"), words("double"));
}

}  // namespace
}  // namespace redblue
