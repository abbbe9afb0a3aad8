// Tests a user's program with its own kernels: sweeps, pictures, reports, traces and replays work
// as for redblue's kernels. tests/programs/passes.cpp has the kernels. For example, passes/twice
// reads n x m words twice, row by row, and writes them in the second pass.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/svg.hpp"

namespace redblue {
namespace {

constexpr Index kWords = Index{6} * 10;  // n m

class OwnProgram : public Cli {
 protected:
  [[nodiscard]] Process own_process(const std::string& line) const {
    Process process = Cli::process(line);
    process.words.front() = REDBLUE_PASSES;
    return process;
  }
  [[nodiscard]] Outcome own(const std::string& line) const { return own_process(line).run(); }
  [[nodiscard]] std::string out_of(const std::string& line) const {
    const Outcome outcome = own(line);
    EXPECT_EQ(outcome.code, 0) << line << "\n" << outcome.err;
    EXPECT_EQ(outcome.err, "") << line;
    return outcome.out;
  }
  [[nodiscard]] Json json_of(const std::string& line) const {
    return Json::parse(out_of(line + " --format json"));
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    return content_of(directory_.path() / name);
  }
  void suite(const std::string& points, const std::string& how = "run") const {
    directory_.write("s.json", fmt::format(R"({{"how": "{}", "points": [{}]}})", how, points));
  }
  // Checks for one line on standard error with this text, and no other output.
  void expect_own_refused(const std::string& line, int code, const std::string& message) const {
    const auto before = files();
    const Outcome outcome = own(line);
    EXPECT_EQ(outcome.code, code) << line;
    EXPECT_EQ(outcome.out, "") << line;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err << "is not: " << message;
    EXPECT_EQ(files(), before) << line;
  }
};

using OwnProgramPictures = OwnProgram;

constexpr const char* kGrid =
    R"({"kernel": ["passes/twice", "passes/once"], "n": [3, 6], "m": 10, "M": [9, 16, 64]})";
const std::string kSize = " --n 6 --m 10 --M 16";

TEST_F(OwnProgram, IsSweptAsItRuns) {
  suite(kGrid);
  const Outcome swept = own("sweep s.json -o d");
  EXPECT_EQ(swept.code, 0) << swept.err;
  EXPECT_EQ(swept.out, "");
  EXPECT_NE(swept.err.find("12 points in d: sweep.csv, sweep.json"), std::string::npos);
  const Json sweep = Json::parse(read("d/sweep.json"));
  EXPECT_EQ(sweep["context"]["program"], "redblue_passes");
  EXPECT_TRUE(sweep["seed"].is_null());
  ASSERT_EQ(sweep["points"].size(), 12U);
  for (const Json& point : sweep["points"]) {
    const Json& arguments = point["arguments"];
    EXPECT_EQ(point["fits"], arguments["M"] != 9) << point;  // a row has 10 words
    if (!point["fits"]) {
      continue;
    }
    const Json run =
        json_of(fmt::format("run {} --n {} --m 10 --M {}", point["subject"].get<std::string>(),
                            arguments["n"].get<Index>(), arguments["M"].get<Index>()));
    EXPECT_EQ(point["total"]["reads"], run["total"]["reads"]);
    EXPECT_EQ(point["total"]["writes"], run["total"]["writes"]);
    EXPECT_EQ(point["total"]["peak"], run["total"]["peak"]);
    EXPECT_TRUE(point["bound"].is_null());
    if (point["subject"] == "passes/twice") {
      EXPECT_EQ(point["phases"].size(), 2U);
      EXPECT_EQ(point["phases"][1]["path"], "second");
      EXPECT_EQ(point["phases"][1]["formula"],
                (Json{run["phases"][1]["reads"], run["phases"][1]["writes"], 10}));
    } else {
      EXPECT_EQ(point["phases"][0]["path"], "(outside)");
      EXPECT_TRUE(point["total"]["formula"].is_null());
    }
  }
  Index rows = 0;
  for (const CsvRow& row : parse_csv(read("d/sweep.csv"))) {
    rows += row.at("phase") == "total" ? 1 : 0;
    EXPECT_EQ(row.at("formula_reads").empty(),
              row.at("subject") == "passes/once" || row.at("fits") == "no");
  }
  EXPECT_EQ(rows, 12);
  EXPECT_NE(own("sweep s.json -o d").err.find("12 of 12 points were there"), std::string::npos);
}

// A size with the name of a column gets the column size_NAME, not a second column of the same name.
TEST_F(OwnProgram, SizesAreNoOtherColumns) {
  suite(R"({"kernel": "passes/columns", "level": [3, 5], "reads": 7, "M": 2})");
  EXPECT_EQ(own("sweep s.json -o d").code, 0);
  for (const CsvRow& row : parse_csv(read("d/sweep.csv"))) {
    EXPECT_EQ(row.at("size_level"), row.at("reads"));  // one word for each row
    EXPECT_EQ(row.at("size_reads"), "7");
  }
  EXPECT_EQ(own("report d").code, 0);
}

// Counts from a formula have the words of a run. A kernel without a formula cannot be counted.
TEST_F(OwnProgram, IsSweptByFormulas) {
  suite(R"({"kernel": "passes/twice", "n": [3, 6], "m": 10, "M": [9, 16]})");
  EXPECT_EQ(own("sweep s.json -o run").code, 0);
  suite(R"({"kernel": "passes/twice", "n": [3, 6], "m": 10, "M": [9, 16]})", "count");
  EXPECT_EQ(own("sweep s.json -o count").code, 0);
  const Json run = Json::parse(read("run/sweep.json"))["points"];
  const Json count = Json::parse(read("count/sweep.json"))["points"];
  ASSERT_EQ(run.size(), count.size());
  for (std::size_t k = 0; k < run.size(); ++k) {
    EXPECT_EQ(run[k]["fits"], count[k]["fits"]);
    if (run[k]["fits"]) {
      EXPECT_EQ(run[k]["total"]["reads"], count[k]["total"]["reads"]);
      EXPECT_EQ(run[k]["phases"][1]["writes"], count[k]["phases"][1]["writes"]);
    }
  }
  suite(R"({"kernel": "passes/once", "n": 3, "m": 10, "M": 16})", "count");
  const Outcome without = own("sweep s.json -o none");
  EXPECT_NE(without.err.find("passes/once n=3 m=10 M=16: it has no formula: run it"),
            std::string::npos)
      << without.err;
}

// The total time covers the times of the phases. A user's kernel has no known peak speed, so no
// speed is reported.
TEST_F(OwnProgram, IsTimed) {
  suite(kGrid, "time");
  const Outcome swept = own("sweep s.json -o d");
  EXPECT_EQ(swept.code, 0) << swept.err;
  const Json sweep = Json::parse(read("d/sweep.json"));
  for (const Json& point : sweep["points"]) {
    if (!point["fits"]) {
      continue;
    }
    double seconds = 0;
    for (const Json& phase : point["phases"]) {
      EXPECT_GE(phase["seconds"], 0);
      seconds += phase["seconds"].get<double>();
    }
    EXPECT_LE(seconds, point["total"]["seconds"]);
    EXPECT_GT(point["total"]["seconds"], 0);
    EXPECT_FALSE(point.contains("speed"));
  }
  EXPECT_EQ(own("report d").code, 0);
  EXPECT_NE(read("d/report.html").find("seconds</th>"), std::string::npos);
  EXPECT_EQ(read("d/report.html").find("GF/s"), std::string::npos);
  expect_own_refused("sweep s.json -o e --jobs 2", 2, "--jobs: points that are timed run one at a");
}

// A crash ends only its own point, and the same command tries that point again.
TEST_F(OwnProgram, SweepsOnAfterACrash) {
  suite(R"({"kernel": "passes/crash", "n": [6, 7, 8], "m": 10, "M": 16})");
  for (const char* there : {"", "2 of 3 points were there"}) {
    const Outcome swept = own("sweep s.json -o d");
    EXPECT_EQ(swept.code, 1);
    EXPECT_NE(swept.err.find(there), std::string::npos) << swept.err;
    EXPECT_NE(swept.err.find("1 of them cannot run: passes/crash n=7 m=10 M=16: it ended"),
              std::string::npos)
        << swept.err;
  }
}

TEST_F(OwnProgram, PartsOfASweepAreMerged) {
  suite(kGrid);
  EXPECT_EQ(own("sweep s.json -o whole").code, 0);
  for (const char* part : {"1", "2", "3"}) {
    EXPECT_EQ(own(fmt::format("sweep s.json --part {0}/3 -o part.{0}", part)).code, 0);
  }
  const Outcome merged = own("merge part.3 part.1 part.2 -o merged");
  EXPECT_EQ(merged.code, 0) << merged.err;
  for (const char* file : {"sweep.json", "sweep.csv"}) {
    EXPECT_EQ(read(std::string("merged/") + file), read(std::string("whole/") + file));
  }
  expect_own_refused("merge part.1 nowhere -o other", 1, "nowhere/points.jsonl: `redblue_passes ");
}

TEST_F(OwnProgram, ReportsSayWhatTheyDoNotKnow) {
  suite(kGrid);
  EXPECT_EQ(own("sweep s.json -o d").code, 0);
  EXPECT_EQ(own("report d").code, 0);
  const std::string page = read("d/report.html");
  const auto has = [&](const std::string& text) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  };
  has("Words moved by passes/twice, passes/once");
  has("Formula and count agree: at each of 4 points");
  has("4 points have no formula: what they move is as the runs counted it.");
  has("What these kernels compute is not known, and so there is no lower bound.");
  has("<dt>program</dt><dd>redblue_passes</dd>");
  has("redblue_passes report d");
  EXPECT_EQ(page.find("over the"), std::string::npos);
  EXPECT_EQ(page.find("seed"), std::string::npos);

  suite(R"({"kernel": "passes/wrong", "n": 6, "m": 10, "M": 16})");
  EXPECT_EQ(own("sweep s.json -o w").code, 0);
  EXPECT_EQ(own("report w").code, 0);
  EXPECT_NE(read("w/report.html").find("second: 60 words written, by the formula 61 (-1)"),
            std::string::npos);
}

TEST_F(OwnProgram, SweepsOfOtherKernelsAreRefused) {
  suite(kGrid);
  EXPECT_EQ(own("sweep s.json -o own").code, 0);
  directory_.write("t.json", R"({"how": "count", "points": [{"kernel": "forward/rows", "n": 9,
                                 "d": 3, "M": [99, 120]}]})");
  EXPECT_EQ(redblue("sweep t.json -o ours").code, 0);
  expect_refused(process("report own"), 1, "own/sweep.json is of other kernels: redblue_passes");
  expect_refused(process("plot phases own -o p.svg"), 1, "redblue_passes draws it");
  expect_own_refused("report ours", 1, "ours/sweep.json is of redblue's kernels: redblue draws it");
  expect_own_refused("report none", 1, "`redblue_passes sweep SUITE -o none` makes it");
}

// Output that a kernel prints does not mix with data: standard output is the same as without it.
TEST_F(OwnProgram, KernelsSpeakAside) {
  suite(R"({"kernel": "passes/speaks", "n": 6, "m": 10, "M": 16})");
  for (const char* line : {"record s.json", "run passes/speaks --n 6 --m 10 --M 16 --format json",
                           "replay passes/speaks --n 6 --m 10 --M 16 --format json"}) {
    SCOPED_TRACE(line);
    const Outcome outcome = own(line);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_TRUE(Json::accept(outcome.out)) << outcome.out;
    EXPECT_NE(outcome.err.find("a kernel speaks\n"), std::string::npos) << outcome.err;
  }
}

TEST_F(OwnProgram, TracesHaveEveryWord) {
  const Outcome traced = own("trace passes/twice" + kSize + " -o t.json --din t.din");
  EXPECT_EQ(traced.code, 0) << traced.err;
  EXPECT_EQ(traced.err,
            "redblue: from (6 x 10) lies at 0x1000\nredblue: to (6 x 10) lies at 0x2000\n");
  const Json trace = Json::parse(read("t.json"));
  EXPECT_EQ(trace["otherData"]["kernel"], "passes/twice");
  EXPECT_EQ(trace["otherData"]["n"], 6);
  EXPECT_EQ(trace["otherData"]["M"], 16);
  EXPECT_EQ(trace["otherData"]["total"],
            (Json{{"reads", 2 * kWords}, {"writes", kWords}, {"io", 3 * kWords}, {"peak", 10}}));
  EXPECT_EQ(trace["otherData"]["cut"], false);
  Index phases = 0;
  for (const Json& event : trace["traceEvents"]) {
    phases += event.value("cat", "") == "phase" ? 1 : 0;
  }
  EXPECT_EQ(phases, 2);
  const std::string din = read("t.din");
  EXPECT_EQ(std::ranges::count(din, '\n'), 3 * kWords);
  EXPECT_EQ(din.substr(0, din.find('\n')), "0 1000");
  const Outcome cut = own("trace passes/once" + kSize + " --din - --din-words 7");
  EXPECT_EQ(std::ranges::count(cut.out, '\n'), 7);
  EXPECT_NE(cut.err.find("is cut: it has the first 7 of 120 words"), std::string::npos) << cut.err;
}

// If a word of sums weighs two, everything that follows a run has the words that the machine
// counts. passes/weighed reads n m words of operands, writes 2 n m words of sums, and reads them
// again.
TEST_F(OwnProgram, WhatFollowsARunWeighsItsWords) {
  const std::string point = "passes/weighed --n 6 --m 10 --M 32";
  const Json total = json_of("run " + point)["total"];
  EXPECT_EQ(total["reads"], 3 * kWords);
  EXPECT_EQ(total["writes"], 2 * kWords);
  EXPECT_EQ(total["peak"], 30);

  const Outcome traced = own("trace " + point + " -o t.json --din t.din");
  EXPECT_EQ(traced.code, 0) << traced.err;
  EXPECT_EQ(traced.err,
            "redblue: from (6 x 10) lies at 0x1000\n"
            "redblue: to (6 x 10, 2 words an element) lies at 0x2000\n");
  const Json trace = Json::parse(read("t.json"));
  Index moved = 0, most = 0;
  for (const Json& event : trace["traceEvents"]) {
    moved += event["ph"] == "X" && event["cat"] != "phase" ? event["dur"].get<Index>() : 0;
    Index live = 0;
    for (const Json& words : event["ph"] == "C" ? event["args"] : Json::array()) {
      live += words.get<Index>();
    }
    most = std::max(most, live);
  }
  EXPECT_EQ(moved, 5 * kWords);
  EXPECT_EQ(most, 30);
  EXPECT_EQ(trace["otherData"]["total"], (Json{{"reads", total["reads"]},
                                               {"writes", total["writes"]},
                                               {"io", total["io"]},
                                               {"peak", total["peak"]}}));
  const std::string din = read("t.din");
  EXPECT_EQ(std::ranges::count(din, '\n'), 5 * kWords);
  for (const char* address : {"\n1 2000\n1 2004\n", "\n1 21dc\n0 2000\n"}) {  // 2 n m words
    EXPECT_NE(din.find(address), std::string::npos) << address;
  }

  const std::string replay = "replay " + point + " --at 1,180";
  const Json replayed = json_of(replay);
  EXPECT_EQ(replayed["accesses"], 5 * kWords);
  EXPECT_EQ(replayed["addresses"], 3 * kWords);
  EXPECT_EQ(
      replayed["schedule"],
      (Json{{"peak", total["peak"]}, {"reads", total["reads"]}, {"writes", total["writes"]}}));
  EXPECT_EQ(replayed["curve"][0]["lru"]["reads"], total["reads"]) << "a word finds nothing";
  EXPECT_EQ(replayed["curve"][0]["lru"]["writes"], total["writes"]);
  EXPECT_EQ(replayed["curve"][1]["lru"]["reads"], kWords) << "all words find the sums";
  for (const CsvRow& row : parse_csv(out_of(replay + " --per-phase --format csv"))) {
    EXPECT_EQ(row.at("kernel_reads"), row.at("phase") == "made" ? "60" : "120");
  }
}

TEST_F(OwnProgram, TracesOfACrashLeaveNothing) {
  expect_own_refused("trace passes/crash --n 7 --m 10 --M 16 -o t.json", 1,
                     "passes/crash n=7 m=10 M=16: it ended");
  expect_own_refused("trace passes/twice --n 6 --m 10 --M 9 -o t.json", 2, "passes/twice n=6");
  expect_own_refused("trace passes/twice" + kSize, 2, "neither --out nor --din is given");
  expect_own_refused("trace passes/twice" + kSize + " -o t.json --din ./t.json", 2, "one file");
  expect_own_refused("trace passes/twice" + kSize + " -o none/t.json", 1, "none/t.json");
  expect_own_refused("trace passes/thrice" + kSize + " -o t.json", 2, "passes/twice");
}

// A cache of n m words holds everything that the second pass reads. LRU with one word less never
// hits, because the next word is always the least recently used one. No cache of M words can save
// more than M reads.
TEST_F(OwnProgram, ReplayHasCachesOfEverySize) {
  const std::string line = fmt::format("replay passes/twice{} --at 1,16,59,60,120", kSize);
  const Json replay = json_of(line);
  EXPECT_EQ(replay["kernel"], "passes/twice");
  EXPECT_EQ(replay["n"], 6);
  EXPECT_EQ(replay["M"], 16);
  EXPECT_EQ(replay["touched"], "moves");
  EXPECT_EQ(replay["accesses"], 3 * kWords);
  EXPECT_EQ(replay["addresses"], 2 * kWords);
  EXPECT_EQ(replay["schedule"], (Json{{"peak", 10}, {"reads", 2 * kWords}, {"writes", kWords}}));
  for (const Json& at : replay["curve"]) {
    const Index M = at["M"].get<Index>();
    EXPECT_EQ(at["lru"]["writes"], kWords);
    EXPECT_LE(at["opt"]["reads"], at["lru"]["reads"]);
    EXPECT_GE(at["opt"]["reads"], 2 * kWords - M);
    EXPECT_FALSE(at.contains("lower_bound")) << "none is known";
    if (M < kWords) {
      EXPECT_EQ(at["lru"]["reads"], 2 * kWords) << M;
    }
    if (M >= 2 * kWords) {
      EXPECT_EQ(at["lru"]["reads"], kWords);
      EXPECT_EQ(at["opt"]["reads"], kWords);
    }
  }
  const std::string text = out_of(line);
  EXPECT_NE(
      text.find("passes/twice reads 120 and writes 60 words itself, with at most 10 of M = 16"),
      std::string::npos);
  EXPECT_NE(text.find("accesses are its moves"), std::string::npos);
  for (const CsvRow& row : parse_csv(out_of(line + " --per-phase --format csv"))) {
    EXPECT_EQ(row.at("kernel_reads"), "60") << row.at("phase");
  }
  const std::string words = out_of("replay passes/once" + kSize + " --cachesim -");
  EXPECT_EQ(std::ranges::count(words, '\n'), 2 * kWords);
  expect_own_refused("replay passes/twice" + kSize + " --at 0", 2, "--at");
  expect_own_refused("replay passes/nothing" + kSize, 1, "it moves no words: there is nothing");
  expect_own_refused("replay passes/twice" + kSize + " --format xml", 2, "--format 'xml'");
}

TEST_F(OwnProgramPictures, AreDrawn) {
  suite(kGrid);
  EXPECT_EQ(own("sweep s.json -o d").code, 0);
  const auto drawn = [&](const std::string& line, const std::vector<std::string>& texts) {
    SCOPED_TRACE(line);
    EXPECT_EQ(out_of(line + " -o p.svg"), "");
    const std::string svg = read("p.svg");
    for (const std::string& text : texts) {
      EXPECT_NE(svg.find(text), std::string::npos) << text;
    }
    EXPECT_NE(svg.find("redblue_passes " + line.substr(0, 8)), std::string::npos) << "the command";
    std::filesystem::remove(directory_.path() / "p.svg");
  };
  drawn("plot words d --where n=6", {"Words of 2 kernels: n = 6, m = 10", "passes/twice",
                                     "passes/once", "M, words of fast memory"});
  drawn("plot words d --where M=64 --over n", {"Words of 2 kernels: m = 10, M = 64"});
  drawn("plot phases d --where M=64 --kernel passes/twice",
        {"Where the words of passes/twice go", "first", "second"});
  drawn("plot occupancy passes/twice" + kSize,
        {"Fast memory of passes/twice: n = 6, m = 10, at most 10 of M = 16 words", "from"});
  drawn("plot occupancy passes/weighed --n 6 --m 10 --M 32", {"at most 30 of M = 32 words"});
  drawn("plot replay passes/twice" + kSize,
        {"passes/twice and caches: n = 6, m = 10", "LRU", "Belady"});
  const Outcome report = own("report d");
  EXPECT_NE(report.err.find("12 points, "), std::string::npos) << report.err;
  EXPECT_NE(read("d/report.html").find("Where the words of passes/twice go"), std::string::npos);

  expect_own_refused("plot words d -o p.svg", 2, "d varies in n (3, 6), M (9, 16, 64): --where");
  expect_own_refused("plot words d --over m --where n=3,M=64 -o p.svg", 2,
                     "--over 'm': expected M");
  expect_own_refused("plot words d --where M=64,n=3 -o p.svg", 1, "two sizes of M or more");
  expect_own_refused("plot occupancy passes/nothing" + kSize + " -o p.svg", 1,
                     "it moves no words: there is nothing to draw");
  expect_own_refused("plot replay passes/crash --n 7 --m 10 --M 16 -o p.svg", 1, "it ended");
}

}  // namespace
}  // namespace redblue
