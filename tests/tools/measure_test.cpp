// Tests `redblue measure` from the outside: its JSON key by key, the words of `redblue run`, and
// that it leaves no file behind.

#include <fmt/format.h>

#include "kernels/arithmetic/simd.hpp"
#include "kernels/kernel.hpp"
#include "runtime/observe/callgrind.hpp"
#include "runtime/observe/topology.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/npy_bytes.hpp"

namespace redblue {
namespace {

class Measure : public Cli {
 protected:
  // Checks that the measurement has the words of the run in each phase.
  static void expect_words_of(const Json& run, const Json& measured) {
    std::map<std::string, Json> phases;
    for (const Json& phase : measured["phases"]) {
      phases[phase["path"]] = phase;
    }
    for (const Json& phase : run["phases"]) {
      const Json& beside = phases[phase["path"]];
      EXPECT_EQ(beside["reads"], phase["reads"]) << phase["path"];
      EXPECT_EQ(beside["writes"], phase["writes"]) << phase["path"];
    }
    EXPECT_EQ(measured["total"]["reads"], run["total"]["reads"]);
    EXPECT_EQ(measured["total"]["writes"], run["total"]["writes"]);
    EXPECT_EQ(measured["blocks"], run["blocks"]);
  }
};

class ViaCallgrind : public Measure {
 protected:
  void SetUp() override {
    if (!callgrind_unavailable().empty() || !read_topology().unavailable.empty()) {
      GTEST_SKIP() << callgrind_unavailable() << read_topology().unavailable;
    }
    std::filesystem::create_directory(directory_ / "tmp");
  }
  void TearDown() override {
    if (!IsSkipped()) {
      EXPECT_TRUE(std::filesystem::is_empty(directory_ / "tmp"));
    }
  }
  [[nodiscard]] std::string measure(const std::string& problem) const {
    // Unsets the instruction set of the tests, because valgrind may not support it.
    return kSixCores + "REDBLUE_SIMD= TMPDIR=" + (directory_ / "tmp").string() + " measure " +
           problem + " --via callgrind";
  }
};

TEST_F(ViaCallgrind, NamesTheActivation) {
  const std::string problem = "backward/rows --n 40 --d 8 --M 900 --activation relu";
  const Json measured = json(measure(problem));
  EXPECT_EQ(measured["activation"], "relu");
  EXPECT_FALSE(measured.contains("forward"));
  expect_words_of(json("run --objective words " + problem), measured);
  EXPECT_NE(data(measure(problem)).find("activation=relu"), std::string::npos);
}

void expect_part(const Json& part) {
  Index in = 0;
  Index out = 0;
  for (const Json& phase : part["phases"]) {
    SCOPED_TRACE(phase.dump());
    ASSERT_EQ(keys(phase), (Keys{"path", "reads", "writes", "traffic", "ratio", "events"}));
    ASSERT_EQ(keys(phase["events"]), (Keys{"DLmr", "DLmw", "ILdmr", "DLdmr", "DLdmw"}));
    const Index moved = phase["traffic"]["in"].get<Index>() + phase["traffic"]["out"].get<Index>();
    const Index counted = phase["reads"].get<Index>() + phase["writes"].get<Index>();
    if (counted > 0) {
      EXPECT_DOUBLE_EQ(phase["ratio"].get<double>(),
                       static_cast<double>(moved) / static_cast<double>(counted));
    } else {
      EXPECT_EQ(phase["ratio"], Json());
    }
    in += phase["traffic"]["in"].get<Index>();
    out += phase["traffic"]["out"].get<Index>();
  }
  EXPECT_EQ(part["phases"].back()["path"], "(left)");
  EXPECT_EQ(part["total"]["traffic"]["in"], in);
  EXPECT_EQ(part["total"]["traffic"]["out"], out);
}

TEST_F(ViaCallgrind, EveryKey) {
  const Json measured = json(measure("backward/large --n 48 --d 8 --M L1*0.25"));
  ASSERT_EQ(keys(measured),
            (Keys{"schema", "context", "kernel", "n", "m", "d", "M", "seed", "operands", "via",
                  "used", "blocks", "phases", "total", "forward"}));
  EXPECT_EQ(measured["schema"], 1);
  EXPECT_EQ(measured["context"]["M_from"]["text"], "L1*0.25");
  EXPECT_EQ(measured["kernel"], "backward/large");
  EXPECT_EQ(measured["M"], 3072);
  EXPECT_EQ(measured["via"], "callgrind");
  const Json& used = measured["used"];
  ASSERT_EQ(keys(used), (Keys{"version", "level", "cache", "behind", "start", "source"}));
  EXPECT_EQ(used["level"], "L1");
  EXPECT_EQ(used["cache"], (Json{{"bytes", 49152}, {"ways", 12}, {"line", 64}}));
  EXPECT_EQ(used["behind"], (Json{{"bytes", 128}, {"ways", 2}, {"line", 64}}));
  EXPECT_EQ(used["start"], "empty");
  expect_part(measured);
  ASSERT_EQ(keys(measured["forward"]), (Keys{"kernel", "blocks", "phases", "total"}));
  EXPECT_TRUE(measured["forward"]["kernel"].get<std::string>().starts_with("forward/"));
  expect_part(measured["forward"]);

  const Json run = json("run --objective words backward/large --n 48 --d 8 --M 3072");
  expect_words_of(run, measured);
  expect_words_of(run["forward"], measured["forward"]);
}

// Measures two levels and their caches in one run. Each level has the words of a run, and the lines
// that enter its cache are the sum over phases. The outer level equals the measurement of the
// machine.
TEST_F(ViaCallgrind, EveryKeyOfTwoLevels) {
  const std::string problem = "backward/rows --n 48 --d 8 --M ";
  const Json measured = json(measure(problem + "L1*0.05,L2*0.01"));
  ASSERT_EQ(keys(measured),
            (Keys{"schema", "context", "kernel", "n", "m", "d", "M", "seed", "operands", "via",
                  "used", "blocks", "phases", "total", "levels", "forward"}));
  EXPECT_EQ(measured["used"]["level"], "L2");
  EXPECT_EQ(measured["used"]["behind"], (Json{{"bytes", 49152}, {"ways", 12}, {"line", 64}}));
  const Json run = json("run --objective words " + problem + "614,3276");
  expect_words_of(run, measured);
  const auto expect_levels = [](const Json& counted, const Json& part) {
    ASSERT_EQ(part["levels"].size(), 2U);
    for (std::size_t level = 0; level < 2; ++level) {
      const Json& here = part["levels"][level];
      ASSERT_EQ(keys(here), (Keys{"M", "cache", "phases", "total"}));
      EXPECT_EQ(here["M"], counted["levels"][level]["M"]);
      EXPECT_EQ(here["cache"], level == 0 ? "L1" : "L2");
      Index in = 0;
      for (const Json& phase : here["phases"]) {
        ASSERT_EQ(keys(phase), (Keys{"path", "reads", "writes", "traffic", "ratio"}));
        ASSERT_EQ(keys(phase["traffic"]), level == 0 ? (Keys{"in"}) : (Keys{"in", "out"}));
        in += phase["traffic"]["in"].get<Index>();
      }
      ASSERT_EQ(keys(here["total"]), (Keys{"reads", "writes", "traffic", "ratio"}));
      EXPECT_EQ(here["total"]["traffic"]["in"], in);
      for (std::size_t k = 0; k < counted["phases"].size(); ++k) {
        EXPECT_EQ(here["phases"][k]["reads"], counted["levels"][level]["phases"][k]["reads"]);
        EXPECT_EQ(here["phases"][k]["writes"], counted["levels"][level]["phases"][k]["writes"]);
      }
    }
    EXPECT_EQ(part["levels"][1]["total"]["traffic"], part["total"]["traffic"]);
    EXPECT_EQ(part["levels"][1]["total"]["ratio"], part["total"]["ratio"]);
    // A line that enters L2 also enters L1.
    EXPECT_GE(part["levels"][0]["total"]["traffic"]["in"].get<Index>(),
              part["total"]["traffic"]["in"].get<Index>() / 2);
  };
  expect_levels(run, measured);
  expect_levels(run["forward"], measured["forward"]);
}

// The plan uses a quarter of each cache, and the caches get no hints about what to keep. They still
// move the words that the levels count, within 25%, for blocks of several keys that stay resident
// in all steps.
TEST_F(ViaCallgrind, CachesMoveAboutTheWordsOfTheirLevels) {
  Process command = process(
      "REDBLUE_SIMD= measure backward/rows --n 384 --d 64 --M L1*0.25,L2*0.25 "
      "--blocks Br=128,Bc=57,Bw=64,L1.Br=6,L1.Bc=6,L1.Bw=16 --via callgrind --format json");
  command.environment.emplace_back(
      "HWLOC_SYNTHETIC=pack:1 l2:1(size=524288) l1d:1(size=32768) core:1 pu:1");
  const Outcome outcome = command.run();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json measured = Json::parse(outcome.out);
  ASSERT_EQ(measured["levels"].size(), 2U);
  for (const Json& level : measured["levels"]) {
    const auto ratio = level["total"]["ratio"].get<double>();
    EXPECT_GT(ratio, 0.75) << level["cache"];
    EXPECT_LT(ratio, 1.25) << level["cache"];
  }
}

// A level that is a part of a cache belongs to that cache. Any other level belongs to the smallest
// cache that holds it, outside the cache of the level before.
TEST_F(ViaCallgrind, TheCachesOfLevels) {
  const auto caches = [&](const std::string& sizes) {
    const Json levels = json(measure("forward/rows --n 16 --d 4 --M " + sizes))["levels"];
    return levels[0]["cache"].get<std::string>() + " " + levels[1]["cache"].get<std::string>();
  };
  EXPECT_EQ(caches("100,12289"), "L1 L2");
  EXPECT_EQ(caches("100,1000"), "L1 L2") << "both fit in L1";
  EXPECT_EQ(caches("L1*0.01,L3*0.001"), "L1 L3");
  EXPECT_EQ(caches("12289,400K"), "L2 L3");
}

TEST_F(ViaCallgrind, RefusesLevelsWithoutCaches) {
  const auto refused = [&](const std::string& rest, const std::string& why) {
    expect_refused(process(measure("forward/rows --n 16 --d 4 " + rest)), 2, why);
  };
  refused("--M 100,1000 --level L2", "--level beside several levels of --M");
  refused("--M 100,1000,2000", "--M: callgrind simulates two caches: give it two levels at most");
  refused("--M L3*0.0001,L3*0.001", "--M: level 2 of M = [0-9]+ words has no cache");
}

// All operands and the result of the product are larger than the cache. The words that it reads
// enter the cache. The words that it writes enter and leave. The blocks in work take further room.
TEST_F(ViaCallgrind, NoLessThanTheMatricesMoves) {
  const Json measured = json(measure("matmul/blocked --n 160 --m 160 --d 160 --M L1*0.5"));
  const Index matrix = 160 * 160;
  EXPECT_GE(measured["total"]["traffic"]["in"].get<Index>(), 3 * matrix);
  EXPECT_GE(measured["total"]["traffic"]["out"].get<Index>(), matrix);
  EXPECT_LE(measured["total"]["ratio"].get<double>(), 10);
}

// Without `--level`, the cache is the smallest that holds M.
TEST_F(ViaCallgrind, TheLevelIsThatOfM) {
  const std::string problem = "matmul/blocked --n 16 --d 4 --M ";
  const auto level = [&](const std::string& rest) {
    return json(measure(problem + rest))["used"]["level"];
  };
  EXPECT_EQ(level("12K"), "L1");
  EXPECT_EQ(level("12289"), "L2");
  EXPECT_EQ(level("L2*0.01"), "L2");
  EXPECT_EQ(level("100 --level L3"), "L3");
}

TEST_F(ViaCallgrind, TableAndCsv) {
  const std::string problem = measure("backward/flash --n 32 --d 8 --M L1*0.1");
  const std::string table = data(problem);
  for (const std::string expected :
       {"backward/flash n=32 m=32 d=8 M=1228", "M is L1*0.1: L1 has 49,152 bytes",
        "L1: 49,152 bytes, 12 ways, lines of 64 bytes, simulated by callgrind-", "lines in",
        "traffic / counted", "core", "(left)", "total", "O and L by forward/"}) {
    EXPECT_NE(table.find(expected), std::string::npos) << expected << "\n" << table;
  }
  const std::vector<CsvRow> rows = parse_csv(data(problem + " --format csv"));
  Index in = 0;
  for (const CsvRow& row : rows) {
    if (row.at("kernel") == "backward/flash") {
      if (row.at("phase") == "total") {
        EXPECT_EQ(std::stoll(row.at("traffic_in")), in);
      }
      in += std::stoll(row.at("traffic_in"));
      EXPECT_EQ(std::stoll(row.at("traffic_in")),
                (std::stoll(row.at("DLmr")) + std::stoll(row.at("DLmw"))) * 16);
    }
  }
  EXPECT_TRUE(rows.back().at("kernel").starts_with("forward/"));
  EXPECT_EQ(rows.back().at("phase"), "total");
}

TEST_F(ViaCallgrind, TableAndCsvOfTwoLevels) {
  const std::string problem = measure("backward/rows --n 32 --d 8 --M L1*0.05,L2*0.01");
  const std::string table = data(problem);
  for (const std::string expected :
       {"M=614,3276", "M is L1*0.05: L1 has 49,152 bytes", "behind an L1 of 49,152 bytes",
        "For L1, only incoming lines are known", "level 1, M = 614 words, compared with L1",
        "lines in / counted"}) {
    EXPECT_NE(table.find(expected), std::string::npos) << expected << "\n" << table;
  }
  std::map<std::string, Index> in;  // words in, by level
  for (const CsvRow& row : parse_csv(data(problem + " --format csv"))) {
    EXPECT_EQ(row.at("M_levels"), "614/3276");
    if (row.at("kernel") == "backward/rows") {
      const Index sign = row.at("phase") == "total" ? -1 : 1;
      in[row.at("level")] += sign * std::stoll(row.at("traffic_in"));
    }
  }
  EXPECT_EQ(in, (std::map<std::string, Index>{{"1", 0}, {"2", 0}})) << "totals are sums";
}

// All parts of the problem reach the simulated run: files, blocks, a seed.
TEST_F(ViaCallgrind, TheSameProblem) {
  directory_.write("a.npy", npy_bytes(40, 8, std::vector<float>(320, 0.5)));
  const Json measured =
      json(measure("matmul/blocked --in A=a.npy --m 24 --blocks B=4 --M 999 --seed 3 --scale 0.5"));
  const Json run = json("run matmul/blocked --in A=a.npy --m 24 --blocks B=4 --M 999 --seed 3");
  expect_words_of(run, measured);
  EXPECT_EQ(measured["n"], 40);
  EXPECT_EQ(measured["m"], 24);
  EXPECT_EQ(measured["seed"], 3);
  EXPECT_EQ(measured["operands"], run["operands"]);
}

// With a prefetch of two key blocks, the simulated run holds and moves the words of a run.
TEST_F(ViaCallgrind, ThePrefetchGoesAlong) {
  const std::string problem = "backward/rows --n 64 --d 16 --M 4096";
  const Json run = json("run --objective words " + problem + " --prefetch 2");
  ASSERT_NE(run["blocks"], json("run --objective words " + problem)["blocks"]);
  expect_words_of(run, json(measure(problem + " --prefetch 2")));
}

// The simulated run uses the requested vector instructions. The words do not depend on them, but
// the cache lines may.
TEST_F(ViaCallgrind, InTheInstructionSetThatIsAskedFor) {
  const std::string target = simd_targets().back();  // every processor has this one
  const std::string problem = "matmul/blocked --n 40 --m 24 --d 8 --M 999";
  const Json best = json(measure(problem));
  const Json asked = json(measure(problem + " --simd " + target));
  EXPECT_EQ(asked["context"]["simd"], target);
  if (simd_targets().size() > 1) {
    EXPECT_NE(best["context"]["simd"], target);
  }
  EXPECT_EQ(asked["total"]["reads"], best["total"]["reads"]);
  const std::string variable = "REDBLUE_SIMD=" + target + " ";
  std::string by_variable = measure(problem);
  by_variable.replace(by_variable.find("REDBLUE_SIMD= "), variable.size() - target.size(),
                      variable);
  EXPECT_EQ(json(by_variable)["context"]["simd"], target);
}

// Uses software events, which most systems count for every user.
TEST_F(Measure, ViaPapi) {
  const std::string events = "PAPI_EVENTS=perf::PAGE-FAULTS,perf::TASK-CLOCK ";
  const std::string problem = "backward/large --n 48 --d 8 --M 999";
  const Outcome outcome = redblue(events + "measure " + problem);
  if (outcome.code == 1) {
    EXPECT_TRUE(outcome.err.starts_with("redblue: event counters are unavailable: "))
        << outcome.err;
    GTEST_SKIP() << outcome.err;
  }
  EXPECT_NE(outcome.out.find("perf::PAGE-FAULTS"), std::string::npos) << outcome.out;
  const Json measured = json(events + "measure " + problem);
  ASSERT_EQ(keys(measured),
            (Keys{"schema", "context", "kernel", "n", "m", "d", "M", "seed", "operands", "via",
                  "used", "blocks", "phases", "total", "forward"}));
  EXPECT_EQ(measured["via"], "papi");
  const std::string target = simd_targets().back();
  EXPECT_EQ(json(events + "measure " + problem + " --simd " + target)["context"]["simd"], target);
  EXPECT_EQ(measured["context"]["simd"], json("info")["simd"]["in_use"]);
  EXPECT_EQ(measured["used"]["events"],
            (Json{{{"name", "perf::PAGE-FAULTS"}}, {{"name", "perf::TASK-CLOCK"}}}));
  const Json run = json("run --objective words " + problem);
  expect_words_of(run, measured);
  expect_words_of(run["forward"], measured["forward"]);
  for (const Json& part : {measured, measured["forward"]}) {
    Index nanoseconds = 0;
    for (const Json& phase : part["phases"]) {
      ASSERT_EQ(keys(phase), (Keys{"path", "reads", "writes", "events"}));
      nanoseconds += phase["events"]["perf::TASK-CLOCK"].get<Index>();
    }
    EXPECT_GT(nanoseconds, 0);
    EXPECT_LE(nanoseconds, part["total"]["events"]["perf::TASK-CLOCK"].get<Index>());
  }
  const std::vector<CsvRow> rows = parse_csv(data(events + "measure " + problem + " --format csv"));
  EXPECT_EQ(rows.front().at("traffic_in"), "") << "counters of one direction, or of none";
  EXPECT_GE(std::stoll(rows.front().at("perf::TASK-CLOCK")), 0);
}

// Without named events, measure counts cache events, if the machine has counters for them that
// passed the check.
TEST_F(Measure, WithoutCountersTheReasonAndTheWayOut) {
  const Outcome outcome = redblue("measure backward/small --n 8 --d 4 --M 99");
  if (outcome.code == 0) {
    EXPECT_EQ(outcome.err, "");
    EXPECT_NE(outcome.out.find("into L"), std::string::npos);
    return;
  }
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("redblue: event counters are unavailable: ")) << outcome.err;
  EXPECT_EQ(outcome.err.find("--via callgrind") != std::string::npos,
            callgrind_unavailable().empty())
      << outcome.err;
}

}  // namespace
}  // namespace redblue
