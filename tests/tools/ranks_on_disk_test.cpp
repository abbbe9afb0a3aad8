// Tests ranks with homes (their slow memories) on disk. The bits and the words are the same as with
// homes in memory, and the bytes follow from the words.

#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "memsim/ranks/transport.hpp"
#include "tests/support/at_once.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/itemised.hpp"
#include "tests/support/mpi_job.hpp"
#include "tests/support/rank_words.hpp"

namespace redblue {
namespace {

class RanksOnDisk : public Cli {
 protected:
  // A file system in memory, where small files take no time.
  [[nodiscard]] std::string store() const { return " --store file:" + (disk_ / "st").string(); }
  [[nodiscard]] std::string bytes(const std::string& file) const {
    return content_of(directory_ / file);
  }
  // Returns a number of a rank, summed over the forward pass and the kernel.
  static Index words_of(const Json& report, std::size_t rank, const Json::json_pointer& what) {
    const auto in = [&](const Json& part) { return part["ranks"][rank].at(what).get<Index>(); };
    return in(report) + (report.contains("forward") ? in(report["forward"]) : 0);
  }

  // Each rank's kernel moves the words that are counted in its arena, and its messages move the
  // words of its links. In addition, a rank copies the rows that it merges from its groups within
  // its home: as many words read as written.
  static void expect_bytes_of_words(const Json& report) {
    const Json& stores = report["store"]["ranks"];
    ASSERT_EQ(stores.size(), report["ranks"].size());
    Index all = 0;
    for (std::size_t rank = 0; rank < stores.size(); ++rank) {
      SCOPED_TRACE(fmt::format("rank {}", rank));
      all += expect_itemised(stores[rank]);
      const auto moved = [&](const char* purpose, const char* direction) {
        return stores[rank]["bytes"][purpose][direction]["words"].get<Index>();
      };
      const auto words = [&](const char* what) {
        return words_of(report, rank, Json::json_pointer(what));
      };
      EXPECT_EQ(moved("kernel", "read"), 4 * words("/arena/reads"));
      EXPECT_EQ(moved("kernel", "written"), 4 * words("/arena/writes"));
      const Index copied = moved("links", "read") - 4 * words("/sent");
      EXPECT_GE(copied, 0);
      EXPECT_EQ(moved("links", "written") - 4 * words("/received"), copied);
      EXPECT_LE(stores[rank]["buffered"], 4 * kMostWordsOfMessage);
      EXPECT_LE(stores[rank]["buffered"], words("/sent") + words("/received"));
    }
    EXPECT_EQ(expect_itemised(report["store"]), all);
  }

  // Runs the same line with homes in memory and on disk, and compares.
  void expect_same(const std::string& line, const std::vector<std::string>& results) {
    SCOPED_TRACE(line);
    std::string in_memory = line;
    std::string on_disk = line + store() + " --granule 4KiB";
    for (const std::string& result : results) {
      in_memory += fmt::format(" --out {0}=m_{0}.npy", result);
      on_disk += fmt::format(" --out {0}=d_{0}.npy", result);
    }
    const Json expected = json(in_memory), found = json(on_disk);
    EXPECT_EQ(words_of_ranks(found), words_of_ranks(expected));
    if (expected.contains("forward")) {
      EXPECT_EQ(words_of_ranks(found["forward"]), words_of_ranks(expected["forward"]));
    }
    for (const Json& rank : found["ranks"]) {
      EXPECT_EQ(rank["home"], rank["formula"]["home"]);
      EXPECT_EQ(rank["received"], rank["formula"]["received"]);
      EXPECT_EQ(rank["arena"]["io"], rank["formula"]["arena"]["io"]);
    }
    expect_bytes_of_words(found);
    for (const std::string& result : results) {
      EXPECT_EQ(bytes(fmt::format("d_{}.npy", result)), bytes(fmt::format("m_{}.npy", result)));
    }
    EXPECT_FALSE(std::filesystem::exists(disk_ / "st"));
  }

  TemporaryDirectory disk_{TemporaryDirectory::in_memory()};
};

TEST_F(RanksOnDisk, MoveAndReturnWhatTheyDoInMemory) {
  const std::map<std::string, std::vector<std::string>> kernels = {
      {"forward/rows", {"O", "L"}},
      {"attention/rows", {"O", "L"}},
      {"attention/rows-shared", {"O"}},
      {"backward/rows", {"g"}},
      {"backward/rows-shared", {"g"}},
      {"backward/rows-onepass", {"g"}},
      {"gradients/rows-keys", {"dQ", "dK", "dV"}},
      {"gradients/rows-keys-onepass", {"dQ", "dK", "dV"}}};
  for (const auto& [kernel, results] : kernels) {
    const std::string problem = fmt::format("run {} --n 70 --m 50 --d 6 --M 2K", kernel);
    for (const char* const on :
         {"--grid 1x1", "--grid 3x1", "--grid 1x3:4", "--grid 2x2:5", "--grid 3x2 --mask causal",
          "--grid 2x2:5 --mask window:4,4&prefix:30"}) {
      expect_same(problem + " " + on, results);
    }
  }
  // Windows that cross the edges of ranks, heads one after the other, and another activation.
  expect_same("run gradients/rows-keys --n 70 --m 70 --d 6 --M 2K --grid 4x1 --mask window:9,0",
              {"dQ", "dK", "dV"});
  expect_same("run gradients/rows-keys --n 40 --d 6 --M 2K --grid 2x2 --heads 4 --ranks 8",
              {"dQ", "dK", "dV"});
  expect_same("run backward/rows --n 70 --m 50 --d 6 --M 2K --grid 2x2 --activation relu", {"g"});
}

// Prefetches blocks of keys from a rank's disk during the computation. The engine `threads`
// replaces io_uring.
TEST_F(RanksOnDisk, PrefetchKeys) {
  for (const char* const kernel : {"forward/rows", "attention/rows", "backward/rows"}) {
    const std::string result = std::string(kernel) == "backward/rows" ? "g" : "O";
    expect_same(fmt::format("run {} --n 70 --m 50 --d 6 --M 2K --grid 2x2:4 --prefetch 3", kernel),
                {result});
  }
  const Json found = json(
      "run forward/rows --n 70 --m 50 --d 6 --M 2K --grid 2x1 --store file:st --engine threads "
      "--direct no");
  EXPECT_EQ(found["store"]["engine"], "threads");
  EXPECT_EQ(found["store"]["indirect"], "not asked for");
}

// Messages end within a row, and there are more than the buffer holds: keys and values of two other
// ranks, 1.6M words each.
TEST_F(RanksOnDisk, BufferAFewMessages) {
  const std::string problem = "run attention/rows --n 60 --m 16000 --d 300 --M 64K --grid 3x1";
  expect_same(problem, {"O"});
  const Json found = json(problem + store());
  for (const Json& of_rank : found["store"]["ranks"]) {
    EXPECT_GT(of_rank["buffered"], kMostWordsOfMessage);
    EXPECT_LT(of_rank["buffered"], 3 * kMostWordsOfMessage + kMostWordsOfMessage / 2);
  }
}

TEST_F(RanksOnDisk, TakeOperandsFromFilesAndVerify) {
  data("run attention/rows --n 40 --m 30 --d 6 --M 2K --seed 4 --out O=o.npy --out L=l.npy");
  const std::string line =
      "run gradients/rows-keys --n 40 --m 30 --d 6 --M 2K --seed 4 --in O=o.npy --in L=l.npy "
      "--grid 2x2 --verify";
  expect_same(line, {"dQ", "dK", "dV"});
  EXPECT_TRUE(json(line + store())["error"]["ok"]);
}

// The memory of a process depends on M and on a few messages, not on the sizes of homes. Four times
// the rows of results, or four times the keys that ranks exchange, adds at most four messages.
TEST_F(RanksOnDisk, HoldNoMoreMemoryForMoreRows) {
  if (kSanitized) {
    GTEST_SKIP() << "a sanitizer's allocator keeps what is freed";
  }
  const auto resident = [&](Index n, Index m) {
    return json(
               fmt::format("run forward/rows --n {} --m {} --d 64 --M 16K --grid 2x1 --out "
                           "O=o.npy{}",
                           n, m, store()))["store"]["resident"]
        .get<Index>();
  };
  constexpr Index kMiB = Index{1} << 20;
  EXPECT_LT(resident(65536, 64) - resident(16384, 64), 16 * kMiB);
  EXPECT_LT(resident(64, 524288) - resident(64, 131072), 16 * kMiB);  // 2 or 8 messages of keys
}

// With 40 heads on 2 ranks, each keeps 2 results of every head open to the end: 160 files, and a
// few more for the head in work. If only 100 may be open, the limit is raised, or the run is
// refused before it starts.
TEST_F(RanksOnDisk, OpenAFileForEachResult) {
  const std::string line =
      "run forward/rows --n 9 --d 3 --M 900 --heads 40 --grid 2x1 --out O=o.npy";
  const auto limited = [&](const std::string& limit) {
    Process shell{{"/bin/sh", "-c", limit + "; exec " REDBLUE_COMMAND " " + line + store()},
                  {"PATH=/usr/bin:/bin"},
                  directory_.path()};
    return shell.run();
  };
  data(line);
  const std::string in_memory = bytes("o.npy");
  std::filesystem::remove(directory_ / "o.npy");
  const Outcome refused = limited("ulimit -n 100");
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(std::regex_match(
      refused.err, std::regex("redblue: homes on disk of forward/rows .*: [0-9]+ open files are "
                              "needed, and this process may have 100: take fewer heads.*\n")))
      << refused.err;
  EXPECT_FALSE(std::filesystem::exists(directory_ / "o.npy"));
  EXPECT_FALSE(std::filesystem::exists(disk_ / "st"));
  const Outcome raised = limited("ulimit -S -n 100");
  EXPECT_EQ(raised.code, 0) << raised.err;
  EXPECT_EQ(bytes("o.npy"), in_memory);
}

TEST_F(RanksOnDisk, RefuseAStoreOfMatrices) {
  data("store generate st --n 9 --d 3");
  expect_refused(process("run forward/rows --n 9 --d 3 --M 900 --grid 3x1 --store file:st"), 2,
                 "--store: st has matrices, and ranks take operands from --in or make them");
}

class RanksOnDiskOfMpi : public RanksOnDisk {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mpi_jobs(); !why.empty()) {
      GTEST_SKIP() << why;
    }
  }
  static std::vector<std::string> command(const std::string& line) {
    std::vector<std::string> words = split(line).words;
    words.insert(words.begin(), REDBLUE_COMMAND);
    return words;
  }
};

TEST_F(RanksOnDiskOfMpi, DoWhatRanksOfOneProcessDo) {
  const std::string problem = "run backward/rows --n 70 --m 50 --d 6 --M 2K" + store();
  for (const Index ranks : {2, 4}) {
    SCOPED_TRACE(ranks);
    const Outcome job =
        mpi_job({{ranks, command(problem + " --out g=a.npy --format json")}}, directory_.path())
            .run();
    ASSERT_EQ(job.code, 0) << job.err;
    EXPECT_EQ(job.err, "");
    const Json found = Json::parse(job.out);
    expect_bytes_of_words(found);
    const Json of_threads = json(fmt::format("{} --ranks {} --out g=b.npy", problem, ranks));
    EXPECT_EQ(words_of_ranks(found), words_of_ranks(of_threads));
    EXPECT_EQ(bytes("a.npy"), bytes("b.npy"));
    EXPECT_FALSE(std::filesystem::exists(disk_ / "st"));
  }
}

// One rank's disk is full, simulated by a limit on file sizes. In another job, another process uses
// the rank's folder.
TEST_F(RanksOnDiskOfMpi, EndWhereADiskFails) {
  const std::string line =
      "run backward/rows --n 70 --m 50 --d 6 --M 2K --out g=g.npy --store file:st --patience 5";
  struct Failure {
    std::string of_rank_1, message;
    std::set<std::filesystem::path> left;
  };
  const Failure failures[] = {{"trap '' XFSZ; ulimit -f 8; exec ", "cannot reserve ", {}},
                              {"mkdir -p st/rank-1; exec flock st/rank-1 ",
                               "the store st/rank-1 is in use by another process",
                               {"st", "st/rank-1"}}};  // of the other process
  at_once(failures, [&](const Failure& failure) {
    const auto directory = directory_ / std::to_string(&failure - failures);
    std::filesystem::create_directory(directory);
    Process process =
        mpi_job({{1, command(line)},
                 {1, {"/bin/sh", "-c", failure.of_rank_1 + REDBLUE_COMMAND " " + line}},
                 {2, command(line)}},
                directory);
    // mpirun gives the other ranks one second to remove their files, which is too short on a busy
    // machine.
    process.environment.emplace_back("OMPI_MCA_odls_base_sigkill_timeout=4");
    const Outcome job = process.run();
    EXPECT_EQ(job.code, 1) << job.err;
    EXPECT_EQ(job.out, "");
    EXPECT_TRUE(job.err.starts_with("redblue: rank 1: " + failure.message)) << job.err;
    EXPECT_NE(job.err.find("st/rank-1"), std::string::npos) << job.err;
    EXPECT_LT(job.seconds, 20 * kSlowdown);
    EXPECT_EQ(left_running_in(directory), std::vector<int>());
    std::set<std::filesystem::path> left;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      left.insert(entry.path().lexically_relative(directory));
    }
    EXPECT_EQ(left, failure.left);
  });
}

}  // namespace
}  // namespace redblue
