// The simulated caches are those of the topology; callgrind's files are read as its manual says;
// and what it says of a loop of known traffic is that traffic.

#include "runtime/callgrind.hpp"

#include <cstdlib>

#include "tests/runtime/temporary_directory.hpp"

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

// 25 MiB of 20 ways make 20480 sets; valgrind takes powers of two alone.
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

TEST(CallgrindProfile, WhatIsNoneIsRefused) {
  EXPECT_THROW(parse_callgrind(""), std::runtime_error);
  EXPECT_THROW(parse_callgrind("events: Ir\ntotals: 1\n"), std::runtime_error) << "no label";
  EXPECT_THROW(parse_callgrind("part: 1\ndesc: Trigger: Client Request: k\tp\nevents: Ir\n"
                               "totals: 1 2\n"),
               std::runtime_error);
  EXPECT_THROW(traffic({{"Ir", 3}}, 64), std::runtime_error) << "without a simulated cache";
}

// Under valgrind, where there is one.
class KnownTraffic : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!callgrind_unavailable().empty()) {
      GTEST_SKIP() << callgrind_unavailable();
    }
    const char* search = std::getenv("PATH");
    valgrind_ = find_program("valgrind", search == nullptr ? "/usr/bin" : search);
    if (!valgrind_) {
      GTEST_SKIP() << "valgrind is not installed";
    }
  }
  [[nodiscard]] std::map<std::string, LineTraffic> run(Index words, Index resident,
                                                       const Simulation& caches) const {
    const Simulated simulated =
        simulate(*valgrind_, caches,
                 {REDBLUE_KNOWN_TRAFFIC, std::to_string(words), std::to_string(resident),
                  std::to_string(caches.outer.bytes)},
                 {}, temporary_.path());
    EXPECT_EQ(simulated.program.code, 0) << simulated.complaint;
    EXPECT_EQ(simulated.complaint, "");
    EXPECT_TRUE(simulated.version.starts_with("callgrind-")) << simulated.version;
    EXPECT_TRUE(std::filesystem::is_empty(temporary_.path()));
    std::map<std::string, LineTraffic> found;
    for (const auto& [phase, events] : simulated.profile.at("known")) {
      found[phase] = traffic(events, caches.outer.line);
    }
    return found;
  }
  // Of whole lines, and with what the loop itself needs: the stack, the machine.
  static void expect_about(Index words, Index expected) {
    EXPECT_GE(words, expected - expected / 100);
    EXPECT_LE(words, expected + expected / 100 + kOwn);
  }
  static constexpr Index kOwn = 2048;

  TemporaryDirectory temporary_;
  std::optional<std::filesystem::path> valgrind_;
};

// A copy of n words, n far beyond the cache: n come in to be read, n because they are written, and
// n go out, the last of them when the cache is emptied. What stays in the cache moves once.
TEST_F(KnownTraffic, OfACopy) {
  constexpr Index kWords = 200'000;
  constexpr Index kResident = 1'000;
  const SimulatedCache small{32768, 8, 64};
  const SimulatedCache buffer{128, 2, 64};
  const SimulatedCache large{262144, 16, 64};
  for (const Simulation& caches :
       {Simulation{CacheLevel::L1, buffer, small}, Simulation{CacheLevel::L2, small, large}}) {
    SCOPED_TRACE(caches.outer.text());
    auto phases = run(kWords, kResident, caches);
    expect_about(phases.at("copy").in, 2 * kWords);
    expect_about(phases.at("again").in, 2 * kResident);
    EXPECT_LE(phases.at("idle").in, kOwn);
    const Index cached = caches.outer.bytes / 4;
    EXPECT_GE(phases.at("copy").out, kWords - cached);
    EXPECT_LE(phases.at(std::string(kLeft)).out, cached);
    Index out = 0;
    for (const auto& [phase, traffic] : phases) {
      out += traffic.out;
    }
    expect_about(out, kWords + kResident);
  }
}

TEST_F(KnownTraffic, SmallerThanTheCacheMovesOnce) {
  const Simulation caches{CacheLevel::L2, {32768, 8, 64}, {262144, 16, 64}};
  auto phases = run(20'000, 20'000, caches);
  expect_about(phases.at("copy").in, 40'000);
  expect_about(phases.at("copy").out, 0);
  expect_about(phases.at("again").in, 0);
  expect_about(phases.at(std::string(kLeft)).out, 20'000);
}

TEST_F(KnownTraffic, AProgramThatFailsKeepsItsCode) {
  const Simulated simulated =
      simulate(*valgrind_, {CacheLevel::L1, {128, 2, 64}, {32768, 8, 64}},
               {"/bin/sh", "-c", "echo why >&2; exit 4"}, {}, temporary_.path());
  EXPECT_EQ(simulated.program.code, 4);
  EXPECT_EQ(simulated.program.err, "why\n");
  EXPECT_TRUE(simulated.profile.empty());
  EXPECT_TRUE(std::filesystem::is_empty(temporary_.path()));
}

TEST_F(KnownTraffic, AComplaintOfValgrindItselfComesBack) {
  const Simulated simulated = simulate(*valgrind_, {CacheLevel::L1, {64, 1, 64}, {32768, 8, 64}},
                                       {"/bin/true"}, {}, temporary_.path());
  EXPECT_NE(simulated.program.code, 0);
  EXPECT_NE(simulated.complaint, "");
}

}  // namespace
}  // namespace redblue
