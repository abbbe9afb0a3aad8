// Tests a recording as a text and back, the texts that are refused, and the recording of points.

#include "runtime/gate/baseline.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "memsim/tile.hpp"
#include "runtime/subjects/kernel_subjects.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/phase_counts.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

// A point with two phases, a point that does not fit, and a point with names that no person would
// choose.
Recording three_points() {
  Recording recording;
  recording.points.push_back(
      {.point = {"sum/pairs", arguments({{"n", Index{4}}, {"M", Index{9}}, {"store", "disk"}})},
       .least_M = 5,
       .counts = run_counts({phase_counts("a/b", 10, 0, 9), phase_counts("c", 20, 12, 7)})});
  recording.points.push_back({.point = {"sum/pairs", arguments({{"n", Index{4}}, {"M", Index{1}}})},
                              .least_M = 5,
                              .fits = false,
                              .counts = {}});
  recording.points.push_back(
      {.point = {"\"quoted\", \\ \n é", arguments({{"n", INT64_MAX}, {"M", Index{9}}})},
       .least_M = std::nullopt,
       .counts = run_counts({phase_counts("", INT64_MAX, 0, 0)})});
  return recording;
}

// The same points, and a point with two inner levels.
Recording with_levels() {
  Recording recording = three_points();
  RunCounts counts = run_counts({phase_counts("a/b", 10, 0, 9), phase_counts("c", 20, 12, 7)});
  counts.inner = {{counts.phases, counts.total}, {counts.phases, counts.total}};
  counts.inner[0].phases[1].io.reads = 21;
  recording.points.push_back(
      {.point = {"sum/pairs", arguments({{"n", Index{4}}, {"M", Index{9}}, {"inner", "3,5"}})},
       .least_M = std::nullopt,
       .counts = counts});
  return recording;
}

std::string refusal(const std::string& text) {
  const std::string message =
      thrown<InputError>([&] { static_cast<void>(parse_recording(text, "base.json")); });
  EXPECT_TRUE(message.starts_with("base.json")) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

// Returns a recording of one point, with `from` replaced by `to`.
std::string edited(const std::string& from, const std::string& to) {
  std::string text = R"({"schema": 1, "redblue": "recording", "how": "run", "points": [
    {"kernel": "k", "arguments": {"n": 4, "store": "disk"}, "least_M": 5,
     "total": {"reads": 3, "writes": 7, "peak": 9},
     "phases": [{"path": "p", "reads": 3, "writes": 7, "peak": 9}]}]})";
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Recording, IsTheSameAfterItsText) {
  for (const How how : {How::run, How::count}) {
    Recording recording = with_levels();
    recording.how = how;
    const std::string text = to_json(recording);
    const Recording back = parse_recording(text, "base.json");
    EXPECT_EQ(back.how, recording.how);
    EXPECT_EQ(back.points, recording.points);
    EXPECT_EQ(to_json(back), text);
  }
}

// Each phase has its own line, so a reviewer sees what changed.
TEST(Recording, HasALineForEachPhase) {
  const std::string text = to_json(three_points());
  EXPECT_PRED2(contains, text, "\n  {\"path\":\"a/b\",\"reads\":10,\"writes\":0,\"peak\":9},\n");
  EXPECT_PRED2(contains, text, "\n  {\"path\":\"c\",\"reads\":20,\"writes\":12,\"peak\":7}]}");
  EXPECT_TRUE(text.ends_with("\n"));
}

// A file that is cut off at any byte is refused. Only the newline at its end may be missing.
TEST(Recording, CutOffAtAnyByteIsNone) {
  const std::string text = to_json(three_points());
  const std::size_t last = text.find_last_of('}');
  for (std::size_t size = 0; size <= last; ++size) {
    SCOPED_TRACE(size);
    EXPECT_PRED2(contains, refusal(text.substr(0, size)), "is cut off or no JSON, at byte");
  }
  EXPECT_EQ(parse_recording(text.substr(0, last + 1), "base.json").points, three_points().points);
}

// A changed byte makes the file invalid, or makes another valid recording. No other error occurs.
TEST(Recording, AnyDamagedByteIsRefusedOrAnotherRecording) {
  const std::string text = to_json(three_points());
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char c : {'\0', '0', '-', '"', '}', ',', 'x', '\xff'}) {
      std::string damaged = text;
      damaged[at] = c;
      try {
        parse_recording(damaged, "base.json");
      } catch (const InputError& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with("base.json")) << error.what();
      }
    }
  }
}

TEST(Recording, OfAnotherSchema) {
  for (const std::string schema : {"0", "2", "9223372036854775807"}) {
    EXPECT_EQ(refusal(edited("\"schema\": 1", "\"schema\": " + schema)),
              "base.json has schema " + schema + "; this program reads 1: record it again");
  }
  for (const std::string schema : {"\"1\"", "1.0", "-1", "null", "[1]"}) {
    EXPECT_PRED2(contains, refusal(edited("\"schema\": 1", "\"schema\": " + schema)),
                 "base.json, schema");
  }
  EXPECT_PRED2(contains, refusal(edited("\"schema\": 1, ", "")), "has no \"schema\"");
}

TEST(Recording, IsNoOtherDocument) {
  for (const std::string text :
       {"null", "1", "[]", "{}", "\"recording\"", R"({"schema": 1, "points": []})",
        R"({"redblue": "comparison", "schema": 1})", R"({"points": [{"kernel": "k"}]})"}) {
    EXPECT_EQ(refusal(text), "base.json is no recording: `record` makes one") << text;
  }
  EXPECT_PRED2(contains, refusal(edited("\"recording\"", "7")), "base.json, redblue is no text");
  EXPECT_PRED2(contains, refusal("\x89HDF\r\n"), "no JSON");
  EXPECT_PRED2(contains, refusal(edited("]}]}", "]}]} and more")), "no JSON");
}

TEST(Recording, HasNumbersOfWordsWhereTheyBelong) {
  for (const std::string key : {"reads", "writes", "peak"}) {
    const std::string digit = key == "reads" ? "3" : key == "writes" ? "7" : "9";
    const std::string pair = "\"" + key + "\": " + digit;
    for (const std::string number :
         {"-1", "-0", "3.0", "3.5", "1e3", "9223372036854775808", "18446744073709551615",
          "18446744073709551616", "1e400", "\"3\"", "null", "true", "[3]", "{}"}) {
      SCOPED_TRACE(pair + " as " + number);
      const std::string message = refusal(edited(pair, "\"" + key + "\": " + number));
      EXPECT_TRUE(contains(message, "points 1, total, " + key + " is no number of words") ||
                  message == "base.json has a number that no machine holds")
          << message;
    }
    EXPECT_PRED2(contains, refusal(edited(pair, "\"other\": 1")),
                 "base.json, points 1, total has no \"" + key + "\"");
    const std::string phase = "\"path\": \"p\", \"reads\": 3, \"writes\": 7, \"peak\": 9";
    std::string without = phase;
    without.replace(without.find(key), key.size(), "other");
    EXPECT_PRED2(contains, refusal(edited(phase, without)),
                 "base.json, points 1, phases 1 has no \"" + key + "\"");
  }
  const Recording largest =
      parse_recording(edited("\"reads\": 3", "\"reads\": 9223372036854775807"), "base.json");
  EXPECT_EQ(largest.points[0].counts.total.io.reads, INT64_MAX);
}

TEST(Recording, SaysWhereItIsWrong) {
  const std::vector<std::array<std::string, 3>> cases = {
      {"\"how\": \"run\"", "\"how\": \"guess\"", "base.json, how is 'guess'"},
      {"\"how\": \"run\", ", "", "base.json has no \"how\""},
      {"\"how\": \"run\"", "\"how\": 1", "base.json, how is no text"},
      {"\"kernel\": \"k\"", "\"kernel\": 1", "base.json, points 1, kernel is no text"},
      {"\"kernel\": \"k\", ", "", "base.json, points 1 has no \"kernel\""},
      {"\"kernel\": \"k\"", "\"kernel\": \"k", "no JSON"},
      {"{\"n\": 4, \"store\": \"disk\"}", "[4]", "points 1, arguments is no object"},
      {"\"n\": 4", "\"n\": -4", "points 1, arguments, n is no number of words"},
      {"\"n\": 4", "\"n\": 4.5", "points 1, arguments, n is no number of words"},
      {"\"n\": 4", "\"n\": null", "points 1, arguments, n is no number of words"},
      {"\"least_M\": 5", "\"least_M\": -5", "points 1, least_M is no number of words"},
      {"\"least_M\": 5", "\"fits\": 1", "points 1, fits is neither true nor false"},
      {"\"total\"", "\"sum\"", "points 1 has no \"total\""},
      {"\"phases\"", "\"parts\"", "points 1 has no \"phases\""},
      {"\"phases\": [", "\"phases\": 1, \"x\": [", "points 1, phases is no list"},
      {"\"path\": \"p\"", "\"path\": 1", "points 1, phases 1, path is no text"},
      {"\"path\": \"p\", ", "", "points 1, phases 1 has no \"path\""},
      {"\"points\": [", "\"points\": [1, ", "points 1 has no \"kernel\""},
      {"\"points\": [", "\"points\": 1, \"x\": [", "points is no list"},
      {"\"points\": [", "\"points\": [], \"x\": [", "has no points: there is nothing to watch"},
  };
  for (const auto& [from, to, message] : cases) {
    EXPECT_PRED2(contains, refusal(edited(from, to)), message) << from << " as " << to;
  }
}

// A point or a phase that is there twice would be compared with the wrong counts.
TEST(Recording, HasEachPointAndEachPhaseOnce) {
  const std::string phase = "{\"path\": \"p\", \"reads\": 3, \"writes\": 7, \"peak\": 9}";
  EXPECT_EQ(refusal(edited(phase, phase + "," + phase)),
            "base.json, k n=4 store=disk: the phase p is there twice");
  const std::string again =
      R"("points": [{"kernel": "k", "arguments": {"store": "disk", "n": 4}, "fits": false}, )";
  EXPECT_EQ(refusal(edited("\"points\": [", again)), "base.json, k n=4 store=disk is there twice")
      << "in whatever order its arguments are";
}

TEST(Recording, MayHoldWhatLaterProgramsAdd) {
  const Recording plain = parse_recording(edited("k", "k"), "base.json");
  for (const std::string place : {"\"schema\"", "\"reads\"", "\"path\""}) {
    const Recording more =
        parse_recording(edited(place, "\"later\": {\"x\": [1.5, null]}, " + place), "base.json");
    EXPECT_EQ(more.points, plain.points) << place;
  }
  EXPECT_PRED2(contains, refusal(edited("\"kernel\"", "\"at_mots\": {}, \"kernel\"")),
               "base.json, points 1, at_mots: expected one of accepted, arguments, at_most, ")
      << "a slip could be a limit that is lost";
  EXPECT_EQ(
      parse_recording(edited("\"least_M\": 5", "\"fits\": true"), "base.json").points[0].counts,
      plain.points[0].counts);
}

// A point that does not fit records the least M. It fits at this M and not one word below. A
// backward kernel that starts from scratch must compute O and L in the same M. With given O and L,
// it needs no room for that.
TEST(Record, APointThatDoesNotFitHasItsLeastM) {
  for (const Subject& subject : kernel_subjects()) {
    if (!subject.least_M) {
      continue;
    }
    const Index m = subject.name == "gradients/sources" ? 9 : 7;  // there, queries are keys
    Arguments given =
        complete(subject, arguments({{"n", Index{9}}, {"m", m}, {"d", Index{3}}, {"M", Index{1}}}));
    for (const bool nothing : {false, true}) {
      if (nothing && !given.contains("given")) {
        continue;
      }
      for (const How how : {How::run, How::count}) {
        if (nothing) {
          given.set("given", "nothing");
        }
        given.set("M", Index{1});
        SCOPED_TRACE(subject.name + " " + to_string(given) + " " + std::string(to_string(how)));
        const RecordedPoint none = record(subject, given, how);
        EXPECT_FALSE(none.fits);
        EXPECT_EQ(none.counts, RunCounts());
        ASSERT_TRUE(none.least_M);

        given.set("M", *none.least_M);
        const RecordedPoint fits = record(subject, given, how);
        EXPECT_TRUE(fits.fits);
        EXPECT_EQ(fits.least_M, none.least_M);
        EXPECT_EQ(fits.point, (Point{subject.name, given}));
        EXPECT_GT(fits.counts.total.io.reads, 0);
        EXPECT_LE(fits.counts.total.peak, *none.least_M);

        given.set("M", *none.least_M - 1);
        EXPECT_FALSE(record(subject, given, how).fits);
      }
    }
  }
}

TEST(Record, AFormulaThatThereIsNot) {
  const Subject subject = subject_of("own", [](Machine&, const Arguments&) {}, {});
  const Arguments given = arguments({{"M", Index{4}}});
  EXPECT_EQ(thrown<std::logic_error>([&] { record(subject, given, How::count); }),
            "own has no formula: it can only run");
  EXPECT_TRUE(record(subject, given, How::run).fits);
}

// A fast memory that is too small is a valid result. Every other exception is a failure.
TEST(Record, WhatAKernelThrowsIsThrown) {
  const Subject broken =
      subject_of("own", [](Machine&, const Arguments&) { throw std::length_error("broken"); }, {});
  EXPECT_EQ(thrown<std::length_error>([&] {
              record(broken, arguments({{"M", Index{4}}}), How::run);
            }),
            "broken");
  const Subject large = subject_of("own",
                                   [](Machine& machine, const Arguments&) {
                                     static_cast<void>(machine.initialize("block", 5, 1));
                                   },
                                   {});
  EXPECT_FALSE(record(large, arguments({{"M", Index{4}}}), How::run).fits);
  EXPECT_TRUE(record(large, arguments({{"M", Index{5}}}), How::run).fits);
}

TEST(InAnyOrder, CallsEachOnceAndTellsAfterEach) {
  for (const std::size_t count : {0U, 1U, 2U, 7U, 500U}) {
    for (const unsigned threads : {0U, 1U, 2U, 4U, 600U}) {
      SCOPED_TRACE(fmt::format("{} on {}", count, threads));
      std::vector<std::atomic<int>> calls(count);
      std::vector<std::size_t> told;  // not locked: only one thread reports at any moment
      in_any_order(
          count, threads, [&](std::size_t k) { ++calls.at(k); },
          [&](std::size_t done) { told.push_back(done); });
      for (const std::atomic<int>& called : calls) {
        EXPECT_EQ(called, 1);
      }
      ASSERT_EQ(told.size(), count);
      for (std::size_t k = 0; k < count; ++k) {
        EXPECT_EQ(told[k], k + 1);
      }
    }
  }
}

// On one thread the work runs in order, and no item starts after a failure.
TEST(InAnyOrder, ThrowsWhatFailedAndBeginsNoMore) {
  std::vector<std::size_t> begun;
  std::size_t told = 0;
  const auto work = [&](std::size_t k) {
    begun.push_back(k);
    if (k == 3) {
      throw std::length_error("the fourth");
    }
  };
  EXPECT_EQ(thrown<std::length_error>(
                [&] { in_any_order(10, 1, work, [&](std::size_t done) { told = done; }); }),
            "the fourth");
  EXPECT_EQ(begun, (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(told, 3U);
}

// Item 1 fails after item 0 has failed. The first failure is thrown, after all running items have
// ended.
TEST(InAnyOrder, ThrowsTheFirstFailureWhenAllHaveEnded) {
  std::atomic<int> begun = 0, ended = 0;
  std::atomic<bool> failed = false;
  const auto work = [&](std::size_t k) {
    ++begun;
    if (k == 0) {
      while (begun < 2) {
        std::this_thread::yield();
      }
      failed = true;
      ++ended;
      throw std::length_error("first");
    }
    while (!failed) {
      std::this_thread::yield();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ++ended;
    throw std::out_of_range("later");
  };
  EXPECT_EQ(thrown<std::length_error>([&] { in_any_order(2, 2, work, [](std::size_t) {}); }),
            "first");
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(ended, 2);
}

TEST(InAnyOrder, WhatTellsMayFailToo) {
  EXPECT_EQ(thrown<std::runtime_error>([&] {
              in_any_order(
                  5, 2, [](std::size_t) {},
                  [](std::size_t) { throw std::runtime_error("no terminal"); });
            }),
            "no terminal");
}

}  // namespace
}  // namespace redblue
