// Tests the time of a word. It is above 0, and a word from memory costs no less than a word from
// the nearest cache, under any load of the machine.

#include "runtime/observe/word_time.hpp"

#include <gtest/gtest.h>

namespace redblue {
namespace {

TEST(WordTime, OfMemoryIsNoLessThanOfTheNearestCache) {
  const double near = nanoseconds_a_word(8192);
  const double far = nanoseconds_a_word(64U << 20);
  EXPECT_GT(near, 0);
  EXPECT_LT(far, 1000);
  EXPECT_GT(far, 0.5 * near);
}

TEST(WordTime, TheSmallestSizeAndAnOddOne) {
  EXPECT_GT(nanoseconds_a_word(128), 0);
  EXPECT_GT(nanoseconds_a_word(131'075), 0);
}

}  // namespace
}  // namespace redblue
