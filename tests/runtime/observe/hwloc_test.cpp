// Tests the caches of described machines, and the words of fast memory in a part of a cache. The
// expected figures come from the descriptions. For this machine, the tests check only what holds on
// any machine.

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "runtime/observe/topology.hpp"

namespace redblue {
namespace {

// Four cores with two units each: an L1 for each core, an L2 for two cores, an L3 for all.
constexpr const char* kFourCores =
    "pack:1 l3:1(size=8388608) l2:2(size=1048576) l1d:2(size=32768) core:1 pu:2";

Index words(const Topology& topology, CacheLevel level, double share = 1, std::size_t workers = 1) {
  const auto found = fast_memory(topology, {level, share}, workers);
  return found ? found->words : -1;
}

TEST(Hwloc, CachesAndWhoSharesThem) {
  const Topology four = synthetic_topology(kFourCores);
  EXPECT_EQ(four.unavailable, "");
  EXPECT_FALSE(four.this_system);
  EXPECT_NE(four.source.find(std::string("synthetic: ") + kFourCores), std::string::npos)
      << four.source;
  EXPECT_FALSE(four.model) << "a description knows no processor";
  EXPECT_EQ(four.cores.size(), 4U);
  EXPECT_EQ(four.units(), 8U);
  const struct {
    CacheLevel level;
    std::size_t number;
    std::uint64_t bytes;
    std::vector<std::size_t> cores;
  } expected[] = {{CacheLevel::L1, 4, 32768, {0}},
                  {CacheLevel::L2, 2, 1048576, {0, 1}},
                  {CacheLevel::L3, 1, 8388608, {0, 1, 2, 3}}};
  for (const auto& [level, number, bytes, cores] : expected) {
    SCOPED_TRACE(to_string(level));
    EXPECT_EQ(four.caches[static_cast<std::size_t>(level)].size(), number);
    ASSERT_NE(four.cache(level), nullptr);
    EXPECT_EQ(four.cache(level)->bytes, bytes);
    EXPECT_EQ(four.cache(level)->line, 64);
    EXPECT_EQ(four.cache(level)->ways, std::nullopt) << "a description knows no ways";
    EXPECT_EQ(four.cache(level)->cores, cores);
  }
}

TEST(Hwloc, WhatIsUnknownIsNotThere) {
  const Topology bare = synthetic_topology("core:2 pu:1");
  EXPECT_EQ(bare.unavailable, "");
  for (const CacheLevel level : kCacheLevels) {
    EXPECT_EQ(bare.cache(level), nullptr);
    EXPECT_EQ(fast_memory(bare, {level, 1}), std::nullopt);
  }
  const Topology no_L3 = synthetic_topology("l2:2(size=262144) core:1 pu:1");
  EXPECT_EQ(no_L3.cache(CacheLevel::L3), nullptr);
  EXPECT_EQ(words(no_L3, CacheLevel::L2), 65536);
}

TEST(Hwloc, ABadDescriptionIsAnEmptyTopologyWithItsReason) {
  const Topology bad = synthetic_topology("nonsense");
  EXPECT_EQ(bad.unavailable, "hwloc makes nothing of 'nonsense'");
  EXPECT_TRUE(bad.cores.empty());
  EXPECT_EQ(bad.cache(CacheLevel::L1), nullptr);
  EXPECT_EQ(pin_this_thread(bad, 0), bad.unavailable);
  EXPECT_NE(topology_of_xml("none.xml").unavailable, "");
}

// An export of hwloc with unequal cores.
TEST(Hwloc, AMachineFromAFile) {
  const Topology six = topology_of_xml(REDBLUE_SOURCE_DIR "/tests/runtime/observe/six_cores.xml");
  ASSERT_EQ(six.unavailable, "");
  EXPECT_FALSE(six.this_system);
  EXPECT_TRUE(six.source.ends_with("another system's description")) << six.source;
  EXPECT_EQ(six.model, "A made-up processor of two big cores and four small ones");
  EXPECT_EQ(six.cores.size(), 6U);
  EXPECT_EQ(six.cache(CacheLevel::L1)->ways, 12);
  EXPECT_EQ(six.caches[0].back().ways, 32768 / 64) << "fully associative";
  EXPECT_EQ(six.cache(CacheLevel::L2)->bytes, 1310720U);
  EXPECT_EQ(six.cache(CacheLevel::L3)->line, std::nullopt);
  // The first two workers are on the big cores. With more workers, every worker has the smallest
  // part.
  EXPECT_EQ(words(six, CacheLevel::L1, 1, 2), 49152 / 4);
  EXPECT_EQ(words(six, CacheLevel::L1, 1, 3), 32768 / 4);
  EXPECT_EQ(words(six, CacheLevel::L2, 1, 1), 1310720 / 4);
  EXPECT_EQ(words(six, CacheLevel::L2, 1, 2), 1310720 / 4 / 2);
}

TEST(Hwloc, AShareIsRoundedDownToWords) {
  const Topology odd = synthetic_topology("l2:1(size=400) core:1 pu:1");
  EXPECT_EQ(words(odd, CacheLevel::L2), 100);
  EXPECT_EQ(words(odd, CacheLevel::L2, 0.5), 50);
  EXPECT_EQ(words(odd, CacheLevel::L2, 0.29), 29) << "in binary 0.29 * 100 is below 29";
  EXPECT_EQ(words(odd, CacheLevel::L2, 0.999), 99);
  EXPECT_EQ(words(odd, CacheLevel::L2, 0.001), 0);
  EXPECT_EQ(words(odd, CacheLevel::L2, 0.5, 3), 16) << "100 / 2 / 3";
}

TEST(Hwloc, WorkersDivideTheCachesThatTheyShare) {
  const Topology four = synthetic_topology(kFourCores);
  EXPECT_EQ(words(four, CacheLevel::L1, 1, 4), 8192) << "one each";
  EXPECT_EQ(words(four, CacheLevel::L2, 1, 1), 262144);
  EXPECT_EQ(words(four, CacheLevel::L2, 1, 2), 131072) << "the first two cores share one";
  EXPECT_EQ(words(four, CacheLevel::L2, 1, 3), 131072);
  EXPECT_EQ(words(four, CacheLevel::L3, 1, 1), 2097152);
  EXPECT_EQ(words(four, CacheLevel::L3, 0.5, 4), 2097152 / 8);
  EXPECT_EQ(words(four, CacheLevel::L1, 1, 5), 4096) << "the fifth is on the first core again";
  EXPECT_EQ(fast_memory(four, {CacheLevel::L3, 1}, 3)->sharers, 3U);
  // If the cores are unknown, all workers share the cache.
  Topology unknown = four;
  unknown.cores.clear();
  EXPECT_EQ(words(unknown, CacheLevel::L1, 1, 4), 2048);
}

TEST(Hwloc, NoThreadIsPutOnACoreThatIsNotHere) {
  EXPECT_EQ(pin_this_thread(synthetic_topology(kFourCores), 0),
            "the topology is not of this system");
}

TEST(Hwloc, ThisSystem) {
  const Topology here = read_topology();
  ASSERT_EQ(here.unavailable, "");
  EXPECT_NE(here.source, "");
  EXPECT_GE(here.units(), here.cores.size());
  for (const CacheLevel level : kCacheLevels) {
    for (const Cache& cache : here.caches[static_cast<std::size_t>(level)]) {
      EXPECT_GT(cache.bytes, 0U);
      EXPECT_NE(cache.line, 0);
      EXPECT_NE(cache.ways, 0);
    }
  }
}

std::vector<int> allowed_units() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> units;
  for (int unit = 0; unit < CPU_SETSIZE; ++unit) {
    if (CPU_ISSET(static_cast<std::size_t>(unit), &set)) {
      units.push_back(unit);
    }
  }
  return units;
}

TEST(Hwloc, AThreadIsPutOnItsCoreOrIsToldWhyNot) {
  const Topology here = read_topology();
  const std::vector<int> before = allowed_units();
  std::thread([&] {
    for (const std::size_t worker : {std::size_t{0}, here.cores.size(), here.cores.size() - 1}) {
      const std::string refusal = pin_this_thread(here, worker);
      EXPECT_EQ(refusal, here.unpinnable);
      if (refusal.empty()) {
        EXPECT_EQ(allowed_units(), here.cores[worker % here.cores.size()]);
      } else {
        EXPECT_EQ(allowed_units(), before);
      }
    }
  }).join();
  EXPECT_EQ(allowed_units(), before) << "of the calling thread alone";
}

// As under taskset. On a machine with one unit, this is no restriction.
TEST(Hwloc, AProcessWithFewerUnitsThanTheMachineIsLeftAsItIs) {
  const Topology whole = read_topology();
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(allowed_units().front()), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    const Topology here = read_topology();
    EXPECT_EQ(here.unpinnable,
              whole.units() < 2
                  ? whole.unpinnable
                  : fmt::format("this process may use 1 of {} processing units", whole.units()));
    const std::vector<int> before = allowed_units();
    EXPECT_EQ(pin_this_thread(here, 1), here.unpinnable);
    EXPECT_EQ(allowed_units(), before);
  }).join();
}

}  // namespace
}  // namespace redblue
