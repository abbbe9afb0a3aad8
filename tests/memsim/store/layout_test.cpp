// Layouts of a stored matrix against brute force. Every word has one place, a window meets only the
// granules that it shares a word with, and blocks do not overlap.

#include "memsim/store/layout.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/store/store.hpp"
#include "tests/support/print.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/words.hpp"

namespace redblue {
namespace {

constexpr int kLayouts = 300;

Cut draw_cut(Random& random) {
  Cut cut;
  cut.extent = between(random, 1, 40);
  cut.block = between(random, 1, cut.extent);
  cut.piece = between(random, 1, cut.block);
  return cut;
}

// Returns a layout that the files' own functions make from blocks and sizes, or one with random
// cuts.
StoreLayout draw_layout(Random& random) {
  const Index rows = between(random, 1, 40);
  const Index cols = between(random, 1, 40);
  const Index granule_bytes = kWord * between(random, 1, 200);
  switch (between(random, 0, 3)) {
    case 0:
      return StoreLayout::row_major(rows, cols, granule_bytes);
    case 1:
      return {draw_cut(random), draw_cut(random)};
    default:
      return StoreLayout::for_blocks(rows, cols, {between(random, 1, 50), between(random, 1, 50)},
                                     granule_bytes, between(random, 1, 200));
  }
}

std::string text(const StoreLayout& layout) {
  const auto of = [](const Cut& cut) {
    return std::to_string(cut.extent) + "/" + std::to_string(cut.block) + "/" +
           std::to_string(cut.piece);
  };
  return of(layout.rows) + " x " + of(layout.columns);
}

std::vector<Granule> granules_of(const StoreLayout& layout, Range rows, Range columns) {
  std::vector<Granule> all;
  layout.for_granules(rows, columns, [&](const Granule& granule) { all.push_back(granule); });
  return all;
}

std::vector<Granule> granules_of(const StoreLayout& layout) {
  return granules_of(layout, {0, layout.rows.extent}, {0, layout.columns.extent});
}

bool meets(const Granule& granule, Range rows, Range columns) {
  return common(granule.rows, rows).size() > 0 && common(granule.columns, columns).size() > 0;
}

// Returns the granules that contain the words of a window.
std::set<Index> numbers(const StoreLayout& layout, Range rows, Range columns) {
  std::set<Index> all;
  for (const Granule& granule : granules_of(layout, rows, columns)) {
    all.insert(granule.number);
  }
  return all;
}

TEST(StoreLayout, SlotsAreNumberedWithoutAHoleAndGranulesTileTheMatrix) {
  Random random(1);
  for (int k = 0; k < kLayouts; ++k) {
    const StoreLayout layout = draw_layout(random);
    SCOPED_TRACE(text(layout));
    std::set<Index> slots;
    std::vector<int> owners(static_cast<std::size_t>(layout.rows.extent * layout.columns.extent));
    for (const Granule& granule : granules_of(layout)) {
      EXPECT_TRUE(slots.insert(granule.number).second) << granule.number << " comes twice";
      EXPECT_GT(granule.words(), 0);
      ASSERT_LE(granule.rows.end, layout.rows.extent);
      ASSERT_LE(granule.columns.end, layout.columns.extent);
      for (Index i = granule.rows.begin; i < granule.rows.end; ++i) {
        for (Index j = granule.columns.begin; j < granule.columns.end; ++j) {
          ++owners[static_cast<std::size_t>(i * layout.columns.extent + j)];
        }
      }
    }
    EXPECT_TRUE(std::ranges::all_of(owners, [](int times) { return times == 1; }));
    EXPECT_EQ(static_cast<Index>(slots.size()), layout.granules());
    EXPECT_EQ(*slots.begin(), 0);
    EXPECT_EQ(*slots.rbegin(), layout.granules() - 1);
  }
}

TEST(StoreLayout, AWindowMeetsTheGranulesThatShareAWordWithItAndNoOther) {
  Random random(2);
  for (int k = 0; k < kLayouts; ++k) {
    const StoreLayout layout = draw_layout(random);
    std::map<Index, Granule> all;
    for (const Granule& granule : granules_of(layout)) {
      all[granule.number] = granule;
    }
    for (int w = 0; w < 5; ++w) {
      const Range rows = draw_range(random, layout.rows.extent);
      const Range columns = draw_range(random, layout.columns.extent);
      SCOPED_TRACE(text(layout));
      std::set<Index> met;
      for (const Granule& granule : granules_of(layout, rows, columns)) {
        EXPECT_TRUE(met.insert(granule.number).second) << granule.number << " comes twice";
        ASSERT_TRUE(all.contains(granule.number));
        EXPECT_EQ(granule.rows, all[granule.number].rows);
        EXPECT_EQ(granule.columns, all[granule.number].columns);
      }
      for (const auto& [number, granule] : all) {
        EXPECT_EQ(met.contains(number), meets(granule, rows, columns)) << number;
      }
    }
  }
}

// The granules of a block contain exactly the block, and lie next to each other in the file. So the
// block is one request if the buffer is large enough. Blocks of rows follow each other.
TEST(StoreLayout, TheSlotsOfABlockFollowEachOther) {
  Random random(3);
  for (int k = 0; k < kLayouts; ++k) {
    const StoreLayout layout = draw_layout(random);
    SCOPED_TRACE(text(layout));
    Index next = 0;
    for (const Range I : blocks(layout.rows.extent, layout.rows.block)) {
      for (const Range J : blocks(layout.columns.extent, layout.columns.block)) {
        Index words = 0;
        Range before{I.begin, I.begin};
        for (const Granule& granule : granules_of(layout, I, J)) {
          EXPECT_EQ(granule.number, next++);
          EXPECT_EQ(common(granule.rows, I), granule.rows);
          EXPECT_EQ(common(granule.columns, J), granule.columns);
          EXPECT_GE(granule.rows.begin, before.begin) << "row after row";
          before = granule.rows;
          words += granule.words();
        }
        EXPECT_EQ(words, I.size() * J.size());
      }
    }
    EXPECT_EQ(next, layout.granules());
  }
}

TEST(StoreLayout, GranulesAreOfTheSizeThatWasAskedForAndSlotsOfWholeSectors) {
  Random random(4);
  for (int k = 0; k < kLayouts; ++k) {
    const Index rows = between(random, 1, 60);
    const Index cols = between(random, 1, 60);
    const Index asked = between(random, 1, 300);
    const bool by_rows = between(random, 0, 1) == 0;
    const Window window{between(random, 1, rows), between(random, 1, cols)};
    const StoreLayout layout = by_rows
                                   ? StoreLayout::row_major(rows, cols, kWord * asked)
                                   : StoreLayout::for_blocks(rows, cols, window, kWord * asked, 1);
    SCOPED_TRACE(text(layout) + " asked for " + std::to_string(asked));
    const Index words = layout.rows.piece * layout.columns.piece;
    EXPECT_LE(words, asked);
    // Even pieces may be half as large in each direction, unless the block itself is smaller.
    EXPECT_GT(4 * words, std::min(asked, layout.rows.block * layout.columns.block));
    if (layout.columns.block <= asked) {
      EXPECT_EQ(layout.columns.piece, layout.columns.block) << "as wide as the block";
    }
    if (by_rows) {
      EXPECT_EQ(layout.columns.block, cols);
      EXPECT_TRUE(layout.rows.piece == 1 || layout.columns.piece == cols) << "whole rows";
    }
    EXPECT_EQ(layout.slot_bytes() % StoreLayout::kSector, 0);
    EXPECT_GE(layout.slot_bytes(), kWord * words);
    EXPECT_LT(layout.slot_bytes(), kWord * words + StoreLayout::kSector);
    for (const Granule& granule : granules_of(layout)) {
      EXPECT_LE(granule.words(), words);
    }
  }
}

// A block of a sector or more shares no granule with other blocks. Smaller blocks share whole
// granules.
TEST(StoreLayout, ABlockOfASectorOrMoreSharesNoGranule) {
  Random random(5);
  int large = 0;
  int small = 0;
  for (int k = 0; k < kLayouts; ++k) {
    const Index rows = between(random, 1, 300);
    const Index cols = between(random, 1, 300);
    const Window window{between(random, 1, 80), between(random, 1, 80)};
    const StoreLayout layout =
        StoreLayout::for_blocks(rows, cols, window, StoreLayout::kSector * between(random, 1, 4));
    SCOPED_TRACE(text(layout));
    const Index words = std::min(window.rows, rows) * std::min(window.cols, cols);
    if (words >= kSectorWords) {
      ++large;
      std::map<Index, int> users;
      for (const Range I : blocks(rows, window.rows)) {
        for (const Range J : blocks(cols, window.cols)) {
          for (const Index number : numbers(layout, I, J)) {
            ++users[number];
          }
        }
      }
      EXPECT_TRUE(std::ranges::all_of(users, [](const auto& user) { return user.second == 1; }));
    } else {
      ++small;
      EXPECT_TRUE(layout.rows.block % window.rows == 0 || layout.rows.block == rows);
      EXPECT_TRUE(layout.columns.block % window.cols == 0 || layout.columns.block == cols);
      EXPECT_LE(layout.rows.block * layout.columns.block, kSectorWords);
      EXPECT_GT(2 * layout.rows.block * layout.columns.block, std::min(kSectorWords, rows * cols))
          << "as many in one as there is room for";
    }
  }
  EXPECT_GT(std::min(large, small), kLayouts / 10);
}

// Windows of whole rows are read one after the other, and a cached granule serves several. So small
// windows share granules. Windows that are fetched at the same time do not, because each of them
// would read the granule.
TEST(StoreLayout, WindowsOfWholeRowsShareGranulesUnlessTheyAreReadAhead) {
  const TemporaryDirectory directory;
  const Store store(directory / "store");  // granules of 64 KiB
  constexpr Index kRows = 1000;
  constexpr Index kCols = 512;
  const auto most_users = [&](const StoreLayout& layout, Window window) {
    std::map<Index, int> users;
    for (const Range I : blocks(kRows, window.rows)) {
      for (const Range J : blocks(kCols, window.cols)) {
        for (const Index number : numbers(layout, I, J)) {
          ++users[number];
        }
      }
    }
    return std::ranges::max_element(users, {}, [](const auto& user) { return user.second; })
        ->second;
  };
  const Window rows{4, kCols};  // two sectors
  EXPECT_EQ(most_users(store.layout(kRows, kCols, rows, false), rows), 8);
  EXPECT_EQ(most_users(store.layout(kRows, kCols, rows, true), rows), 1);
  const Window part{8, kCols / 2};  // of some columns: never
  EXPECT_EQ(most_users(store.layout(kRows, kCols, part, false), part), 1);
  const Window large{40, kCols};  // more than a granule: never
  EXPECT_EQ(most_users(store.layout(kRows, kCols, large, false), large), 1);
  const Window less{1, kCols};  // less than a sector: always
  EXPECT_EQ(most_users(store.layout(kRows, kCols, less, true), less), 2);
}

TEST(StoreLayout, IsOfAWordOrMore) {
  EXPECT_THROW(static_cast<void>(StoreLayout::row_major(0, 5, 4096)), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(StoreLayout::row_major(5, 0, 4096)), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(StoreLayout::for_blocks(-1, 5, {1, 1}, 4096)), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(StoreLayout::row_major(Index{1} << 32, Index{1} << 31, 4096)),
               CountOverflow);
  // The first window that is written to a matrix may be empty.
  EXPECT_EQ(StoreLayout::for_blocks(7, 5, {0, 5}, 4096).granules(), 1);
}

}  // namespace
}  // namespace redblue
