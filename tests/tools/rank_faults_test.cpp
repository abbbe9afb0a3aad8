// Tests MPI jobs with one rank that fails or lies. The job ends on all ranks within seconds, names
// the ranks of the fault, and leaves no output. REDBLUE_FAULT_TABLE=1 prints how each job ended.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/at_once.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/mpi_job.hpp"

namespace redblue {
namespace {

// The program is in the folder of the other test programs, if the build has MPI.
const std::string kFaultyRank =
    std::filesystem::path(REDBLUE_KNOWN_TRAFFIC).parent_path() / "redblue_faulty_rank";

struct RankFault {
  std::string what;     // as faulty_rank.cpp takes it
  std::string message;  // on standard error
  int code = 1;
  std::string other_line = {};  // options of the rank that differ
};

std::vector<std::string> lines_of_redblue(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("redblue: ")) {
      lines.push_back(line);
    }
  }
  return lines;
}

class FaultsOfARank : public Cli, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mpi_jobs(); !why.empty()) {
      GTEST_SKIP() << why;
    }
  }

  // Runs a job for each fault. All run at once, because they mostly wait.
  void expect_ends(const std::vector<RankFault>& faults) const {
    at_once(faults, [&](const RankFault& fault) {
      const auto directory = directory_ / std::to_string(&fault - faults.data());
      std::filesystem::create_directory(directory);
      expect_end(fault, directory);
    });
  }

 private:
  // Runs four ranks, with this fault in rank 1.
  void expect_end(const RankFault& fault, const std::filesystem::path& directory) const {
    const std::string kernel = GetParam();
    SCOPED_TRACE(kernel + ", " + fault.what);
    const std::string result = kernel == "backward/rows" ? "g" : "O";
    // The other ranks lose patience only with a silent rank, however slow the machine is. Rank 2
    // never does: it may wait for rank 3, which waits for rank 1, so it would name rank 3.
    constexpr int kLong = 60;
    const int patience = fault.message.ends_with("2000 ms") ? 2 : kLong;
    const auto words = [&](int patience_of_rank) {
      return split(fmt::format("run {} --n 61 --m 43 --d 7 --M 900 --grid 2x2 --patience {} "
                               "--out {}=out.npy",
                               kernel, patience_of_rank, result))
          .words;
    };
    const auto well = [&](int patience_of_rank) {
      std::vector<std::string> command = words(patience_of_rank);
      command.insert(command.begin(), REDBLUE_COMMAND);
      return command;
    };
    std::vector<std::string> faulty = words(patience);
    const std::vector<std::string> more = split(fault.other_line).words;
    faulty.insert(faulty.end(), more.begin(), more.end());
    faulty.insert(faulty.begin(), {"/usr/bin/env", "REDBLUE_FAULT=" + fault.what, kFaultyRank});
    // If a rank ends, only mpirun says which.
    const bool ends = fault.what.starts_with("killed") || fault.what.starts_with("exits") ||
                      fault.what.starts_with("leaves");
    const Outcome job =
        mpi_job({{1, well(patience)}, {1, faulty}, {1, well(kLong)}, {1, well(patience)}},
                directory, !ends)
            .run();
    const std::vector<std::string> said = lines_of_redblue(job.err);
    EXPECT_EQ(job.code, fault.code) << job.err;
    EXPECT_EQ(job.out, "");
    if (!ends) {
      EXPECT_FALSE(said.empty()) << job.err;
      // Another rank that finds the fault says so, unless mpirun has ended it already. No rank says
      // anything else.
      for (const std::string& one : said) {
        EXPECT_TRUE(std::regex_search(one, std::regex(fault.message)))
            << one << " does not match: " << fault.message;
      }
    }
    EXPECT_TRUE(std::regex_search(job.err, std::regex(fault.message)))
        << job.err << "does not match: " << fault.message;
    EXPECT_LT(job.seconds, 20 * kSlowdown);
    EXPECT_TRUE(std::filesystem::is_empty(directory));
    EXPECT_EQ(left_running_in(directory), std::vector<int>());
    if (std::getenv("REDBLUE_FAULT_TABLE") != nullptr) {
      std::cout << fmt::format("{:15} {:12} {:4} {:6.2f} s  {}\n", kernel, fault.what, job.code,
                               job.seconds, said.empty() ? "(mpirun)" : said.front());
    }
  }
};

// Sends a message that no rank takes in time. A wait that fails does not end the message: finish(),
// which follows the wait, reports the failure every time.
TEST_F(Cli, AWaitOfAnMpiRankThatFailsIsSaidByFinish) {
  if (const std::string why = why_no_mpi_jobs(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const std::string program =
      std::filesystem::path(REDBLUE_KNOWN_TRAFFIC).parent_path() / "redblue_untaken_message";
  const Outcome job = mpi_job({{2, {program}}}, directory_.path()).run();
  EXPECT_EQ(job.code, 0) << job.err;
  EXPECT_EQ(job.out, "2\n") << job.err;
}

// A rank of a ring that is killed, or a changed message of it, ends the other ranks.
TEST_F(Cli, ARankOfARingThatFailsEndsTheJob) {
  if (const std::string why = why_no_mpi_jobs(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const std::string line =
      "run attention/rows --n 61 --m 43 --d 7 --M 900 --ring --patience 60 --out O=out.npy";
  std::vector<std::string> well = split(line).words;
  well.insert(well.begin(), REDBLUE_COMMAND);
  for (const auto& [fault, message] :
       {std::pair("killed:1", "rank 1 with PID|to rank 1|from rank 1"),
        std::pair("changed:1", "rank 2 received from rank 1, message 1 .*: its words changed")}) {
    std::vector<std::string> faulty = split(line).words;
    faulty.insert(faulty.begin(),
                  {"/usr/bin/env", fmt::format("REDBLUE_FAULT={}", fault), kFaultyRank});
    const Outcome job =
        mpi_job({{1, well}, {1, faulty}, {1, well}}, directory_.path(), false).run();
    EXPECT_NE(job.code, 0) << fault;
    EXPECT_EQ(job.out, "");
    EXPECT_TRUE(std::regex_search(job.err, std::regex(message))) << job.err;
    EXPECT_LT(job.seconds, 20 * kSlowdown);
    EXPECT_TRUE(files().empty()) << files().begin()->first;
    EXPECT_EQ(left_running_in(directory_.path()), std::vector<int>());
  }
}

TEST_P(FaultsOfARank, NoneIsASuccess) {
  const std::vector<std::string> words = {kFaultyRank, "run",    GetParam(), "--n",      "61",
                                          "--m",       "43",     "--d",      "7",        "--M",
                                          "900",       "--grid", "2x2",      "--format", "csv"};
  const Outcome job = mpi_job({{4, words}}, directory_.path()).run();
  EXPECT_EQ(job.code, 0) << job.err;
}

// A process ends in the middle of a message: by a signal, with an error, or with exit code 0.
TEST_P(FaultsOfARank, ThatEnds) {
  expect_ends({{"killed:1", "rank 1 with PID|to rank 1|from rank 1", 137},
               {"exits:3", R"(\],1\][^]*Exit code: +5)", 5},
               {"leaves:0", "rank 1 with PID|to rank 1|from rank 1"}});
}

// A process stops, during a message and during a step in which all ranks communicate. The other
// ranks wait two seconds and name it.
TEST_P(FaultsOfARank, ThatIsSilent) {
  expect_ends({{"stopped:2",
                "rank [023] (sent to|received from) rank 1, message .*: nothing came in "
                "2000 ms"},
               {"silent:0", "rank [023] waits for what rank 1 says: nothing came in 2000 ms"},
               {"silent:3", "rank [023] waits for what rank 1 says: nothing came in 2000 ms"}});
}

TEST_P(FaultsOfARank, InTheWordsOfAMessage) {
  const std::string ends = "rank [023] received from rank 1, message [01]";
  expect_ends({{"cut:1", ends + R"( \([\w ]+\): [0-9]+ words of it, expected )"},
               {"longer:1", ends + ": more words than its header says"},
               {"changed:1", ends + R"( \([\w ]+\): its words changed on the way)"}});
}

TEST_P(FaultsOfARank, InTheOrderOfMessages) {
  const std::string ends = "rank [023] received from rank 1, message ";
  expect_ends({{"doubled:0", ends + R"(1 \([\w ]+\): message 0 came in its place)"},
               {"lost:0", ends + R"(0 \([\w ]+\): message 1 came in its place)"}});
}

TEST_P(FaultsOfARank, InTheHeaderOfAMessage) {
  const std::string ends = R"(rank [023] received from rank 1, message [01] \([\w ]+\): )";
  expect_ends({{"magic:0", ends + "no message of this version"},
               {"version:1", ends + "no message of this version"},
               {"run:0", ends + "a message of another run"},
               {"phase:1", ends + "[0-9]+ words of another phase"},
               {"number:0", ends + "message [0-9]+ came in its place"},
               {"words:1", ends + "[0-9]+ words of it, expected"},
               {"checksum:0", ends + "its words changed on the way"}});
}

// Ranks of another version, another build and another plan are found before any message.
TEST_P(FaultsOfARank, ThatIsAnotherProgram) {
  const std::string both = "rank 1 runs redblue .*, but rank 0 runs redblue .*: start all ranks";
  expect_ends({{"release:0", "rank 1 runs redblue 9.*, but rank 0 runs redblue [^9]", 2},
               {"build:0", both, 2},
               {"none:0", both, 2, " --seed 3"},
               {"none:0", both, 2, " --blocks Br=8,Bc=5"}});
}

INSTANTIATE_TEST_SUITE_P(Kernels, FaultsOfARank,
                         testing::Values("forward/rows", "attention/rows", "backward/rows"),
                         [](const auto& of) {
                           std::string name = of.param;
                           std::ranges::replace(name, '/', '_');
                           return name;
                         });

}  // namespace
}  // namespace redblue
