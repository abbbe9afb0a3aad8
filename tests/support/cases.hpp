#pragma once
// How many random cases a test runs, and from which seed. REDBLUE_CASES and REDBLUE_SEED set both
// for all tests. tools/nightly uses them to run many cases of a new seed.

#include <cstdint>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace redblue {

// The default number of cases of a test over all kernels. Other tests run a share of this number.
inline constexpr std::int64_t kUsualCases = 300;

// Returns `usual` scaled by REDBLUE_CASES / 300, but at least one.
inline std::int64_t cases(std::int64_t usual) {
  const char* const asked = std::getenv("REDBLUE_CASES");
  const std::int64_t of_all = asked == nullptr ? kUsualCases : std::atoll(asked);
  const std::int64_t share = usual * of_all / kUsualCases;
  return share < 1 ? 1 : share;
}

// Returns the seed of case k of a test.
inline std::uint64_t seed_of_case(std::int64_t k) {
  const char* const asked = std::getenv("REDBLUE_SEED");
  const std::uint64_t first = asked == nullptr ? 20240607 : std::strtoull(asked, nullptr, 10);
  if (k == 0) {
    return first;
  }
  // SplitMix64, so that two seeds have no cases in common.
  std::uint64_t mixed = first * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(k);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

// Returns the settings that run this case alone, as the first case. For SCOPED_TRACE.
inline std::string reproduced_by(std::int64_t k) {
  return "reproduce by REDBLUE_CASES=1 REDBLUE_SEED=" + std::to_string(seed_of_case(k)) +
         " --gtest_filter=" +
         testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() + "." +
         testing::UnitTest::GetInstance()->current_test_info()->name();
}

}  // namespace redblue
