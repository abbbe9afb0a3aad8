// Dead pairs under masks that are looked up as bits, and under masks of few ranges.

#include "kernels/parts/live_pairs.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/mask_bits.hpp"
#include "memsim/machine.hpp"
#include "tests/support/print.hpp"

namespace redblue {
namespace {

constexpr Index kQueries = 101, kKeys = 150;

// Each pair is live with probability 1/2.
Mask random_pattern(std::uint32_t seed) {
  std::mt19937 random(seed);
  BlockPattern pattern{.rows = kQueries, .cols = kKeys};
  for (Index i = 0; i < kQueries; ++i) {
    for (Index j = 0; j < kKeys; ++j) {
      if (random() % 2 == 0) {
        pattern.columns.push_back(j);
      }
    }
    pattern.offsets.push_back(pattern.stored());
  }
  return Mask::pattern(pattern);
}

// By the ranges of the mask, not by its bits.
bool lives(const Mask& mask, Index i, Index j) {
  bool met = false;
  mask.each_range(i, {j, j + 1}, [&](Range) { met = true; });
  return met;
}

// In a tile of any queries and keys, or in its transpose, each live word is as before and each dead
// word is `value`, even if it was infinite or not a number.
void expect_dead_set(const Problem& problem, Range I, Range J, float value) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Machine machine(2 * I.size() * J.size());
  Tile s = machine.initialize("s", I.size(), J.size());
  Tile s_t = machine.initialize("s^T", J.size(), I.size());
  const auto before = [&](Index i, Index j) {
    return lives(problem.mask, I.begin + i, J.begin + j)
               ? static_cast<float>(i * J.size() + j)
               : (j % 2 == 0 ? kInfinity : std::numeric_limits<float>::quiet_NaN());
  };
  for (Index i = 0; i < I.size(); ++i) {
    for (Index j = 0; j < J.size(); ++j) {
      s(i, j) = s_t(j, i) = before(i, j);
    }
  }
  const LivePairs live(problem, I, J);
  live.set_dead(s, value);
  live.set_dead(transposed(View(s_t)), value);
  for (Index i = 0; i < I.size(); ++i) {
    for (Index j = 0; j < J.size(); ++j) {
      const float after = lives(problem.mask, I.begin + i, J.begin + j) ? before(i, j) : value;
      ASSERT_EQ(s(i, j), after) << "query " << I.begin + i << ", key " << J.begin + j;
      ASSERT_EQ(s_t(j, i), after) << "query " << I.begin + i << ", key " << J.begin + j;
    }
  }
}

TEST(LivePairs, SetDeadWordsAndNoOthers) {
  const Mask masks[] = {random_pattern(1), Mask::causal(kQueries, kKeys),
                        Mask::window(kQueries, kKeys, 7, 3),
                        Mask::window(kQueries, kKeys, 30, 30) & random_pattern(2)};
  EXPECT_NE(masks[0].bits(), nullptr);
  EXPECT_EQ(masks[1].bits(), nullptr) << "one range each query";
  for (const Mask& mask : masks) {
    const Problem problem = Problem(kQueries, kKeys, 4).with_mask(mask);
    for (const Range I : {Range{0, kQueries}, Range{3, 51}, Range{16, 32}, Range{100, 101}}) {
      for (const Range J : {Range{0, kKeys}, Range{13, 109}, Range{48, 64}, Range{149, 150}}) {
        for (const float value : {0.0F, kDeadScore}) {
          expect_dead_set(problem, I, J, value);
        }
      }
    }
  }
}

// Dead words do not reach a sum of exponentials, whatever they were.
TEST(LivePairs, DeadWordsHaveNoWeight) {
  const Problem problem = Problem(kQueries, kKeys, 4).with_mask(random_pattern(3));
  const Range I{5, 37}, J{2, 90};
  Machine machine(10000);
  Tile s = machine.initialize("s", I.size(), J.size(), std::numeric_limits<float>::quiet_NaN());
  Tile zero = machine.initialize("0", I.size());
  Tile sum = machine.initialize("sum", I.size());
  for (Index i = 0; i < I.size(); ++i) {
    for (Index j = 0; j < J.size(); ++j) {
      if (lives(problem.mask, I.begin + i, J.begin + j)) {
        s(i, j) = 0;
      }
    }
  }
  LivePairs(problem, I, J).set_dead(s, kDeadScore);
  exponentiate(s, zero, s);
  add_row_sums(s, sum);
  for (Index i = 0; i < I.size(); ++i) {
    const Range query = part_of(I, {i, i + 1});
    EXPECT_EQ(sum(i, 0), static_cast<float>(problem.mask.pairs(query, J).value()));
  }
}

}  // namespace
}  // namespace redblue
