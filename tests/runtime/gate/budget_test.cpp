// Tests budgets: a metric passes at its limit and fails one word above it, for any tolerances.
// Tests one-sided tolerances, too.

#include "runtime/gate/budget.hpp"

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/gate/comparison.hpp"
#include "tests/support/phase_counts.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

// 1,350 words, of them 1,100 in phase a.
RecordedPoint limited(const std::string& budget, double most) {
  return {.point = {"k", {}},
          .least_M = 7,
          .counts = run_counts({phase_counts("a", 1000, 100, 90), phase_counts("b", 200, 50, 80)}),
          .at_most = {parse_budget(budget, most)},
          .bound = 900};
}

TEST(Budgets, HoldToTheWord) {
  struct Case {
    const char* budget;
    double most;
    std::string said;
  };
  const Case cases[] = {
      {"words", 1350, "words 1,350, at most 1,349"},
      {"reads", 1200, "reads 1,200, at most 1,199"},
      {"writes", 150, "writes 150, at most 149"},
      {"peak", 90, "peak 90, at most 89"},
      {"least_M", 7, "least M is 7, at most 6"},
      {"a:words", 1100, "a words 1,100, at most 1,099"},
      {"b:peak", 80, "b peak 80, at most 79"},
  };
  for (const Case& its : cases) {
    SCOPED_TRACE(its.budget);
    EXPECT_TRUE(over_budget(limited(its.budget, its.most)).empty());
    const std::vector<Difference> over = over_budget(limited(its.budget, its.most - 1));
    ASSERT_EQ(over.size(), 1U);
    EXPECT_EQ(to_words(over.front()), its.said);
    EXPECT_EQ(over.front().after, static_cast<Index>(its.most));
  }
  EXPECT_TRUE(over_budget(limited("over_bound", 1.5)).empty());
  EXPECT_EQ(to_words(over_budget(limited("over_bound", 1.499)).at(0)),
            "words 1,350, at most 1,349: 1.499 times the lower bound 900");
}

// Rounding puts this product below its exact value: 1.15 * 100 is 114.99999999999999.
TEST(Budgets, OverABoundHoldWhateverIsRounded) {
  RecordedPoint point = limited("over_bound", 1.15);
  point.bound = 100;
  for (const auto& [reads, holds] : {std::pair<Index, bool>(115, true), {116, false}}) {
    point.counts.total.io = {.reads = reads, .writes = 0};
    EXPECT_EQ(over_budget(point).empty(), holds) << reads;
  }
}

// A point without the number that a budget limits does not pass.
TEST(Budgets, HoldWhatCannotBeCounted) {
  EXPECT_EQ(to_words(over_budget(limited("c:reads", 9)).at(0)),
            "no phase is called c, and at_most is of it");
  RecordedPoint point = limited("words", 9000);
  point.fits = false;
  EXPECT_EQ(to_words(over_budget(point).at(0)), "it does not fit in M, and at_most has words");
  for (const auto& [name, most] :
       {std::pair("least_M", 9000.0), {"over_bound", 1e6}, {"a:reads", 9e6}}) {
    point = limited(name, most);
    point.fits = false;
    ASSERT_EQ(over_budget(point).size(), 1U) << name;
    EXPECT_EQ(advice(over_budget(point).front()), "") << "no number is over";
  }
  point = limited("least_M", 9000);
  point.least_M.reset();
  EXPECT_EQ(over_budget(point).size(), 1U);
  point = limited("over_bound", 1e6);
  point.bound.reset();
  EXPECT_EQ(to_words(over_budget(point).at(0)),
            "its lower bound is not known, and at_most is over it");
  EXPECT_EQ(advice(over_budget(limited("words", 1)).at(0)),
            ": let it move fewer, or raise at_most in the suite, and record it");
}

// Returns the differences between two recordings of one point.
std::vector<Difference> between(const RecordedPoint& before, const RecordedPoint& now,
                                const std::vector<Tolerance>& tolerances) {
  return compare({.how = How::run, .points = {before}}, {.how = How::run, .points = {now}},
                 tolerances)
      .points.front()
      .differences;
}

// If a budget is lost or raised, the words are compared with the old budget, and the change itself
// is reported.
TEST(Budgets, AreNotLostBetweenRecordings) {
  for (const char* name : {"words", "a:reads", "over_bound", "least_M"}) {
    SCOPED_TRACE(name);
    const double most = name == std::string("over_bound") ? 1.5 : 2000;
    const RecordedPoint before = limited(name, most);
    RecordedPoint now = before;
    EXPECT_TRUE(between(before, now, {}).empty());
    now = limited(name, 2 * most);
    std::vector<Difference> found = between(before, now, {parse_tolerance("reads=1000%")});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].kind, Difference::Kind::budget_raised);
    EXPECT_EQ(found[0].hidden_by, "");
    EXPECT_TRUE(between(now, before, {}).empty()) << "a smaller one is no difference";
    now.at_most.clear();
    now.bound.reset();
    found = between(before, now, {});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].kind, Difference::Kind::budget_gone);
    EXPECT_EQ(found[0].metric, before.at_most.front().metric);
    now.counts.phases[0].io.reads += 2000;
    now.counts.total.io.reads += 2000;
    now.least_M = 2001;
    found =
        between(before, now, {parse_tolerance("reads=1000%"), parse_tolerance("least_M=1000000%")});
    EXPECT_EQ(found.front().kind, Difference::Kind::over_budget);
    EXPECT_EQ(found.front().hidden_by, "");
  }
  EXPECT_EQ(to_words(between(limited("a:reads", 2000), limited("a:reads", 3000), {}).at(0)),
            "a:reads: the budget is raised, at most 2,000 -> 3,000");
  EXPECT_EQ(to_words(between(limited("over_bound", 1.5), limited("words", 2000), {}).at(0)),
            "over_bound: the budget is gone, at most 1.5");
}

TEST(Budgets, AreHiddenByNoTolerance) {
  const RecordedPoint now = limited("reads", 1199);
  RecordedPoint before = now;
  EXPECT_EQ(between(before, now, {parse_tolerance("reads=1000%")}).size(), 1U);
  before.counts.phases[0].io.reads -= 100;
  before.counts.total.io.reads -= 100;
  for (const char* tolerance : {"reads=1000%", "a:reads=100"}) {
    const std::vector<Difference> found = between(before, now, {parse_tolerance(tolerance)});
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found.front().kind, Difference::Kind::over_budget);
    EXPECT_EQ(found.front().hidden_by, "");
    EXPECT_NE(found.back().hidden_by, "");
  }
}

TEST(Budgets, AreNumbersThatLimit) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [name, most] : {std::pair<std::string, double>("moves", 1),
                                   {"", 1},
                                   {":reads", 1},
                                   {"a:least_M", 1},
                                   {"a:over_bound", 2},
                                   {"reads", -1},
                                   {"reads", 0.5},
                                   {"reads", nan},
                                   {"reads", 9007199254740994},
                                   {"reads", 1e308},
                                   {"over_bound", nan},
                                   {"over_bound", 0.99},
                                   {"over_bound", 1e308}}) {
    EXPECT_THROW(parse_budget(name, most), std::invalid_argument) << name << " " << most;
  }
  EXPECT_EQ(parse_budget("phase1/A:reads", 9e6),
            (Budget{.phase = "phase1/A", .metric = "reads", .words = 9'000'000}));
}

TEST(Tolerances, OfOneSide) {
  RecordedPoint before = limited("words", 1e6), now = before;
  const auto passes = [&](Index change, const char* tolerance) {
    now.counts.total.io.reads = before.counts.total.io.reads + change;
    return !differences(before, now, {parse_tolerance(tolerance)}).front().hidden_by.empty();
  };
  EXPECT_TRUE(passes(12, "reads=+1%"));
  EXPECT_FALSE(passes(13, "reads=+1%"));
  EXPECT_FALSE(passes(-1, "reads=+1%"));
  EXPECT_TRUE(passes(-600, "reads=-50%"));
  EXPECT_FALSE(passes(1, "reads=-100%"));
  EXPECT_TRUE(passes(-5, "reads=-5"));
  EXPECT_FALSE(passes(-6, "reads=-5"));
  for (const char* text : {"reads=+-0%", "reads=--0", "reads=+-1", "reads=++1"}) {
    EXPECT_THROW(parse_tolerance(text), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace redblue
