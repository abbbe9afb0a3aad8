// A matrix that keeps some words of each row. Words written there come back. Other words are 0 and
// are not counted. This holds for any windows, straight and transposed.

#include "memsim/partial.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/machine.hpp"
#include "tests/support/words.hpp"

namespace redblue {
namespace {

// Returns disjoint ranges in [0, extent), possibly none.
std::vector<Range> some_ranges(Random& random, Index extent) {
  std::vector<Range> ranges;
  if (between(random, 0, 4) > 0) {
    for (Index at = between(random, 0, 3); at < extent; at += between(random, 1, 20)) {
      ranges.push_back({at, std::min(extent, at + between(random, 1, 20))});
      at = ranges.back().end;
    }
  }
  return ranges;
}

bool is_kept(const std::vector<Range>& kept, Index column) {
  return std::ranges::any_of(
      kept, [&](Range range) { return range.begin <= column && column < range.end; });
}

TEST(Partial, KeepsWhatItSaysAndCountsIt) {
  Random random{5};
  for (int k = 0; k < 500; ++k) {
    const Index rows = between(random, 1, 40);
    const Index columns = between(random, 1, 70);
    KeptWords kept(columns);
    std::vector<std::vector<Range>> of_row;
    for (Index i = 0; i < rows; ++i) {
      of_row.push_back(some_ranges(random, columns));
      kept.add_row(of_row.back());
    }
    if (kept.words() == 0) {
      continue;
    }
    Machine machine(10000);
    SlowMatrix s = partial("s", SlowMatrix("s", 1, kept.words()), kept);
    EXPECT_EQ(s.rows(), rows);
    EXPECT_EQ(s.cols(), columns);
    // Word (i, j) is 1000 i + j. Rewriting it in a window negates it.
    const auto fill = [&](View tile, Range I, Range J, bool transposed, float sign) {
      for (Index i = I.begin; i < I.end; ++i) {
        for (Index j = J.begin; j < J.end; ++j) {
          const Index x = i - I.begin, y = j - J.begin;
          (transposed ? tile(y, x) : tile(x, y)) = sign * static_cast<float>(1000 * i + j);
        }
      }
    };
    {
      Tile all = machine.initialize("all", rows, columns);
      fill(all, {0, rows}, {0, columns}, false, 1);
      machine.write(all, s.whole());
    }
    EXPECT_EQ(total(machine.phases()).io.writes, kept.words());
    const Range I = draw_range(random, rows), J = draw_range(random, columns);
    {
      Tile again = machine.initialize("again", J.size(), I.size());
      fill(again, I, J, true, -1);
      machine.write(again, transposed(s.block(I, J)));
    }
    EXPECT_EQ(total(machine.phases()).io.writes, kept.words() + kept.words(I, J));
    const Range R = draw_range(random, rows), C = draw_range(random, columns);
    const Tile straight = machine.read(std::as_const(s).block(R, C));
    const Tile mirrored = machine.read(transposed(std::as_const(s).block(R, C)));
    Index words = 0;
    for (Index i = R.begin; i < R.end; ++i) {
      for (Index j = C.begin; j < C.end; ++j) {
        const bool here = is_kept(of_row[static_cast<std::size_t>(i)], j);
        const bool twice = inside(i - I.begin, I.size()) && inside(j - J.begin, J.size());
        const float expected = here ? (twice ? -1.0F : 1.0F) * static_cast<float>(1000 * i + j) : 0;
        words += here ? 1 : 0;
        EXPECT_EQ(ConstView(straight)(i - R.begin, j - C.begin), expected);
        EXPECT_EQ(ConstView(mirrored)(j - C.begin, i - R.begin), expected);
      }
    }
    EXPECT_EQ(kept.words(R, C), words);
    EXPECT_EQ(std::as_const(s).block(R, C).words(), words);
    EXPECT_EQ(total(machine.phases()).io.reads, 2 * words);
  }
}

TEST(Partial, NeedsAWordForEachThatIsKept) {
  KeptWords kept(3);
  kept.add_row({{0, 1}, {2, 3}});
  EXPECT_THROW(static_cast<void>(partial("s", SlowMatrix("s", 1, 3), kept)), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(partial("s", SlowMatrix("s", 2, 1), kept)), ShapeMismatch);
}

// A selection of rows of a matrix, which may itself keep only some words. Each selected row is
// where it is in the whole matrix. Other rows read as the requested value, and are neither written
// nor counted.
TEST(Partial, OnlySomeRowsComeAndGo) {
  Random random{6};
  for (int k = 0; k < 500; ++k) {
    const Index rows = between(random, 1, 40);
    const Index columns = between(random, 1, 40);
    KeptWords kept(columns);
    for (Index i = 0; i < rows; ++i) {
      kept.add_row({{0, between(random, 1, columns)}});
    }
    Machine machine(10000);
    SlowMatrix all = between(random, 0, 1) == 0
                         ? SlowMatrix("s", rows, columns)
                         : partial("s", SlowMatrix("s", 1, kept.words()), kept);
    machine.write(machine.initialize("s", rows, columns, 1), all.whole());
    const std::vector<Range> chosen = some_ranges(random, rows);
    SlowMatrix some = only_rows(all, chosen);
    EXPECT_EQ(some.rows(), rows);
    const Range I = draw_range(random, rows), J = draw_range(random, columns);
    const auto words_of = [&](Range i) { return std::as_const(all).block(i, J).words(); };
    Index expected = 0;
    for (Index i = I.begin; i < I.end; ++i) {
      expected += is_kept(chosen, i) ? words_of({i, i + 1}) : 0;
    }
    const IoCount before = total(machine.phases()).io;
    machine.write(machine.initialize("s", J.size(), I.size(), 2), transposed(some.block(I, J)));
    const SlowMatrix read_only = only_rows(std::as_const(all), chosen, 5);
    const Tile read = machine.read(read_only.block(I, J));
    EXPECT_EQ(total(machine.phases()).io.writes - before.writes, expected);
    EXPECT_EQ(total(machine.phases()).io.reads - before.reads, expected);
    const Tile mirrored = machine.read(transposed(read_only.block(I, J)));
    const Tile whole = machine.read(std::as_const(all).whole());
    for (Index i = I.begin; i < I.end; ++i) {
      for (Index j = J.begin; j < J.end; ++j) {
        const float there = whole(i, j);
        EXPECT_EQ(read(i - I.begin, j - J.begin), is_kept(chosen, i) ? there : 5);
        EXPECT_EQ(mirrored(j - J.begin, i - I.begin), is_kept(chosen, i) ? there : 5);
        EXPECT_TRUE(there == 0 || there == (is_kept(chosen, i) ? 2 : 1));
      }
      EXPECT_EQ(read_only.block(I, J).stored(i).empty(),
                !is_kept(chosen, i) || std::as_const(all).block({i, i + 1}, J).words() == 0);
    }
    EXPECT_THROW(machine.write(read, only_rows(std::as_const(read_only), chosen).block(I, J)),
                 std::logic_error);
  }
}

}  // namespace
}  // namespace redblue
