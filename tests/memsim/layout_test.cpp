// Where the words of a tile lie, and how blocks are copied to and from them. With W = kPanel = 16:
// panel p of an r x c tile begins at word p W r and is w = min(W, c - p W) wide, so that word (i,
// j) is at (j / W) W r + i w + j mod W. Each word has one place, without gaps.

#include "memsim/layout.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "memsim/host_access.hpp"
#include "memsim/machine.hpp"
#include "memsim/unchecked.hpp"
#include "tests/support/print.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/words.hpp"

namespace redblue {
namespace {

// Sizes that fill panels only partly, in either direction.
const std::pair<Index, Index> kShapes[] = {{1, 1},   {1, 16},  {16, 1},  {3, 15},  {15, 3},
                                           {5, 16},  {16, 16}, {17, 17}, {16, 33}, {33, 16},
                                           {31, 47}, {48, 5},  {61, 35}, {2, 100}, {100, 2}};

Index place_of(Index rows, Index cols, Index i, Index j) {
  const Index panel = j / kPanel;
  const Index width = std::min(kPanel, cols - panel * kPanel);
  return panel * kPanel * rows + i * width + j % kPanel;
}

TEST(Layout, IsPanelsOfRowsWithoutGaps) {
  for (const auto& [rows, cols] : kShapes) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
    Machine machine(rows * cols);  // without room for padding
    Tile tile = machine.initialize("t", rows, cols);
    const View all = tile;
    ASSERT_EQ(all.rows(), rows);
    ASSERT_EQ(all.cols(), cols);
    EXPECT_EQ(all.words(), rows * cols);
    EXPECT_EQ(all.panels(), (cols + kPanel - 1) / kPanel);
    EXPECT_EQ(&all.machine(), &machine);
    const float* const first = all.at(0, 0);
    std::set<Index> places;
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < cols; ++j) {
        const Index place = place_of(rows, cols, i, j);
        places.insert(place);
        ASSERT_EQ(&tile(i, j), first + place);
        ASSERT_EQ(all.at(i, j / kPanel) + j % kPanel, first + place);
      }
    }
    EXPECT_EQ(places.size(), static_cast<std::size_t>(rows * cols));
    EXPECT_EQ(*places.rbegin(), rows * cols - 1);
    Index width = 0;
    for (Index p = 0; p < all.panels(); ++p) {
      EXPECT_EQ(all.stride(p), all.panel_cols(p));
      width += all.panel_cols(p);
    }
    EXPECT_EQ(width, cols);
  }
}

// Word (i, j) of a part is word (rows.begin + i, columns.begin + j) of its tile.
TEST(Layout, PartsAreTheTilesOwnWords) {
  for (const auto& [rows, cols] : kShapes) {
    Machine machine(rows * cols);
    Tile tile = machine.initialize("t", rows, cols);
    const Tile& constant = tile;
    for (Index begin = 0; begin < cols; ++begin) {
      const Index next = (begin / kPanel + 1) * kPanel;
      for (const Index end : {begin + 1, begin + 7, next, begin + 17, cols}) {
        for (const Range I : {Range{0, rows}, Range{rows / 2, rows}, Range{0, (rows + 1) / 2}}) {
          if (end > cols || end <= begin || I.size() < 1 || (begin % kPanel != 0 && end > next)) {
            continue;
          }
          const Range J{begin, end};
          const View part = tile.part(I, J);
          const ConstView read_only = constant.part(I, J);
          const ConstView converted = part;
          ASSERT_EQ(part.rows(), I.size());
          ASSERT_EQ(part.cols(), J.size());
          EXPECT_EQ(&part.machine(), &machine);
          for (Index i = 0; i < part.rows(); ++i) {
            for (Index j = 0; j < part.cols(); ++j) {
              const float* const word = &tile(I.begin + i, J.begin + j);
              ASSERT_EQ(part.at(i, j / kPanel) + j % kPanel, word);
              ASSERT_EQ(read_only.at(i, j / kPanel) + j % kPanel, word);
              ASSERT_EQ(converted.at(i, j / kPanel) + j % kPanel, word);
            }
          }
          for (Index p = 0; p < part.panels(); ++p) {
            EXPECT_EQ(part.panel_cols(p), std::min(kPanel, J.size() - p * kPanel));
            if (I.size() > 1) {
              EXPECT_EQ(part.at(1, p) - part.at(0, p), part.stride(p));
            }
          }
        }
      }
    }
    EXPECT_EQ(tile.part({0, rows}).cols(), cols);
    EXPECT_EQ(constant.part({0, rows}).at(0, 0), &std::as_const(tile).part({0, rows}).at(0, 0)[0]);
  }
}

TEST(Layout, PartsBeginWithAPanelOrLieWithinOne) {
  Machine machine(20 * 40);
  Tile tile = machine.initialize("t", 20, 40);
  const Tile& constant = tile;
  const std::pair<Range, Range> refused[] = {
      {{0, 20}, {1, 40}},  {{0, 20}, {15, 40}}, {{0, 20}, {17, 33}}, {{0, 21}, {0, 40}},
      {{-1, 20}, {0, 40}}, {{0, 20}, {0, 41}},  {{0, 20}, {-16, 8}}, {{5, 5}, {0, 40}},
      {{0, 20}, {16, 16}}, {{7, 3}, {0, 40}},   {{0, 20}, {32, 16}}, {{0, 20}, {48, 50}}};
  for (const auto& [rows, columns] : refused) {
    EXPECT_THROW(static_cast<void>(tile.part(rows, columns)), ShapeMismatch);
    EXPECT_THROW(static_cast<void>(constant.part(rows, columns)), ShapeMismatch);
  }
  EXPECT_THROW(static_cast<void>(tile.part({0, 21})), ShapeMismatch);
  Tile none;
  EXPECT_THROW(static_cast<void>(none.part({0, 1}, {0, 1})), ShapeMismatch);
}

// A part has its own rows, columns and panels. An index beyond them would reach another word of the
// tile, or another tile.
TEST(Layout, AViewChecksEveryIndex) {
  Machine machine(20 * 40 + 4);
  Tile tile = machine.initialize("t", 20, 40);
  const Tile beside = machine.initialize("beside", 2, 2);
  const View part = tile.part({4, 10}, {16, 40});  // 6 x 24, of two panels
  const ConstView read_only = part;
  for (Index i = 0; i < part.rows(); ++i) {
    for (Index j = 0; j < part.cols(); ++j) {
      ASSERT_EQ(&part(i, j), &tile(4 + i, 16 + j));
      ASSERT_EQ(&read_only(i, j), &tile(4 + i, 16 + j));
      ASSERT_EQ(Unchecked(part).at(i, j / kPanel), part.at(i, j / kPanel));
      ASSERT_EQ(Unchecked(part).stride(j / kPanel), part.stride(j / kPanel));
      ASSERT_EQ(Unchecked(part).panel_cols(j / kPanel), part.panel_cols(j / kPanel));
    }
  }
  constexpr Index kFar = Index{1} << 40;
  for (const Index outside : {Index{-1}, kFar, -kFar, Index{24}}) {
    for (const ConstView& view : {read_only, ConstView(part)}) {
      EXPECT_THROW(static_cast<void>(view(outside, 0)), ShapeMismatch);
      EXPECT_THROW(static_cast<void>(view(0, outside)), ShapeMismatch);
      EXPECT_THROW(static_cast<void>(view.at(outside, 0)), ShapeMismatch);
      EXPECT_THROW(static_cast<void>(view.at(0, outside)), ShapeMismatch);
      EXPECT_THROW(static_cast<void>(view.stride(outside)), ShapeMismatch);
      EXPECT_THROW(static_cast<void>(view.panel_cols(outside)), ShapeMismatch);
    }
  }
  EXPECT_EQ(thrown<ShapeMismatch>([&] { part(6, 0) = 1; }),
            "row 6 leaves a view of t, which is 6 x 24");
  EXPECT_EQ(thrown<ShapeMismatch>([&] { static_cast<void>(read_only(5, 24)); }),
            "column 24 leaves a view of t, which is 6 x 24");
  EXPECT_EQ(thrown<ShapeMismatch>([&] { *part.at(0, 2) = 1; }),
            "panel 2 leaves a view of t, which is 6 x 24");
  EXPECT_EQ(thrown<ShapeMismatch>([&] { static_cast<void>(ConstView(beside)(0, 2)); }),
            "column 2 leaves a view of beside, which is 2 x 2");
}

// A new tile may make the arena slide the others together, and a view keeps an address. So a view
// is valid only until the next tile is made, in whatever way. With assertions on, a later use
// throws.
TEST(Layout, AViewIsValidUntilTheNextTileIsMade) {
#ifdef NDEBUG
  GTEST_SKIP() << "views are checked for their age with assertions alone";
#else
  Machine machine(100);
  SlowMatrix A("A", 4, 4);
  Tile tile = machine.initialize("t", 2, 20, 7);
  const std::function<void()> makes[] = {
      [&] { const Tile made = machine.initialize("made", 2); },
      [&] { const Tile made = machine.initialize("made", 2, 2, kUnset); },
      [&] {
        const Tile made = machine.read(A.block({0, 2}, {0, 2}));
      },
      [&] { const Tile made = machine.read(transposed(std::as_const(A).whole())); },
      [&] { const Tile made = machine.read_indices(3); },
      [&] {
        Stream stream = machine.stream(A.row_blocks(2));
        static_cast<void>(stream.begin_read());
      }};
  for (const std::function<void()>& make : makes) {
    const View view = tile.part({0, 2}, {16, 20});
    const ConstView read_only = view;
    EXPECT_EQ(view(1, 3), 7);
    make();
    for (const ConstView& old : {read_only, ConstView(view)}) {
      EXPECT_THROW(static_cast<void>(old(1, 3)), ShapeMismatch);
      EXPECT_THROW(static_cast<void>(old.at(1, 0)), ShapeMismatch);
      EXPECT_THROW(static_cast<void>(old.stride(0)), ShapeMismatch);
      EXPECT_THROW(static_cast<void>(old.panel_cols(0)), ShapeMismatch);
      EXPECT_THROW(static_cast<void>(Unchecked<const float>(old)), ShapeMismatch);
    }
    EXPECT_EQ(thrown<ShapeMismatch>([&] { view(1, 3) = 1; }),
              "a view is used after a new tile was made, which may have moved its words: take the "
              "view from its tile again");
    EXPECT_EQ(tile.part({0, 2}, {16, 20})(1, 3), 7);
  }
#endif
}

// A new tile does move these words, which is why views expire. A refused request, a write and the
// end of another tile leave views valid.
TEST(Layout, OnlyANewTileMovesWords) {
  constexpr Index M = 100000;
  Machine machine(M);
  SlowMatrix A("A", 1, M / 4);
  Tile first = machine.initialize("first", 1, M / 2);
  Tile last = machine.initialize("last", 1, M / 4, 5);
  const View view = last;
  const float* const before = view.at(0, 0);
  EXPECT_THROW(static_cast<void>(machine.initialize("more", 1, M / 2)), FastMemoryOverflow);
  machine.write(last, A.whole());
  first.reset();
  EXPECT_EQ(view.at(0, 0), before);
  EXPECT_EQ(view(0, M / 4 - 1), 5);
  const Tile large = machine.initialize("large", 1, 3 * (M / 4));
  EXPECT_NE(ConstView(last).at(0, 0), before);
  EXPECT_EQ(last(0, M / 4 - 1), 5);
}

// ------------------------------------------------------------------------- there and back

// Implements only read and write, and counts them. Tiles use the default functions.
class PlainBacking final : public Backing {
 public:
  struct Tally {
    IoCount io;
    bool sound = true;
  };
  PlainBacking(Tally& tally, Index rows, Index cols)
      : tally_(tally), rows_(rows), cols_(cols), words_(rows, cols) {}
  void read(Range rows, Range columns, std::span<float> to) const override {
    count(tally_.io.reads, rows, columns, to.size());
    words_.read(rows, columns, to);
  }
  void write(Range rows, Range columns, std::span<const float> from) override {
    count(tally_.io.writes, rows, columns, from.size());
    words_.write(rows, columns, from);
  }

 private:
  void count(Index& words, Range rows, Range columns, std::size_t size) const {
    words += static_cast<Index>(size);
    tally_.sound = tally_.sound && 0 <= rows.begin && rows.begin < rows.end && rows.end <= rows_ &&
                   0 <= columns.begin && columns.begin < columns.end && columns.end <= cols_ &&
                   static_cast<Index>(size) == rows.size() * columns.size();
  }

  Tally& tally_;
  Index rows_, cols_;
  RamBacking words_;
};

// A window in the middle of a matrix of numbered words.
struct Windows {
  Index rows, cols;
  [[nodiscard]] Range I() const { return {2, 2 + rows}; }
  [[nodiscard]] Range J() const { return {3, 3 + cols}; }
  [[nodiscard]] Index height() const { return rows + 3; }
  [[nodiscard]] Index width() const { return cols + 5; }
  [[nodiscard]] std::size_t place(Index i, Index j) const {
    return static_cast<std::size_t>((i + 2) * width() + j + 3);
  }
};

// t = B and t = B^T: read from all stores, in every shape, with each word counted once.
TEST(Layout, ReadsBlocksAsTheyAreAndTransposed) {
  for (const auto& [rows, cols] : kShapes) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
    const Windows window{rows, cols};
    const Buffer words = numbered(window.height() * window.width(), 1);
    PlainBacking::Tally tally;
    SlowMatrix ram("A", window.height(), window.width());
    SlowMatrix plain("A", window.height(), window.width(),
                     std::make_unique<PlainBacking>(tally, window.height(), window.width()));
    const SlowMatrix borrowed = borrow("A", words.data(), window.height(), window.width());
    HostAccess::put(ram, words);
    HostAccess::put(plain, words);
    tally = {};
    const SlowMatrix* const stores[] = {&ram, &plain, &borrowed};
    for (const SlowMatrix* store : stores) {
      Machine machine(2 * rows * cols);
      const Tile tile = machine.read(store->block(window.I(), window.J()));
      EXPECT_EQ(total(machine.phases()).io, (IoCount{rows * cols, 0}));
      const Tile turned = machine.read(transposed(store->block(window.I(), window.J())));
      EXPECT_EQ(total(machine.phases()).io, (IoCount{2 * rows * cols, 0}));
      EXPECT_EQ(machine.live(), 2 * rows * cols);
      ASSERT_EQ(turned.rows(), cols);
      ASSERT_EQ(turned.cols(), rows);
      for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < cols; ++j) {
          ASSERT_EQ(tile(i, j), words[window.place(i, j)]);
          ASSERT_EQ(turned(j, i), words[window.place(i, j)]);
        }
      }
    }
    EXPECT_TRUE(tally.sound);
    EXPECT_EQ(tally.io, (IoCount{2 * rows * cols, 0}));
  }
}

// B = t and B = t^T: the words around the block do not change.
TEST(Layout, WritesBlocksAsTheyAreAndTransposed) {
  for (const auto& [rows, cols] : kShapes) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
    const Windows window{rows, cols};
    const Buffer words = numbered(window.height() * window.width(), 1);
    Buffer expected = words;
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < cols; ++j) {
        expected[window.place(i, j)] = -static_cast<float>(i * cols + j) - 1;
      }
    }
    for (const bool turned : {false, true}) {
      PlainBacking::Tally tally;
      Buffer lent = words;
      SlowMatrix ram("A", window.height(), window.width());
      SlowMatrix plain("A", window.height(), window.width(),
                       std::make_unique<PlainBacking>(tally, window.height(), window.width()));
      SlowMatrix borrowed = borrow("A", lent.data(), window.height(), window.width());
      HostAccess::put(ram, words);
      HostAccess::put(plain, words);
      tally = {};
      SlowMatrix* const stores[] = {&ram, &plain, &borrowed};
      for (SlowMatrix* store : stores) {
        Machine machine(rows * cols);
        Tile tile = machine.initialize("t", turned ? cols : rows, turned ? rows : cols);
        for (Index i = 0; i < rows; ++i) {
          for (Index j = 0; j < cols; ++j) {
            (turned ? tile(j, i) : tile(i, j)) = -static_cast<float>(i * cols + j) - 1;
          }
        }
        const Block block = store->block(window.I(), window.J());
        if (turned) {
          machine.write(tile, transposed(block));
        } else {
          machine.write(tile, block);
        }
        EXPECT_EQ(total(machine.phases()).io, (IoCount{0, rows * cols}));
      }
      EXPECT_TRUE(tally.sound);
      EXPECT_EQ(tally.io, (IoCount{0, rows * cols}));
      for (const SlowMatrix* store : stores) {
        Buffer after(words.size());
        HostAccess::get(*store, after);
        EXPECT_EQ(after, expected);
      }
    }
  }
}

// (B^T)^T = B, to the bit, including NaNs with payloads and both zeros.
TEST(Layout, TransposingTwiceKeepsEveryBit) {
  for (const auto& [rows, cols] : kShapes) {
    Buffer words(static_cast<std::size_t>(rows * cols));
    constexpr std::uint32_t kStrange[] = {0x80000000, 0x7fc12345, 0xff800001, 0x00000001,
                                          0x7f800000, 0x7f812345, 0xffffffff, 0x3f800000};
    for (std::size_t k = 0; k < words.size(); ++k) {
      words[k] = std::bit_cast<float>(kStrange[k % 8]);
    }
    const SlowMatrix A = borrow("A", words.data(), rows, cols);
    SlowMatrix A_t("A^T", cols, rows);
    Buffer back(words.size());
    SlowMatrix B = borrow("B", back.data(), rows, cols);
    Machine machine(rows * cols);
    machine.write(machine.read(transposed(A.whole())), A_t.whole());
    machine.write(machine.read(A_t.whole()), transposed(B.whole()));
    for (std::size_t k = 0; k < words.size(); ++k) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(back[k]), std::bit_cast<std::uint32_t>(words[k]));
    }
    EXPECT_EQ(total(machine.phases()).io, (IoCount{2 * rows * cols, 2 * rows * cols}));
  }
}

TEST(Layout, ATransposedWriteNeedsTheTransposedShape) {
  SlowMatrix A("A", 6, 6);
  Machine machine(40);
  const Tile tile = machine.initialize("t", 2, 3);
  EXPECT_THROW(machine.write(tile, transposed(A.block({0, 2}, {0, 3}))), ShapeMismatch);
  EXPECT_THROW(machine.write(tile, transposed(A.block({0, 2}, {0, 2}))), ShapeMismatch);
  EXPECT_EQ(total(machine.phases()).io, IoCount{});
  machine.write(tile, transposed(A.block({0, 3}, {0, 2})));
  // A read that does not fit is refused, as without transposing.
  EXPECT_THROW(static_cast<void>(machine.read(transposed(A.whole()))), FastMemoryOverflow);
  EXPECT_EQ(total(machine.phases()).io, (IoCount{0, 6}));
  EXPECT_EQ(machine.live(), 6);
}

}  // namespace
}  // namespace redblue
