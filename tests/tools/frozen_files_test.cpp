// Tests that this version reads the files that version 0.1.0 wrote, as docs/formats.md promises.
// The files are in tests/fixtures and are never written again.

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/observe/machine_file.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/report/calibration.hpp"
#include "runtime/run/tuned.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

const std::string kFixtures = REDBLUE_SOURCE_DIR "/tests/fixtures/";

class FrozenFiles : public Cli {
 protected:
  void SetUp() override {
    std::filesystem::copy(kFixtures, directory_ / "old", std::filesystem::copy_options::recursive);
  }
  void expect_done(const std::string& line, const std::string& says) const {
    const Outcome outcome = redblue(line);
    EXPECT_EQ(outcome.code, 0) << line << ": " << outcome.err;
    EXPECT_NE((outcome.out + outcome.err).find(says), std::string::npos)
        << line << ": " << outcome.out << outcome.err;
  }
};

// Every recorded name is still the name of a kernel, and every point moves the same words as then.
TEST_F(FrozenFiles, Baseline) {
  expect_done("diff old/baseline.json old/baseline.json", "30 points");
  expect_done("check old/baseline.json", "30 points");
  expect_done("record old/suite.json -o new.json", "30 points");
  expect_done("diff old/baseline.json new.json", "30 points");
}

TEST_F(FrozenFiles, Sweep) {
  expect_done("report old/sweep -o page.html", "30 points");
  EXPECT_NE(content_of(directory_ / "page.html").find("backward/rows-shared"), std::string::npos);
}

// A store still matches its checksums, and its seed still makes the same words.
TEST_F(FrozenFiles, Store) {
  expect_done("store verify old/store", "A1");
  expect_done("store generate new --n 4 --d 3 --seed 3", "A1");
  expect_done("store export old/store A1=old.npy", "A1");
  expect_done("store export new A1=new.npy", "A1");
  EXPECT_EQ(files().at("old.npy"), files().at("new.npy"));
}

TEST_F(FrozenFiles, GraphAndMoves) {
  for (const std::string ending : {"txt", "dot", "hdag", "mtx"}) {
    expect_done("pebble dag old/graph." + ending + " -o " + ending + ".txt",
                "26 vertices, 6 of them inputs; 34 edges");
  }
  expect_done("pebble check old/graph.txt old/moves.txt --M 6", "legal: 12 words");
}

TEST_F(FrozenFiles, Calibration) {
  Topology machine;  // the machine that wrote the file
  machine.model = "Intel(R) Xeon(R) Processor";
  machine.caches = {std::vector<Cache>{{49152, 64, 12, {0}}, {49152, 64, 12, {1}}},
                    std::vector<Cache>{{2097152, 64, 16, {0}}, {2097152, 64, 16, {1}}},
                    std::vector<Cache>{{314572800, 64, 20, {0, 1}}}};
  const std::string name = kFixtures + "calibration.json";
  const std::string text = read_machine_file(name, kCalibrate);
  EXPECT_NO_THROW(static_cast<void>(calibrated_rates(text, name, machine)));
  machine.model = "another";
  EXPECT_THROW(static_cast<void>(calibrated_rates(text, name, machine)), InputError);
}

TEST_F(FrozenFiles, AnswersOfTune) {
  Topology machine;  // the machine that wrote the file
  machine.model = "AMD EPYC";
  machine.cores = {{0}, {1}};
  machine.caches = {std::vector<Cache>{{32768, 64, 8, {0}}, {32768, 64, 8, {1}}},
                    std::vector<Cache>{{524288, 64, 8, {0}}, {524288, 64, 8, {1}}},
                    std::vector<Cache>{{33554432, 64, 16, {0, 1}}}};
  const std::string name = kFixtures + "tuned.json";
  const std::string text = read_machine_file(name, kTune);
  const std::vector<TunedProblem> tuned = read_tuned(text, name, machine);
  const AutoRequest same{.pass = Pass::gradients, .mask = "causal", .n = 256, .d = 16};
  const auto memory = auto_memory(same, tuned, machine);
  EXPECT_TRUE(memory->tuned);
  EXPECT_TRUE(parse_kernel_name(memory->kernel));
  machine.model = "another";
  EXPECT_THROW(static_cast<void>(read_tuned(text, name, machine)), InputError);
}

}  // namespace
}  // namespace redblue
