// A mask is a set of pairs. Thousands of expressions of the primitives are compared with a table of
// all pairs. Ranges are the live keys, sums count them, and `and` and `or` are set operations.
// Equal sets are equal masks, and the counts for groups of queries are sums over the groups.

#include "kernels/mask.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/print.hpp"
#include "tests/support/random_masks.hpp"

namespace redblue {
namespace {

void expect_table(const Mask& mask, const PairTable& table, RandomMasks& random) {
  const Index n = table.n;
  const Index m = table.m;
  ASSERT_EQ(mask.queries(), n);
  ASSERT_EQ(mask.keys(), m);
  Index alive = 0;
  for (Index i = 0; i < n; ++i) {
    const Ranges expected = table.keys({i, i + 1});
    EXPECT_EQ(mask.keys({i, i + 1}), expected) << "query " << i;
    alive += expected.empty() ? 0 : 1;
    Ranges found;
    mask.each_range(i, {0, m}, [&](Range range) { found.push_back(range); });
    EXPECT_EQ(found, expected) << "query " << i;
  }
  EXPECT_EQ(size_of(mask.live_queries()), alive);
  for (const Range range : mask.live_queries()) {
    for (Index i = range.begin; i < range.end; ++i) {
      EXPECT_FALSE(table.keys({i, i + 1}).empty()) << "query " << i;
    }
  }
  const MaskBits bits(n, m, mask.runs());
  const MaskBits bits_of_keys = bits.transposed();
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) {
      EXPECT_EQ((bits.from(i, j) & 1) != 0, table.at(i, j));
      EXPECT_EQ((bits_of_keys.from(j, i) & 1) != 0, table.at(i, j));
      const Index first = j / 64 * 64;
      EXPECT_EQ(bits.from(i, first) >> (j - first) & 1, bits.from(i, j) & 1) << "the same bit";
    }
  }
  for (int k = 0; k < 5; ++k) {
    const Range I = random.range(n);
    const Range J = random.range(m);
    EXPECT_EQ(mask.keys(I), table.keys(I));
    EXPECT_EQ(bits.keys(I), table.keys(I));
    EXPECT_EQ(mask.pairs(I, J), Words(table.pairs(I, J)));
    EXPECT_EQ(bits.pairs(I, J), table.pairs(I, J));
    EXPECT_EQ(bits.hull(I, J), mask.hull(I, J));
    const Ranges live = common(table.keys(I), {J});
    const Range hull = mask.hull(I, J);
    EXPECT_EQ(hull.size(), live.empty() ? 0 : live.back().end - live.front().begin);
    EXPECT_TRUE(live.empty() || hull.begin == live.front().begin);
    const Index size = random.any(1, I.size() + 1);
    Index keys = 0;
    Index longest = 0;
    for (Index begin = I.begin; begin < I.end; begin += size) {
      for (const Range range : table.keys({begin, std::min(begin + size, I.end)})) {
        keys += range.size();
        longest = std::max(longest, range.size());
      }
    }
    const Mask::Met met = mask.met_by_groups(I, size);
    EXPECT_EQ(met.keys, Words(keys)) << "groups of " << size;
    EXPECT_EQ(met.longest, longest) << "groups of " << size;
    const Index most = random.any(0, m);
    Index shared = 0;
    for (Index begin = I.begin + size; begin < I.end; begin += size) {
      Index both = 0;
      for (Index j = 0; j < m; ++j) {
        both += table.meets({begin - size, begin}, j) &&
                        table.meets({begin, std::min(begin + size, I.end)}, j)
                    ? 1
                    : 0;
      }
      shared += std::min(both, most);
    }
    EXPECT_EQ(mask.shared_by_groups(I, size, most), Words(shared))
        << "groups of " << size << ", at most " << most;
    Index first = 0;
    for (Index begin = I.begin; begin < I.end; begin += size) {
      const Ranges keys_of = table.keys({begin, std::min(begin + size, I.end)});
      first += keys_of.empty() ? 0 : std::min(keys_of.front().size(), most);
    }
    EXPECT_EQ(mask.first_by_groups(I, size, most), Words(first))
        << "groups of " << size << ", at most " << most;
    EXPECT_LE(std::ssize(mask.keys(I)), mask.most_ranges());
    const Index from = random.any(0, m);
    const Mask last = mask.from_key(from);
    EXPECT_EQ(from < m ? mask.among({from, m}) : last, last);
    EXPECT_EQ(last.keys(I), common(table.keys(I), {{from, m}}));
    EXPECT_EQ(last.pairs(I, {0, m}), mask.pairs(I, {from, m}));
  }
}

// Checks one tile after another, for grids of squares, of groups of several blocks, and of any
// groups.
void expect_tiles(const Mask& mask, const PairTable& table, RandomMasks& random) {
  const Index n = table.n;
  const Index m = table.m;
  const Index block = random.any(1, 9);
  for (const Index group : {block, 3 * block, random.any(1, n)}) {
    Mask::Tiles sum;
    for (const Range I : blocks(n, group)) {
      Index keys = 0;
      Ranges tiles;
      for (const Range J : blocks(m, block)) {
        if (table.pairs(I, J) > 0) {
          sum.queries += I.size();
          sum.keys += J.size();
          sum.words += Words(I.size()) * J.size();
          keys += J.size();
          tiles.push_back(J);
        }
      }
      sum.most = std::max(sum.most, keys);
      Ranges found;
      for (const Range J : Pieces(in_blocks(mask.keys(I), m, block), block)) {
        found.push_back(J);
      }
      EXPECT_EQ(found, tiles);
    }
    const Mask::Tiles tiles = mask.live_tiles(group, block);
    EXPECT_EQ(tiles.queries, sum.queries) << group << " x " << block;
    EXPECT_EQ(tiles.keys, sum.keys) << group << " x " << block;
    EXPECT_EQ(tiles.words, sum.words) << group << " x " << block;
    EXPECT_EQ(tiles.most, sum.most) << group << " x " << block;
  }
}

TEST(Mask, IsTheSetOfPairsOfItsExpression) {
  RandomMasks random(1);
  for (int k = 0; k < 4000 && !testing::Test::HasFailure(); ++k) {
    const Index n = random.any(1, 24);
    const Index m = random.any(1, 24);
    const auto [mask, table, kept] = random.expression(n, m);
    expect_table(mask, table, random);
    expect_tiles(mask, table, random);
    const PairTable columns(m, n, [&table = table](Index j, Index i) { return table.at(i, j); });
    expect_table(mask.transposed(), columns, random);
    expect_tiles(mask.transposed(), columns, random);
  }
}

// Rows of several words of bits, dense and sparse, whole and empty.
TEST(Mask, OfBitsIsTheSetOfItsPairs) {
  RandomMasks random(7);
  for (int k = 0; k < 30 && !testing::Test::HasFailure(); ++k) {
    const Index n = random.any(40, 80), m = random.any(120, 200), one_in = random.any(2, 9);
    const PairTable table(
        n, m, [&](Index i, Index) { return i % 11 != 3 && random.any(1, one_in) == 1; });
    BlockPattern pattern{.rows = n, .cols = m};
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < m; ++j) {
        if (table.at(i, j)) {
          pattern.columns.push_back(j);
        }
      }
      pattern.offsets.push_back(pattern.stored());
    }
    const Mask mask = Mask::pattern(pattern);
    EXPECT_NE(mask.bits(), nullptr);
    expect_table(mask, table, random);
    expect_tiles(mask, table, random);
    const PairTable columns(m, n, [&](Index j, Index i) { return table.at(i, j); });
    expect_table(mask.transposed(), columns, random);
  }
}

// After compact(), the live queries and keys have new numbers and meet as before.
TEST(Mask, CompactIsWithoutTheDead) {
  const auto members = [](const Ranges& ranges) {
    std::vector<Index> all;
    for (const Range range : ranges) {
      for (Index k = range.begin; k < range.end; ++k) {
        all.push_back(k);
      }
    }
    return all;
  };
  RandomMasks random(3);
  for (int k = 0; k < 2000 && !testing::Test::HasFailure(); ++k) {
    const Index n = random.any(1, 24);
    const Index m = random.any(1, 24);
    const TabledMask tabled = random.expression(n, m);
    const Mask& mask = tabled.mask;
    const std::vector<Index> queries = members(mask.live_queries());
    const std::vector<Index> keys = members(mask.keys({0, n}));
    const Mask compact = mask.compact();
    if (queries.empty()) {
      continue;
    }
    const PairTable live(std::ssize(queries), std::ssize(keys), [&](Index i, Index j) {
      return tabled.table.at(queries[static_cast<std::size_t>(i)],
                             keys[static_cast<std::size_t>(j)]);
    });
    if (compact.full()) {
      EXPECT_TRUE(std::ranges::all_of(live.live, [](bool pair) { return pair; }));
    } else {
      expect_table(compact, live, random);
    }
  }
}

// Some queries and some keys, each in a few ranges, keep their pairs.
TEST(Masks, ArePartsOfSomeQueriesAndKeys) {
  RandomMasks random(31);
  const auto some = [&](Index extent) {
    Ranges ranges;
    for (Index at = random.any(0, 3); at < extent; at += random.any(1, 5)) {
      ranges.push_back({at, std::min(extent, at + random.any(1, 9))});
      at = ranges.back().end;
    }
    return ranges.empty() ? Ranges{{0, extent}} : ranges;
  };
  for (int k = 0; k < 600 && !HasFailure(); ++k) {
    const TabledMask tabled = random.expression(random.any(1, 24), random.any(1, 24));
    const Ranges queries = some(tabled.table.n), keys = some(tabled.table.m);
    const auto number = [](const Ranges& ranges, Index which) {
      for (const Range range : ranges) {
        if (which < range.size()) {
          return range.begin + which;
        }
        which -= range.size();
      }
      return Index{-1};
    };
    const PairTable table(size_of(queries), size_of(keys), [&](Index i, Index j) {
      return tabled.table.at(number(queries, i), number(keys, j));
    });
    const Mask part = tabled.mask.part(queries, keys);
    if (part.full()) {
      EXPECT_TRUE(std::ranges::all_of(table.live, [](bool pair) { return pair; }));
    } else {
      expect_table(part, table, random);
    }
  }
}

// a or a = a and a = a, a and b = b and a, (a^T)^T = a, and masks are equal if their sets are.
TEST(Mask, EqualSetsAreEqualMasks) {
  RandomMasks random(2);
  Index equal = 0;
  for (int k = 0; k < 4000; ++k) {
    const Index n = random.any(1, 7);
    const Index m = random.any(1, 7);
    const TabledMask a = random.expression(n, m);
    const TabledMask b = random.expression(n, m);
    EXPECT_EQ(a.mask | a.mask, a.mask);
    EXPECT_EQ(a.mask & a.mask, a.mask);
    EXPECT_EQ(a.mask & b.mask, b.mask & a.mask);
    EXPECT_EQ(a.mask | b.mask, b.mask | a.mask);
    EXPECT_EQ(a.mask.transposed().transposed(), a.mask);
    const bool same = a.table.live == b.table.live;
    equal += same ? 1 : 0;
    EXPECT_EQ(a.mask == b.mask, same);
    EXPECT_EQ(a.mask.fingerprint() == b.mask.fingerprint(), same);
  }
  EXPECT_GT(equal, 100);
}

// A mask with as many ranges as a large file has. Work on it takes time in proportion to their
// number.
TEST(Mask, OfManyRanges) {
  constexpr Index n = 3000, m = 4000, each = 40;
  RandomMasks random(4);
  BlockPattern blocks{n, m, 1, 1, {0}, {}};
  std::vector<Index> columns;
  for (Index i = 0; i < n; ++i) {
    columns.clear();
    for (Index k = 0; k < each; ++k) {
      columns.push_back(k * (m / each) + random.any(0, m / each - 1));
    }
    blocks.columns.insert(blocks.columns.end(), columns.begin(), columns.end());
    blocks.offsets.push_back(std::ssize(blocks.columns));
  }
  const Mask mask = Mask::pattern(blocks);
  EXPECT_EQ(mask.pairs({0, n}, {0, m}), Words(n * each));
  EXPECT_EQ(mask.transposed().pairs({0, m}, {0, n}), Words(n * each));
  EXPECT_EQ(mask.transposed().transposed(), mask);
  EXPECT_EQ(mask | mask, mask);
  EXPECT_EQ((mask & Mask::causal(n, m)) | (mask & Mask::window(n, m, 0, m)), mask);
  EXPECT_EQ(mask.met_by_groups({0, n}, 1).keys, Words(n * each));
  EXPECT_EQ(mask.met_by_groups({0, n}, n).keys, Words(size_of(mask.live_keys())));
  Index keys = 0, shared = 0;
  for (Index begin = 0; begin < n; begin += 7) {
    const Range group{begin, std::min(begin + 7, n)};
    keys += size_of(mask.keys(group));
    if (begin > 0) {
      shared += size_of(common(mask.keys({begin - 7, begin}), mask.keys(group)));
    }
  }
  EXPECT_EQ(mask.met_by_groups({0, n}, 7).keys, Words(keys));
  EXPECT_EQ(mask.shared_by_groups({0, n}, 7, m), Words(shared));
}

TEST(Mask, DocumentsAreBlocksOnTheDiagonal) {
  const BlockPattern boxes{12, 6, 4, 2, {0, 1, 2, 3}, {0, 1, 2}};
  EXPECT_EQ(Mask::documents({0, 4, 8, 12}, {0, 2, 4, 6}), Mask::pattern(boxes));
}

TEST(Mask, CausalIsAWindowWithoutARight) {
  EXPECT_EQ(Mask::causal(7, 9), Mask::window(7, 9, 16, 0));
  EXPECT_EQ(Mask::all(7, 9), Mask::window(7, 9, 16, 16));
  EXPECT_EQ(Mask::causal(7, 9) | Mask::prefix(7, 9, 9), Mask::all(7, 9));
}

// A mask in which all pairs are live is full() once it has a name. Any other mask is unchanged.
TEST(Mask, AllPairsAreFull) {
  EXPECT_TRUE(Mask::causal(1, 9).called("causal").full());
  EXPECT_EQ(Mask::causal(1, 9).called("causal").spec(), "causal");
  EXPECT_FALSE(Mask::causal(2, 9).called("causal").full());
}

// Counts for ten million queries take a few steps: n (n + 1) / 2 of n^2 pairs, and r (1 + ... + T)
// keys for T groups of r queries.
TEST(Mask, CountsByFormula) {
  constexpr Index n = 10'000'000;
  const Mask mask = Mask::causal(n, n);
  EXPECT_EQ(mask.runs().size(), 1);
  EXPECT_EQ(mask.pairs({0, n}, {0, n}), Words(n / 2) * (n + 1));
  EXPECT_EQ(mask.met_by_groups({0, n}, 10).keys, Words(n / 10) * (n / 10 + 1) * 5);
  EXPECT_EQ(mask.met_by_groups({0, n}, n).longest, n);
  const Mask::Tiles tiles = mask.live_tiles(10, 10);
  EXPECT_EQ(tiles.keys, Words(n / 10) * (n / 10 + 1) * 5);
  EXPECT_EQ(tiles.queries, tiles.keys);
  EXPECT_EQ(tiles.words, tiles.keys * 10);
  EXPECT_EQ(tiles.most, n);
}

}  // namespace
}  // namespace redblue
