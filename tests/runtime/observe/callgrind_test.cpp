// Tests that the simulated caches match the topology, and that callgrind's files are read as its
// manual prescribes.

#include "runtime/observe/callgrind.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memsim/sanitized.hpp"
#include "runtime/system/read_text.hpp"

namespace redblue {
namespace {

Cache cache(std::uint64_t bytes, std::optional<Index> ways, std::optional<Index> line = 64) {
  return {.bytes = bytes, .line = line, .ways = ways, .cores = {}};
}

TEST(SimulatedCache, AsTheMachineHasIt) {
  EXPECT_EQ(simulated(cache(32768, 8)), (SimulatedCache{32768, 8, 64}));
  EXPECT_EQ(simulated(cache(49152, 12)), (SimulatedCache{49152, 12, 64}));
  EXPECT_EQ(simulated(cache(1310720, 10)), (SimulatedCache{1310720, 10, 64}));
  EXPECT_EQ(simulated(cache(65536, 4, 128)), (SimulatedCache{65536, 4, 128}));
  EXPECT_EQ(simulated(cache(4096, 64)), (SimulatedCache{4096, 64, 64})) << "fully associative";
  EXPECT_EQ(simulated(cache(32768, 8)).text(), "32768,8,64");
}

TEST(SimulatedCache, WhatIsUnknownIsUsual) {
  EXPECT_EQ(simulated(cache(262144, std::nullopt, std::nullopt)), (SimulatedCache{262144, 8, 64}));
}

// 25 MiB with 20 ways have 20480 sets, but valgrind requires a power of two.
TEST(SimulatedCache, OtherWaysForAPowerOfTwoOfSets) {
  EXPECT_EQ(simulated(cache(26214400, 20)), (SimulatedCache{26214400, 25, 64}));
  EXPECT_EQ(simulated(cache(3 * 32768, 16)), (SimulatedCache{3 * 32768, 24, 64}));
  for (const std::uint64_t lines : {2U, 3U, 7U, 100U, 500U, 513U}) {
    const SimulatedCache made = simulated(cache(lines * 64, 8));
    EXPECT_EQ(made.bytes, static_cast<Index>(lines * 64));
    const Index sets = made.bytes / made.ways / made.line;
    EXPECT_EQ(sets * made.ways * made.line, made.bytes);
    EXPECT_EQ(sets & (sets - 1), 0) << sets;
  }
}

TEST(Simulation, OfEachLevel) {
  Topology machine;
  machine.caches = {std::vector<Cache>{cache(32768, 8)}, {cache(524288, 8)}, {}};
  const auto L1 = simulation(machine, CacheLevel::L1);
  ASSERT_TRUE(L1);
  EXPECT_EQ(L1->outer, (SimulatedCache{32768, 8, 64}));
  EXPECT_EQ(L1->inner, (SimulatedCache{128, 2, 64})) << "the smallest there is";
  const auto L2 = simulation(machine, CacheLevel::L2);
  ASSERT_TRUE(L2);
  EXPECT_EQ(L2->outer, (SimulatedCache{524288, 8, 64}));
  EXPECT_EQ(L2->inner, (SimulatedCache{32768, 8, 64}));
  EXPECT_EQ(simulation(machine, CacheLevel::L3), std::nullopt);
  EXPECT_EQ(L2->inner_level, std::nullopt) << "nobody looks at its inner cache";
}

TEST(Simulation, OfTwoLevels) {
  Topology machine;
  machine.caches = {std::vector<Cache>{cache(32768, 8)}, {cache(524288, 8)}, {cache(4194304, 16)}};
  const auto both = simulation(machine, CacheLevel::L2, CacheLevel::L3);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->level, CacheLevel::L3);
  EXPECT_EQ(both->outer, (SimulatedCache{4194304, 16, 64}));
  EXPECT_EQ(both->inner, (SimulatedCache{524288, 8, 64}));
  EXPECT_EQ(both->inner_level, CacheLevel::L2);
  machine.caches.front().clear();
  EXPECT_EQ(simulation(machine, CacheLevel::L1, CacheLevel::L2), std::nullopt);
}

constexpr const char* kDumps =
    "# callgrind format\n"
    "version: 1\n"
    "creator: callgrind-3.19.0\n"
    "part: 1\n\n"
    "desc: Trigger: Client Request: some/kernel\tphase1/S\n"
    "events: Ir Dr Dw DLmr DLmw ILdmr DLdmr DLdmw\n"
    "summary: 999 99\n\n"
    "fn=(1) main\n"
    "0 100 20 10 5 4 1\n\n"
    "totals: 100 20 10 5 4 1\n\n"
    "part: 2\n\n"
    "desc: Trigger: Client Request: some/kernel\t\n"
    "events: Ir Dr Dw DLmr DLmw ILdmr DLdmr DLdmw\n"
    "totals: 7 0 0 0 0 0 0 2\n\n"
    "part: 3\n\n"
    "desc: Trigger: Client Request: some/kernel\tphase1/S\n"
    "events: Ir Dr Dw DLmr DLmw ILdmr DLdmr DLdmw\n"
    "totals: 1 0 0 10 20 0 3 4\n\n"
    "part: 4\n\n"
    "desc: Trigger: Program termination\n"
    "events: Ir Dr Dw DLmr DLmw ILdmr DLdmr DLdmw\n"
    "totals: 55\n";

TEST(CallgrindProfile, TotalsByKernelAndPhase) {
  const CallgrindProfile profile = parse_callgrind(kDumps);
  ASSERT_EQ(profile.size(), 1U) << "the end of the program is no phase";
  const auto& phases = profile.at("some/kernel");
  ASSERT_EQ(phases.size(), 2U);
  const CallgrindEvents& S = phases.at("phase1/S");
  EXPECT_EQ(S.at("Ir"), 101) << "entered twice";
  EXPECT_EQ(S.at("DLmr"), 15);
  EXPECT_EQ(S.at("DLdmr"), 3) << "zeros at the end are left out";
  EXPECT_EQ(phases.at("").at("DLdmw"), 2);
  const LineTraffic words = traffic(S, 64);
  EXPECT_EQ(words.in, (15 + 24) * 16);
  EXPECT_EQ(words.out, (1 + 3 + 4) * 16);
}

TEST(CallgrindProfile, LinesIntoTheInnerCacheAreThoseOfReadsAndWrites) {
  EXPECT_EQ(inner_traffic({{"D1mr", 7}, {"D1mw", 5}, {"I1mr", 100}, {"DLmr", 1}}, 64), 12 * 16);
  EXPECT_THROW(inner_traffic({{"D1mr", 7}}, 64), std::runtime_error);
}

TEST(CallgrindProfile, WhatIsNoneIsRefused) {
  EXPECT_THROW(parse_callgrind(""), std::runtime_error);
  EXPECT_THROW(parse_callgrind("events: Ir\ntotals: 1\n"), std::runtime_error) << "no label";
  EXPECT_THROW(parse_callgrind("part: 1\ndesc: Trigger: Client Request: k\tp\nevents: Ir\n"
                               "totals: 1 2\n"),
               std::runtime_error);
  for (const char* const count :
       {"one", "-1", "9223372036854775807", "99999999999999999999", "1 x"}) {
    EXPECT_THROW(parse_callgrind("part: 1\ndesc: Trigger: Client Request: k\tp\nevents: Ir Dr\n"
                                 "totals: " +
                                 std::string(count) + "\n"),
                 std::runtime_error)
        << count;
  }
  EXPECT_THROW(traffic({{"Ir", 3}}, 64), std::runtime_error) << "without a simulated cache";
}

TEST(Callgrind, IsThereOrTheBuildOrTheProcessorIsToBlame) {
  if (kSanitized) {
    EXPECT_EQ(callgrind_unavailable(), "valgrind cannot run a binary with a sanitizer");
  } else if (!valgrind_version()) {
    EXPECT_EQ(callgrind_unavailable(), "built without valgrind");
  } else if (!callgrind_unavailable().empty()) {
    const std::string flags = read_text("/proc/cpuinfo");
    EXPECT_EQ(flags.find(" rdtscp"), std::string::npos);
    EXPECT_THAT(callgrind_unavailable(), testing::HasSubstr("hides RDTSCP"));
  }
}

}  // namespace
}  // namespace redblue
