// Stacked heads of queries. Query i of head h is query h n + i of the stack. It meets the keys that
// query i meets in a problem of one head.

#include <gtest/gtest.h>

#include "kernels/problem.hpp"
#include "memsim/errors.hpp"
#include "tests/support/print.hpp"
#include "tests/support/random_masks.hpp"

namespace redblue {
namespace {

TEST(Stacked, EachHeadHasTheMaskOfOne) {
  RandomMasks random(5);
  for (int k = 0; k < 1000 && !testing::Test::HasFailure(); ++k) {
    Problem one(random.any(1, 20), random.any(1, 20), 3);
    const auto [mask, table, kept] = random.expression(one.shape.n, one.shape.m);
    one.mask = mask.called("a name");
    const Index heads = random.any(1, 5);
    const Problem all = one.with_stacked(heads);
    EXPECT_EQ(all.stacked, heads);
    EXPECT_EQ(all.queries(), one.shape.n);
    EXPECT_EQ(all.shape, (Shape{heads * one.shape.n, one.shape.m, 3}));
    EXPECT_EQ(all.mask.spec(), "a name");
    for (Index i = 0; i < all.shape.n; ++i) {
      const Index own = i % one.shape.n;
      EXPECT_EQ(all.keys({i, i + 1}), table.keys({own, own + 1})) << "query " << i;
    }
    EXPECT_EQ(all.pairs(), one.pairs() * heads);
    EXPECT_EQ(all.live_keys(), one.live_keys());
    EXPECT_EQ(all.live_part().stacked, heads);
    EXPECT_EQ(all.one_head(), one);
    EXPECT_EQ(all.one_head().mask.full(), one.mask.full());
    if (!one.mask.full()) {
      EXPECT_EQ(all.one_head().mask.fingerprint(), one.mask.fingerprint());
      // The mask has the same runs as the same pairs written row by row.
      std::vector<MaskRun> rows;
      for (Index i = 0; i < all.shape.n; ++i) {
        MaskRun& row = rows.emplace_back();
        row.queries = {i, i + 1};
        for (const Range live : all.keys(row.queries)) {
          row.live.push_back({{live.begin, false}, {live.end, false}});
        }
      }
      EXPECT_EQ(all.mask, Mask(all.shape.n, one.shape.m, rows));
    }
  }
}

TEST(Stacked, OfAllPairsAreAllPairs) {
  const Problem all = Problem(7, 5, 3).with_stacked(4);
  EXPECT_TRUE(all.mask.full());
  EXPECT_EQ(all.pairs(), Words(4 * 7 * 5));
  EXPECT_EQ(all.one_head(), Problem(7, 5, 3));
  EXPECT_EQ(Problem(7, 5, 3).with_stacked(1), Problem(7, 5, 3));
}

TEST(Stacked, TooManyAreRefused) {
  Problem one(Index{1} << 40, 5, 3);
  EXPECT_THROW(static_cast<void>(one.with_stacked(0)), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(one.with_stacked(Index{1} << 40)), CountOverflow);
  one.mask = Mask::causal(one.shape.n, one.shape.m);
  EXPECT_THROW(static_cast<void>(one.with_stacked(Index{1} << 21)), CountOverflow) << "queries";
  one.shape.n = 4;
  one.mask = Mask::causal(4, 5);
  EXPECT_THROW(static_cast<void>(one.with_stacked(Index{1} << 40)), CountOverflow) << "runs";
}

}  // namespace
}  // namespace redblue
