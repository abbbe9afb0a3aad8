// Tests budgets of a suite and accepted changes: how a baseline keeps both, and which ones are
// refused.

#include <filesystem>
#include <functional>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

using Ordered = nlohmann::ordered_json;

class GateBudgets : public Cli {
 protected:
  [[nodiscard]] Outcome record(const std::string& at_most) const {
    directory_.write("suite.json", fmt::format(R"({{"points": [
      {{"kernel": "backward/rows", "n": 40, "d": 5, "M": [300, 900], "at_most": {}}},
      {{"kernel": "forward/rows", "n": 40, "d": 5, "M": 300}}]}})",
                                               at_most));
    return redblue("record suite.json -o base.json");
  }
  [[nodiscard]] Json points() const {
    return Json::parse(content_of(directory_ / "base.json"))["points"];
  }
  void edit(const std::function<void(Ordered& points)>& change) const {
    auto document = Ordered::parse(content_of(directory_ / "base.json"));
    change(document["points"]);
    directory_.write("base.json", document.dump());
  }
  // Returns `check base.json` with more arguments, which may have spaces.
  [[nodiscard]] Process check(const std::vector<std::string>& more) const {
    Process process = this->process("check base.json");
    process.words.insert(process.words.end(), more.begin(), more.end());
    return process;
  }
  // Changes the reads of the first point and of its first phase.
  void change_reads(Index by) const {
    edit([&](Ordered& all) {
      for (Ordered* counts : {&all[0]["total"], &all[0]["phases"][0]}) {
        (*counts)["reads"] = (*counts)["reads"].get<Index>() + by;
      }
    });
  }
  const std::string first_ = "backward/rows n=40 d=5 M=300";
};

TEST_F(GateBudgets, StayThroughNewBaselines) {
  ASSERT_EQ(record(R"({"words": "1M", "core:reads": 1e6, "over_bound": 90})").code, 0);
  const Json once = points();
  EXPECT_EQ(once[0]["at_most"], Json::parse(R"({"words": 1048576, "core:reads": 1000000,
                                                "over_bound": 90.0})"));
  EXPECT_GT(once[0]["bound"].get<Index>(), 0);
  EXPECT_FALSE(once[2].contains("at_most"));
  ASSERT_EQ(redblue("record base.json -o again.json").code, 0);
  EXPECT_EQ(content_of(directory_ / "again.json"), content_of(directory_ / "base.json"));
  EXPECT_EQ(redblue("check base.json").code, 0);
}

// A count equal to its budget passes. A budget one word lower fails, although no count has changed.
// No tolerance and no environment variable hides that.
TEST_F(GateBudgets, FailWhateverTheBaselineSays) {
  ASSERT_EQ(record(R"({"words": "1M"})").code, 0);
  const Json total = points()[0]["total"];
  const Index words = total["reads"].get<Index>() + total["writes"].get<Index>();
  edit([&](Ordered& all) { all[0]["at_most"]["words"] = words; });
  EXPECT_EQ(redblue("check base.json").code, 0);
  edit([&](Ordered& all) { all[0]["at_most"]["words"] = words - 1; });
  for (const char* line :
       {"check base.json", "check base.json --tolerance reads=1000%,writes=1000%"}) {
    const Outcome outcome = redblue(line);
    EXPECT_EQ(outcome.code, 3);
    EXPECT_TRUE(std::regex_search(
        outcome.out, std::regex(first_ + " +total +words +at most [0-9,]+ +[0-9,]+ +\\+1 ")))
        << outcome.out;
  }
  for (const char* form : {"json", "csv", "markdown", "github", "junit"}) {
    const Outcome outcome = redblue(fmt::format("check base.json --format {}", form));
    EXPECT_EQ(outcome.code, 3);
    EXPECT_NE(outcome.out.find("at most"), std::string::npos) << outcome.out;
  }
  // A baseline that is over its budgets is not written either.
  const Outcome over = record(fmt::format(R"({{"words": {}}})", words - 1));
  EXPECT_EQ(over.code, 1);
  EXPECT_TRUE(std::regex_match(over.err, std::regex("redblue: " + first_ +
                                                    ".*: words [0-9,]+, at most [0-9,]+: let it "
                                                    "move fewer, or raise at_most in the suite, "
                                                    "and record it\n")))
      << over.err;
}

TEST_F(GateBudgets, AreRefusedWhereTheyLimitNothing) {
  const auto refused = [&](const std::string& at_most, const std::string& message) {
    const Outcome outcome = record(at_most);
    EXPECT_EQ(outcome.code, 1) << at_most;
    EXPECT_TRUE(std::regex_search(outcome.err, std::regex(message))) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(directory_ / "base.json"));
  };
  refused("{}", "points 1, at_most: \\{\\}: expected \\{\"METRIC\": MOST\\}");
  refused("5", "points 1, at_most: 5: expected");
  refused(R"({"moves": 5})", "at_most: 'moves': expected \\[PHASE:\\]METRIC");
  refused(R"({"reads": null})", "at_most, reads: null is no number");
  refused(R"({"reads": 1e308})", "at_most: reads is 1e\\+308: expected a number of words");
  refused(R"({"reads": -1})", "at_most: reads is -1: expected a number of words");
  refused(R"({"over_bound": 0.5})", "over_bound is 0.5: expected 1 to 1e\\+06");
  const Outcome outcome = record(R"({"core:words": 1e6, "nowhere:reads": 5})");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("no phase is called nowhere"), std::string::npos) << outcome.err;
}

TEST_F(GateBudgets, AChangeIsAccepted) {
  ASSERT_EQ(record(R"({"words": "1M"})").code, 0);
  const std::string before = content_of(directory_ / "base.json");
  change_reads(-7);
  ASSERT_EQ(redblue("check base.json").code, 3);
  std::filesystem::copy_file(directory_ / "base.json", directory_ / "old.json");
  constexpr auto kMine = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  std::filesystem::permissions(directory_ / "base.json", kMine);
  const Outcome accepted =
      check({"--accept", first_, "--reason", "keys come twice", "--who", "A. Person"}).run();
  EXPECT_EQ(accepted.code, 0) << accepted.err;
  EXPECT_TRUE(std::regex_match(
      accepted.err, std::regex("redblue: accepted: " + first_ + ": [0-9,]+ -> [0-9,]+ words\n")))
      << accepted.err;
  EXPECT_NE(accepted.out.find("same, all 3 points; 1 point accepted\n"), std::string::npos);
  const Json its = points()[0]["accepted"];
  ASSERT_EQ(its.size(), 1U);
  EXPECT_TRUE(std::regex_match(its[0]["date"].get<std::string>(),
                               std::regex("20[0-9]{2}-[01][0-9]-[0-3][0-9]")));
  EXPECT_EQ(its[0]["who"], "A. Person");
  EXPECT_EQ(its[0]["reason"], "keys come twice");
  EXPECT_EQ(its[0]["after"].get<Index>() - its[0]["before"].get<Index>(), 7);
  EXPECT_EQ(std::filesystem::status(directory_ / "base.json").permissions(), kMine);
  const Outcome diff = redblue("diff old.json base.json");  // as a reviewer sees it
  EXPECT_EQ(diff.code, 3);
  EXPECT_TRUE(std::regex_search(
      diff.out, std::regex("accepted on [0-9-]+ by A\\. Person: keys come twice\n")))
      << diff.out;
  edit([](Ordered& all) { all[0].erase("accepted"); });
  EXPECT_EQ(Json::parse(content_of(directory_ / "base.json")), Json::parse(before));
}

// A baseline with one point that differs by a word, and settings of git from the environment.
class WithGit : public GateBudgets {
 protected:
  void SetUp() override {
    GateBudgets::SetUp();
    ASSERT_EQ(record(R"({"words": "1M"})").code, 0);
    change_reads(1);
  }
  [[nodiscard]] Process accepting(const std::vector<std::string>& variables) const {
    Process process = check({"--accept", first_, "--reason", "why"});
    process.environment.emplace_back("PATH=/usr/bin:/bin");
    process.environment.insert(process.environment.end(), variables.begin(), variables.end());
    return process;
  }
};

TEST_F(WithGit, KnowsTheNameOfGit) {
  const Outcome outcome =
      accepting({"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=A. Person",
                 "GIT_CONFIG_KEY_1=user.email", "GIT_CONFIG_VALUE_1=a@b"})
          .run();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(points()[0]["accepted"][0]["who"], "A. Person <a@b>");
}

// An address without a name. Then a directory for git's output that does not exist.
TEST_F(WithGit, NeedsAName) {
  Process process =
      accepting({"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_COUNT=1",
                 "GIT_CONFIG_KEY_0=user.email", "GIT_CONFIG_VALUE_0=a@b"});
  expect_refused(process, 2, "--who: git has no user.name here: give --who NAME");
  process.environment.emplace_back("TMPDIR=/nowhere");
  expect_refused(process, 1,
                 "there is no directory for temporary files: set TMPDIR to one that is there");
}

TEST_F(GateBudgets, AnAcceptanceSaysWhatAndWhy) {
  ASSERT_EQ(record(R"({"words": "1M"})").code, 0);
  change_reads(1);
  const std::string before = content_of(directory_ / "base.json");
  const auto refused = [&](const Process& process, const std::string& message) {
    expect_refused(process, 2, message);
    EXPECT_EQ(content_of(directory_ / "base.json"), before);
  };
  const auto accept = [&](const std::string& point) {
    return check({"--accept", point, "--reason", "why", "--who", "me"});
  };
  refused(check({"--accept", first_}), "--accept: give --reason TEXT, which the baseline keeps");
  refused(check({"--accept", first_, "--reason", "why"}), "--who: git .*: give --who NAME");
  refused(check({"--accept", first_, "--reason", "\xff", "--who", "me"}),
          "--reason '.*' is not UTF-8");
  refused(check({"--reason", "why"}), "--reason 'why': it is of --accept");
  refused(check({"--accept", first_, "--reason", " \t", "--who", "me"}),
          "--accept: give --reason TEXT");
  refused(check({"--accept", first_, "--reason", "why", "--who", " "}),
          "--who is blank: give a name");
  refused(check({"--accept", first_, "--reason", "why", "--who", "me", "--part", "1/2"}),
          "--accept: a baseline is whole: leave out --part");
  refused(accept("backward/rows n=41"),
          "--accept 'backward/rows n=41': no point is called so: did you mean");
  refused(accept("forward/rows n=40 d=5 M=300"), "nothing differs there: leave it out");
  refused(process("check - --accept x --reason why --who me"),
          "--accept: standard input is no file that can change: name the baseline");
  edit([](Ordered& all) { all[0]["at_most"]["words"] = 1; });
  expect_refused(accept(first_), 2,
                 "words [0-9,]+, at most 1: let it move fewer, or raise at_most in the suite, and "
                 "record it");
}

// A diff reports a raised budget and a budget that is gone.
TEST_F(GateBudgets, AreNotLostInADiff) {
  ASSERT_EQ(record(R"({"words": "1M"})").code, 0);
  directory_.write("old.json", content_of(directory_ / "base.json"));
  edit([](Ordered& all) { all[0]["at_most"]["words"] = 2'000'000; });
  Outcome outcome = redblue("diff old.json base.json");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(std::regex_search(
      outcome.out, std::regex(first_ + " +total +words +a budget +raised .*at most 1,048,576 -> "
                                       "2,000,000")))
      << outcome.out;
  edit([](Ordered& all) { all[0].erase("at_most"); });
  for (const char* form : {"json", "csv", "markdown", "github", "junit", "table"}) {
    outcome =
        redblue(fmt::format("diff old.json base.json --tolerance reads=1000% --format {}", form));
    EXPECT_EQ(outcome.code, 3) << form;
    EXPECT_NE(outcome.out.find("words: the budget is gone, at most 1,048,576"), std::string::npos)
        << outcome.out;
  }
  EXPECT_EQ(redblue("diff base.json old.json").code, 0) << "a new budget is no difference";
}

// Parts of a suite with different budgets do not merge. Parts with equal budgets keep them.
TEST_F(GateBudgets, AreThoseOfAllParts) {
  const auto part = [&](int number, const std::string& at_most) {
    directory_.write("suite.json", fmt::format(R"({{"points": [{{"kernel": "backward/rows",
      "n": 40, "d": 5, "M": [300, 900, 950]{}}}]}})",
                                               at_most.empty() ? "" : ", \"at_most\": " + at_most));
    const Outcome outcome =
        redblue(fmt::format("record suite.json --part {0}/2 -o {0}.json", number));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return content_of(directory_ / fmt::format("{}.json", number));
  };
  EXPECT_EQ(part(1, "").find("at_most"), std::string::npos);
  part(1, R"({"words": "1M"})");
  part(2, R"({"words": "2M"})");
  expect_refused(process("merge 1.json 2.json -o base.json"), 1,
                 "1.json and 2.json are no parts of one whole: the at_most of one is another");
  part(2, R"({"words": "1M"})");
  ASSERT_EQ(redblue("merge 1.json 2.json -o base.json").code, 0);
  const std::string merged = content_of(directory_ / "base.json");
  EXPECT_EQ(redblue("record suite.json").out, merged);
  // Each part is held to its own budgets.
  edit([](Ordered& all) { all[1]["at_most"]["words"] = 1; });
  EXPECT_EQ(redblue("check base.json --part 1/2").code, 0);
  EXPECT_EQ(redblue("check base.json --part 2/2").code, 3);
  // If two parts have the same point, the message names the member that differs.
  const auto change = [&](const std::function<void(Ordered & point)>& of_point) {
    auto document = Ordered::parse(content_of(directory_ / "1.json"));
    of_point(document["points"][0]);
    directory_.write("3.json", document.dump());
  };
  change([](Ordered& point) { point["at_most"]["words"] = 5; });
  expect_refused(process("merge 1.json 3.json"), 1,
                 "1.json and 3.json differ at " + first_ + ": its at_most");
  change([](Ordered& point) {
    point["accepted"] = {
        {{"date", "2026-01-31"}, {"who", "A"}, {"reason", "b"}, {"before", 1}, {"after", 2}}};
  });
  expect_refused(process("merge 1.json 3.json"), 1, "differ at .*: what is accepted there");
}

TEST_F(GateBudgets, AKeyOfAPointThatIsUnknownIsRefused) {
  ASSERT_EQ(record(R"({"words": "1M"})").code, 0);
  const std::string before = content_of(directory_ / "base.json");
  const auto refused = [&](const std::function<void(Ordered & all)>& change,
                           const std::string& message) {
    edit(change);
    expect_refused(process("check base.json"), 1, "base.json, points " + message);
    directory_.write("base.json", before);
  };
  refused([](Ordered& all) { all[1]["at_mots"] = Ordered::object(); },
          "2, at_mots: expected one of accepted, arguments, at_most, bound, fingerprints");
  refused([](Ordered& all) { all[0]["at_most"]["words"] = 1e16; },
          "1, at_most: words is 1e\\+16: expected a number of words, at most 2\\^53");
}

// The bound depends on the arguments, and some arguments have no bound.
TEST_F(GateBudgets, OverABoundThatIsNotKnownIsRefused) {
  directory_.write("suite.json", R"({"points": [{"kernel": "backward/rows", "n": 40, "d": 5,
      "M": 300, "threads": 2, "at_most": {"over_bound": 90}}]})");
  expect_refused(process("record suite.json -o base.json"), 1,
                 "backward/rows .*threads=2.*: at_most has over_bound, and no lower bound is known "
                 "for these arguments: leave it out");
}

TEST_F(GateBudgets, SeveralChangesAreAcceptedAtOnce) {
  ASSERT_EQ(record(R"({"words": "1M"})").code, 0);
  const std::string before = content_of(directory_ / "base.json");
  const std::string last = "forward/rows n=40 d=5 M=300";
  change_reads(-7);
  edit([](Ordered& all) {
    all[2]["total"]["writes"] = 9;
    all[2]["phases"][0]["writes"] = 9;
  });
  const std::string changed = content_of(directory_ / "base.json");
  // The second point is refused, because it has no difference. Then no point is accepted.
  expect_refused(check({"--accept", first_, "--accept", "backward/rows n=40 d=5 M=900", "--reason",
                        "why", "--who", "me"}),
                 2, "--accept 'backward/rows n=40 d=5 M=900': nothing differs there");
  // A point that is named twice counts once.
  const Outcome outcome = check({"--accept", last, "--accept", first_, "--accept", first_,
                                 "--reason", "why", "--who", "me"})
                              .run();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(std::regex_match(
      outcome.err, std::regex("redblue: accepted: " + first_ +
                              ": .* words\nredblue: accepted: " + last + ": .* words\n")))
      << outcome.err;
  EXPECT_NE(outcome.out.find("same, all 3 points; 2 points accepted\n"), std::string::npos)
      << outcome.out;
  EXPECT_EQ(points()[0]["accepted"].size(), 1U);
  EXPECT_EQ(points()[2]["accepted"].size(), 1U);
  EXPECT_EQ(redblue("check base.json").code, 0);
}

// A pattern stands for all points that match it and differ.
TEST_F(GateBudgets, APatternAcceptsWhatDiffers) {
  ASSERT_EQ(record(R"({"words": "1M"})").code, 0);
  expect_refused(check({"--accept", "backward/*", "--reason", "why", "--who", "me"}), 2,
                 "--accept: nothing differs at these points: leave it out");
  change_reads(-7);
  expect_refused(check({"--accept", "none/*", "--reason", "why", "--who", "me"}), 2,
                 "--accept 'none/\\*': no point is called so");
  const Outcome outcome = check({"--accept", "backward/*", "--reason", "why", "--who", "me"}).run();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(
      std::regex_match(outcome.err, std::regex("redblue: accepted: " + first_ + ": .* words\n")))
      << outcome.err;
  EXPECT_EQ(redblue("check base.json").code, 0);
}

// An acceptance that is not possible is refused before anything runs.
TEST_F(GateBudgets, AnAcceptanceIsRefusedAtOnce) {
  directory_.write("suite.json", R"({"points": [
      {"kernel": "forward/rows", "n": 5000, "d": 64, "M": 20000}]})");
  const Outcome recorded = redblue("record suite.json -o base.json");
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  const Outcome refused =
      check({"--accept", "forward/rows", "--reason", "why", "--who", "me"}).run();
  EXPECT_EQ(refused.code, 2);
  EXPECT_LT(refused.seconds, recorded.seconds / 2);
}

// If an output cannot be written, the baseline stays as it was.
TEST_F(GateBudgets, ABaselineChangesAfterItsReport) {
  ASSERT_EQ(record(R"({"words": "1M"})").code, 0);
  change_reads(-7);
  const std::string before = content_of(directory_ / "base.json");
  for (const char* output : {"junit=/dev/full", "json=/dev/full"}) {
    expect_refused(check({"--accept", first_, "--reason", "why", "--who", "me", "--also", output}),
                   1, "/dev/full");
    EXPECT_EQ(content_of(directory_ / "base.json"), before);
  }
  Process full = check({"--accept", first_, "--reason", "why", "--who", "me"});
  full.standard_output = "/dev/full";
  const Outcome outcome = full.run();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err.find("accepted"), std::string::npos) << outcome.err;
  EXPECT_EQ(content_of(directory_ / "base.json"), before);
}

// Each format reports the accepted change.
TEST_F(GateBudgets, AnAcceptedChangeIsReported) {
  for (const std::string form :
       {"table", "json", "csv", "markdown", "github", "junit", "customSmallerIsBetter"}) {
    ASSERT_EQ(record(R"({"words": "1M"})").code, 0);
    change_reads(-7);
    const Outcome outcome =
        check({"--accept", first_, "--reason", "keys come twice", "--who", "me", "--format", form})
            .run();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("keys come twice"), std::string::npos) << form << outcome.out;
    EXPECT_EQ(outcome.out.find("<failure"), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.find("::error"), std::string::npos) << outcome.out;
    if (form == "json") {
      const Json json = Json::parse(outcome.out);
      EXPECT_EQ(json["accepted"], 1);
      EXPECT_EQ(json["same"], true);
      EXPECT_EQ(json["differences"][0]["accepted"], "keys come twice");
    }
    std::filesystem::remove(directory_ / "base.json");
  }
}

// A change that a tolerance hides can be accepted. So can a point that no longer fits in M, which
// then has no words.
TEST_F(GateBudgets, WhatIsHiddenOrDoesNotFitIsAccepted) {
  ASSERT_EQ(record(R"({"words": "1M"})").code, 0);
  change_reads(-7);
  Outcome outcome =
      check({"--accept", first_, "--reason", "why", "--who", "me", "--tolerance", "reads=100%"})
          .run();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(points()[0]["accepted"].size(), 1U);
  edit([](Ordered& all) { all[2]["arguments"]["M"] = 1; });
  const std::string unfit = "forward/rows n=40 d=5 M=1";
  outcome = check({"--accept", unfit, "--reason", "why", "--who", "me"}).run();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(std::regex_match(outcome.err, std::regex("redblue: accepted: " + unfit +
                                                       ": [0-9,]+ words -> it no longer fits "
                                                       "in M\n")))
      << outcome.err;
  edit([](Ordered& all) { all[2]["arguments"]["M"] = 300; });
  outcome =
      check({"--accept", "forward/rows n=40 d=5 M=300", "--reason", "why", "--who", "me"}).run();
  EXPECT_NE(outcome.err.find(": it fits in M now, "), std::string::npos) << outcome.err;
  edit([](Ordered& all) {
    all[2]["arguments"]["M"] = 1;
    all[2]["least_M"] = 5;
    for (const char* key : {"total", "phases"}) {
      all[2].erase(key);
    }
    all[2]["fits"] = false;
  });
  outcome = check({"--accept", unfit, "--reason", "why", "--who", "me"}).run();
  EXPECT_NE(outcome.err.find(": it does not fit in M, as before\n"), std::string::npos)
      << outcome.err;
  // A point that no longer fits is not accepted if it has any budget.
  edit([](Ordered& all) {
    all[0]["at_most"] = {{"least_M", 9000}};
    all[0]["arguments"]["M"] = 1;
  });
  expect_refused(
      check({"--accept", "backward/rows n=40 d=5 M=1", "--reason", "why", "--who", "me"}), 2,
      "it does not fit in M, and at_most has least_M$");
  EXPECT_EQ(redblue("check base.json").code, 3);
}

// A recording over an older one of the same points keeps the accepted changes.
TEST_F(GateBudgets, WhatIsAcceptedStaysWhenASuiteIsRecordedAgain) {
  ASSERT_EQ(record(R"({"words": "1M"})").code, 0);
  change_reads(-7);
  ASSERT_EQ(check({"--accept", first_, "--reason", "why", "--who", "me"}).run().code, 0);
  const std::string before = content_of(directory_ / "base.json");
  ASSERT_EQ(record(R"({"words": "1M"})").code, 0);
  EXPECT_EQ(content_of(directory_ / "base.json"), before);
  for (const int number : {1, 2}) {
    ASSERT_EQ(redblue(fmt::format("record suite.json --part {0}/2 -o {0}.json", number)).code, 0);
  }
  ASSERT_EQ(redblue("merge 1.json 2.json -o base.json").code, 0);
  EXPECT_EQ(content_of(directory_ / "base.json"), before);
  directory_.write("base.json", before.substr(0, 99));
  const Outcome outcome = record(R"({"words": "1M"})");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("base.json is cut off or no JSON"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(": nothing that was accepted there is kept\n"), std::string::npos)
      << outcome.err;
  EXPECT_FALSE(points()[0].contains("accepted"));
}

}  // namespace
}  // namespace redblue
