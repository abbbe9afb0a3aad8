// Tests `redblue tune`, and `--M auto` with and without the file that it writes. hwloc takes the
// declared small caches for this system's own.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "runtime/observe/topology.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"

namespace redblue {
namespace {

class Tune : public Cli {
 protected:
  void SetUp() override {
    if (const std::string why = synthetic_topology("core:1 pu:1").unavailable; !why.empty()) {
      GTEST_SKIP() << why;
    }
  }
  // Runs a line on a machine with these bytes of L2, with the files of this test.
  [[nodiscard]] Process on(const std::string& line, const std::string& L2 = "65536") const {
    Process with = process("HWLOC_THISSYSTEM=1 " + line);
    with.environment.push_back("HWLOC_SYNTHETIC=l3:1(size=1048576) l2:1(size=" + L2 +
                               ") l1d:1(size=8192) core:2 pu:1");
    with.environment.push_back("XDG_CACHE_HOME=" + (directory_ / "cache").string());
    return with;
  }
  [[nodiscard]] Json json_on(const std::string& line) const {
    const Outcome outcome = on(line + " --format json").run();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
  [[nodiscard]] Json saved() const { return Json::parse(content_of(directory_ / kFile)); }

  static constexpr const char* kFile = "cache/redblue/tuned.json";
};

TEST_F(Tune, SavesTheFastestKernels) {
  const Json printed = json_on("tune gradients --n 64 --d 8 --mask causal");
  EXPECT_EQ(printed["file"], (directory_ / kFile).string());
  const Json& trials = printed["trials"];
  EXPECT_EQ(printed["fastest"]["kernel"], trials[0]["kernel"]);
  double least = HUGE_VAL;
  for (const Json& trial : trials) {
    const auto words = Json{{"L1", 2048}, {"L2", 16384}, {"L3", 262144}}[trial["cache"]];
    EXPECT_EQ(trial["M"], std::floor(words.get<double>() * trial["share"].get<double>()));
    EXPECT_GE(trial["seconds"]["median"], trials[0]["seconds"]["median"]);
    EXPECT_GE(trial["from_scratch_seconds"], trial["seconds"]["median"]);
    EXPECT_EQ(trial["forward"].is_null(),
              trial["from_scratch_seconds"] == trial["seconds"]["median"]);
    least = std::min(least, trial["from_scratch_seconds"].get<double>());
  }
  EXPECT_EQ(printed["fastest_from_scratch"]["seconds"], least);

  const Json file = saved();
  ASSERT_EQ(file["problems"].size(), 1U);
  const Json& problem = file["problems"][0];
  EXPECT_EQ(problem["problem"], "gradients");
  EXPECT_EQ(problem["mask"], "causal");
  EXPECT_EQ(problem["kernels"].size(), trials.size());
  EXPECT_EQ(problem["kernels"][0]["kernel"], trials[0]["kernel"]);
  EXPECT_EQ(problem["kernels"][0]["seconds"], trials[0]["seconds"]["median"]);
  EXPECT_EQ(files().size(), 3U) << "nothing beside the file and its directories";

  // The same problem again, and another one.
  static_cast<void>(json_on("tune gradients --n 64 --d 8 --mask causal"));
  EXPECT_EQ(saved()["problems"].size(), 1U);
  static_cast<void>(json_on("tune gradients --n 64 --d 8"));
  EXPECT_EQ(saved()["problems"].size(), 2U);
}

TEST_F(Tune, ItsTableAndCsv) {
  const Outcome table = on("tune attention --n 64 --d 8 --threads 2").run();
  EXPECT_EQ(table.code, 0) << table.err;
  for (const std::string part : {"attention n=64 m=64 d=8, 2 threads\n", "of peak", "medians of ",
                                 "\nfastest: attention/", "\nwritten: "}) {
    EXPECT_NE(table.out.find(part), std::string::npos) << part << table.out;
  }
  EXPECT_EQ(table.out.find("from scratch"), std::string::npos) << "attention has no forward pass";
  EXPECT_NE(table.err.find("redblue: timing "), std::string::npos);
  EXPECT_EQ(saved()["problems"][0]["threads"], 2);
  const std::vector<CsvRow> rows =
      parse_csv(on("tune attention --n 64 --d 8 --format csv").run().out);
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows[0].at("problem"), "attention");
  EXPECT_FALSE(rows[0].at("blocks").empty());
}

// Without answers, the rule chooses M. Otherwise M comes from the nearest problem, and auto takes
// its kernel. A named kernel has the M that was best for it.
TEST_F(Tune, MAutoIsTheAnswer) {
  const Json half = json_on("count attention/auto --n 60 --d 8 --M auto");
  EXPECT_EQ(half["M"], 8192) << "half of L2";
  EXPECT_EQ(half["objective"], "time");
  EXPECT_FALSE(half["context"]["M_from"].contains("file"));
  EXPECT_EQ(json_on("count gradients/auto --n 60 --d 8 --M auto")["M"], 65536);
  EXPECT_EQ(json_on("count backward/rows --n 60 --d 8 --M auto")["M"], 8192);
  EXPECT_EQ(json_on("plan --problem backward --n 60 --d 8 --M auto")["M"], 8192);
  EXPECT_EQ(json_on("plan --problem backward --n 60 --d 8 --M auto --given nothing")["M"], 65536);
  const Outcome line = on("count attention/auto --n 60 --d 8 --M auto").run();
  EXPECT_NE(line.out.find("\nM is auto, that is L2*0.5 by the rule: L2 has 65,536 bytes"),
            std::string::npos)
      << line.out;

  static_cast<void>(json_on("tune attention --n 64 --d 8"));
  Json file = saved();
  file["problems"][0]["kernels"] = Json::parse(
      R"([{"kernel": "attention/columns", "cache": "L1", "share": 0.25, "seconds": 1e-9,
           "from_scratch": 1e-9},
          {"kernel": "attention/rows", "cache": "L2", "share": 0.125, "seconds": 2e-9,
           "from_scratch": 2e-9}])");
  directory_.write(kFile, file.dump());
  for (const std::string command : {"count", "run"}) {
    SCOPED_TRACE(command);
    const Json report = json_on(command + " attention/auto --n 60 --d 9 --M auto");
    EXPECT_EQ(report["kernel"], "attention/columns");
    EXPECT_EQ(report["M"], 512);
    EXPECT_EQ(report["context"]["M_from"]["file"], (directory_ / kFile).string());
    EXPECT_EQ(report["context"]["M_from"]["share"], 0.25);
    EXPECT_EQ(json_on(command + " attention/rows --n 60 --d 9 --M auto")["M"], 2048);
    EXPECT_EQ(json_on(command + " attention/auto --n 60 --d 9 --M auto --mask causal")["M"], 8192)
        << "another class of mask";
    EXPECT_EQ(json_on(command + " attention/auto --n 60 --d 9 --M auto --threads 2")["M"], 4096)
        << "two threads were not tuned, and share the L2";
  }
  // The objective of the user decides the kernel.
  const Json words = json_on("count attention/auto --n 60 --d 9 --M auto --objective words");
  const Json plan = json_on("plan --problem attention --n 60 --d 9 --M 512");
  EXPECT_EQ(words["kernel"], plan["plan"]["kernel"]);
}

// The tuned kernel cannot share one head between threads: the planner chooses another one.
TEST_F(Tune, AKernelThatDoesNotSolveTheProblemIsNotTaken) {
  static_cast<void>(json_on("tune gradients --n 64 --d 8 --heads 2 --threads 2"));
  Json file = saved();
  file["problems"][0]["kernels"] = Json::parse(
      R"([{"kernel": "gradients/flash", "cache": "L2", "share": 0.5, "seconds": 1e-9,
           "from_scratch": 1e-9}])");
  directory_.write(kFile, file.dump());
  EXPECT_EQ(json_on("count gradients/auto --n 64 --d 8 --heads 2 --threads 2 --M auto")["kernel"],
            "gradients/flash");
  EXPECT_NE(json_on("count gradients/auto --n 64 --d 8 --threads 2 --M auto")["kernel"],
            "gradients/flash");
}

// Answers of other caches are refused where they are asked for, and replaced by new ones.
TEST_F(Tune, AnotherMachineIsRefusedThenReplaced) {
  static_cast<void>(json_on("tune attention --n 64 --d 8"));
  expect_refused(on("count attention/auto --n 60 --d 8 --M auto", "32768"), 1,
                 "tuned.json: it is of another machine, whose L2 has 65536 bytes; here it has "
                 "32768 bytes: run `redblue tune` again");
  const Outcome again = on("tune forward --n 64 --d 8", "32768").run();
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.err.find("run `redblue tune` again; it is replaced"), std::string::npos);
  ASSERT_EQ(saved()["problems"].size(), 1U);
  EXPECT_EQ(saved()["problems"][0]["problem"], "forward");
}

TEST_F(Tune, BadInput) {
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {"tune", "PROBLEM is required"},
           {"tune product --n 8 --d 8", "PROBLEM 'product': expected one of forward, "},
           {"tune attention --d 8", "--n is missing"},
           {"tune attention --n 8 --d 8 --mask none", "--mask 'none'"},
           {"tune attention --n 8 --d 8 --heads 3 --kv-heads 2", "--kv-heads 2 does not divide"},
           {"tune attention --n 8 --d 8 --threads 0", "--threads"},
           {"tune attention --n 8 --d 8 --M 99", "--M"}}) {
    expect_refused(on(line), 2, message);
  }
  expect_refused(process(kSixCores + "XDG_CACHE_HOME=/none tune attention --n 8 --d 8"), 2,
                 "the caches are those of another machine");
}

// It lies beside the other programs of the tests.
const std::string kUsualMemory =
    std::filesystem::path(REDBLUE_PASSES).replace_filename("redblue_usual_memory");

// Calls without M take the same answers: tests/programs/usual_memory.cpp prints the plan of a call.
TEST_F(Tune, CallsWithoutMTakeTheAnswer) {
  const auto called = [&](const std::string& words) {
    Process program = on("");
    program.words = split(words).words;
    program.words.insert(program.words.begin(), kUsualMemory);
    const Outcome outcome = program.run();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_NE(called("attention").find(" M=8192"), std::string::npos) << called("attention");
  EXPECT_NE(called("gradients").find(" M=65536"), std::string::npos);
  static_cast<void>(json_on("tune attention --n 64 --d 8"));
  Json file = saved();
  file["problems"][0]["kernels"] = Json::parse(
      R"([{"kernel": "attention/columns", "cache": "L1", "share": 0.25, "seconds": 1e-9,
           "from_scratch": 1e-9}])");
  directory_.write(kFile, file.dump());
  const std::string tuned = called("attention");
  EXPECT_NE(tuned.find("attention/columns "), std::string::npos) << tuned;
  EXPECT_NE(tuned.find(" M=512"), std::string::npos) << tuned;
  // The caller did not ask for the file, so a file that is none is ignored.
  directory_.write(kFile, "{}");
  EXPECT_NE(called("attention").find(" M=8192"), std::string::npos);
}

}  // namespace
}  // namespace redblue
