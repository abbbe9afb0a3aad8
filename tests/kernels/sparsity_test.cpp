// What is live is structural: pairs, keys and S = A1 X of stored entries, against a triple loop.

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
