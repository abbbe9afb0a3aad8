// Live pairs are structural: the pairs, keys and S = A1 X of stored entries match a triple loop.

#include "kernels/sparsity.hpp"

#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random_patterns.hpp"

namespace redblue {
namespace {

std::set<Index> set_of(std::span<const Index> columns) {
  return {columns.begin(), columns.end()};
}

// Sums over keys are right for any number of keys and any size of numbers.
TEST(Sparsity, NumbersOfKeysAreSummedUp) {
  std::mt19937_64 random(5);
  for (const Index keys : {1, 63, 64, 65, 300}) {
    for (const Index most : {0, 1, 16, 1000}) {
      std::vector<Index> numbers;
      for (Index key = 0; key < keys; ++key) {
        numbers.push_back(std::uniform_int_distribution<Index>(0, most)(random));
      }
      const KeyNumbers sums(numbers);
      for (const double density : {0.0, 0.02, 0.5, 1.0}) {
        KeyBits bits((static_cast<std::size_t>(keys) + 63) / 64);
        Index size = 0, sum = 0;
        for (std::size_t key = 0; key < numbers.size(); ++key) {
          if (std::bernoulli_distribution(density)(random)) {
            bits[key / 64] |= std::uint64_t{1} << (key % 64);
            ++size;
            sum += numbers[key];
          }
        }
        EXPECT_EQ(size_of(bits), size);
        EXPECT_EQ(sums.over(bits, size), sum) << keys << " keys, numbers up to " << most;
      }
    }
  }
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_EQ(bits_in(std::uint64_t{1} << bit), 1);
    EXPECT_EQ(bits_in(~std::uint64_t{0} >> bit), 64 - bit);
  }
}

TEST(Sparsity, LivePairsAreThoseOfStoredEntries) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 60; ++trial) {
    const auto size = [&](Index most) {
      return std::uniform_int_distribution<Index>(1, most)(random);
    };
    const Index n = size(20), m = size(150), d = size(9);
    const double density = std::uniform_real_distribution<>(0, 0.6)(random);
    const Sparsity sparsity(random_pattern(random, n, d, density),
                            random_pattern(random, d, d, density),
                            random_pattern(random, m, d, density));
    Index pairs = 0;
    std::set<Index> all;
    for (Index i = 0; i < n; ++i) {
      std::set<Index> in_S, met;
      for (const Index k : sparsity.A1().row(i)) {
        in_S.merge(set_of(sparsity.X().row(k)));
      }
      for (Index j = 0; j < m; ++j) {
        for (const Index l : sparsity.A2().row(j)) {
          if (in_S.contains(l)) {
            met.insert(j);
          }
        }
      }
      EXPECT_EQ(set_of(sparsity.S().row(i)), in_S);
      std::set<Index> found;
      each_key(sparsity.keys_met({i, i + 1}), [&](Index key) { found.insert(key); });
      EXPECT_EQ(found, met);
      EXPECT_EQ(size_of(sparsity.keys_met({i, i + 1})), std::ssize(met));
      pairs += std::ssize(met);
      all.merge(met);
    }
    EXPECT_EQ(sparsity.pairs(), pairs);
    EXPECT_EQ(size_of(sparsity.keys_met({0, n})), std::ssize(all));
    if (const Mask mask = sparsity.mask(); pairs > 0) {
      EXPECT_EQ(mask.pairs({0, n}, {0, m}), pairs);
    }
  }
}

}  // namespace
}  // namespace redblue
