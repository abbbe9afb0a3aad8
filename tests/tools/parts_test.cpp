// Tests a suite in parts on several machines. The merged parts equal the files of a single machine,
// byte for byte. Parts that do not form a whole are refused.

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

using Ordered = nlohmann::ordered_json;

class PartsOfASuite : public Cli {
 protected:
  [[nodiscard]] std::string read(const std::string& name) const {
    return content_of(directory_ / name);
  }
  void done(const std::string& line) const {
    const Outcome outcome = redblue(line);
    ASSERT_EQ(outcome.code, 0) << line << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  void refused(const std::string& line, int code, const std::string& message) const {
    SCOPED_TRACE(line);
    expect_refused(process(line), code, message);
  }

  // Sweeps suite.json in parts `name`.1 to `name`.N; returns these names, the last one first.
  [[nodiscard]] std::string swept(const std::string& name, int of) const {
    std::string names;
    for (int number = 1; number <= of; ++number) {
      done(fmt::format("sweep suite.json --part {}/{} -o {}.{}", number, of, name, number));
      names = fmt::format("{}.{} {}", name, number, names);
    }
    return names;
  }
  void expect_same_files(const std::string& a, const std::string& b) const {
    for (const char* name : {"/sweep.csv", "/sweep.json"}) {
      EXPECT_EQ(read(a + name), read(b + name));
    }
  }
};

using PartsPictures = PartsOfASuite;

// Some points fit in M and some do not. One kernel cannot run on two threads.
constexpr const char* kSuite = R"({"how": "count", "points": [
    {"kernel": ["backward/small", "backward/flash"], "n": 60, "d": [8, 16], "M": [64, 512, "4K"]},
    {"kernel": "backward/flash", "n": 60, "d": 8, "M": 2048, "threads": 2}]})";  // 13 points

// The merged sweep equals the whole for every number of parts, even for more parts than points.
// points.jsonl is equal too if one process writes it, in the order of the suite.
TEST_F(PartsOfASuite, MergedAreTheWhole) {
  directory_.write("suite.json", kSuite);
  done("sweep suite.json -o whole --jobs 1");
  for (const int of : {1, 2, 3, 5, 13, 17}) {
    SCOPED_TRACE(of);
    const std::string name = fmt::format("of{}", of);
    const std::string parts = swept(name, of);
    const std::string merged = name + "-merged";
    const Outcome outcome = redblue("merge " + parts + "-o " + merged);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_TRUE(
        outcome.err.starts_with(fmt::format("redblue: 13 points in {}: sweep.csv, sweep.json\n"
                                            "redblue: 1 of them cannot run: backward/flash n=60",
                                            merged)))
        << outcome.err;
    expect_same_files("whole", merged);
    EXPECT_EQ(read("whole/points.jsonl"), read(merged + "/points.jsonl"));
  }
  // Each point of a part equals a point of the whole.
  const Json whole = Json::parse(read("whole/sweep.json"))["points"];
  const Json second = Json::parse(read("of5.2/sweep.json"));
  EXPECT_EQ(second["part"], "2/5");
  ASSERT_EQ(second["points"].size(), 3U);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(second["points"][k], whole[5 * k + 1]);
  }
}

TEST_F(PartsOfASuite, RunsMergedAreTheWhole) {
  directory_.write("suite.json", R"({"points": [{"kernel": ["backward/rows", "forward/flash"],
                                     "n": [20, 30], "d": 8, "M": [512, 1024]}]})");
  done("sweep suite.json -o whole");
  done("merge " + swept("part", 3) + "-o merged");
  expect_same_files("whole", "merged");
}

TEST_F(PartsPictures, OfMergedPartsAreThoseOfTheWhole) {
  directory_.write("suite.json", R"({"how": "count", "points": [
      {"kernel": ["backward/small", "backward/flash"], "n": 60, "d": 8,
       "M": {"from": 256, "to": "4K", "times": 2}}]})");
  done("sweep suite.json -o whole");
  done("merge " + swept("part", 3) + "-o merged");
  done("report whole -o page.html");
  const std::string of_whole = read("page.html");
  done("plot figure1 whole -o f.svg --bare");
  const std::string picture = read("f.svg");
  done("plot figure1 merged -o f.svg --bare");
  EXPECT_EQ(read("f.svg"), picture);
  std::filesystem::remove_all(directory_ / "whole");
  std::filesystem::rename(directory_ / "merged", directory_ / "whole");
  done("report whole -o page.html");
  EXPECT_EQ(read("page.html"), of_whole);
}

// A part that was killed continues, and the merged sweep shows no trace of it.
TEST_F(PartsOfASuite, KilledPartsContinue) {
  directory_.write("suite.json", R"({"points": [{"kernel": ["backward/small", "backward/rows"],
                                     "n": {"from": 100, "to": 190, "step": 10}, "d": 16,
                                     "M": {"from": 256, "to": "4K", "times": 1.36}}]})");
  done("sweep suite.json -o whole");
  done("sweep suite.json --part 1/2 -o part.1");
  // The part is killed after it has kept some points.
  const std::string kill = R"("$@" & swept=$!
while kill -0 $swept 2>/dev/null && [ $(cat part.2/points.jsonl 2>/dev/null | wc -l) -lt 10 ]
do sleep 0.005; done
kill -9 $swept 2>/dev/null; wait $swept)";
  Process killed = process("sweep suite.json --part 2/2 -o part.2 --jobs 1");
  const std::vector<std::string> shell = {"/bin/sh", "-c", kill, "sh"};
  killed.words.insert(killed.words.begin(), shell.begin(), shell.end());
  ASSERT_EQ(killed.run().code, 128 + 9);
  refused("merge part.1 part.2 -o merged", 1,
          "[0-9]+ of 200 points are missing, of part 2/2: backward/.*; and [0-9]+ more "
          "\\(--partial merges without them\\)");
  const Outcome again = redblue("sweep suite.json --part 2/2 -o part.2");
  EXPECT_EQ(again.code, 0);
  EXPECT_NE(again.err.find("of 100 points were there"), std::string::npos) << again.err;
  done("merge part.1 part.2 -o merged");
  expect_same_files("whole", "merged");
}

// A partial merge names the missing points. A sweep of the whole suite continues from it.
TEST_F(PartsOfASuite, MayBeMissingWhereAskedFor) {
  directory_.write("suite.json", kSuite);
  done("sweep suite.json -o whole");
  static_cast<void>(swept("part", 3));
  refused("merge part.3 part.1 -o merged", 1,
          "4 of 13 points are missing, of part 2/3: backward/small n=60 .* M=512 .*; .*--partial");
  for (const std::string line :
       {"merge part.3 part.1 -o merged --partial", "merge part.1 part.3 --partial --out again"}) {
    const Outcome outcome = redblue(line);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_NE(outcome.err.find("4 of 13 points are missing, of part 2/3: "), std::string::npos);
    EXPECT_NE(outcome.err.find("9 points in "), std::string::npos);
  }
  expect_same_files("merged", "again");
  const Json merged = Json::parse(read("merged/sweep.json"));
  EXPECT_EQ(merged["points"].size(), 9U);
  EXPECT_EQ(merged["missing"].size(), 4U);
  done("merge merged part.2 -o all");
  expect_same_files("whole", "all");
  const Outcome outcome = redblue("sweep suite.json -o merged");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("9 of 13 points were there"), std::string::npos) << outcome.err;
  expect_same_files("whole", "merged");
}

TEST_F(PartsOfASuite, AnEmptyPartSaysSo) {
  directory_.write("suite.json", kSuite);
  const Outcome outcome = redblue("sweep suite.json -o empty --part 14/20");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err,
            "redblue: part 14/20 is empty: the suite has 13 points\n"
            "redblue: 0 points in empty: sweep.csv, sweep.json\n");
  EXPECT_EQ(Json::parse(read("empty/sweep.json"))["points"].size(), 0U);
  refused("report empty", 1, "empty/sweep.json has no points");
  refused("plot figure1 empty -o p.svg", 1, "empty/sweep.json has no points");
  refused("merge empty -o merged --partial", 1, "the parts have no points");
  const Outcome again = redblue("sweep suite.json --part 14/20 -o empty");
  EXPECT_EQ(again.err, outcome.err);
}

TEST_F(PartsOfASuite, AreAskedForAsIOfN) {
  directory_.write("suite.json", R"({"points": [{"kernel": "backward/*", "n": 9, "d": 5,
                                     "M": 900}]})");
  done("record suite.json -o base.json");
  for (const std::string command :
       {"sweep suite.json -o none", "record suite.json -o none.json", "check base.json"}) {
    for (const std::string bad : {"0/3", "4/3", "3", "1/0", "/", "1/", "-1/3", "1/3/5", "one/3",
                                  "1.5/3", "1/99999999999999999999"}) {
      refused(command + " --part " + bad, 2,
              "--part '" + bad + "': expected i/N, as 2/5, with i from 1 to N");
    }
    refused(command + " --part 1/3 --part 2/3", 2, "--part is given 2 times");
    EXPECT_NE(data(command.substr(0, command.find(' ')) + " --help").find("--part i/N"),
              std::string::npos);
  }
  EXPECT_NE(data("merge --help").find("--partial "), std::string::npos);
}

// Each refusal names both directories and leaves no output directory.
TEST_F(PartsOfASuite, OfOtherWholesAreRefused) {
  directory_.write("suite.json", kSuite);
  const std::string parts = swept("part", 2);
  refused("sweep suite.json --part 1/2 -o part.2", 1, "part.2 holds the points of another part");
  refused("sweep suite.json -o part.2", 1, "part.2 holds the points of another part");
  directory_.write("other.json", std::string(kSuite) + "\n");
  done("sweep other.json --part 2/2 -o other");
  refused("merge part.1 other -o merged", 1,
          "part.1 and other are no parts of one whole: the suite of one is another");

  const std::string journal = read("part.2/points.jsonl");
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = journal;
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    directory_.write("changed/points.jsonl", text.replace(at, from.size(), to));
  };
  const std::string program = Json::parse(journal.substr(0, journal.find('\n')))["program"];
  changed(program, "0123456789abcdef");
  refused("merge part.1 changed -o merged", 1,
          "part.1 and changed are no parts of one whole: the build of redblue of one is another");
  changed("\"context\":{\"redblue\":\"", "\"context\":{\"redblue\":\"9.");
  refused("merge part.1 changed -o merged", 1,
          "changed is of redblue \"9\\..*merge it by that one");
  changed("{\"part\":\"2/2\"", "{\"part\":\"3/2\"");
  refused("merge part.1 changed -o merged", 1, "changed/points.jsonl, line 1, part is no i/N");
  changed("{\"part\":\"2/2\"", "{\"park\":\"2/2\"");
  refused("merge part.1 changed -o merged", 1, "changed/points.jsonl, line 1 has no \"part\"");
  changed("\"reads\":", "\"reads\":1");
  refused("merge part.1 part.2 changed -o merged", 1,
          "part.2 and changed differ at backward/small .*: [a-z0-9/S]+ reads [0-9,]+ -> 1");
  directory_.write("changed/points.jsonl", "");
  refused("merge part.1 changed -o merged", 1, "changed/points.jsonl has no whole line");

  refused("merge part.1 nowhere -o merged", 1, "there is no nowhere/points.jsonl: `redblue sweep");
  refused("merge part.1 suite.json -o merged", 2,
          "part.1 is the directory of a sweep, and suite.json a file");
  refused("merge part.1 part.2", 2, "--out is missing");
  refused("merge part.1 part.2 -o -", 2, "--out -: a sweep is a directory");
  refused("merge", 2, "parts is required");
  refused("merge part.1 part.2 -o part.2", 1, "part.2 holds a sweep: take another directory");
  refused("merge part.1 part.2 -o suite.json", 1, "suite.json");
}

TEST_F(PartsOfASuite, PointsThatAreThereTwiceAreEqual) {
  directory_.write("suite.json", kSuite);
  done("sweep suite.json -o whole");
  const std::string of_two = swept("two", 2);
  const std::string of_three = swept("three", 3);
  for (const std::string parts : {"whole ", "whole whole ", "two.1 whole ", "two.1 two.1 two.2 ",
                                  "two.2 three.1 three.2 three.3 "}) {
    std::filesystem::remove_all(directory_ / "merged");
    done("merge " + parts + "-o merged");
    expect_same_files("whole", "merged");
  }
  refused("merge two.1 three.3 -o other", 1, "points are missing: ");
}

// Parts must agree on the content of files that points name.
TEST_F(PartsOfASuite, OfOtherFilesAreRefused) {
  const auto layout = [&](const char* rows) { directory_.write("mask.smtx", rows); };
  directory_.write("suite.json", R"({"how": "count", "points": [{"kernel": "backward/rows", "n": 4,
      "d": 3, "M": [200, 300, 400], "mask": "pattern:mask.smtx"}]})");
  layout("4, 4, 4\n0 1 2 3 4\n0 1 2 3\n");
  done("sweep suite.json --part 1/2 -o part.1");
  done("record suite.json --part 1/2 -o part.1.json");
  layout("4, 4, 4\n0 1 2 3 4\n0 1 2 0\n");
  done("sweep suite.json --part 2/2 -o part.2");
  done("record suite.json --part 2/2 -o part.2.json");
  const std::string message = " are no parts of one whole: the file that a point names of one is";
  refused("merge part.1 part.2 -o merged", 1, "part.1 and part.2" + message);
  refused("merge part.1.json part.2.json -o b.json", 1, "part.1.json and part.2.json" + message);
  refused("sweep suite.json --part 1/2 -o part.1", 1, "another file that a point names");
}

TEST_F(PartsOfASuite, ADiskThatIsFullLeavesNoDirectory) {
  directory_.write("suite.json", kSuite);
  const std::string parts = swept("part", 2);
  if (!kFilesAreLimited) {
    GTEST_SKIP() << "files cannot be limited in this build";
  }
  Process limited = process("merge " + parts + "-o merged");
  limited.largest_file = 100;
  expect_refused(limited, 1, "merged/points.jsonl");
}

class PartsOfAGate : public PartsOfASuite {
 protected:
  void SetUp() override {
    directory_.write("suite.json", R"({"points": [{"kernel": ["backward/small", "forward/flash"],
                                       "n": 17, "m": 12, "d": 5, "M": [10, 150, 300]},
                                      {"kernel": "forward/rows", "n": 17, "d": 5, "M": 300}]})");
    done("record suite.json -o base.json");
  }
  // Records parts in `name`.1.json to `name`.N.json; returns these names, the last one first.
  [[nodiscard]] std::string recorded(const std::string& name, int of) const {
    std::string names;
    for (int number = 1; number <= of; ++number) {
      const Outcome outcome = redblue(
          fmt::format("record suite.json --part {0}/{1} -o {2}.{0}.json", number, of, name));
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_NE(outcome.err.find(fmt::format(" recorded, part {}/{} of 7 points", number, of)),
                std::string::npos)
          << outcome.err;
      names = fmt::format("{}.{}.json {}", name, number, names);
    }
    return names;
  }
};

TEST_F(PartsOfAGate, RecordedAreTheWholeBaseline) {
  for (const int of : {1, 2, 3, 7, 9}) {
    SCOPED_TRACE(of);
    const std::string parts = recorded(fmt::format("of{}", of), of);
    done("merge " + parts + "-o merged.json");
    EXPECT_EQ(read("merged.json"), read("base.json"));
    const Outcome printed = redblue("merge " + parts);
    EXPECT_EQ(printed.out, read("base.json")) << "without -o, to standard output";
    EXPECT_EQ(printed.err, fmt::format("redblue: 7 points of {} part{}\n", of, of == 1 ? "" : "s"));
  }
  // Parts may repeat, and may come from different divisions.
  done("merge of2.1.json of3.1.json of3.2.json of3.3.json of3.3.json -o merged.json");
  EXPECT_EQ(read("merged.json"), read("base.json"));
  // A part is a recording, too.
  EXPECT_EQ(data("check of3.2.json"), "this program\nagainst of3.2.json: same, all 2 points\n");
  refused("record of9.9.json -o none.json", 1, "of9.9.json is a part without points");
}

TEST_F(PartsOfAGate, AreRefusedUnlessTheyAreAWhole) {
  const std::string parts = recorded("part", 2);
  refused("merge part.2.json -o merged.json", 1,
          "4 of 7 points are missing, of part 1/2: backward/small .*; .* \\(--partial");
  const Outcome partial = redblue("merge part.2.json -o merged.json --partial");
  EXPECT_EQ(partial.code, 0);
  EXPECT_EQ(Json::parse(read("merged.json"))["points"].size(), 3U);
  EXPECT_FALSE(Json::parse(read("merged.json")).contains("part"));
  std::filesystem::remove(directory_ / "merged.json");

  refused("merge base.json part.1.json -o merged.json", 1,
          "base.json is no part of a recording: `record --part i/N` makes one");
  refused("merge part.1.json part.2.json -o ./part.1.json", 2, "this file is one of the parts");
  refused("merge - - -o merged.json", 2, "standard input is one recording");
  refused("merge part.1.json gone.json", 1, "cannot read 'gone.json'");
  refused("merge part.1.json suite.json", 1, "suite.json is no recording");
  directory_.write("other.json", R"({"points": [{"kernel": "forward/flash", "n": 17, "m": 12,
                                     "d": 5, "M": 150}]})");
  done("record other.json --part 1/1 -o one.json");
  refused("merge part.1.json one.json -o merged.json", 1,
          "part.1.json and one.json are no parts of one whole: the suite of one is another");
  const auto changed = [&](const auto& change) {
    auto document = Ordered::parse(read("part.2.json"));
    change(document);
    directory_.write("changed.json", document.dump());
  };
  changed([](Ordered& document) { document["part"]["program"] = "0"; });
  refused("merge part.1.json changed.json -o merged.json", 1,
          "part.1.json and changed.json are no parts of one whole: the build of redblue of one");
  changed([](Ordered& document) { document["part"]["part"] = "0/2"; });
  refused("merge part.1.json changed.json -o merged.json", 1, "changed.json, part, part is no i/N");
  changed([](Ordered& document) { document["part"].erase("program"); });
  refused("merge part.1.json changed.json -o merged.json", 1,
          "changed.json, part has no \"program\"");
  changed([](Ordered& document) {
    Ordered& reads = document["points"][0]["phases"][0]["reads"];
    reads = reads.get<Index>() + 1;
  });
  refused("merge part.1.json part.2.json changed.json -o merged.json", 1,
          "part.2.json and changed.json differ at backward/small n=17 m=12 d=5 M=150: .* reads ");
  changed([](Ordered& document) { document["points"] = Ordered::array(); });
  refused("merge changed.json --partial", 1, "the parts have no points");
}

// The verdicts of all parts together equal the verdicts of the whole. Each difference is in one
// part only.
TEST_F(PartsOfAGate, CheckedHaveTheVerdictsOfTheWhole) {
  EXPECT_EQ(data("check base.json --part 2/3"),
            "this program\nagainst base.json: part 2/3: same, all 2 points\n");
  EXPECT_EQ(data("check base.json --part 8/9"),
            "this program\nagainst base.json: part 8/9: same, it has no points\n");
  EXPECT_EQ(redblue("check base.json --part 2/3 --tolerance phase2/h:reads=1").code, 0);
  auto edited = Ordered::parse(read("base.json"));
  for (const std::size_t k : {1, 6}) {
    Ordered& reads = edited["points"][k]["total"]["reads"];
    reads = reads.get<Index>() - 1;
  }
  edited["points"][5]["fits"] = false;
  directory_.write("edited.json", edited.dump());
  for (const std::size_t of : {1, 2, 3, 4, 7, 8}) {
    std::multiset<std::string> together;
    std::size_t points = 0;
    for (std::size_t number = 1; number <= of; ++number) {
      const Outcome outcome =
          redblue(fmt::format("check edited.json --format json --part {}/{}", number, of));
      const Json json = Json::parse(outcome.out);
      bool differs = false;
      for (const std::size_t k : {1, 5, 6}) {
        differs |= k % of + 1 == number;
      }
      EXPECT_EQ(outcome.code, differs ? 3 : 0) << number << "/" << of;
      EXPECT_EQ(json.contains("part"), of > 1);
      points += json["points"].get<std::size_t>();
      for (const Json& difference : json["differences"]) {
        together.insert(difference.dump());
      }
    }
    EXPECT_EQ(points, 7U);
    const Json whole = Json::parse(redblue("check edited.json --format json").out);
    std::multiset<std::string> alone;
    for (const Json& difference : whole["differences"]) {
      alone.insert(difference.dump());
    }
    EXPECT_EQ(together, alone);
    EXPECT_EQ(alone.size(), 3U);
  }
}

// Returns the shell blocks of a section of a page.
std::vector<std::string> shell_of(const std::string& page, const std::string& title) {
  const std::string text = content_of(REDBLUE_SOURCE_DIR "/docs/" + page);
  const std::size_t begin = text.find("\n## " + title);
  const std::string section = text.substr(begin, text.find("\n## ", begin + 1) - begin);
  std::vector<std::string> blocks;
  const std::string open = "\n```sh\n", close = "\n```\n";
  for (std::size_t at = section.find(open); at != std::string::npos;
       at = section.find(open, at + 1)) {
    const std::size_t from = at + open.size();
    blocks.push_back(section.substr(from, section.find(close, from) - from));
  }
  return blocks;
}

// Runs the scripts of the pages as a cluster or a person runs them.
class PartsDocumentation : public PartsOfASuite {
 protected:
  void SetUp() override {
    directory_.write("suite.json", kSuite);
    std::filesystem::create_directory(directory_ / "bin");
    std::filesystem::create_symlink(REDBLUE_COMMAND, directory_ / "bin" / "redblue");
  }
  void shell(const std::string& script, const std::string& task = "") const {
    Process run = process("");
    run.words = {"/bin/sh", "-ec", script};
    run.environment.push_back("PATH=" + (directory_ / "bin").string() + ":/usr/bin:/bin");
    run.environment.push_back("HOME=" + directory_.path().string());
    run.environment.push_back("SLURM_ARRAY_TASK_ID=" + task);
    const Outcome outcome = run.run();
    EXPECT_EQ(outcome.code, 0) << script << "\n" << outcome.err;
  }
};

TEST_F(PartsDocumentation, OfASweep) {
  const std::vector<std::string> blocks = shell_of("pictures.md", "A sweep on several machines");
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_NE(blocks[0].find("\n#SBATCH --array=1-8\n"), std::string::npos);
  for (int task = 1; task <= 8; ++task) {
    shell(blocks[0], std::to_string(task));
  }
  shell(blocks[1]);
  shell(blocks[2]);
  done("sweep suite.json -o whole");
  expect_same_files("whole", "swept");
}

TEST_F(PartsDocumentation, OfABaseline) {
  directory_.write("suite.json", R"({"points": [{"kernel": "backward/*", "n": 17, "d": 5,
                                     "M": 900}]})");
  const std::vector<std::string> blocks = shell_of("gate.md", "On several machines");
  ASSERT_EQ(blocks.size(), 1U);
  const std::size_t merge = blocks[0].find("\nredblue merge ");
  ASSERT_NE(merge, std::string::npos);
  shell(blocks[0].substr(0, merge));
  shell(blocks[0].substr(merge));
  done("record suite.json -o base.json");
  EXPECT_EQ(read("baseline.json"), read("base.json"));
}

}  // namespace
}  // namespace redblue
