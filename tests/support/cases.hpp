#pragma once
// How many random cases a test runs, and from which seed: REDBLUE_CASES and REDBLUE_SEED say so for
// all tests, tools/nightly for many cases of a new seed.

#include <cstdint>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace redblue {

// Cases of the tests of all kernels, of which others run their share.
inline constexpr std::int64_t kUsualCases = 300;

// `usual` cases, or as many more or fewer as REDBLUE_CASES is than 300, at least one.
inline std::int64_t cases(std::int64_t usual) {
  const char* const asked = std::getenv("REDBLUE_CASES");
  const std::int64_t of_all = asked == nullptr ? kUsualCases : std::atoll(asked);
  const std::int64_t share = usual * of_all / kUsualCases;
  return share < 1 ? 1 : share;
}

// The seed of case k of a test.
inline std::uint64_t seed_of_case(std::int64_t k) {
  const char* const asked = std::getenv("REDBLUE_SEED");
  const std::uint64_t first = asked == nullptr ? 20240607 : std::strtoull(asked, nullptr, 10);
  if (k == 0) {
    return first;
  }
  // SplitMix64: no two seeds share their cases.
  std::uint64_t mixed = first * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(k);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

// For SCOPED_TRACE: what runs that case alone, as its first.
inline std::string reproduced_by(std::int64_t k) {
  return "reproduce by REDBLUE_CASES=1 REDBLUE_SEED=" + std::to_string(seed_of_case(k)) +
         " --gtest_filter=" +
         testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() + "." +
         testing::UnitTest::GetInstance()->current_test_info()->name();
}

}  // namespace redblue
