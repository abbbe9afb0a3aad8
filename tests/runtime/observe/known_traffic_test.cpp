// Tests that callgrind reports the traffic of a loop with known traffic.

#include "runtime/observe/callgrind.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

constexpr const char* kValgrind = "/usr/bin/valgrind";

class KnownTraffic : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!callgrind_unavailable().empty()) {
      GTEST_SKIP() << callgrind_unavailable();
    }
  }
  [[nodiscard]] std::map<std::string, LineTraffic> run(Index words, Index resident,
                                                       const Simulation& caches) const {
    const Simulated simulated =
        simulate(kValgrind, caches,
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
  // Allows for whole lines, and for the words that the loop itself needs: the stack, the machine.
  static void expect_about(Index words, Index expected) {
    EXPECT_GE(words, expected - expected / 100);
    EXPECT_LE(words, expected + expected / 100 + kOwn);
  }
  static constexpr Index kOwn = 2048;

  TemporaryDirectory temporary_;
};

// A copy of n words, where n is far beyond the cache. n words enter because they are read, and n
// because they are written. n words leave, the last of them when the cache is emptied. Words that
// stay in the cache move once.
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
      simulate(kValgrind, {CacheLevel::L1, {128, 2, 64}, {32768, 8, 64}},
               {"/bin/sh", "-c", "echo why >&2; exit 4"}, {}, temporary_.path());
  EXPECT_EQ(simulated.program.code, 4);
  EXPECT_EQ(simulated.program.err, "why\n");
  EXPECT_TRUE(simulated.profile.empty());
  EXPECT_TRUE(std::filesystem::is_empty(temporary_.path()));
}

TEST_F(KnownTraffic, AComplaintOfValgrindItselfComesBack) {
  const Simulated simulated = simulate(kValgrind, {CacheLevel::L1, {64, 1, 64}, {32768, 8, 64}},
                                       {"/bin/true"}, {}, temporary_.path());
  EXPECT_NE(simulated.program.code, 0);
  EXPECT_NE(simulated.complaint, "");
}

}  // namespace
}  // namespace redblue
