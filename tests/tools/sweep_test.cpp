// Tests `redblue sweep`: it leaves the same files whether it runs through or is killed and
// continued, on one processor or several. `redblue plot` draws them.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/svg.hpp"

namespace redblue {
namespace {

class SweepCommand : public Cli {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_.path() / name) << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    return content_of(directory_.path() / name);
  }
  void expect_refused(const std::string& line, int code, const std::string& message) const {
    SCOPED_TRACE(line);
    Cli::expect_refused(process(line), code, message);
  }
  void sweep(const std::string& line) const {
    const Outcome outcome = redblue("sweep " + line);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "") << "its data is in files";
  }
};

using SweepPictures = SweepCommand;

constexpr const char* kSuite =
    R"({"points": [{"kernel": ["backward/small", "backward/flash"], "n": 60, "d": [8, 16],
                    "M": {"from": 256, "to": "4K", "times": 2}}]})";

constexpr const char* kTimedSuite =
    R"({"how": "time", "points": [{"kernel": "backward/rows", "n": 60, "d": 8, "M": 1024}]})";

// A sweep of 500 points is killed many times, at moments that depend on the machine's speed.
TEST_F(SweepCommand, GoesOnWhereItWasKilled) {
  write("suite.json",
        R"({"points": [{"kernel": ["backward/small", "backward/rows", "backward/tiles",
                                   "forward/flash", "matmul/blocked"],
                        "n": {"from": 100, "to": 190, "step": 10}, "d": 16,
                        "M": {"from": 256, "to": "4K", "times": 1.36}}]})");
  const Outcome alone = redblue("sweep suite.json -o alone");
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_NE(alone.err.find("500 points"), std::string::npos) << alone.err;
  // The kill depends on the number of points that are done, not on a clock, because the load of the
  // machine varies.
  const std::string kill_at_lines = R"(most=$1; shift; "$@" & swept=$!
while kill -0 $swept 2>/dev/null && [ $(cat often/points.jsonl 2>/dev/null | wc -l) -lt $most ]
do sleep 0.005; done
kill -9 $swept 2>/dev/null; wait $swept)";
  int killed = 0;
  for (int lines = 40;; lines += 60) {
    ASSERT_LT(lines, 700) << "it does not come to an end";
    Process ended = process("sweep suite.json -o often");
    const std::vector<std::string> shell = {"/bin/sh", "-c", kill_at_lines, "sh",
                                            std::to_string(lines)};
    ended.words.insert(ended.words.begin(), shell.begin(), shell.end());
    const Outcome outcome = ended.run();
    if (outcome.code == 0) {
      EXPECT_NE(outcome.err.find("of 500 points were there"), std::string::npos) << outcome.err;
      break;
    }
    ASSERT_EQ(outcome.code, 128 + 9) << outcome.err;
    ++killed;
  }
  EXPECT_GE(killed, 2) << "it was hardly disturbed";
  EXPECT_EQ(read("often/sweep.csv"), read("alone/sweep.csv"));
  EXPECT_EQ(read("often/sweep.json"), read("alone/sweep.json"));
}

TEST_F(SweepCommand, DependsNotOnHowManyAtATime) {
  write("suite.json", kSuite);
  sweep("suite.json -o one --jobs 1");
  sweep("suite.json -o four --jobs 4");
  EXPECT_EQ(read("one/sweep.csv"), read("four/sweep.csv"));
  EXPECT_EQ(read("one/sweep.json"), read("four/sweep.json"));
  EXPECT_EQ(parse_csv(read("one/sweep.csv")).front().at("subject"), "backward/small");
}

TEST_F(SweepCommand, TimesWhereAskedFor) {
  write("suite.json", kTimedSuite);
  sweep("suite.json -o timed");
  const CsvRow total = parse_csv(read("timed/sweep.csv")).back();
  for (const char* column : {"seconds", "gflops", "peak_gflops", "words_per_second"}) {
    EXPECT_GT(std::stod(total.at(column)), 0) << column;
  }
}

TEST_F(SweepCommand, RefusesWhatItCannotGoOnWith) {
  write("suite.json", kSuite);
  sweep("suite.json -o done");
  write("other.json", R"({"points": [{"kernel": "backward/small", "n": 9, "d": 2, "M": 99}]})");
  expect_refused("sweep other.json -o done", 1, "done holds the points of another suite");
  expect_refused("sweep suite.json", 2, "--out is missing");
  expect_refused("sweep suite.json -o suite.json", 1,
                 "redblue: cannot create director.* 'suite\\.json': ");
  expect_refused("sweep none.json -o none", 1, "none\\.json");
  expect_refused("sweep suite.json -o done --jobs 0", 2, "--jobs");
  write("bad.json", R"({"how": "often", "points": []})");
  expect_refused("sweep bad.json -o none", 1, "bad\\.json, how: \"often\": expected run or count");
  std::ofstream(directory_.path() / "done" / "points.jsonl", std::ios::app) << "{\"subject\": 1}\n";
  expect_refused("sweep suite.json -o done", 1, "points\\.jsonl, line 22");
}

// Points of another build or another machine are not continued.
TEST_F(SweepCommand, GoesOnWithItsOwnPointsAlone) {
  write("suite.json", kSuite);
  sweep("suite.json -o done");
  std::string journal = read("done/points.jsonl");
  const std::size_t at = journal.find("\"program\":\"") + 11;
  journal[at] = journal[at] == '0' ? '1' : '0';
  write("done/points.jsonl", journal);
  expect_refused("sweep suite.json -o done", 1, "done holds the points of another build");
  write("timed.json",
        R"({"how": "time", "points": [{"kernel": "backward/rows", "n": 9, "d": 2, "M": 999}]})");
  expect_refused("sweep timed.json -o timed --jobs 2", 2, "timed run one at a time");
}

// Kernels in a shared library are a part of the build. The library is recognised by its name, and
// another one is another build.
TEST_F(SweepCommand, KnowsAnotherLibraryOfItsOwn) {
  if (kSanitized) {
    GTEST_SKIP() << "a sanitizer wants to be loaded before all else";
  }
  Dl_info some;
  ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, "cos"), &some), 0);
  std::filesystem::copy_file(some.dli_fname, directory_ / "libredblue_kernels.so");
  std::filesystem::copy_file(some.dli_fname, directory_ / "libother.so");
  write("suite.json", kSuite);
  sweep("suite.json -o done");
  const auto with = [this](const std::string& library) {
    Process again = process("sweep suite.json -o done");
    again.environment.push_back("LD_PRELOAD=" + (directory_ / library).string());
    return again;
  };
  EXPECT_EQ(with("libother.so").run().code, 0);
  Cli::expect_refused(with("libredblue_kernels.so"), 1, "done holds the points of another build");
}

std::string joined(const std::vector<std::string>& texts) {
  return fmt::format("|{}|", fmt::join(texts, "|"));
}

// The axis is the size that varies, or the size that --over names. A title names the sizes that
// stay the same. A picture has one title, however many plots it has.
TEST_F(SweepPictures, IsDrawnOverWhatVaries) {
  write("suite.json", R"({"how": "count", "points": [
      {"kernel": ["backward/small", "backward/rows"], "n": [64, 128, 256], "d": 16, "M": "2K"},
      {"kernel": ["backward/small", "backward/rows"], "n": 64, "d": [8, 16, 64], "M": "2K"},
      {"kernel": ["backward/small", "backward/rows"], "n": 64, "d": 16, "M": ["1K", "2K", "4K"]}]})");
  sweep("suite.json -o swept");
  struct Drawn {
    std::string asked, label, tics, common;
  };
  for (const Drawn& drawn : {Drawn{"--where d=16,M=2K", "n = m, queries and keys", "|64|128|256|",
                                   "d = 16, M = 2K, after a forward pass"},
                             {"--where n=64,M=2K", "d, width", "|8|16|32|64|",
                              "n = m = 64, M = 2K, after a forward pass"},
                             {"--where n=64,d=16", "M, words of fast memory", "|1K|2K|4K|",
                              "n = m = 64, d = 16, after a forward pass"},
                             {"--where n=64,M=2K --over d", "d, width", "|8|16|32|64|",
                              "n = m = 64, M = 2K, after a forward pass"}}) {
    SCOPED_TRACE(drawn.asked);
    for (const std::string kind : {"figure1", "phases"}) {
      const std::string kernel = kind == "phases" ? " --kernel backward/small" : "";
      const Outcome outcome =
          redblue("plot " + kind + " swept " + drawn.asked + kernel + " -o p.svg");
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      const std::vector<std::string> texts = svg_texts(read("p.svg"));
      EXPECT_EQ(std::ranges::count(texts, drawn.label), kind == "figure1" ? 2 : 1);
      EXPECT_NE(joined(texts).find(drawn.tics), std::string::npos) << joined(texts);
      const std::string title = kind == "figure1" ? "Words of backward passes: "
                                                  : "Where the words of backward/small go: ";
      EXPECT_EQ(std::ranges::count(texts, title + drawn.common), 1) << joined(texts);
      EXPECT_EQ(joined(texts).find("^{"), std::string::npos) << joined(texts);
    }
  }
  // With all points, three axes are possible.
  expect_refused("plot figure1 swept -o p.svg", 2,
                 "--where n=64,d=16 draws over M, --where d=16,M=2048 draws over n, "
                 "--where n=64,M=2048 draws over d");
}

// The suite of Figure 1 is counted, and its check runs the same points.
TEST_F(SweepCommand, Figure1IsCountedAndItsCheckIsRun) {
  const auto suite = [](const char* name) {
    return Json::parse(content_of(std::string(REDBLUE_SOURCE_DIR "/tools/suites/") + name), nullptr,
                       true, true);
  };
  Json counted = suite("figure1.json");
  Json ran = suite("figure1-run.json");
  EXPECT_EQ(counted["how"], "count");
  EXPECT_EQ(ran["how"], "run");
  EXPECT_EQ(counted["points"], ran["points"]);
}

// Counts equal the counts of a run, here with fewer queries.
TEST_F(SweepCommand, CountsAreThoseOfTheRun) {
  const auto rows = [this](const std::string& how) {
    write(how + ".json", fmt::format(R"({{"how": "{}", "points": [
        {{"kernel": ["backward/small", "backward/flash", "backward/large", "backward/auto"],
         "n": 96, "d": 16, "M": {{"from": 64, "to": "16K", "times": 1.4142136}}}}]}})",
                                     how));
    sweep(how + ".json -o " + how);
    std::vector<std::string> found;
    for (const CsvRow& row : parse_csv(read(how + "/sweep.csv"))) {
      std::string text;
      for (const char* column : {"subject", "M", "phase", "reads", "writes", "peak"}) {
        text += row.at(column) + " ";
      }
      found.push_back(text);
    }
    return found;
  };
  const std::vector<std::string> counted = rows("count");
  EXPECT_GT(counted.size(), 200U);
  EXPECT_EQ(counted, rows("run"));
}

// A point that cannot run is reported in its place, like a point that does not fit. The other
// points stay as they were.
TEST_F(SweepCommand, APointThatCannotRunIsSaidAndKept) {
  write("suite.json", R"({"points": [{"kernel": ["backward/rows", "backward/flash"], "n": 60,
                                      "d": 8, "M": [9, 2048], "threads": [1, 2]}]})");
  const Outcome outcome = redblue("sweep suite.json -o swept");
  EXPECT_EQ(outcome.code, 0) << "what is asked of it cannot be done: no fault of the machine";
  EXPECT_NE(outcome.err.find("8 points in swept"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("1 of them cannot run: backward/flash n=60"), std::string::npos)
      << outcome.err;
  std::string fits;
  for (const CsvRow& row : parse_csv(read("swept/sweep.csv"))) {
    if (row.at("phase") == "total") {
      fits += row.at("fits") + " ";
      EXPECT_EQ(row.at("why").empty(), row.at("fits") == "yes");
      if (row.at("fits") == "failed") {
        EXPECT_NE(row.at("why").find("runs one head on one thread"), std::string::npos);
      }
    }
  }
  EXPECT_EQ(fits, "no no yes yes no no yes failed ");
  const Json points = Json::parse(read("swept/sweep.json"))["points"];
  EXPECT_EQ(points[7]["failed"], true);
  EXPECT_EQ(points[4].contains("failed"), false);

  const Outcome again = redblue("sweep suite.json -o swept");
  EXPECT_EQ(again.code, 0);
  EXPECT_NE(again.err.find("8 of 8 points were there"), std::string::npos) << again.err;
  ASSERT_EQ(redblue("report swept").code, 0);
  const std::string page = read("swept/report.html");
  EXPECT_NE(page.find("<strong>1 of 8 points cannot run</strong>"), std::string::npos);
  EXPECT_NE(page.find("cannot run: threads 2: backward/flash runs one head"), std::string::npos);
}

// A point that fails because the disk has no room is marked in the files. The next sweep tries it
// again.
TEST_F(SweepCommand, APointThatFailedIsTriedAgain) {
  write("suite.json", R"({"points": [{"kernel": "backward/rows", "n": 60, "d": 8, "M": 2048,
                                      "store": ["disk", "memory"]}]})");
  const Outcome failed = redblue("TMPDIR=/no/such/directory sweep suite.json -o swept");
  EXPECT_EQ(failed.code, 1);
  EXPECT_NE(failed.err.find("1 of them cannot run: "), std::string::npos) << failed.err;
  EXPECT_EQ(parse_csv(read("swept/sweep.csv")).front().at("fits"), "failed");
  const Outcome again = redblue("sweep suite.json -o swept");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.err.find("1 of 2 points were there"), std::string::npos) << again.err;
  EXPECT_EQ(parse_csv(read("swept/sweep.csv")).front().at("fits"), "yes");
}

// The last point would take minutes, and the process does not wait for it.
TEST_F(SweepCommand, AnInterruptionSaysWhatIsKept) {
  write("suite.json",
        R"({"points": [{"kernel": "matmul/blocked", "n": [9, 10, 11], "d": 8, "M": 27},
                         {"kernel": "matmul/blocked", "n": 4000, "d": 1500, "M": 27}]})");
  Process ended = process("sweep suite.json -o swept --jobs 1");
  ended.words.insert(ended.words.begin(),
                     {"/usr/bin/timeout", "--foreground", "-s", "INT", kSanitized ? "8" : "3"});
  const Outcome outcome = ended.run();
  EXPECT_EQ(outcome.code, 124) << "as timeout has it";
  EXPECT_EQ(outcome.err,
            "redblue: ended by SIGINT: 3 of 4 points are kept in swept; the same command "
            "continues\n");
  EXPECT_LT(outcome.seconds, kSanitized ? 48 : 20);
}

// Draws every kind of picture, as SVG and as PNG, with its command below it.
TEST_F(SweepPictures, IsDrawn) {
  write("suite.json", kSuite);
  sweep("suite.json -o swept");
  for (const std::string line :
       {"figure1 swept --where d=8", "phases swept --where d=8 --kernel backward/small"}) {
    ASSERT_EQ(redblue("plot " + line + " -o picture.svg").code, 0) << line;
    const std::string svg = read("picture.svg");
    EXPECT_NE(svg.find("redblue plot"), std::string::npos);
    EXPECT_NE(svg.find("words of fast memory"), std::string::npos);
    EXPECT_NE(svg.find("words moved"), std::string::npos);
    ASSERT_EQ(redblue("plot " + line + " -o picture.png").code, 0) << line;
    EXPECT_TRUE(read("picture.png").starts_with("\x89PNG\r\n"));
  }
}

TEST_F(SweepPictures, TimesAreDrawn) {
  write("suite.json", kTimedSuite);
  sweep("suite.json -o timed");
  EXPECT_EQ(redblue("plot roofline timed -o roof.svg").code, 0);
}

TEST_F(SweepPictures, SaysWhatCannotBeDrawn) {
  write("suite.json", kSuite);
  sweep("suite.json -o swept");
  expect_refused(
      "plot figure1 swept -o p.svg", 2,
      "swept varies in d \\(8, 16\\), M \\(256, 512, 1024, \\.\\.\\.\\): --where d=8 draws over "
      "M, --where M=256 draws over d");
  expect_refused("plot figure1 swept --over d -o p.svg", 2, "\\): --where M=256 draws over d$");
  expect_refused("plot figure1 swept --over m -o p.svg", 2, "--over 'm': expected M\\|n\\|d");
  expect_refused("plot figure1 swept --over n --where d=8,M=256 -o p.svg", 1,
                 "fits with two sizes of n or more");
  expect_refused("plot figure1 swept --where d=9 -o p.svg", 2, "no such points");
  expect_refused("plot figure1 swept --where d -o p.svg", 2, "expected NAME=VALUE");
  expect_refused("plot figure1 swept --where hedas=1 -o p.svg", 2, "no point has a 'hedas'");
  expect_refused("plot phases swept --where d=8 --kernel backward/smal -o p.svg", 2,
                 "the sweep has backward/small, backward/flash");
  expect_refused("plot phases swept --where d=8 -o p.svg", 2,
                 "--kernel is missing: .* backward/small, backward/flash");
  expect_refused("plot roofline swept -o p.svg", 1, "nothing of one thread was timed");
  expect_refused("plot figure1 none -o p.svg", 1, "`redblue sweep SUITE -o none` makes it");
  write("swept/sweep.json", read("swept/sweep.json").substr(0, 999));
  expect_refused("plot figure1 swept -o p.svg", 1, "swept/sweep\\.json");
}

}  // namespace
}  // namespace redblue
