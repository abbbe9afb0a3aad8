// Budgets of a suite, and changes that somebody accepts: what a baseline keeps of both, and how
// they are refused.

#include <functional>
#include <regex>
#include <string>

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
  // `check base.json` with these words, which may have blanks.
  [[nodiscard]] Process check(const std::vector<std::string>& more) const {
    Process process = this->process("check base.json");
    process.words.insert(process.words.end(), more.begin(), more.end());
    return process;
  }
  // The reads of the first point, and of its first phase, change.
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

// At the words themselves it passes; one below it does not, though nothing has changed, and no
// tolerance, and no environment, hides it.
TEST_F(GateBudgets, FailWhateverTheBaselineSays) {
  ASSERT_EQ(record(R"({"words": "1M"})").code, 0);
  const Json total = points()[0]["total"];
  const Index words = total["reads"].get<Index>() + total["writes"].get<Index>();
  edit([&](Ordered& all) { all[0]["at_most"]["words"] = words; });
  EXPECT_EQ(redblue("check base.json").code, 0);
  edit([&](Ordered& all) { all[0]["at_most"]["words"] = words - 1; });
  for (const char* line :
       {"check base.json", "check base.json --tolerance reads=1000%,writes=1000%",
        "REDBLUE_TOLERANCE=reads=1000% check base.json"}) {
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
  // Nor is a baseline made that is over them.
  const Outcome over = record(fmt::format(R"({{"words": {}}})", words - 1));
  EXPECT_EQ(over.code, 1);
  EXPECT_TRUE(std::regex_match(over.err, std::regex("redblue: " + first_ +
                                                    ".*: words [0-9,]+, at most [0-9,]+: let it "
                                                    "move fewer, or raise at_most\n")))
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
  const Outcome accepted =
      check({"--accept", first_, "--reason", "keys come twice", "--who", "A. Person"}).run();
  EXPECT_EQ(accepted.code, 0) << accepted.err;
  EXPECT_TRUE(std::regex_match(
      accepted.err, std::regex("redblue: accepted: " + first_ + ": [0-9,]+ -> [0-9,]+ words\n")))
      << accepted.err;
  EXPECT_NE(accepted.out.find("same, all 3 points"), std::string::npos);
  const Json its = points()[0]["accepted"];
  ASSERT_EQ(its.size(), 1U);
  EXPECT_TRUE(std::regex_match(its[0]["date"].get<std::string>(),
                               std::regex("20[0-9]{2}-[01][0-9]-[0-3][0-9]")));
  EXPECT_EQ(its[0]["who"], "A. Person");
  EXPECT_EQ(its[0]["reason"], "keys come twice");
  EXPECT_EQ(its[0]["after"].get<Index>() - its[0]["before"].get<Index>(), 7);
  edit([](Ordered& all) { all[0].erase("accepted"); });
  EXPECT_EQ(Json::parse(content_of(directory_ / "base.json")), Json::parse(before));
}

TEST_F(GateBudgets, GitKnowsWhoAccepts) {
  if (!std::filesystem::exists("/usr/bin/git")) {
    GTEST_SKIP() << "no git";
  }
  ASSERT_EQ(record(R"({"words": "1M"})").code, 0);
  change_reads(1);
  Process process = check({"--accept", first_, "--reason", "why"});
  for (const char* variable :
       {"PATH=/usr/bin:/bin", "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=user.name",
        "GIT_CONFIG_VALUE_0=A. Person", "GIT_CONFIG_KEY_1=user.email", "GIT_CONFIG_VALUE_1=a@b"}) {
    process.environment.emplace_back(variable);
  }
  const Outcome outcome = process.run();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(points()[0]["accepted"][0]["who"], "A. Person <a@b>");
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
  refused(accept("backward/rows n=41"),
          "--accept 'backward/rows n=41': no point is called so: did you mean");
  refused(accept("forward/rows n=40 d=5 M=300"), "nothing differs there: leave it out");
  Process by_environment = check({"--reason", "why", "--who", "me"});
  by_environment.environment.push_back("REDBLUE_CHECK_ACCEPT=" + first_);
  refused(by_environment,
          "REDBLUE_CHECK_ACCEPT: a baseline changes by the flag alone: give --accept POINT");
  refused(process("check - --accept x --reason why --who me"),
          "--accept: standard input is no file that can change: name the baseline");
  edit([](Ordered& all) { all[0]["at_most"]["words"] = 1; });
  expect_refused(accept(first_), 2,
                 "words [0-9,]+, at most 1: raise at_most in the suite, and record it");
}

}  // namespace
}  // namespace redblue
