// The host reads and writes whole matrices or ranges of rows, in buffers of exactly their size.

#include "memsim/host_access.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "tests/support/words.hpp"

namespace redblue {
namespace {

TEST(HostAccess, PutsAndGetsRowRanges) {
  SlowMatrix A("A", 4, 2);
  HostAccess::put(A, {1, 3}, Buffer{1, 2, 3, 4});
  Buffer words(8);
  HostAccess::get(A, words);
  EXPECT_TRUE(std::isnan(words[0]) && std::isnan(words[1]));
  EXPECT_EQ(Buffer(words.begin() + 2, words.begin() + 6), (Buffer{1, 2, 3, 4}));
  EXPECT_TRUE(std::isnan(words[6]) && std::isnan(words[7]));
  Buffer row(2);
  HostAccess::get(A, {2, 3}, row);
  EXPECT_EQ(row, (Buffer{3, 4}));
}

TEST(HostAccess, RefusesBuffersOfAnotherSize) {
  SlowMatrix A("A", 4, 2);
  Buffer words(8, 1.0F);
  for (const std::size_t wrong : {std::size_t{0}, std::size_t{7}, std::size_t{9}}) {
    Buffer buffer(wrong);
    EXPECT_THROW(HostAccess::put(A, buffer), ShapeMismatch);
    EXPECT_THROW(HostAccess::get(A, buffer), ShapeMismatch);
  }
  EXPECT_THROW(HostAccess::put(A, {0, 3}, words), ShapeMismatch);
  EXPECT_THROW(HostAccess::get(A, {1, 4}, words), ShapeMismatch);
  HostAccess::get(A, words);
  for (const float word : words) {
    EXPECT_TRUE(std::isnan(word)) << "a refused put wrote";
  }
}

TEST(HostAccess, RefusesRowsOutsideTheMatrix) {
  SlowMatrix A("A", 4, 2);
  Buffer two(2);
  EXPECT_THROW(HostAccess::put(A, {4, 5}, two), ShapeMismatch);
  EXPECT_THROW(HostAccess::get(A, {-1, 0}, two), ShapeMismatch);
  EXPECT_THROW(HostAccess::get(A, {3, 2}, two), ShapeMismatch);
}

}  // namespace
}  // namespace redblue
