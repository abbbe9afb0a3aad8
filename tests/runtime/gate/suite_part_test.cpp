// Tests parts of a suite. Each point is in exactly one part. Parts of different suites are named,
// and so are missing points.

#include "runtime/gate/suite_part.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "runtime/gate/baseline.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

// A partition: sum over i of |part i| = count, and no point is in two parts. Sizes differ by at
// most one.
TEST(SuitePart, EachPointIsInExactlyOnePart) {
  for (std::size_t count = 0; count <= 30; ++count) {
    for (std::size_t of = 1; of <= 33; ++of) {
      std::vector<int> times(count);
      std::vector<std::size_t> sizes;
      for (std::size_t number = 1; number <= of; ++number) {
        const std::vector<std::size_t> points = points_of({number, of}, count);
        sizes.push_back(points.size());
        for (const std::size_t k : points) {
          ASSERT_LT(k, count);
          EXPECT_EQ(k % of + 1, number);
          ++times[k];
        }
      }
      EXPECT_EQ(std::ranges::count(times, 1), std::ssize(times)) << count << " in " << of;
      const auto [least, most] = std::ranges::minmax(sizes);
      EXPECT_LE(most - least, 1U);
    }
  }
}

TEST(SuitePart, IsTakenAsItIsWritten) {
  for (const std::string text : {"1/1", "1/2", "2/2", "7/100000"}) {
    const auto part = parse_part(text);
    ASSERT_TRUE(part) << text;
    EXPECT_EQ(to_string(*part), text);
  }
  for (const std::string text :
       {"", "/", "1", "1/", "/1", "0/1", "0/0", "2/1", "-1/2", "1/-2", "+1/2", " 1/2", "1/2 ",
        "1/2/3", "1.0/2", "a/b", "1:2", "1/99999999999999999999", "0x1/2"}) {
    EXPECT_FALSE(parse_part(text)) << text;
  }
}

SuiteOrigin origin() {
  return {.how = "run",
          .suite = "{}",
          .program = "f00d",
          .points = {"a n=1", "b n=1", "c n=1", "d n=1", "e n=1"},
          .files = {{"b n=1", {{"mask", "1234"}}}}};
}

TEST(SuitePart, OriginsComeBackAndTheirDifferencesAreNamed) {
  for (const std::string suite : {"{}", ""}) {
    Recording recording{.how = How::run, .points = {}, .part = RecordedPart{{2, 7}, origin()}};
    recording.part->origin.suite = suite;
    EXPECT_EQ(to_json(recording).find("at_most"), std::string::npos);
    EXPECT_EQ(parse_recording(to_json(recording), "part").part, recording.part);
    recording.part->origin.at_most["b n=1"] = "words=5";
    EXPECT_EQ(parse_recording(to_json(recording), "part").part, recording.part);
  }
  EXPECT_EQ(differing(origin(), origin()), "");
  const auto after = [](const auto& change) {
    SuiteOrigin other = origin();
    change(other);
    EXPECT_EQ(differing(origin(), other), differing(other, origin()));
    return differing(origin(), other);
  };
  EXPECT_EQ(after([](SuiteOrigin& other) { other.how = "count"; }), "suite");
  EXPECT_EQ(after([](SuiteOrigin& other) { other.suite = "{ }"; }), "suite");
  EXPECT_EQ(after([](SuiteOrigin& other) { other.points.pop_back(); }), "suite");
  EXPECT_EQ(after([](SuiteOrigin& other) { other.program = "cafe"; }), "build of redblue");
  EXPECT_EQ(after([](SuiteOrigin& other) { other.at_most["b n=1"] = "words=5"; }), "at_most");
  EXPECT_EQ(after([](SuiteOrigin& other) { other.files["b n=1"]["mask"] = "0"; }),
            "file that a point names");
}

PartThere part(const std::string& name, const SuitePart& part) {
  PartThere there{.name = name, .part = part, .origin = origin(), .points = {}};
  for (const std::size_t k : points_of(part, there.origin.points.size())) {
    there.points.push_back(there.origin.points[k]);
  }
  return there;
}

TEST(SuitePart, TheHoldersOfEachPointAreFound) {
  using Holders = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(holders_of({part("x", {2, 2}), part("y", {1, 2})}), (Holders{{1}, {0}, {1}, {0}, {1}}));
  EXPECT_EQ(holders_of({part("x", {1, 1}), part("y", {1, 3})}),
            (Holders{{0, 1}, {0}, {0}, {0, 1}, {0}}));
  std::vector<PartThere> strange = {part("x", {1, 2}), part("y", {2, 2})};
  strange[1].origin.program = "cafe";
  EXPECT_EQ(thrown<InputError>([&] { holders_of(strange); }),
            "x and y are no parts of one whole: the build of redblue of one is another");
  strange = {part("x", {1, 2})};
  strange[0].points.emplace_back("f n=1");
  EXPECT_EQ(thrown<InputError>([&] { holders_of(strange); }),
            "x has a point that is not of its suite: f n=1");
}

TEST(SuitePart, MissingPointsAreNamed) {
  const auto said = [](const std::vector<PartThere>& parts) {
    const MissingPoints missing = missing_points(parts, holders_of(parts));
    EXPECT_EQ(missing.names.empty(), missing.text.empty());
    return missing.text;
  };
  EXPECT_EQ(said({part("x", {1, 2}), part("y", {2, 2})}), "");
  EXPECT_EQ(said({part("x", {1, 2})}), "2 of 5 points are missing, of part 2/2: b n=1; d n=1");
  EXPECT_EQ(said({part("x", {1, 4}), part("y", {3, 4})}),
            "2 of 5 points are missing, of part 2/4, 4/4: b n=1; d n=1");
  EXPECT_EQ(said({part("x", {1, 2}), part("y", {2, 3})}), "1 of 5 points is missing: d n=1")
      << "which part it is of depends on the division";
  PartThere large = part("x", {1, 1});
  for (int k = 0; k < 20; ++k) {
    large.origin.points.push_back("p n=" + std::to_string(k));
  }
  const std::string text = said({large});
  EXPECT_NE(text.find("20 of 25 points are missing: p n=0; p n=1; "), std::string::npos) << text;
  EXPECT_NE(text.find("; p n=9; and 10 more"), std::string::npos) << text;
}

}  // namespace
}  // namespace redblue
