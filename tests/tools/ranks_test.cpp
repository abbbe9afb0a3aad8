// Tests `redblue count` and `run` on ranks: threads of one process, and processes of an MPI job.

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "memsim/words.hpp"
#include "tests/support/at_once.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/mpi_job.hpp"
#include "tests/support/rank_words.hpp"

namespace redblue {
namespace {

constexpr const char* kKernels[] = {"forward/rows", "backward/rows", "attention/rows",
                                    "backward/rows-shared", "attention/rows-shared"};

class RanksCommand : public Cli {};

// The counted words equal the formulas, for every rank and every link. All results have the bits of
// one machine with the same plan.
TEST_F(RanksCommand, MoveWhatCountSaysAndReturnTheBitsOfOneMachine) {
  for (const std::string kernel : kKernels) {
    const std::string result = kernel.starts_with("backward") ? "g" : "O";
    for (const char* const grid : {"1x1", "3x1", "1x3", "2x2", "2x3:4", "5x1"}) {
      const std::string problem = fmt::format("{} --n 61 --m 43 --d 7 --M 900", kernel);
      const std::string on = fmt::format("{} --grid {}", problem, grid);
      SCOPED_TRACE(on);
      const Json counted = json("count " + on);
      const Json ran = json(fmt::format("run {} --verify --out {}=a.npy", on, result));
      EXPECT_EQ(words_of_ranks(ran), words_of_ranks(counted));
      EXPECT_TRUE(ran["error"]["ok"].get<bool>());
      for (const Json& rank : ran["ranks"]) {
        EXPECT_EQ(rank["received"], rank["formula"]["received"]);
        EXPECT_EQ(rank["home"], rank["formula"]["home"]);
        EXPECT_LE(rank["arena"]["peak"], 900);
      }
      if (ran.contains("forward")) {
        EXPECT_EQ(words_of_ranks(ran["forward"]), words_of_ranks(counted["forward"]));
        continue;  // one machine uses another forward kernel
      }
      static_cast<void>(
          data(fmt::format("run {} --blocks {} --out {}=b.npy", problem, blocks_of(ran), result)));
      EXPECT_EQ(content_of(directory_.path() / "a.npy"), content_of(directory_.path() / "b.npy"));
    }
  }
}

// A ring moves the words of `count`, and each rank sends to the next rank only. Its results have
// the bits of one machine with the same blocks. The bits are not compared if a forward pass runs
// first.
TEST_F(RanksCommand, MoveAroundARing) {
  for (const std::string kernel :
       {"forward/rows", "attention/rows", "backward/rows", "backward/rows-onepass",
        "gradients/rows-keys", "gradients/rows-keys-onepass", "attention/rows-shared"}) {
    const std::string result = kernel.starts_with("backward")    ? "g"
                               : kernel.starts_with("gradients") ? "dK"
                                                                 : "O";
    for (const std::string more : {"--grid 3x1", "--ranks 7", "--grid 5x1 --mask causal"}) {
      const std::string problem = fmt::format("{} --n 61 --m 43 --d 7 --M 900", kernel);
      const std::string on = fmt::format("{} {} --ring", problem, more);
      SCOPED_TRACE(on);
      const Json counted = json("count " + on);
      const Json ran = json(fmt::format("run {} --verify --out {}=a.npy", on, result));
      EXPECT_EQ(words_of_ranks(ran), words_of_ranks(counted));
      EXPECT_TRUE(ran["error"]["ok"].get<bool>());
      EXPECT_EQ(ran["grid"]["ring"], true);
      const auto ranks = static_cast<Index>(ran["ranks"].size());
      for (const Json& rank : ran["ranks"]) {
        EXPECT_EQ(rank["received"], rank["formula"]["received"]);
        EXPECT_EQ(rank["home"], rank["formula"]["home"]);
        EXPECT_LE(rank["arena"]["peak"], 900);
        for (const Json& link : rank["links"]) {
          EXPECT_EQ(link["to"], (link["from"].get<Index>() + 1) % ranks);
        }
      }
      for (const std::string bound : {"links", "small_homes", "arena"}) {
        const Json& its = counted["rank_bounds"][bound];
        EXPECT_LE(its["lower_bound"]["words"], its["words"]) << bound;
      }
      if (!ran.contains("forward")) {
        const std::string mask = more.ends_with("causal") ? " --mask causal" : "";
        static_cast<void>(data(fmt::format("run {}{} --blocks {} --out {}=b.npy", problem, mask,
                                           blocks_of(ran), result)));
        EXPECT_EQ(content_of(directory_.path() / "a.npy"), content_of(directory_.path() / "b.npy"));
      }
    }
  }
}

// The report has both bounds on links, the words that a rank of a ring moves, and the size of the
// home.
TEST_F(RanksCommand, SayWhatARingCosts) {
  const std::string on = "attention/rows --n 64K --d 64 --M 256K --grid 64x1 --ring";
  const Json report = json("count " + on);
  const Index n = 64 << 10, d = 64;
  EXPECT_EQ(report["largest"]["received"], 2 * d * (n - n / 64));
  EXPECT_EQ(report["largest"]["sent"], 2 * d * (n - n / 64));
  const std::string text = data("count " + on);
  EXPECT_NE(text.find("64 ranks, in a ring: busiest rank 0: receives"), std::string::npos) << text;
  EXPECT_NE(text.find("(bound: links); here"), std::string::npos) << text;
  EXPECT_NE(text.find("(bound: small homes); here"), std::string::npos) << text;
  // The home has Q, O and L, K and V, and two pieces of K and V.
  EXPECT_LE(report["largest"]["home"], n / 64 * (4 * d + 1) + 2 * (2 * d * n / 256));
  // Heads go around the ring one after the other.
  const Json heads = json("count " + on + " --heads 3");
  EXPECT_EQ(heads["path"], 3 * report["path"].get<Index>());
  EXPECT_EQ(heads["largest"]["received"], 3 * report["largest"]["received"].get<Index>());
  // A plan lists the ring among the grids.
  const Json plan = json("plan attention/rows --n 64K --d 64 --M 256K --ranks 64 --ring");
  const Json& others = plan["runners_up"];
  EXPECT_TRUE(std::ranges::any_of(others, [](const Json& its) { return its["grid"]["ring"]; }));
  EXPECT_FALSE(plan["plan"]["grid"]["ring"].get<bool>());
}

// For the same O, L and blocks, the bits of g do not depend on the grid.
TEST_F(RanksCommand, ReturnTheSameGradientOnEveryGrid) {
  const std::string shape = "--n 61 --m 43 --d 7 --M 900";
  static_cast<void>(data("run forward/rows " + shape + " --out O=O.npy --out L=L.npy"));
  std::string first;
  for (const char* const grid : {"1x1:4", "4x1:4", "1x4:4", "2x2:4", "3x4:4", "2x1:4"}) {
    static_cast<void>(
        data(fmt::format("run backward/rows {} --seed 1 --in O=O.npy --in L=L.npy --blocks "
                         "Br=8,Bc=3,Bw=2 --grid {} --out g=g.npy",
                         shape, grid)));
    const std::string g = content_of(directory_.path() / "g.npy");
    first = first.empty() ? g : first;
    EXPECT_TRUE(g == first) << grid;
  }
}

// For P ranks, the chosen grid minimises the words that its busiest rank receives.
TEST_F(RanksCommand, TakeTheGridThatSendsTheFewestWords) {
  const std::string problem = "count backward/rows --n 4096 --d 32 --M 16K";
  const auto largest = [](const Json& report) {
    Index most = 0;
    for (const Json& rank : report["ranks"]) {
      most = std::max(most, rank["received"].get<Index>());
    }
    return most;
  };
  const Json chosen = json(problem + " --ranks 12");
  for (const char* const grid : {"12x1", "6x2", "4x3", "3x4", "2x6", "1x12"}) {
    EXPECT_LE(largest(chosen), largest(json(fmt::format("{} --grid {}", problem, grid)))) << grid;
  }
  EXPECT_EQ(chosen["largest"]["received"], largest(chosen));
}

TEST_F(RanksCommand, CountThousands) {
  const Json report = json("count backward/rows --n 1M --d 128 --M 256K --grid 64x64");
  EXPECT_EQ(report["ranks"].size(), 4096);
}

// Even for more than 256 ranks, a run reports for each rank the words of the formulas.
TEST_F(RanksCommand, RunHundreds) {
  const std::string on = "backward/rows --n 61 --m 43 --d 3 --M 900 --grid 65x4";
  const Json ran = json("run " + on + " --verify");
  EXPECT_EQ(words_of_ranks(ran), words_of_ranks(json("count " + on)));
  EXPECT_TRUE(ran["error"]["ok"].get<bool>());
  EXPECT_EQ(data("run " + on).find("other links"), std::string::npos);
}

// The bounds follow docs/theory/ranks.md, and no rank moves fewer words, in counts and in runs.
TEST_F(RanksCommand, SayHowFewWordsSomeRankMoves) {
  for (const std::string kernel : kKernels) {
    const std::string on = kernel + " --n 300 --m 200 --d 7 --M 900 --grid 3x2";
    const Json counted = json("count " + on);
    EXPECT_EQ(json("run " + on)["rank_bounds"], counted["rank_bounds"]);
    const Json& bounds = counted["rank_bounds"];
    EXPECT_EQ(keys(bounds), (Keys{"links", "small_homes", "arena"}));
    for (const std::string of : {"links", "small_homes", "arena"}) {
      ASSERT_FALSE(bounds[of]["lower_bound"].is_null()) << of;
      EXPECT_EQ(bounds[of]["lower_bound"]["status"], "proven");
      EXPECT_LE(bounds[of]["lower_bound"]["words"], bounds[of]["words"]);
    }
    Index arena = 0, home = 0;
    for (const Json& rank : counted["ranks"]) {
      arena = std::max(arena, rank["arena"]["io"].get<Index>());
      home = std::max(home, rank["home"].get<Index>());
    }
    EXPECT_EQ(bounds["arena"]["words"], arena);
    EXPECT_EQ(bounds["small_homes"]["at_a_time"], home + 900);
    EXPECT_NE(data("count " + on)
                  .find(fmt::format("; ratio {:.3f}\n", bounds["arena"]["ratio"].get<double>())),
              std::string::npos);
  }
  // With two groups on a rank, a row has more than one sum Z, and the proof covers only one.
  const Json none = json("count forward/rows --n 300 --d 7 --M 900 --grid 3x2:4")["rank_bounds"];
  EXPECT_TRUE(none["arena"]["lower_bound"].is_null());
  EXPECT_TRUE(none["arena"]["ratio"].is_null());
  EXPECT_NE(none["arena"]["no_bound"].get<std::string>().find("anew for each of its groups"),
            std::string::npos);
  EXPECT_FALSE(none["links"]["lower_bound"].is_null());
}

// The table of docs/theory/ranks.md, for square grids and rings: millions of words, and their ratio
// to the bound. Row blocks do not divide the rows exactly, so a square grid receives up to 0.2%
// more words.
TEST_F(RanksCommand, AreAsNearTheBoundsAsTheTheorySays) {
  struct Line {
    Index ranks;
    double ring, square, bound, over, ring_over;
  };
  const std::vector<Line> table = {{4, 201.3, 134.7, 134.2, 1.004, 1.50},
                                   {64, 264.2, 58.9, 58.7, 1.004, 4.50},
                                   {1024, 268.2, 16.3, 16.3, 1.004, 16.5},
                                   {4096, 268.4, 8.29, 8.26, 1.004, 32.5}};
  const Json backward = json("plot ranks backward/rows --n 1M --d 128 --M 256K")["points"];
  const Json forward = json("plot ranks forward/rows --n 1M --d 128 --M 256K")["points"];
  const auto point = [](const Json& points, Index ranks, const char* what) {
    return *std::ranges::find_if(
        points, [&](const Json& of) { return of["ranks"] == ranks && of["what"] == what; });
  };
  for (const auto& [ranks, ring, square, bound, over, ring_over] : table) {
    SCOPED_TRACE(ranks);
    const auto near = [](const Json& words, double millions) {
      EXPECT_NEAR(words.get<double>() / 1e6, millions,
                  (millions < 10 ? 0.005 : 0.05) + 0.002 * millions);
    };
    const Json best = point(backward, ranks, "best grid");
    EXPECT_EQ(best["rows"], best["columns"]);
    near(best["words"], square);
    near(best["lower_bound"], bound);
    EXPECT_NEAR(best["ratio"].get<double>(), over, 0.002);
    const Json of_ring = point(backward, ranks, "ring");
    near(of_ring["words"], ring);
    EXPECT_NEAR(of_ring["ratio"].get<double>(), ring_over, 0.005 * ring_over);
    EXPECT_NEAR(point(forward, ranks, "best grid")["ratio"].get<double>(), 1.002, 0.002);
  }
}

// Three sets of two ranks have two of the six heads each. The bits equal one machine with the same
// blocks. A rank moves twice the words of one head and has a home for both. Splitting only heads
// sends no words.
TEST_F(RanksCommand, ShareOutHeads) {
  const std::string problem = " --n 60 --d 6 --M 2K --seed 3 --blocks ";
  const auto bytes = [&](const std::string& line) {
    data("run gradients/rows-keys-onepass" + problem + line +
         " --out dK=k.npy --out dQ=q.npy --verify");
    return content_of(directory_ / "k.npy") + content_of(directory_ / "q.npy");
  };
  const std::string blocks = "dQ.Br=9,dQ.Bc=5,dKV.Br=4,dKV.Bc=7,groups=2,dKV.groups=3";
  const std::string alone = bytes(blocks + " --heads 6");
  EXPECT_EQ(bytes(blocks + " --heads 6 --grid 2x1 --ranks 6"), alone);
  EXPECT_EQ(bytes(blocks + " --heads 6 --ranks 3"), alone);
  // Heads come from a file: each rank reads some rows of some heads.
  data("run attention/rows --n 60 --d 6 --M 2K --heads 6 --seed 5 --out O=dO.npy");
  const std::string from_file = bytes(blocks + " --heads 6 --in dO=dO.npy");
  EXPECT_NE(from_file, alone);
  EXPECT_EQ(bytes(blocks + " --heads 6 --in dO=dO.npy --grid 2x1 --ranks 6"), from_file);
  const auto ranks = [&](const std::string& line) {
    return json("run gradients/rows-keys-onepass" + problem + blocks + line);
  };
  const Json one = ranks(" --grid 2x1"), six = ranks(" --heads 6 --grid 2x1 --ranks 6");
  EXPECT_EQ(six["grid"]["sets"], 3);
  ASSERT_EQ(six["ranks"].size(), 6U);
  for (std::size_t rank = 0; rank < 6; ++rank) {
    const Json& of = six["ranks"][rank];
    for (const char* words : {"received", "sent", "home", "pairs"}) {
      EXPECT_EQ(of[words], 2 * one["ranks"][rank % 2][words].get<Index>()) << words;
    }
    EXPECT_EQ(of["received"], of["formula"]["received"]);
    EXPECT_EQ(of["home"], of["formula"]["home"]);
    EXPECT_EQ(of["arena"]["io"], of["formula"]["arena"]["io"]);
  }
  EXPECT_EQ(json("count attention/rows --n 60 --d 6 --M 2K --heads 8 --ranks 4")["path"], 0);
}

// Under a mask, the results are right, and the counts equal the formulas.
TEST_F(RanksCommand, TakeMasks) {
  for (const std::string kernel : {"attention/rows", "gradients/rows-keys", "backward/rows"}) {
    for (const std::string mask : {"causal", "window:9,0|prefix:3", "window:4,4&prefix:30"}) {
      const Json ran =
          json("run " + kernel + " --n 70 --m 50 --d 6 --M 2K --ranks 6 --verify --mask " + mask);
      EXPECT_TRUE(ran["error"]["ok"]) << kernel << mask;
      for (const Json& rank : ran["ranks"]) {
        EXPECT_EQ(rank["received"], rank["formula"]["received"]);
        EXPECT_EQ(rank["arena"]["io"], rank["formula"]["arena"]["io"]);
      }
    }
  }
}

TEST_F(RanksCommand, RefuseWhatTheyDoNotDo) {
  const std::string problem = "--n 20 --m 10 --d 4 --M 900";
  const std::pair<std::string, const char*> refused[] = {
      {"run backward/small " + problem + " --grid 2x2", "does not run on ranks; .*backward/rows"},
      {"count backward/rows " + problem + " --grid 2y2", "--grid '2y2': expected ROWSxCOLUMNS"},
      {"count backward/rows " + problem + " --grid 0x2", "--grid: .0. is zero"},
      {"count backward/rows " + problem + " --grid 2x2:", "--grid '2x2:': expected"},
      {"count backward/rows " + problem + " --grid 2x3:2",
       "--grid 2x3:2: at least as many groups of keys as columns"},
      {"count backward/rows " + problem + " --grid 1x11",
       "--grid 1x11: 11 groups of keys, but there are 10 keys: take at most 10 columns"},
      {"count backward/rows " + problem + " --grid 1x2:12",
       "--grid 1x2:12: 12 groups of keys, but there are 10 keys: take at most 10 groups"},
      {"count backward/rows --n 61 --m 43 --d 7 --M 900 --grid 4x1 --blocks Br=61,Bc=5",
       "--blocks: these take [0-9]+ words more than M = 900, in the phase [^ ]+: take smaller "
       "ones, or a larger --M"},
      {"count backward/rows " + problem + " --grid 2x2 --ranks 6",
       "--grid 2x2: 4 ranks, but --ranks says 6; as many, or several such grids"},
      {"count backward/rows " + problem + " --grid 2x2 --ranks 8",
       "--grid 2x2: 8 ranks are 2 such grids, which do not share out 1 head: take a grid of all "
       "ranks, or --heads that 2 divides"},
      {"count gradients/rows-keys " + problem + " --grid 4x1 --blocks dKV.groups=2",
       "--blocks: a grid of 4x1 has more rows than the plan has dKV.groups, of queries .2.: take "
       "one with fewer, or more groups"},
      {"count gradients/rows-keys " + problem + " --grid 21x1",
       "--grid: a grid of 21x1 has more rows than the plan has row blocks .20.: take one with "
       "fewer, or smaller row blocks"},
      {"count gradients/rows-keys " + problem + " --ranks 23", "--ranks: a grid of 23x1 has more"},
      {"count backward/rows " + problem + " --ranks 0", "--ranks: .0. is zero"},
      {"run backward/rows " + problem + " --ranks 2 --threads 2", "leave --threads out"},
      {"run backward/rows " + problem + " --ranks 2 --store file:s --keep", "leave --keep out"},
      {"run backward/rows --n 20 --m 60 --d 4 --M 900 --ranks 2 --mask window:0,0&prefix:5",
       "no query meets a key: ranks have nothing to share under --mask"},
      {"run backward/rows " + problem + " --ranks 2 --mask causal --blocks Br=5,clustered=5",
       "--blocks clustered: rows of ranks are in their own order"},
      {"run attention/rows " + problem + " --ranks 2 --heads 2 --kv-heads 1",
       "heads of ranks share no keys: leave --kv-heads out"},
      {"run attention/rows " + problem + " --ranks 2 --heads 2 --store file:s --resume",
       "ranks keep checkpoints of one head: leave --resume out"},
      {"count backward/rows " + problem + " --ring",
       "--ring: how many ranks. Give --grid Px1 or --ranks P, too"},
      {"count backward/rows " + problem + " --grid 2x2 --ring",
       "--ring: --grid 2x2: a ring has one column and one group of keys: give 2x1"},
      {"count backward/rows " + problem + " --grid 2x1:2 --ring",
       "--ring: --grid 2x1:2: a ring has one column and one group of keys: give 2x1"},
      {"run backward/small " + problem + " --grid 2x1 --ring", "does not run on ranks"},
      {"count backward/rows " + problem + " --grid 2x1 --ring --blocks groups=2",
       "backward/rows on a ring: rows pass one after the other: leave groups out"},
      {"count attention/rows --n 20 --d 4 --M 900 --grid 2x1 --ring --blocks Br=4,Bc=2 --mask "
       "window:0,0|prefix:2",
       "on a ring: keys pass in one run, and under this mask some row block meets keys with"},
      {"count gradients/rows-keys " + problem + " --grid 2x1 --ring --mask window:2,2",
       "on a ring: queries pass in their order, and under this mask"},
      {"run attention/rows " + problem + " --grid 2x1 --ring --prefetch 2",
       "rows of a ring come as they pass: leave --prefetch out"},
      {"run attention/rows " + problem + " --ranks 2 --ring --store file:s",
       "rows of a ring pass through homes in memory: leave --store out"},
      {"plan attention/rows --n 20 --d 4 --M 900 --ring",
       "attention/rows: plan takes a kernel only with --ranks or several levels, as "},
      {"plan gradients/rows-keys --n 20 --d 4 --M 900 --ranks 2 --ring --mask window:2,2",
       "on a ring: queries pass in their order, and under this mask"},
      {"run backward/rows " + problem + " --patience 3", "--patience: only of runs on ranks"},
      {"count backward/rows --n 20 --d 4 --M 20 --grid 2x2", "does not fit in M = 20"},
  };
  for (const auto& [line, message] : refused) {
    SCOPED_TRACE(line);
    expect_refused(process(line), 2, message);
  }
  expect_refused(process("count backward/rows --grid 2 " + problem), 2, "--grid '2'");
}

// If the system refuses to start a thread, the command ends with one line. The threads that did
// start are joined.
TEST_F(RanksCommand, ThatCannotBeStartedAreAnError) {
  if (kSanitized) {
    GTEST_SKIP() << "LeakSanitizer needs a thread at the end";
  }
  const std::string run = "run forward/rows --n 32 --d 8 --M 1K ";
  for (const std::string kind : {"rank", "worker"}) {
    for (const unsigned most : {1U, 20U}) {
      SCOPED_TRACE(fmt::format("{} of {}", kind, most));
      Process process = this->process(run + (kind == "rank" ? "--ranks 32" : "--threads 32"));
      process.without_root = true;
      process.most_threads = most;
      expect_refused(process, 1, "no thread can be started for " + kind + " ");
    }
  }
  // A run on one thread starts no other.
  Process alone = process(run);
  alone.without_root = true;
  alone.most_threads = 1;
  EXPECT_EQ(alone.run().code, 0);
}

// As a rank of an MPI job, redblue replaces itself by the program redblue-mpi in its own folder.
// Without /proc it does not know this folder. It must not take a program of that name from the
// working directory.
TEST_F(RanksCommand, DoNotBecomeAProgramOfTheWorkingDirectory) {
  const auto without_proc = [&](const std::string& line) {
    Process process = this->process("");
    process.environment.emplace_back("OMPI_COMM_WORLD_SIZE=2");
    const char* const own_mounts = ::geteuid() == 0 ? "-m" : "-rm";
    process.words = {"/usr/bin/unshare", own_mounts, "/bin/sh", "-c",
                     "mount -t tmpfs none /proc && " + line};
    return process.run();
  };
  if (const Outcome tried = without_proc("echo hidden"); tried.out != "hidden\n") {
    GTEST_SKIP() << "/proc cannot be hidden: " << tried.err;
  }
  directory_.write("redblue-mpi", "#!/bin/sh\necho executed\n");
  std::filesystem::permissions(directory_ / "redblue-mpi", std::filesystem::perms::owner_all);
  const Outcome run =
      without_proc(REDBLUE_COMMAND " run forward/rows --n 8 --d 4 --M 900 --ranks 2");
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.out, "");
  // Sanitizers complain about /proc first.
  const std::string said = run.err.substr(std::min(run.err.find("redblue: "), run.err.size()));
  EXPECT_TRUE(said.starts_with("redblue: mpirun started this, but /proc does not say")) << run.err;
}

// ---- an MPI job ----------------------------------------------------------------------------

class MpiJobs : public RanksCommand {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mpi_jobs(); !why.empty()) {
      GTEST_SKIP() << why;
    }
  }
  [[nodiscard]] Outcome mpirun(Index ranks, const std::string& line) const {
    std::vector<std::string> words = split(line).words;
    words.insert(words.begin(), REDBLUE_COMMAND);
    return mpi_job({{ranks, words}}, directory_.path()).run();
  }
};

// Ranks of a job have the words, links and bits of ranks that are threads.
TEST_F(MpiJobs, DoWhatRanksOfOneProcessDo) {
  for (const std::string kernel : {"forward/rows", "backward/rows", "attention/rows"}) {
    const std::string result = kernel.starts_with("backward") ? "g" : "O";
    const std::string problem = fmt::format("run {} --n 61 --m 43 --d 7 --M 900", kernel);
    constexpr Index kRanks[] = {1, 2, 3, 4, 7};
    at_once(kRanks, [&](Index ranks) {
      SCOPED_TRACE(fmt::format("{} on {}", kernel, ranks));
      const std::string a = fmt::format("a{}.npy", ranks), b = fmt::format("b{}.npy", ranks);
      const Outcome job =
          mpirun(ranks, fmt::format("{} --verify --out {}={} --format json", problem, result, a));
      ASSERT_EQ(job.code, 0) << job.err;
      EXPECT_EQ(job.err, "");
      const Json of_job = Json::parse(job.out);
      const Json of_threads =
          json(fmt::format("{} --ranks {} --verify --out {}={}", problem, ranks, result, b));
      EXPECT_EQ(words_of_ranks(of_job), words_of_ranks(of_threads));
      EXPECT_EQ(content_of(directory_ / a), content_of(directory_ / b));
    });
  }
}

TEST_F(MpiJobs, DoWhatARingOfOneProcessDoes) {
  for (const std::string kernel : {"attention/rows", "gradients/rows-keys-onepass"}) {
    const std::string result = kernel.starts_with("gradients") ? "dV" : "O";
    const std::string problem = fmt::format("run {} --n 61 --m 43 --d 7 --M 900 --ring", kernel);
    SCOPED_TRACE(kernel);
    const Outcome job =
        mpirun(3, fmt::format("{} --verify --out {}=a.npy --format json", problem, result));
    ASSERT_EQ(job.code, 0) << job.err;
    EXPECT_EQ(job.err, "");
    const Json of_threads =
        json(fmt::format("{} --ranks 3 --verify --out {}=b.npy", problem, result));
    EXPECT_EQ(words_of_ranks(Json::parse(job.out)), words_of_ranks(of_threads));
    EXPECT_EQ(content_of(directory_.path() / "a.npy"), content_of(directory_.path() / "b.npy"));
  }
}

// `calibrate` in a job times the links between its ranks.
TEST_F(MpiJobs, TimeTheirLinks) {
  directory_.write("c.json", R"({"rates": {}, "links": null})");
  const Outcome job = mpirun(3, "calibrate --links --out c.json --format json");
  ASSERT_EQ(job.code, 0) << job.err;
  const Json links = Json::parse(content_of(directory_ / "c.json"))["links"];
  EXPECT_EQ(Json::parse(job.out)["links"], links);
  EXPECT_GT(links["seconds_a_message"], 0);
  EXPECT_EQ(links["origin"].get<std::string>().find("calibrated between two of 3 ranks of MPI on "),
            0U);
}

// A fault that all ranks find before they start is reported once, at once, and each rank ends with
// its exit code. No rank aborts the others, and no output is left.
TEST_F(MpiJobs, SayOnceWhatIsWrong) {
  const std::string size = " --n 20 --d 4 --M 900 --out g=g.npy";
  const std::pair<std::string, const char*> wrong[] = {
      {"run backward/rows --grid 2x2" + size,
       "--grid 2x2: 4 ranks, but mpirun started 3; as many, or several such grids, each of which "
       "has some of the heads"},
      {"run backward/rows --ranks 4" + size,
       "--ranks 4: mpirun started 3 ranks: leave --ranks out, or start mpirun -n 4"},
      {"run backward/small" + size, "mpirun: backward/small does not run on ranks; "},
      {"run backward/rows --threads 2" + size,
       "mpirun: each rank is one worker: leave --threads out"},
      {"run backward/rows --sizes 3" + size,
       "The following arguments were not expected: --sizes 3"},
      {"run backward/rows --grid 1x3 --m 2" + size,
       "--grid 1x3: 3 groups of keys, but there are 2 keys: take at most 2 columns"},
  };
  at_once(wrong, [&](const auto& one) {
    const auto& [line, message] = one;
    SCOPED_TRACE(line);
    const Outcome job = mpirun(3, line);
    EXPECT_EQ(job.code, 2);
    EXPECT_EQ(job.out, "");
    EXPECT_TRUE(job.err.starts_with("redblue: " + std::string(message))) << job.err;
    EXPECT_EQ(job.err.find('\n'), job.err.size() - 1) << job.err;
    EXPECT_LT(job.seconds, 20 * kSlowdown);
  });
  EXPECT_FALSE(files().contains("g.npy"));
  // mpirun prints the exit codes, and no sign of an abort.
  std::vector<std::string> words = split("run backward/rows --ranks 4" + size).words;
  words.insert(words.begin(), REDBLUE_COMMAND);
  const Outcome job = mpi_job({{3, words}}, directory_.path(), false).run();
  EXPECT_EQ(job.code, 2);
  EXPECT_EQ(job.err.find("MPI_ABORT"), std::string::npos) << job.err;
  EXPECT_NE(job.err.find("Exit code:    2"), std::string::npos) << job.err;
}

// A fault that only one rank finds also ends the ranks that wait for it.
TEST_F(MpiJobs, EndWhereOneRankFindsWhatIsWrong) {
  const std::string line = "run backward/rows --n 20 --d 4 --M 900 --out g=g.npy";
  const auto words = [&](const std::string& more) {
    std::vector<std::string> all = split(line + more).words;
    all.insert(all.begin(), REDBLUE_COMMAND);
    return all;
  };
  for (const auto& [more, code] : {std::pair(" --in A1=none.npy", 1), std::pair(" --sizes 3", 2)}) {
    SCOPED_TRACE(more);
    const Outcome job =
        mpi_job({{1, words("")}, {1, words(more)}, {2, words("")}}, directory_.path()).run();
    EXPECT_EQ(job.code, code);
    EXPECT_TRUE(job.err.starts_with("redblue: rank 1: ")) << job.err;
    EXPECT_LT(job.seconds, 20 * kSlowdown);
    EXPECT_TRUE(files().empty() || !files().contains("g.npy"));
    EXPECT_EQ(left_running_in(directory_.path()), std::vector<int>());
  }
}

// If no run is needed, only the first rank prints.
TEST_F(MpiJobs, PrintFormulasOnce) {
  for (const std::string line :
       {"count backward/rows --n 61 --m 43 --d 7 --M 900 --grid 2x2",
        "plan backward/rows --n 61 --m 43 --d 7 --M 900 --ranks 4", "run --help", "list"}) {
    SCOPED_TRACE(line);
    const Outcome job = mpirun(3, line);
    EXPECT_EQ(job.code, 0) << job.err;
    EXPECT_EQ(job.err, "");
    EXPECT_EQ(job.out, data(line));
  }
}

}  // namespace
}  // namespace redblue
