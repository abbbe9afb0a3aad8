// A stream gives every block once, in order, and holds min(depth, what is left) of them.

#include "memsim/stream.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "memsim/host_access.hpp"
#include "memsim/machine.hpp"
#include "tests/memsim/print.hpp"

namespace redblue {
namespace {

SlowMatrix numbered(Index rows, Index cols) {
  SlowMatrix A("A", rows, cols);
  std::vector<float> words(static_cast<std::size_t>(rows * cols));
  std::iota(words.begin(), words.end(), 0.0F);
  HostAccess::put(A, words);
  return A;
}

TEST(Stream, GivesEveryBlockOnceInOrder) {
  for (Index rows = 1; rows <= 9; ++rows) {
    const SlowMatrix A = numbered(rows, 3);
    for (Index step = 1; step <= rows + 1; ++step) {
      for (Index depth = 1; depth <= 5; ++depth) {
        Machine machine(rows * 3);
        float next = 0;
        Index begin = 0;
        for (const Tile& tile : machine.stream(A.row_blocks(step), depth)) {
          EXPECT_EQ(tile.rows(), std::min(step, rows - begin));
          EXPECT_EQ(tile.cols(), 3);
          for (Index k = 0; k < tile.words(); ++k) {
            EXPECT_EQ(ConstView(tile).at(0, 0)[k], next++);
          }
          begin += tile.rows();
        }
        EXPECT_EQ(begin, rows);
        EXPECT_EQ(total(machine.phases()).io, (IoCount{rows * 3, 0}));
        EXPECT_EQ(machine.live(), 0);
      }
    }
  }
}

TEST(Stream, HoldsExactlyItsDepthOrWhatIsLeft) {
  constexpr Index kBlocks = 6;
  const SlowMatrix A = numbered(2 * kBlocks, 5);
  for (Index depth = 1; depth <= kBlocks + 3; ++depth) {
    Machine machine(1000);
    Index k = 0;
    for (const Tile& tile : machine.stream(A.row_blocks(2), depth)) {
      EXPECT_EQ(machine.live(), std::min(depth, kBlocks - k) * tile.words());
      ++k;
    }
    EXPECT_EQ(k, kBlocks);
    EXPECT_EQ(total(machine.phases()).peak, std::min(depth, kBlocks) * 10);
  }
}

TEST(Stream, FitsExactlyItsDepth) {
  const SlowMatrix A = numbered(8, 1);
  for (Index depth = 1; depth <= 3; ++depth) {
    const auto pass = [&](Index M) {
      Machine machine(M);
      for (const Tile& tile : machine.stream(A.row_blocks(2), depth)) {
        EXPECT_EQ(tile.rows(), 2);
      }
    };
    EXPECT_NO_THROW(pass(2 * depth));
    EXPECT_THROW(pass(2 * depth - 1), FastMemoryOverflow);
  }
}

TEST(Stream, WalksColumnsOfAStripOfRows) {
  const SlowMatrix A = numbered(5, 7);
  Machine machine(100);
  Index begin = 0;
  for (const Tile& tile : machine.stream(A.column_blocks({1, 4}, 3), 2)) {
    EXPECT_EQ(tile.rows(), 3);
    EXPECT_EQ(tile.cols(), std::min<Index>(3, 7 - begin));
    for (Index i = 0; i < tile.rows(); ++i) {
      for (Index j = 0; j < tile.cols(); ++j) {
        EXPECT_EQ(tile(i, j), static_cast<float>((i + 1) * 7 + begin + j));
      }
    }
    begin += tile.cols();
  }
  EXPECT_EQ(begin, 7);
  EXPECT_EQ(total(machine.phases()).io, (IoCount{21, 0}));
}

TEST(Stream, LeftEarlyReleasesWhatItHeld) {
  const SlowMatrix A = numbered(10, 2);
  Machine machine(100);
  for (const Tile& tile : machine.stream(A.row_blocks(1), 4)) {
    if (tile(0, 0) == 4) {
      break;
    }
  }
  EXPECT_EQ(machine.live(), 0);
  EXPECT_EQ(total(machine.phases()).io, (IoCount{12, 0})) << "three blocks and three ahead";
}

TEST(Stream, LeftByAnOverflowReleasesWhatItHeld) {
  const SlowMatrix A = numbered(10, 2);
  Machine machine(5);
  EXPECT_THROW(
      {
        for (const Tile& tile : machine.stream(A.row_blocks(1), 3)) {
          FAIL() << "6 words do not fit: " << tile.words();
        }
      },
      FastMemoryOverflow);
  EXPECT_EQ(machine.live(), 0);
}

TEST(Stream, HoldsAtLeastOneBlock) {
  const SlowMatrix A = numbered(2, 2);
  Machine machine(4);
  EXPECT_THROW(static_cast<void>(machine.stream(A.row_blocks(1), 0)), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(machine.stream(A.row_blocks(1), -1)), ShapeMismatch);
}

}  // namespace
}  // namespace redblue
