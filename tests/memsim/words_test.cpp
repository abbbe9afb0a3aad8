// Words is exact up to 2^63 - 1. Beyond that, it records the overflow.

#include "memsim/words.hpp"

#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

__extension__ using Unsigned128 = unsigned __int128;  // NOLINT(modernize-use-using)
constexpr Index kMost = std::numeric_limits<Index>::max();

TEST(Words, AreExactUpToTheLastOf63Bits) {
  EXPECT_EQ(Words().value(), 0);
  EXPECT_EQ(Words(kMost).value(), kMost);
  EXPECT_EQ((Words(kMost - 1) + 1).value(), kMost);
  EXPECT_EQ((Words(kMost) + 0).value(), kMost);
  EXPECT_EQ((Words(kMost) * 1).value(), kMost);
  EXPECT_EQ((Words(7) * (kMost / 7)).value(), kMost);  // 7 divides 2^63 - 1
  EXPECT_EQ((Words(Index{1} << 31) * ((Index{1} << 32) - 1)).value(), kMost - (Index{1} << 31) + 1);
}

TEST(Words, OverflowOneBeyond) {
  const Words sums[] = {Words(kMost) + 1, Words(1) + kMost, Words(kMost) + kMost};
  for (const Words sum : sums) {
    EXPECT_TRUE(sum.overflowed());
    EXPECT_THROW(static_cast<void>(sum.value()), CountOverflow);
  }
  const Words products[] = {Words(Index{1} << 31) * (Index{1} << 32),  // 2^63
                            Words(Index{1} << 32) * (Index{1} << 32),  // 2^64: wraps to 0
                            Words(Index{1} << 62) * 5,                 // 5 2^62: wraps to 2^62
                            Words(kMost) * 2,
                            Words(2) * kMost,
                            Words(kMost) * kMost};
  for (const Words product : products) {
    EXPECT_TRUE(product.overflowed());
    EXPECT_THROW(static_cast<void>(product.value()), CountOverflow);
  }
}

// Counts are not negative, so a count that was once too large stays too large. Only a factor of 0
// makes it exact again.
TEST(Words, StayOverflowed) {
  const Words over = Words(kMost) + 1;
  for (const Index with : {Index{0}, Index{1}, Index{2}, kMost}) {
    EXPECT_TRUE((over + with).overflowed());
    EXPECT_TRUE((Words(with) + over).overflowed());
    EXPECT_EQ((over * with).overflowed(), with != 0);
    EXPECT_EQ((Words(with) * over).overflowed(), with != 0);
  }
  EXPECT_EQ((over * 0).value(), 0);
  EXPECT_TRUE((over + over).overflowed());
  EXPECT_TRUE((over * over).overflowed());
}

TEST(Words, AreOrderedWithOverflowAboveAll) {
  EXPECT_LT(Words(3), Words(4));
  EXPECT_EQ(Words(6) * 7, Words(42));
  EXPECT_GT(Words(kMost) + 1, Words(kMost));
  EXPECT_EQ(Words(kMost) + 1, Words(kMost) * 2);
}

// A count of words is not negative. Without this check, -2 would become 2^64 - 2, an overflowed
// count. A negative difference is found where it is made.
TEST(Words, AreNotNegative) {
  for (const Index n : {Index{-1}, Index{-2}, -kMost, std::numeric_limits<Index>::min()}) {
    EXPECT_EQ(thrown<ShapeMismatch>([&] { static_cast<void>(Words(n)); }),
              "a count of words cannot be negative: " + std::to_string(n));
    EXPECT_THROW(static_cast<void>(Words(7) + n), ShapeMismatch);
    EXPECT_THROW(static_cast<void>(Words(0) * n), ShapeMismatch);
    EXPECT_THROW(static_cast<void>(Words(7) > n), ShapeMismatch);
  }
}

// a b + c against 128-bit arithmetic, with operands of every length.
TEST(Words, AgreeWith128BitArithmetic) {
  std::mt19937_64 random(1);
  const auto draw = [&] { return static_cast<Index>(random() >> (1 + random() % 63)); };
  int exact = 0;
  for (int i = 0; i < 20000; ++i) {
    const Index a = draw();
    const Index b = draw();
    const Index c = draw();
    const Unsigned128 expected =
        static_cast<Unsigned128>(a) * static_cast<Unsigned128>(b) + static_cast<Unsigned128>(c);
    const Words computed = Words(a) * b + c;
    ASSERT_EQ(computed.overflowed(), expected > static_cast<Unsigned128>(kMost)) << a << ' ' << b;
    if (!computed.overflowed()) {
      ++exact;
      ASSERT_EQ(computed.value(), static_cast<Index>(expected));
    }
  }
  EXPECT_GT(exact, 5000);
  EXPECT_LT(exact, 15000);
}

// q = ceil(a / b) is the number with (q - 1) b < a <= q b.
TEST(CeilDiv, IsTheCeilingUpToTheLargestIndex) {
  const Index values[] = {1, 2, 3, 7, 1000, kMost / 2, kMost / 2 + 1, kMost - 1, kMost};
  for (const Index b : values) {
    EXPECT_EQ(ceil_div(0, b), 0);
    for (const Index a : values) {
      const auto q = static_cast<Unsigned128>(ceil_div(a, b));
      EXPECT_LT((q - 1) * static_cast<Unsigned128>(b), static_cast<Unsigned128>(a))
          << a << " / " << b;
      EXPECT_GE(q * static_cast<Unsigned128>(b), static_cast<Unsigned128>(a)) << a << " / " << b;
    }
  }
}

}  // namespace
}  // namespace redblue
