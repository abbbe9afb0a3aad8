// Tests tolerances and their syntax. They accept differences exactly to the word, and hidden
// differences are still reported.

#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/gate/comparison.hpp"
#include "tests/support/phase_counts.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

// A point of two phases and their total.
RecordedPoint recorded(const PhaseCounts& a, const PhaseCounts& b) {
  return {.point = {"k", {}}, .least_M = 100, .counts = run_counts({a, b})};
}

std::vector<Difference> found(const RecordedPoint& before, const RecordedPoint& now,
                              const std::vector<std::string>& tolerances) {
  std::vector<Tolerance> parsed;
  for (const std::string& tolerance : tolerances) {
    parsed.push_back(parse_tolerance(tolerance));
  }
  return differences(before, now, parsed);
}

// Returns "a reads" for each difference that fails, and "(total reads)" for each hidden one.
std::string outcome(const RecordedPoint& before, const RecordedPoint& now,
                    const std::vector<std::string>& tolerances) {
  std::string text;
  for (const Difference& each : found(before, now, tolerances)) {
    const std::string name = (each.phase.empty() ? "total" : each.phase) + " " + each.metric;
    text += (text.empty() ? "" : ", ") + (each.hidden_by.empty() ? name : "(" + name + ")");
  }
  return text;
}

bool passes(Index before, Index now, const std::string& tolerance) {
  const PhaseCounts none = phase_counts("b", 0, 0, 0);
  const auto all = found(recorded(phase_counts("a", before, 0, 0), none),
                         recorded(phase_counts("a", now, 0, 0), none), {tolerance});
  EXPECT_EQ(all.size(), 2U) << "what is let pass is still there";
  return all.at(0).hidden_by == tolerance && all.at(1).hidden_by == tolerance;
}

TEST(Tolerance, OfWordsIsExactAtItsEdge) {
  for (const Index words : {Index{1}, Index{7}, Index{64}}) {
    const std::string tolerance = fmt::format("reads={}", words);
    for (const Index sign : {Index{1}, Index{-1}}) {
      EXPECT_TRUE(passes(1000, 1000 + sign * words, tolerance));
      EXPECT_FALSE(passes(1000, 1000 + sign * (words + 1), tolerance));
    }
  }
  EXPECT_FALSE(passes(1000, 1001, "reads=0"));
}

// 29% of 100 is 29 words, not the 28.999... of floating point.
TEST(Tolerance, OfAShareIsExactAtItsEdge) {
  for (Index percent = 1; percent <= 100; ++percent) {
    for (const Index hundreds : {Index{1}, Index{3}, Index{17}, Index{123'457}}) {
      const std::string tolerance = fmt::format("reads={}%", percent);
      const Index before = 100 * hundreds, most = percent * hundreds;
      for (const Index sign : {Index{1}, Index{-1}}) {
        EXPECT_TRUE(passes(before, before + sign * most, tolerance)) << tolerance << before;
        if (most < before || sign > 0) {
          EXPECT_FALSE(passes(before, before + sign * (most + 1), tolerance)) << before;
        }
      }
    }
  }
  for (Index part = 1; part < 1000; ++part) {
    const std::string tolerance = fmt::format("reads=0.{:03}%", part);
    EXPECT_TRUE(passes(700'000, 700'000 + 7 * part, tolerance)) << tolerance;
    EXPECT_FALSE(passes(700'000, 700'001 + 7 * part, tolerance)) << tolerance;
  }
  EXPECT_FALSE(passes(99, 100, "reads=1%")) << "less than a word is none";
  EXPECT_TRUE(passes(199, 200, "reads=1%"));
  EXPECT_FALSE(passes(1000, 1001, "reads=0%"));
  EXPECT_FALSE(passes(1'000'000'000'000, 1'000'000'000'001, "reads=0%"));
}

TEST(Tolerance, IsOfItsMetricAlone) {
  const RecordedPoint before =
      recorded(phase_counts("a", 100, 100, 100), phase_counts("b", 10, 10, 10));
  RecordedPoint now = recorded(phase_counts("a", 101, 101, 101), phase_counts("b", 10, 10, 10));
  now.least_M = 101;
  EXPECT_EQ(outcome(before, now, {"reads=5"}),
            "a writes, a peak, total writes, total peak, total least_M, (a reads), (total reads)");
  EXPECT_EQ(outcome(before, now, {"writes=5"}),
            "a reads, a peak, total reads, total peak, total least_M, (a writes), (total writes)");
  EXPECT_EQ(outcome(before, now, {"peak=5"}),
            "a reads, a writes, total reads, total writes, total least_M, (a peak), (total peak)");
  EXPECT_EQ(outcome(before, now, {"least_M=1%"}),
            "a reads, a writes, a peak, total reads, total writes, total peak, (total least_M)");
  EXPECT_EQ(outcome(before, now, {"reads=1", "writes=1", "peak=1", "least_M=1"}),
            "(a reads), (a writes), (a peak), (total reads), (total writes), (total peak), "
            "(total least_M)");
}

// A tolerance for a phase also covers the change of the total that this phase causes, but no word
// from elsewhere.
TEST(Tolerance, OfAPhaseIsOfItAndOfWhatItAddsToTheTotal) {
  const RecordedPoint before =
      recorded(phase_counts("a", 100, 100, 100), phase_counts("b", 50, 50, 50));
  const RecordedPoint a = recorded(phase_counts("a", 103, 100, 100), phase_counts("b", 50, 50, 50));
  EXPECT_EQ(outcome(before, a, {"a:reads=3"}), "(a reads), (total reads)");
  EXPECT_EQ(outcome(before, a, {"a:reads=2"}), "a reads, total reads");
  EXPECT_EQ(outcome(before, a, {"b:reads=3"}), "a reads, total reads");
  EXPECT_EQ(outcome(before, a, {"a:writes=3"}), "a reads, total reads");

  const RecordedPoint both =
      recorded(phase_counts("a", 103, 100, 100), phase_counts("b", 51, 50, 50));
  EXPECT_EQ(outcome(before, both, {"a:reads=3"}), "b reads, total reads, (a reads)");
  EXPECT_EQ(outcome(before, both, {"a:reads=3", "b:reads=1"}),
            "(a reads), (b reads), (total reads)");
  EXPECT_EQ(found(before, both, {"a:reads=3", "b:reads=1"}).back().hidden_by,
            "a:reads=3,b:reads=1");

  RecordedPoint total_too = a;
  ++total_too.counts.total.io.reads;
  EXPECT_EQ(outcome(before, total_too, {"a:reads=3"}), "total reads, (a reads)");
}

TEST(Tolerance, OfAPhasesPeakIsOfTheTotalsWhereItIsThatPhases) {
  const RecordedPoint before = recorded(phase_counts("a", 1, 1, 100), phase_counts("b", 1, 1, 90));
  EXPECT_EQ(outcome(before, recorded(phase_counts("a", 1, 1, 104), phase_counts("b", 1, 1, 90)),
                    {"a:peak=4"}),
            "(a peak), (total peak)");
  EXPECT_EQ(outcome(before, recorded(phase_counts("a", 1, 1, 96), phase_counts("b", 1, 1, 90)),
                    {"a:peak=4"}),
            "(a peak), (total peak)");
  EXPECT_EQ(outcome(before, recorded(phase_counts("a", 1, 1, 104), phase_counts("b", 1, 1, 103)),
                    {"a:peak=4"}),
            "b peak, total peak, (a peak)");
}

TEST(Tolerance, OfTheTotal) {
  const RecordedPoint before =
      recorded(phase_counts("a", 100, 100, 100), phase_counts("b", 50, 50, 50));
  const RecordedPoint now =
      recorded(phase_counts("a", 103, 100, 100), phase_counts("b", 50, 50, 50));
  EXPECT_EQ(outcome(before, now, {"total:reads=3"}), "a reads, (total reads)");
  RecordedPoint least = before;
  least.least_M = 101;
  EXPECT_EQ(outcome(before, least, {"total:least_M=1"}), "(total least_M)");
}

// A tolerance does not hide phases that appear or disappear.
TEST(Tolerance, LetsNoPhaseComeOrGo) {
  const RecordedPoint before = recorded(phase_counts("a", 100, 0, 10), phase_counts("b", 1, 0, 10));
  const RecordedPoint renamed =
      recorded(phase_counts("a", 100, 0, 10), phase_counts("c", 1, 0, 10));
  EXPECT_EQ(found(before, renamed, {"reads=100%", "b:reads=100%", "c:reads=100%"}).size(), 2U);
  for (const Difference& each : found(before, renamed, {"reads=100%", "b:reads=1", "c:reads=1"})) {
    EXPECT_EQ(each.hidden_by, "");
  }
}

TEST(Tolerance, TheFirstThatLetsItPassIsSaid) {
  const RecordedPoint before = recorded(phase_counts("a", 100, 0, 0), phase_counts("b", 0, 0, 0));
  const RecordedPoint now = recorded(phase_counts("a", 105, 0, 0), phase_counts("b", 0, 0, 0));
  EXPECT_EQ(found(before, now, {"reads=1", "reads=5", "reads=5%"}).front().hidden_by, "reads=5");
}

TEST(ParseTolerance, TakesWordsAndShares) {
  const Tolerance words = parse_tolerance("phase1/S:peak=64");
  EXPECT_EQ(words.text, "phase1/S:peak=64");
  EXPECT_EQ(words.phase, "phase1/S");
  EXPECT_EQ(words.metric, "peak");
  EXPECT_EQ(words.percent, std::nullopt);
  EXPECT_EQ(words.words, 64);
  const Tolerance share = parse_tolerance("least_M=0.5%");
  EXPECT_EQ(share.phase, "");
  EXPECT_EQ(share.metric, "least_M");
  EXPECT_EQ(share.percent, 0.5);
  // A phase may have any name.
  EXPECT_EQ(parse_tolerance("a:b=c:reads=1").phase, "a:b=c");
}

TEST(ParseTolerance, RefusesAllElse) {
  for (const std::string text : {"",
                                 "=",
                                 "reads",
                                 "reads=",
                                 "=1",
                                 "reads=--1",
                                 "reads=+-1",
                                 "reads=1.5",
                                 "reads=1 ",
                                 "reads= 1",
                                 " reads=1",
                                 "reads=1K",
                                 "reads=%",
                                 "reads=+-1%",
                                 "reads=inf%",
                                 "reads=nan%",
                                 "reads=1%%",
                                 "reads=1e999%",
                                 "reads=0x10%",
                                 "reads=9223372036854775808",
                                 "flops=1",
                                 "READS=1",
                                 "moved=1",
                                 ":reads=1",
                                 "phase1/S=1",
                                 "phase1/S:=1",
                                 "phase1/S:",
                                 "reads:1",
                                 "reads=one",
                                 "reads=1=2"}) {
    EXPECT_TRUE(thrown<std::invalid_argument>([&] {
                  parse_tolerance(text);
                }).starts_with("'" + text + "': expected [PHASE:]METRIC=WORDS"))
        << text;
  }
}

}  // namespace
}  // namespace redblue
