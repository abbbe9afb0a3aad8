// Tests `redblue history` on git repositories that each test makes: the versions of a baseline, and
// how they are drawn, reported or refused.

#include <filesystem>
#include <functional>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/svg.hpp"

namespace redblue {
namespace {

using Ordered = nlohmann::ordered_json;

// Makes a repository with one commit for each call of commit(), on consecutive days.
class HistoryOfABaseline : public Cli {
 protected:
  void SetUp() override {
    git({"init", "-q", "-b", "main"});
    directory_.write("suite.json", R"({"points": [
        {"kernel": ["forward/rows", "backward/rows"], "n": 40, "d": 5, "M": 300},
        {"kernel": "matmul/blocked", "n": 8, "d": 8, "M": 48}]})");
    ASSERT_EQ(redblue("record suite.json -o base.json").code, 0);
  }

  [[nodiscard]] Process with_git(const std::string& line) const {
    Process process = this->process(line);
    for (const char* variable : {"PATH=/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_GLOBAL=/dev/null",
                                 "GIT_CONFIG_SYSTEM=/dev/null", "HOME=/nonexistent"}) {
      process.environment.emplace_back(variable);
    }
    return process;
  }
  [[nodiscard]] Outcome history(const std::string& line) const {
    return with_git("history " + line).run();
  }
  [[nodiscard]] Json history_json(const std::string& line) const {
    const Outcome outcome = history(line + " --format json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }

  std::string git(const std::vector<std::string>& words) const {
    Process process = with_git("");
    process.words = {"/usr/bin/git"};
    process.words.insert(process.words.end(), words.begin(), words.end());
    for (const char* name : {"AUTHOR", "COMMITTER"}) {
      process.environment.push_back(fmt::format("GIT_{}_NAME=A. Person", name));
      process.environment.push_back(fmt::format("GIT_{}_EMAIL=a@b", name));
      process.environment.push_back(
          fmt::format("GIT_{}_DATE=2026-01-{:02}T12:00:00Z", name, commits_));
    }
    const Outcome outcome = process.run();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out.substr(0, outcome.out.find('\n'));
  }
  // Commits all files and returns the hash.
  std::string commit(const std::string& subject) {
    git({"add", "-A"});
    ++commits_;
    git({"commit", "-q", "-m", subject});
    return git({"rev-parse", "HEAD"});
  }
  void edit(const std::function<void(Ordered& points)>& change) const {
    auto document = Ordered::parse(content_of(directory_ / "base.json"));
    change(document["points"]);
    directory_.write("base.json", document.dump());
  }
  // Changes a point by `by` words.
  void move(std::size_t point, Index by) const {
    edit([&](Ordered& points) {
      Ordered& reads = points[point]["total"]["reads"];
      reads = reads.get<Index>() + by;
    });
  }

  int commits_ = 0;
};
using HistoryPictures = HistoryOfABaseline;

TEST_F(HistoryOfABaseline, HasThePointsOfEachCommit) {
  const Index words = [&] {
    const Json total = Json::parse(content_of(directory_ / "base.json"))["points"][0]["total"];
    return total["reads"].get<Index>() + total["writes"].get<Index>();
  }();
  const std::string first = commit("Record a baseline");
  directory_.write("other", "");
  commit("Change another file");
  move(0, 100);
  const std::string second = commit("Read more, \"for now\"");
  edit([](Ordered& points) {
    points[1]["accepted"] = {{{"date", "2026-01-04"},
                              {"who", "A"},
                              {"reason", "keys come once"},
                              {"before", 9},
                              {"after", 8}}};
    points.erase(2);
    points[0].erase("total");
    points[0].erase("phases");
    points[0]["fits"] = false;
  });
  const std::string third = commit("Accept a change");
  const Json json = history_json("base.json");
  ASSERT_EQ(json["commits"].size(), 3U) << json;
  EXPECT_EQ(json["commits"][0], Json({{"commit", first},
                                      {"short", first.substr(0, 7)},
                                      {"date", "2026-01-01"},
                                      {"author", "A. Person"},
                                      {"subject", "Record a baseline"}}));
  EXPECT_EQ(json["commits"][1]["commit"], second);
  EXPECT_EQ(json["commits"][1]["subject"], "Read more, \"for now\"");
  EXPECT_EQ(json["metric"], "words");
  EXPECT_EQ(json["shallow"], false);
  ASSERT_EQ(json["points"].size(), 3U);
  EXPECT_EQ(json["points"][0]["kernel"], "forward/rows");
  EXPECT_EQ(json["points"][0]["values"], Json({words, words + 100, "does not fit"}));
  EXPECT_EQ(json["points"][2]["values"][2], Json());
  ASSERT_EQ(json["points"][1]["accepted"].size(), 1U);
  EXPECT_EQ(json["points"][1]["accepted"][0]["commit"], third);
  EXPECT_EQ(json["points"][1]["accepted"][0]["reason"], "keys come once");
  EXPECT_TRUE(json["points"][0]["accepted"].empty());

  const Outcome table = history("base.json");
  EXPECT_EQ(table.code, 0);
  EXPECT_TRUE(table.out.starts_with("base.json: words of 3 points in 3 commits\n")) << table.out;
  for (const std::string& row :
       {"forward/rows n=40 d=5 M=300 +" + first.substr(0, 7) + " +2026-01-01 +[0-9,]+ .*Record a",
        second.substr(0, 7) + " +2026-01-03 +[0-9,]+ +\\+100, \\+[0-9.]+%  A. Person: Read more",
        third.substr(0, 7) + " +2026-01-04 +does not fit",
        third.substr(0, 7) + " .*  A. Person: Accept a change  accepted: keys come once",
        third.substr(0, 7) + " +2026-01-04 +no such point"}) {
    EXPECT_TRUE(std::regex_search(table.out, std::regex(row))) << row << "\n" << table.out;
  }
  const auto csv = parse_csv(history("base.json --format csv").out);
  ASSERT_EQ(csv.size(), 9U);
  EXPECT_EQ(csv[1].at("commit"), second);
  EXPECT_EQ(csv[1].at("value"), std::to_string(words + 100));
  EXPECT_EQ(csv[2].at("value"), "");
  EXPECT_EQ(csv[5].at("accepted"), "keys come once");
}

TEST_F(HistoryOfABaseline, OfChosenPointsMetricsAndCommits) {
  commit("One");
  move(0, 1);
  const std::string second = commit("Two");
  git({"tag", "v1"});
  edit([](Ordered& points) { points[1]["phases"][0]["writes"] = 1; });
  const std::string third = commit("Three");
  EXPECT_EQ(history_json("base.json --point forward/rows")["points"].size(), 1U);
  EXPECT_EQ(history_json("base.json --point *rows* --point matmul*")["points"].size(), 3U);
  EXPECT_TRUE(history("base.json --point matmul/blocked")
                  .out.starts_with("base.json: words of 1 point in 3 commits\n"));
  const std::string phase =
      Json::parse(content_of(directory_ / "base.json"))["points"][1]["phases"][0]["path"];
  const Json writes = history_json(fmt::format("base.json --metric {}:writes", phase));
  EXPECT_EQ(writes["points"][1]["values"][2], 1);
  EXPECT_NE(writes["points"][1]["values"][1], 1);
  EXPECT_EQ(writes["points"][2]["values"][1], "none") << "it has no such phase";
  EXPECT_EQ(history_json("base.json --metric least_M")["metric"], "least_M");
  for (const std::string& since : {std::string("v1"), second, std::string("HEAD~1")}) {
    const Json json = history_json("base.json --since " + since);
    ASSERT_EQ(json["commits"].size(), 2U) << "what it was there, too";
    EXPECT_EQ(json["commits"][0]["commit"], second);
    EXPECT_EQ(json["commits"][1]["commit"], third);
  }
  // A table from v1 on shows the change of the first later commit.
  EXPECT_NE(
      history("base.json --since v1 --metric " + phase + ":writes").out.find(third.substr(0, 7)),
      std::string::npos);
  // The baseline in another directory, and by another spelling of its path.
  std::filesystem::create_directories(directory_ / "sub");
  std::filesystem::copy(directory_ / "base.json", directory_ / "sub/base.json");
  commit("Four");
  EXPECT_EQ(history_json("sub/base.json")["commits"].size(), 1U);
  EXPECT_EQ(history_json("./sub/../base.json")["commits"].size(), 3U);
  // A file name is not a pattern.
  std::filesystem::copy(directory_ / "base.json", directory_ / "[b]ase.json");
  commit("Five");
  EXPECT_EQ(history_json("[b]ase.json")["commits"].size(), 1U);
}

// A merge counts as one commit, even if the merged branch had several.
TEST_F(HistoryOfABaseline, FollowsTheFirstParent) {
  commit("One");
  git({"checkout", "-q", "-b", "side"});
  move(0, 1);
  commit("Side");
  move(0, 1);
  commit("Side again");
  git({"checkout", "-q", "main"});
  ++commits_;
  git({"merge", "-q", "--no-ff", "-m", "Merge the side", "side"});
  const Json json = history_json("base.json");
  ASSERT_EQ(json["commits"].size(), 2U);
  EXPECT_EQ(json["commits"][1]["subject"], "Merge the side");
}

TEST_F(HistoryOfABaseline, LeavesOutWhatIsNoRecording) {
  const std::string good = content_of(directory_ / "base.json");
  commit("One");
  directory_.write("base.json", good.substr(0, 99));
  const std::string bad = commit("Break it").substr(0, 7);
  std::filesystem::remove(directory_ / "base.json");
  const std::string gone = commit("Remove it").substr(0, 7);
  directory_.write("base.json", good);
  commit("Mend it");
  const Outcome outcome = history("base.json --format json");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(Json::parse(outcome.out)["commits"].size(), 2U);
  EXPECT_TRUE(std::regex_match(
      outcome.err, std::regex("redblue: " + bad +
                              ":base.json is cut off or no JSON, .*: the commit is left out\n"
                              "redblue: " +
                              gone + ":base.json is not there: the commit is left out\n")))
      << outcome.err;
  directory_.write("none.json", "{}");
  commit("No recording");
  const Outcome none = history("none.json");
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.err.find("'none.json': no version of it is a recording\n"), std::string::npos)
      << none.err;
}

TEST_F(HistoryOfABaseline, OfAShallowCloneSaysSo) {
  commit("One");
  move(0, 1);
  commit("Two");
  git({"clone", "-q", "--depth", "1", "file://" + directory_.path().string(), "clone"});
  const Outcome outcome = history("clone/base.json");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err,
            "redblue: the clone is shallow: what it was before is not there: git fetch "
            "--unshallow\n");
  EXPECT_NE(outcome.out.find("in 1 commit, of a shallow clone\n"), std::string::npos)
      << outcome.out;
}

TEST_F(HistoryOfABaseline, IsRefusedWhereThereIsNone) {
  const auto refused = [&](const std::string& line, int code, const std::string& message) {
    SCOPED_TRACE(line);
    expect_refused(with_git("history " + line), code, message);
  };
  refused("base.json", 1, "'base.json' was never committed: git add it, and commit");
  commit("One");
  const std::string head = git({"rev-parse", "--short", "HEAD"});
  refused("gone.json", 1, "'gone.json' was never committed: git add it, and commit");
  refused("no/base.json", 1, "'no/base.json' is in no repository of git: fatal: ");
  refused("-", 2, "-: standard input has no history: name a baseline that is committed");
  refused("base.json --metric nowhere:reads", 1, "base.json: no point has nowhere:reads");
  refused("base.json --since v9", 2, "--since 'v9': git knows no such commit");
  refused("base.json --since --all", 2, "--since");
  refused("base.json --since HEAD", 1, "'base.json': no commit after HEAD changed it");
  refused("base.json --metric moves", 2,
          "--metric 'moves': expected \\[PHASE:\\]METRIC, METRIC words, ");
  refused("base.json --metric over_bound", 2, "--metric 'over_bound': expected");
  refused("base.json --point forward/raws", 2,
          "--point 'forward/raws': no point is called so: did you mean 'forward/rows n=40");
  refused("base.json --format xml", 2, "--format");
  refused("base.json -o picture.jpg", 2, "expected a name that ends in");
  expect_refused(process("history base.json"), 1,
                 "git is unavailable: there is none along PATH: install git");
  std::filesystem::remove_all(directory_ / ".git");
  refused("base.json", 1, "'base.json' is in no repository of git: fatal: not a git repository");
}

// A picture has one line for each changed point, with marks and reasons of accepted changes. A
// picture of a single point shows absolute words.
TEST_F(HistoryPictures, AreDrawn) {
  commit("One");
  move(0, 50);
  commit("Two");
  edit([](Ordered& points) {
    points[0]["total"]["reads"] = 2000;
    points[0]["accepted"] = {{{"date", "2026-01-04"},
                              {"who", "A"},
                              {"reason", "keys_come once"},
                              {"before", 9},
                              {"after", 8}}};
  });
  const std::string third = commit("Three").substr(0, 7);
  const auto texts = [&](const std::string& line) {
    const Outcome outcome = history("base.json -o picture.svg " + line);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::string all;
    for (const std::string& text : svg_texts(content_of(directory_ / "picture.svg"))) {
      all += text + "\n";
    }
    return all;
  };
  const std::string all = texts("");
  for (const std::string& text :
       {std::string("words of the points of base.json\n"),
        std::string("commits of base.json, 2026-01-01 to 2026-01-03\n"), third + "\n",
        std::string("forward/rows n=40 d=5 M=300\n"), std::string("2 unchanged\n"),
        std::string("keys_come once\n"), std::string("accepted\n"),
        std::string("redblue history base.json --out picture.svg\n")}) {
    EXPECT_NE(all.find(text), std::string::npos) << text << "\n" << all;
  }
  const std::string one = texts("--point forward/rows");
  EXPECT_NE(one.find("words of forward/rows n=40 d=5 M=300\n"), std::string::npos) << one;
  EXPECT_NE(texts("--bare").find("accepted\n"), std::string::npos);
  expect_refused(with_git("history base.json -o picture.svg --metric nowhere:reads"), 1,
                 "base.json: no point has nowhere:reads");
}

}  // namespace
}  // namespace redblue
