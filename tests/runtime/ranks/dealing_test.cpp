// Tests how things are dealt to shares by their sizes.

#include "runtime/ranks/dealing.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace redblue {
namespace {

using UnitsDealt = std::vector<std::vector<Index>>;

std::vector<Words> sizes_of(const std::vector<Index>& numbers) {
  return {numbers.begin(), numbers.end()};
}

Index largest(const UnitsDealt& shares, const std::vector<Index>& sizes) {
  Index largest = 0;
  for (const std::vector<Index>& share : shares) {
    Index sum = 0;
    for (const Index thing : share) {
      sum += sizes[static_cast<std::size_t>(thing)];
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

TEST(DealtOut, LeavesEqualThingsInARow) {
  EXPECT_EQ(dealt_out(sizes_of({1, 1, 1, 1, 1, 1, 1}), 3), (UnitsDealt{{0, 1}, {2, 3}, {4, 5, 6}}));
  EXPECT_EQ(dealt_out(sizes_of({1}), 3), (UnitsDealt{{}, {}, {0}}));
}

// Sizes that grow evenly: a run from each end has the mean size.
TEST(DealtOut, MakesAZigzagOfWhatGrows) {
  EXPECT_EQ(dealt_out(sizes_of({1, 2, 3, 4, 5, 6, 7, 8}), 2),
            (UnitsDealt{{0, 1, 6, 7}, {2, 3, 4, 5}}));
}

TEST(DealtOut, GivesTheLargestToTheSmallest) {
  EXPECT_EQ(dealt_out(sizes_of({9, 1, 1, 1, 1, 1, 1, 9}), 3),
            (UnitsDealt{{0}, {7}, {1, 2, 3, 4, 5, 6}}));
}

// Each thing is dealt once, in order. No share exceeds the best possible largest share by more than
// a factor of 4/3 and a hundredth. (Graham 1969: the largest first is within 4/3 - 1/(3 P).) The
// test finds the best by trying all.
TEST(DealtOut, IsWithinAThirdOfTheBest) {
  std::mt19937 random(5);
  for (int k = 0; k < 300; ++k) {
    const Index things = 1 + static_cast<Index>(random() % 7),
                shares = 1 + static_cast<Index>(random() % 3);
    std::vector<Index> sizes;
    for (Index thing = 0; thing < things; ++thing) {
      sizes.push_back(static_cast<Index>(random() % 20));
    }
    const UnitsDealt dealt = dealt_out(sizes_of(sizes), shares);
    std::vector<Index> all;
    for (const std::vector<Index>& share : dealt) {
      EXPECT_TRUE(std::ranges::is_sorted(share));
      all.insert(all.end(), share.begin(), share.end());
    }
    std::ranges::sort(all);
    ASSERT_EQ(std::ssize(all), things);
    EXPECT_EQ(all.back(), things - 1);
    EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
    Index ways = 1;
    for (Index thing = 0; thing < things; ++thing) {
      ways *= shares;
    }
    Index best = largest({all}, sizes);
    for (Index way = 0; way < ways; ++way) {
      UnitsDealt tried(static_cast<std::size_t>(shares));
      Index rest = way;
      for (Index thing = 0; thing < things; ++thing, rest /= shares) {
        tried[static_cast<std::size_t>(rest % shares)].push_back(thing);
      }
      best = std::min(best, largest(tried, sizes));
    }
    EXPECT_LE(300 * largest(dealt, sizes), 404 * best);
  }
}

}  // namespace
}  // namespace redblue
