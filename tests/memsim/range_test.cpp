// blocks(n, B) cuts [0, n) into consecutive ranges of B. The last range is the rest.

#include "memsim/range.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "tests/support/print.hpp"

namespace redblue {
namespace {

constexpr Index kMost = std::numeric_limits<Index>::max();

std::vector<Range> walk(Index extent, Index step) {
  std::vector<Range> found;
  for (const Range I : blocks(extent, step)) {
    found.push_back(I);
  }
  return found;
}

TEST(Blocks, CutTheExtentIntoConsecutiveRanges) {
  for (Index extent = 0; extent <= 40; ++extent) {
    for (Index step = 1; step <= extent + 2; ++step) {
      const std::vector<Range> found = walk(extent, step);
      const BlockRanges ranges = blocks(extent, step);
      ASSERT_EQ(static_cast<Index>(found.size()), ranges.size());
      ASSERT_EQ(ranges.size(), (extent + step - 1) / step);
      Index end = 0;
      for (Index k = 0; k < ranges.size(); ++k) {
        const Range I = found[static_cast<std::size_t>(k)];
        EXPECT_EQ(I, ranges[k]);
        EXPECT_EQ(I.begin, end);
        EXPECT_EQ(I.size(), k + 1 < ranges.size() ? step : extent - k * step);
        EXPECT_GT(I.size(), 0);
        end = I.end;
      }
      EXPECT_EQ(end, extent);
    }
  }
}

// A begin plus a step never exceeds 63 bits, whatever the step.
TEST(Blocks, WalkExtentsNearTheLargestIndex) {
  const Index half = kMost / 2 + 1;  // 2^62
  const std::vector<Range> halves{{0, half}, {half, kMost}};
  EXPECT_EQ(walk(kMost, half), halves);
  const std::vector<Range> all_but_one{{0, kMost - 1}, {kMost - 1, kMost}};
  EXPECT_EQ(walk(kMost, kMost - 1), all_but_one);
  const std::vector<Range> whole{{0, kMost}};
  EXPECT_EQ(walk(kMost, kMost), whole);
  const std::vector<Range> short_one{{0, 3}};
  EXPECT_EQ(walk(3, kMost), short_one);
  EXPECT_EQ(blocks(kMost, 2).size(), half);
}

TEST(Blocks, AreFoundByNumberNearTheLargestIndex) {
  const Index half = kMost / 2 + 1;
  EXPECT_EQ(blocks(kMost, half)[0], (Range{0, half}));
  EXPECT_EQ(blocks(kMost, half)[1], (Range{half, kMost}));
  EXPECT_EQ(blocks(kMost, kMost - 1)[1], (Range{kMost - 1, kMost}));
  EXPECT_EQ(blocks(3, kMost)[0], (Range{0, 3}));
}

TEST(Blocks, RefuseNegativeExtentsAndEmptySteps) {
  EXPECT_THROW(blocks(-1, 1), ShapeMismatch);
  EXPECT_THROW(blocks(5, 0), ShapeMismatch);
  EXPECT_THROW(blocks(5, -3), ShapeMismatch);
}

}  // namespace
}  // namespace redblue
