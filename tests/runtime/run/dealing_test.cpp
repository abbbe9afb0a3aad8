// Tests the dealing of units to workers that take different time.

#include "runtime/run/dealing.hpp"

#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace redblue {
namespace {

using Units = Dealing::Units;

// All units that are dealt if the workers ask in this order, with the owner of each.
std::map<Index, Index> owners(Dealing& dealing, const std::vector<Index>& asking) {
  std::map<Index, Index> all;
  for (const Index worker : asking) {
    const std::optional<Units> units = dealing.next(worker);
    for (Index unit = units ? units->range.begin : 0; units && unit < units->range.end; ++unit) {
      EXPECT_TRUE(all.emplace(unit, units->owner).second) << unit << " is dealt twice";
    }
  }
  return all;
}

// Whoever asks, each unit is dealt once, and its owner is the worker with the share that holds it.
TEST(Dealing, DealsEachUnitOnceWithItsOwner) {
  for (const Index step : {1, 2, 3, 100}) {
    for (const auto& asking :
         {std::vector<Index>(20, 0), std::vector<Index>(20, 2),
          std::vector<Index>{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}}) {
      Dealing dealing({{0, 4}, {4, 4}, {4, 11}}, step);
      const std::map<Index, Index> all = owners(dealing, asking);
      ASSERT_EQ(all.size(), 11U);
      for (const auto& [unit, owner] : all) {
        EXPECT_EQ(owner, unit < 4 ? 0 : 2) << unit;
      }
      EXPECT_FALSE(dealing.next(0));
    }
  }
}

// If all workers take the same time for a unit, each does its own share, in order.
TEST(Dealing, LeavesEqualWorkersTheirShares) {
  Dealing dealing({{0, 3}, {3, 6}}, 1);
  for (Index k = 0; k < 3; ++k) {
    for (const Index worker : {0, 1}) {
      const std::optional<Units> units = dealing.next(worker);
      ASSERT_TRUE(units);
      EXPECT_EQ(units->range, (Range{3 * worker + k, 3 * worker + k + 1}));
      EXPECT_EQ(units->owner, worker);
    }
  }
}

// A worker that takes three times as long for a unit does a quarter of two equal shares. With fixed
// shares the last unit would end at 12 * 3; now it ends after 18 units of the fast worker.
TEST(Dealing, LetsAFastWorkerHelpASlowOne) {
  Dealing dealing({{0, 12}, {12, 24}}, 1);
  Index done[2] = {}, end[2] = {};
  for (Index time = 0; done[0] + done[1] < 24; ++time) {
    for (const Index worker : {0, 1}) {
      if (end[worker] <= time && dealing.next(worker)) {
        ++done[worker];
        end[worker] = time + (worker == 0 ? 1 : 3);
      }
    }
  }
  EXPECT_EQ(done[0], 18);
  EXPECT_EQ(done[1], 6);
}

// A worker without a share takes the last units of the largest share that is left.
TEST(Dealing, TakesFromTheEndOfTheLargestShare) {
  Dealing dealing({{0, 2}, {2, 9}, {9, 9}}, 2);
  const std::optional<Units> units = dealing.next(2);
  ASSERT_TRUE(units);
  EXPECT_EQ(units->range, (Range{7, 9}));
  EXPECT_EQ(units->owner, 1);
}

// Threads that ask at the same time get each unit once.
TEST(Dealing, ServesSeveralThreads) {
  constexpr Index kWorkers = 4, kUnits = 10000;
  Dealing dealing({{0, kUnits}, {kUnits, kUnits}, {kUnits, kUnits}, {kUnits, kUnits}}, 1);
  std::vector<int> times(kUnits);
  {
    std::vector<std::jthread> threads;
    for (Index worker = 0; worker < kWorkers; ++worker) {
      threads.emplace_back([&, worker] {
        while (const auto units = dealing.next(worker)) {
          ++times[static_cast<std::size_t>(units->range.begin)];
        }
      });
    }
  }
  EXPECT_EQ(times, std::vector<int>(kUnits, 1));
}

}  // namespace
}  // namespace redblue
