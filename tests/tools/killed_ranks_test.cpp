// Tests ranks that are killed at any moment, all of them or one, and started again with the same
// command line. They resume from their checkpoints and reach the bits and the words of an
// undisturbed run. REDBLUE_KILLS=50 kills 50 times.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "tests/support/at_once.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/mpi_job.hpp"

namespace redblue {
namespace {

int kills() {
  const char* const asked = std::getenv("REDBLUE_KILLS");
  return asked == nullptr ? 6 : std::stoi(asked);
}

// Jobs with many units of work and many checkpoints.
constexpr const char* kJobs[][2] = {
    {"run backward/rows --n 900 --m 700 --d 12 --M 2048 --grid 2x2:3 --seed 5", "g"},
    {"run forward/rows --n 1500 --m 900 --d 12 --M 2048 --grid 2x2:4", "O"},
    {"run attention/rows --n 1500 --m 900 --d 12 --M 2048 --grid 4x1:2", "O"},
};

class KilledRanks : public Cli {
 protected:
  // Returns the words of all ranks on each boundary, without times.
  static Json words(const Json& report) {
    Json all = {{"total", without_times(report["total"])}, {"path", report["path"]}};
    for (Json rank : report["ranks"]) {
      rank.erase("formula");
      rank["arena"] = without_times(rank["arena"]);
      all["ranks"].push_back(rank);
    }
    if (report.contains("forward")) {
      all["forward"] = words(report["forward"]);
    }
    return all;
  }
  static Json without_times(Json counts) {
    for (const char* const of_time :
         {"seconds", "seconds_in_links", "gflops", "peak_gflops", "percent_of_peak"}) {
      counts.erase(of_time);
    }
    return counts;
  }
  [[nodiscard]] std::string bytes(const std::string& file) const {
    return content_of(directory_ / file);
  }
  [[nodiscard]] Process process_of(const std::string& line, bool mpi, int ranks = 4) const {
    if (!mpi) {
      return process(line);
    }
    std::vector<std::string> its = split(line).words;
    its.insert(its.begin(), REDBLUE_COMMAND);
    return mpi_job({{ranks, its}}, directory_.path());
  }

  // Runs the process and kills all its processes, or one rank of a job. It kills `seconds` after
  // the start, or after the file `after` appears. A rank that ends while MPI starts can make mpirun
  // wait for ever, so a single rank is killed later than that.
  [[nodiscard]] Outcome killed(const Process& process, double seconds, bool one,
                               const std::string& after = "") {
    Outcome outcome;
    std::atomic<bool> ended = false;
    std::thread runs([&] {
      outcome = process.run();
      ended = true;
    });
    const std::string awaited = after.empty() && one ? "st/rank-3" : after;
    while (!awaited.empty() && !ended && !std::filesystem::exists(directory_ / awaited)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    std::vector<int> found = running_in(directory_.path());
    if (one) {
      std::erase_if(found, [](int of) {
        std::ifstream name(fmt::format("/proc/{}/comm", of));
        std::string text;
        return !std::getline(name, text) || text != "redblue-mpi";
      });
      if (!found.empty()) {
        found = {found[random_() % found.size()]};
      }
    }
    for (const int of : found) {
      ::kill(of, SIGKILL);
    }
    runs.join();
    return outcome;
  }

  void go_on(const char* const (&job)[2], bool mpi) {
    const std::string result = job[1];
    const std::string base = fmt::format("{} --format json", job[0]);
    SCOPED_TRACE(base);
    const Json undisturbed = json(fmt::format("{} --out {}=whole.npy", job[0], result));
    const int ranks = static_cast<int>(undisturbed["ranks"].size());
    const std::string line =
        fmt::format("{} --out {}=resumed.npy --store file:st --resume", base, result);
    const Outcome alone = process_of(line, mpi, ranks).run();
    ASSERT_EQ(alone.code, 0) << alone.err;
    EXPECT_EQ(words(Json::parse(alone.out)), words(undisturbed));
    EXPECT_EQ(bytes("resumed.npy"), bytes("whole.npy"));
    EXPECT_GT(Json::parse(alone.out)["store"]["checkpoints"]["files"], 10);
    double whole = alone.seconds;
    int times = 0, resumed = 0, ended = 0;
    Index most_at = 0;
    while (times < kills() && !HasFailure()) {
      // The run is killed several times before it may end.
      std::filesystem::remove(directory_ / "resumed.npy");
      const int in_a_row = 1 + static_cast<int>(random_() % 3);
      for (int k = 0; k < in_a_row; ++k) {
        // The first kill of a series comes early in the work, however long the start takes.
        const double share = std::uniform_real_distribution<>(0.05, 0.9)(random_);
        const Outcome outcome =
            killed(process_of(line, mpi, ranks), k == 0 ? 0.02 * share : whole * share,
                   mpi && k % 2 == 0, k == 0 ? "st/rank-3/redblue.checkpoint" : "");
        ++times;
        EXPECT_EQ(left_running_in(directory_.path()), std::vector<int>());
        // An output is there completely or not at all, however late the kill was.
        if (std::filesystem::exists(directory_ / "resumed.npy")) {
          EXPECT_EQ(bytes("resumed.npy"), bytes("whole.npy"));
          ++ended;
          whole = std::min(whole, outcome.seconds);
          break;
        }
        EXPECT_NE(outcome.code, 0);
      }
      const Outcome outcome = process_of(line, mpi, ranks).run();
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_EQ(bytes("resumed.npy"), bytes("whole.npy"));
      const Json found = Json::parse(outcome.out);
      EXPECT_EQ(words(found), words(undisturbed));
      if (!found["store"]["resumed_at"].is_null()) {
        ++resumed;
        most_at = std::max(most_at, found["store"]["resumed_at"].get<Index>());
      }
      EXPECT_FALSE(std::filesystem::exists(directory_ / "st"));
    }
    EXPECT_GT(resumed, 0) << "some of them were killed after a checkpoint";
    if (std::getenv("REDBLUE_KILLS") != nullptr) {
      std::cout << fmt::format(
          "{} {}: {} kills, {} of them too late; {} runs resumed, with up to {} units done "
          "before\n",
          mpi ? "mpirun " : "threads", job[0], times, ended, resumed, most_at);
    }
  }

  std::mt19937_64 random_{11};
};

// A job with a directory and random moments of its own.
class KilledJob : public KilledRanks {
 public:
  void go_on(std::size_t which, bool mpi) {
    random_.seed(11 + which);
    KilledRanks::go_on(kJobs[which], mpi);
  }
  void TestBody() override {}
};

void all_go_on(bool mpi) {
  std::array<KilledJob, std::size(kJobs)> jobs;
  at_once(jobs,
          [&](KilledJob& job) { job.go_on(static_cast<std::size_t>(&job - jobs.data()), mpi); });
}

TEST_F(KilledRanks, ThatAreThreadsResume) {
  all_go_on(false);
}

TEST_F(KilledRanks, OfMpirunResume) {
  if (const std::string why = why_no_mpi_jobs(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  all_go_on(true);
}

// If the command line differs from the interrupted one, the run is refused with one line, and no
// checkpoint is lost.
class RanksWithCheckpoints : public KilledRanks {
 protected:
  void leave_checkpoints() {
    const double whole = redblue(line_).seconds;
    for (double after = whole * 0.5;
         !std::filesystem::exists(directory_ / "st/rank-1/redblue.words"); after *= 0.9) {
      std::filesystem::remove_all(directory_ / "st");
      ASSERT_NE(killed(process(line_), after, false).code, 0);
      ASSERT_GT(after, 0.01);
    }
  }
  const std::string problem_ = "run forward/rows --n 6000 --m 900 --d 12 --M 2048 --grid 2x2:4";
  const std::string line_ = problem_ + " --store file:st --resume";
};

TEST_F(RanksWithCheckpoints, GoOnWithTheSameRunAlone) {
  leave_checkpoints();
  if (HasFatalFailure()) {
    return;
  }
  const std::string end = " --store file:st --resume";
  const std::string other = "rank-[0-3]/redblue.checkpoint is of ";
  expect_refused(process(problem_ + " --seed 9" + end), 2, other);
  expect_refused(process(problem_ + " --scale 2" + end), 2,
                 other + "X of checksum .*, and not of X of .*: ask for the same");
  expect_refused(process(problem_ + " --blocks Br=40" + end), 2, other);
  expect_refused(process("run forward/rows --n 6000 --m 900 --d 12 --M 2048 --grid 1x4" + end), 2,
                 other);
  expect_refused(process("REDBLUE_SIMD=SSE4 " + line_), 2, other);
  EXPECT_TRUE(std::regex_search(
      data(line_),
      std::regex("\nresumed: all ranks together had done [0-9,]+ row blocks?, counted")));
}

// Each rank is as it was at any of three moments. The first moment is before the rank began.
TEST_F(RanksWithCheckpoints, MayBeAnyStepsApart) {
  leave_checkpoints();
  if (HasFatalFailure()) {
    return;
  }
  const auto st = directory_ / "st";
  const auto copy_all = std::filesystem::copy_options::recursive;
  std::filesystem::copy(st, directory_ / "early", copy_all);
  std::filesystem::copy(st, directory_ / "late", copy_all);
  const double whole = redblue(problem_).seconds;
  for (int tries = 0; tries < 10; ++tries) {
    std::filesystem::remove_all(st);
    std::filesystem::copy(directory_ / "early", st, copy_all);
    static_cast<void>(killed(process(line_), whole * (1 - 0.08 * tries), false));
    // A run that is about to end removes the folders of its ranks one by one.
    int left = 0;
    for (int rank = 0; rank < 4; ++rank) {
      left += std::filesystem::exists(st / fmt::format("rank-{}/redblue.checkpoint", rank)) ? 1 : 0;
    }
    if (left == 4) {
      std::filesystem::remove_all(directory_ / "late");
      std::filesystem::copy(st, directory_ / "late", copy_all);
      break;
    }
  }
  const Json undisturbed = json(problem_ + " --out O=whole.npy");
  for (const std::string moments : {"0112", "2211", "1222", "2012", "2221", "0002"}) {
    SCOPED_TRACE(moments);
    std::filesystem::remove_all(st);
    std::filesystem::create_directory(st);
    for (int rank = 0; rank < 4; ++rank) {
      if (const char moment = moments[static_cast<std::size_t>(rank)]; moment != '0') {
        const std::string folder = fmt::format("rank-{}", rank);
        std::filesystem::copy(directory_ / (moment == '1' ? "early" : "late") / folder, st / folder,
                              copy_all);
      }
    }
    const Json found = json(line_ + " --out O=resumed.npy");
    EXPECT_EQ(words(found), words(undisturbed));
    EXPECT_EQ(bytes("resumed.npy"), bytes("whole.npy"));
  }
}

TEST_F(RanksWithCheckpoints, FindDamage) {
  leave_checkpoints();
  if (HasFatalFailure()) {
    return;
  }
  const auto changed = [&](const std::string& file, const std::string& content) {
    const std::string before = bytes(file);
    directory_.write(file, content);
    expect_refused(
        process(line_), 1,
        file +
            ": no checkpoint, or a damaged one: remove st/rank-./redblue.checkpoint, and "
            "begin anew");
    directory_.write(file, before);
  };
  for (const char* const rank : {"0", "3"}) {
    const std::string words = fmt::format("st/rank-{}/redblue.words", rank);
    std::string flipped = bytes(words);
    for (const std::size_t at :
         {std::size_t{0}, std::size_t{9}, std::size_t{25}, std::size_t{41}}) {
      std::string one = flipped;
      one[at] = static_cast<char>(one[at] ^ 4);
      changed(words, one);
    }
    changed(words, flipped.substr(0, 1000));
    changed(words, "");
    const std::string checkpoint = fmt::format("st/rank-{}/redblue.checkpoint", rank);
    std::string text = bytes(checkpoint);
    changed(checkpoint, text.substr(0, text.size() / 2));
    changed(checkpoint, "");
    text[text.size() / 2] = text[text.size() / 2] == '1' ? '2' : '1';
    changed(checkpoint, text);
  }
  // A rank that lost its folder starts again, and the other ranks resume.
  std::filesystem::remove_all(directory_ / "st/rank-2");
  const Json found = json(line_ + " --out O=resumed.npy");
  const Json whole = json(problem_ + " --out O=whole.npy");
  EXPECT_EQ(words(found), words(whole));
  EXPECT_EQ(bytes("resumed.npy"), bytes("whole.npy"));
  EXPECT_FALSE(found["store"]["resumed_at"].is_null());
}

TEST_F(RanksWithCheckpoints, RefuseWhatTheirStoreHasNot) {
  const std::string problem = "run forward/rows --n 60 --d 4 --M 900 --grid 2x2 --store file:st";
  expect_refused(process(problem + " --resume --keep"), 2, "leave --keep");
  expect_refused(process(problem + " --resume --engine threads"), 2, "leave --engine");
  // Homes on disk (the slow memories of ranks) use the same folders.
  directory_.write("st/rank-2/redblue.checkpoint", "of an earlier run");
  expect_refused(
      process(problem), 2,
      "--store: a run that was ended left st/rank-2/redblue.checkpoint: go on from it with "
      "--resume");
}

}  // namespace
}  // namespace redblue
