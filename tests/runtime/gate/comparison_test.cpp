// Tests every way in which a point may differ from its baseline, by one word for counts of words,
// and the effect of tolerances.

#include "runtime/gate/comparison.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/phase_counts.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

using Kind = Difference::Kind;

struct Metric {
  std::string name;
  Index& (*of)(PhaseCounts& counts);
};
const std::vector<Metric> kMetrics = {
    {"reads", [](PhaseCounts& counts) -> Index& { return counts.io.reads; }},
    {"writes", [](PhaseCounts& counts) -> Index& { return counts.io.writes; }},
    {"peak", [](PhaseCounts& counts) -> Index& { return counts.peak; }}};

Point point(const std::string& kernel, Index n = 4) {
  Point point{kernel, {}};
  point.arguments.set("n", n);
  point.arguments.set("M", Index{100});
  return point;
}

RecordedPoint recorded(const std::vector<PhaseCounts>& phases, const std::string& kernel = "k") {
  return {.point = point(kernel), .least_M = 7, .counts = run_counts(phases)};
}

RecordedPoint baseline() {
  return recorded({phase_counts("a", 1000, 100, 90), phase_counts("b", 200, 300, 80),
                   phase_counts("c/d", 0, 50, 70)});
}

RecordedPoint without_fit() {
  return {.point = point("k"), .least_M = 700, .fits = false, .counts = {}};
}

std::vector<Difference> found(const RecordedPoint& now,
                              const std::vector<std::string>& tolerances = {},
                              const RecordedPoint& before = baseline()) {
  std::vector<Tolerance> parsed;
  for (const std::string& tolerance : tolerances) {
    parsed.push_back(parse_tolerance(tolerance));
  }
  return differences(before, now, parsed);
}

// Returns texts such as "a reads 1,000 -> 1,001 words (+1, +0.1%)", each with the tolerance that
// hides it.
std::vector<std::string> said(const std::vector<Difference>& differences) {
  std::vector<std::string> texts;
  for (const Difference& difference : differences) {
    texts.push_back(to_words(difference) +
                    (difference.hidden_by.empty() ? "" : " | " + difference.hidden_by));
  }
  return texts;
}
using Said = std::vector<std::string>;

bool fails(const std::vector<Difference>& differences) {
  return Compared{.point = point("k"), .before = {}, .now = {}, .differences = differences}.fails();
}

TEST(Differences, OfTheSameThereAreNone) {
  EXPECT_EQ(said(found(baseline())), Said());
  EXPECT_EQ(said(found(without_fit(), {}, without_fit())), Said());
}

// Changes each metric of each phase of each level. The difference is found with its level, and no
// other. A tolerance for the phase also hides the change in the total of that level, and in no
// other total.
TEST(Differences, AWordOfOneLevel) {
  RecordedPoint before = baseline();
  before.counts.inner.assign(2, {before.counts.phases, before.counts.total});
  for (const Metric& metric : kMetrics) {
    for (const std::size_t level : {1U, 2U}) {
      RecordedPoint now = before;
      RunCounts::Level& changed = now.counts.inner[level - 1];
      metric.of(changed.phases[0]) += 1;
      const std::string place = "level " + std::to_string(level) + ", ";
      const std::vector<Difference> phase = found(now, {}, before);
      ASSERT_EQ(phase.size(), 1U);
      EXPECT_EQ(phase[0].level, level);
      EXPECT_TRUE(to_words(phase[0]).starts_with(place + "a " + metric.name)) << said(phase)[0];
      EXPECT_TRUE(fails(phase));
      metric.of(changed.total) += 1;
      EXPECT_EQ(found(now, {}, before).size(), 2U);
      EXPECT_FALSE(fails(found(now, {"a:" + metric.name + "=1"}, before)));
      metric.of(now.counts.inner[2 - level].total) += 1;
      EXPECT_TRUE(fails(found(now, {"a:" + metric.name + "=1"}, before)));
    }
  }
  RecordedPoint fewer = before;
  fewer.counts.inner.pop_back();
  const Said gone = said(found(fewer, {}, before));
  ASSERT_FALSE(gone.empty());
  EXPECT_EQ(gone.front(), "level 2, a: the phase is gone, and its 1,100 words");
}

// Changes each metric of each phase by one word, up and down. The difference is found in its place,
// and no other.
TEST(Differences, AWordMoreOrFewerInAnyPhase) {
  for (const Metric& metric : kMetrics) {
    for (std::size_t k = 0; k < 3; ++k) {
      for (const Index change : {Index{1}, Index{-1}}) {
        RecordedPoint now = baseline();
        if (metric.of(now.counts.phases[k]) + change < 0) {
          continue;
        }
        metric.of(now.counts.phases[k]) += change;
        const std::vector<Difference> differences = found(now);
        ASSERT_EQ(differences.size(), 1U);
        EXPECT_EQ(differences[0].kind, Kind::words);
        EXPECT_EQ(differences[0].phase, now.counts.phases[k].path);
        EXPECT_EQ(differences[0].metric, metric.name);
        EXPECT_EQ(differences[0].after - differences[0].before, change);
        EXPECT_TRUE(fails(differences));
      }
    }
  }
}

TEST(Differences, AWordInTheTotalAlone) {
  for (const Metric& metric : kMetrics) {
    for (const Index change : {Index{1}, Index{-1}}) {
      RecordedPoint now = baseline();
      metric.of(now.counts.total) += change;
      const std::vector<Difference> differences = found(now);
      ASSERT_EQ(differences.size(), 1U);
      EXPECT_EQ(differences[0].phase, "");
      EXPECT_EQ(differences[0].metric, metric.name);
      EXPECT_TRUE(to_words(differences[0]).starts_with("total " + metric.name));
    }
  }
}

TEST(Differences, InTheLeastM) {
  for (const Index least : {Index{6}, Index{8}}) {
    RecordedPoint now = baseline();
    now.least_M = least;
    EXPECT_EQ(said(found(now)), Said{least == 8 ? "total least_M 7 -> 8 words (+1, +14.3%)"
                                                : "total least_M 7 -> 6 words (-1, -14.3%)"});
    RecordedPoint none = without_fit();
    none.least_M = 700 + least;
    EXPECT_EQ(found(none, {}, without_fit()).size(), 1U) << "also where the point does not fit";
  }
  // A least M that appears or disappears is also a difference.
  RecordedPoint unknown = baseline();
  unknown.least_M.reset();
  EXPECT_EQ(said(found(unknown)), Said{"its least M is no longer known"});
  EXPECT_EQ(said(found(baseline(), {}, unknown)), Said{"its least M is known now"});
}

TEST(Differences, OfPhases) {
  RecordedPoint fewer = baseline();
  fewer.counts.phases.pop_back();
  EXPECT_EQ(said(found(fewer)), Said{"c/d: the phase is gone, and its 50 words"});
  EXPECT_EQ(said(found(baseline(), {}, fewer)), Said{"c/d: the phase is new, and its 50 words"});

  RecordedPoint renamed = baseline();
  renamed.counts.phases[1].path = "B";
  EXPECT_EQ(said(found(renamed)), (Said{"b: the phase is gone, and its 500 words",
                                        "B: the phase is new, and its 500 words"}));

  RecordedPoint nothing_moved = baseline();
  nothing_moved.counts.phases.push_back(phase_counts("empty", 0, 0, 0));
  EXPECT_TRUE(fails(found(nothing_moved))) << "also a phase in which nothing moves";

  RecordedPoint other_order = baseline();
  std::swap(other_order.counts.phases[0], other_order.counts.phases[2]);
  EXPECT_EQ(said(found(other_order)), Said());
}

TEST(Differences, FromNothing) {
  RecordedPoint now = baseline();
  now.counts.phases[2].io.reads = 1;
  EXPECT_EQ(said(found(now)), Said{"c/d reads 0 -> 1 words (+1)"});
  EXPECT_EQ(said(found(now, {"reads=1000000%"})), Said{"c/d reads 0 -> 1 words (+1)"})
      << "of nothing, no share is one word";
  EXPECT_EQ(said(found(now, {"reads=1"})), Said{"c/d reads 0 -> 1 words (+1) | reads=1"});
  EXPECT_EQ(said(found(baseline(), {}, now)), Said{"c/d reads 1 -> 0 words (-1, -100%)"});
}

TEST(Differences, WhatFits) {
  EXPECT_EQ(said(found(without_fit())),
            (Said{"it no longer fits in M", "total least_M 7 -> 700 words (+693, +9,900%)"}));
  EXPECT_EQ(said(found(baseline(), {}, without_fit())),
            (Said{"it fits in M now", "total least_M 700 -> 7 words (-693, -99%)"}));
  for (const char* metric : {"reads=100%", "writes=100%", "peak=100%", "least_M=99999%"}) {
    EXPECT_TRUE(fails(found(without_fit(), {metric}))) << "which no tolerance lets pass";
  }
}

// Phases come first, by the words that they moved more or fewer. The total follows.
TEST(Differences, TheCulpritIsFirst) {
  const RecordedPoint now =
      recorded({phase_counts("a", 1001, 100, 90), phase_counts("b", 200, 250, 95),
                phase_counts("c/d", 0, 50, 70)});
  EXPECT_EQ(said(found(now)),
            (Said{"b writes 300 -> 250 words (-50, -16.7%)", "b peak 80 -> 95 words (+15, +18.8%)",
                  "a reads 1,000 -> 1,001 words (+1, +0.1%)",
                  "total reads 1,200 -> 1,201 words (+1, +0.0833%)",
                  "total writes 450 -> 400 words (-50, -11.1%)",
                  "total peak 90 -> 95 words (+5, +5.56%)"}));
  EXPECT_EQ(said(found(now, {"b:writes=50"})).front(), "b peak 80 -> 95 words (+15, +18.8%)")
      << "what is let pass is no culprit";
}

// Two counts of 2^63 - 1 words mean a damaged file, and must not overflow.
TEST(Differences, OfAsManyWordsAsThereAre) {
  RecordedPoint before = baseline(), now = baseline();
  before.counts.phases[0] = phase_counts("a", INT64_MAX, INT64_MAX, INT64_MAX);
  before.counts.total = phase_counts("", INT64_MAX, INT64_MAX, INT64_MAX);
  now.counts.phases.erase(now.counts.phases.begin());
  EXPECT_EQ(said(found(now, {}, before)).front(),
            "a: the phase is gone, and its 9,223,372,036,854,775,807 words");
  Recording one{.how = How::run, .points = {before}};
  Recording two{.how = How::run, .points = {now}};
  EXPECT_EQ(compare(one, two, {parse_tolerance("reads=1%")}).failing(), 1U);
}

TEST(ToleranceText, IsQuotedInALineOfSomeLength) {
  const std::string why =
      thrown<std::invalid_argument>([] { parse_tolerance("a\nb" + std::string(5000, 'c')); });
  EXPECT_TRUE(why.starts_with("'a\\x0ab")) << why;
  EXPECT_LT(why.size(), 400U);
}

TEST(ToShare, IsReadByPeople) {
  EXPECT_EQ(to_share(1234, 1235), "+0.081%");
  EXPECT_EQ(to_share(100, 99), "-1%");
  EXPECT_EQ(to_share(100, 0), "-100%");
  EXPECT_EQ(to_share(100, 200), "+100%");
  EXPECT_EQ(to_share(1000, 10'994), "+999%");
  EXPECT_EQ(to_share(1000, 10'995), "+1,000%");
  EXPECT_EQ(to_share(3, 1089), "+36,200%");
  EXPECT_EQ(to_share(1, 14'101), "+1,410,000%");
  EXPECT_EQ(to_share(100'000, 100'001), "+0.001%");
  EXPECT_EQ(to_share(100'001, 100'002), "+<0.001%");
  EXPECT_EQ(to_share(INT64_MAX, INT64_MAX - 1), "-<0.001%");
  EXPECT_EQ(to_share(1, INT64_MAX), "+>1,000,000,000,000,000%");
}

TEST(Compare, PointByPointInAnyOrder) {
  Recording before{.how = How::run, .points = {}}, now;
  for (const char* kernel : {"x", "y", "z"}) {
    before.points.push_back(recorded({phase_counts("a", 1000, 0, 9)}, kernel));
  }
  now.points = {before.points[2], before.points[0], before.points[1]};
  EXPECT_EQ(compare(before, now, {}).failing(), 0U);

  std::swap(now.points[0].point.arguments, now.points[1].point.arguments);
  EXPECT_EQ(compare(before, now, {}).failing(), 0U);
  Arguments other_order;
  other_order.set("M", Index{100});
  other_order.set("n", Index{4});
  now.points[0].point.arguments = other_order;
  EXPECT_EQ(compare(before, now, {}).failing(), 0U) << "nor does that of the arguments count";
  now.points[0].point.arguments.set("n", Index{5});
  EXPECT_EQ(compare(before, now, {}).failing(), 2U) << "one is gone, and one is new";
  now.points[0].point.arguments.set("n", "4");
  EXPECT_EQ(compare(before, now, {}).failing(), 2U) << "a word is no size";
}

TEST(Compare, PointsGoneAndAdded) {
  const Recording one{.how = How::count, .points = {recorded({phase_counts("a", 1, 2, 3)}, "x")}};
  Recording two = one;
  two.points.push_back(recorded({phase_counts("a", 1, 2, 3)}, "y"));
  const GateComparison added = compare(one, two, {});
  ASSERT_EQ(added.points.size(), 2U);
  EXPECT_EQ(added.failing(), 1U);
  EXPECT_EQ(added.points[0].point.subject, "y");
  EXPECT_FALSE(added.points[0].before);
  EXPECT_EQ(said(added.points[0].differences), Said{"it is new"});
  const GateComparison gone = compare(two, one, {});
  ASSERT_EQ(gone.points.size(), 2U);
  EXPECT_EQ(gone.points[0].point.subject, "y");
  EXPECT_FALSE(gone.points[0].now);
  EXPECT_EQ(said(gone.points[0].differences), Said{"it is gone"});
}

TEST(Compare, OnlyWhatWasMadeAlike) {
  const Recording ran{.how = How::run, .points = {}}, counted{.how = How::count, .points = {}};
  EXPECT_PRED2(contains, thrown<InputError>([&] { compare(ran, counted, {}); }),
               "one recording is of what kernels run, the other of what they count");
  EXPECT_PRED2(contains, thrown<InputError>([&] { compare(counted, ran, {}); }),
               "record both alike");
}

// Differences that fail come before hidden ones, whatever their size. Within each, the larger share
// comes first.
TEST(Compare, ThePointThatChangedMostIsFirst) {
  Recording before{.how = How::run, .points = {}}, now;
  const auto add = [&](const char* kernel, Index reads, Index reads_now, Index peak_now) {
    before.points.push_back(recorded({phase_counts("a", reads, 0, 9)}, kernel));
    now.points.push_back(recorded({phase_counts("a", reads_now, 0, peak_now)}, kernel));
  };
  add("same", 1000, 1000, 9);
  add("large words", 1'000'000, 1'000'900, 9);
  add("large share", 1000, 700, 9);
  add("peak", 1000, 1000, 10);
  add("all", 0, 10, 9);
  const auto order = [&](const std::vector<Tolerance>& tolerances) {
    std::string names;
    for (const Compared& compared : compare(before, now, tolerances).points) {
      names += compared.point.subject + (compared.fails() ? "! " : " ");
    }
    return names;
  };
  EXPECT_EQ(order({}), "all! large share! large words! peak! same ");
  EXPECT_EQ(order({parse_tolerance("reads=30%")}), "all! peak! large share large words same ");
  EXPECT_EQ(order({parse_tolerance("reads=900")}), "peak! all large share large words same ");
}

}  // namespace
}  // namespace redblue
