// Tests runs in a store on disk, from the command line: the same bits and counts as in memory, the
// bytes that another process sees, and runs that are ended and resumed.

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <random>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "kernels/arithmetic/simd.hpp"
#include "kernels/kernel.hpp"
#include "memsim/store/file.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/itemised.hpp"
#include "tests/support/npy_bytes.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

constexpr Index kSector = 4096;

class StoreCommand : public Cli {
 protected:
  explicit StoreCommand(const std::filesystem::path& parent = ::testing::TempDir()) : Cli(parent) {}

  [[nodiscard]] std::vector<std::string> names(const std::string& directory = "st") const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory_ / directory)) {
      found.push_back(entry.path().filename().string());
    }
    std::ranges::sort(found);
    return found;
  }
  [[nodiscard]] std::string bytes(const std::string& file) const {
    return content_of(directory_ / file);
  }
  void expect_refused(const std::string& line, int code, const std::string& message) const {
    SCOPED_TRACE(line);
    Cli::expect_refused(process(line), code, message);
  }
  // Sends a signal to a command after `seconds`. timeout(1) ends after the command, so the store is
  // free again.
  [[nodiscard]] Outcome signalled(const std::string& line, const char* signal,
                                  double seconds) const {
    Process ended = process(line);
    const std::vector<std::string> timeout = {"/usr/bin/timeout", "--foreground", "-s", signal,
                                              fmt::format("{:.4f}", seconds)};
    ended.words.insert(ended.words.begin(), timeout.begin(), timeout.end());
    return ended.run();
  }
  using Cli::signalled;
  // Ends a run after its first checkpoint. Returns the names in its store.
  std::vector<std::string> leave_checkpoint(const std::string& line) const {
    const auto checkpoint = directory_ / "st/redblue.checkpoint";
    const Outcome ended =
        signalled(process(line), SIGTERM, [&] { return std::filesystem::exists(checkpoint); });
    EXPECT_EQ(ended.err, "redblue: ended by SIGTERM\n");
    EXPECT_TRUE(std::filesystem::exists(checkpoint));
    return names();
  }
};

// If the store has A3, its O and L belong to A3 and not to shared keys. Without A3 they may belong
// to shared keys.
TEST_F(StoreCommand, HasOAndLOfItsValues) {
  const std::string size = " --n 21 --m 17 --d 8 --M 900 --store file:st";
  EXPECT_EQ(redblue("store generate st --n 21 --m 17 --d 8").code, 0);
  expect_refused("run forward/rows --sharing kv" + size, 2, "st has A3: O and L there are of it");
  EXPECT_EQ(redblue("run forward/rows --verify" + size).code, 0);
  expect_refused("run backward/rows --sharing kv" + size, 2, "st has A3: O and L there are of it");
  EXPECT_TRUE(json("run backward/rows --verify" + size)["error"]["ok"]);
  std::filesystem::remove(directory_ / "st" / "A3.rb");
  EXPECT_EQ(redblue("run forward/rows --verify --sharing kv" + size).code, 0);
  EXPECT_TRUE(json("run backward/rows --verify --sharing kv" + size)["error"]["ok"]);
}

// O and L in a store belong to the store's Q, K and V and to the default scale. Otherwise they are
// not used.
TEST_F(StoreCommand, HasOAndLOfOneProblem) {
  const std::string size = " --n 21 --m 17 --d 8 --M 900 --store file:st";
  EXPECT_EQ(redblue("store generate st Q K V dO --n 21 --m 17 --d 8").code, 0);
  expect_refused("run attention/rows --softmax-scale 0.5" + size, 2,
                 "--softmax-scale 0.5: O and L would stay in st");
  EXPECT_EQ(redblue("run attention/rows --verify" + size).code, 0);
  const Json given = json("run gradients/tiles --verify" + size);
  EXPECT_EQ(given["operands"]["L"], "store");
  EXPECT_FALSE(given.contains("forward"));
  const Json other = json("run gradients/tiles --verify --softmax-scale 0.5" + size);
  EXPECT_TRUE(other["error"]["ok"]);
  EXPECT_TRUE(other.contains("forward")) << "L of the store is of another scale";
  expect_refused("run attention/rows --sharing kv" + size, 2, "st has V: O and L there are of it");
  EXPECT_EQ(redblue("store generate st A1 --n 21 --m 17 --d 8").code, 0);
  for (const char* kernel : {"run attention/rows", "run gradients/tiles", "run forward/rows"}) {
    expect_refused(kernel + size, 2, "st has (A1|Q), too: O and L are of");
  }
}

TEST_F(StoreCommand, EveryKernelDoesWhatItDoesInMemory) {
  for (const TestedKernel& kernel : some_tested_kernels()) {
    // A run on disk has the bits and the counts of a run in memory, in each phase, and leaves only
    // its results. The windows of the kernel move the words that it counts.
    SCOPED_TRACE(kernel.name);
    const Shape shape{23, 18, 7};
    const std::string problem = fmt::format("run {} --n 23 --m 18 --d 7 --M {}", kernel.name,
                                            kernel.least_M(shape) * 3 / 2);
    std::string in_memory = problem;
    std::string on_disk = problem + " --store file:st --granule 4KiB --verify";
    for (const Signature& operand : kernel.returns) {
      in_memory += fmt::format(" --out {0}=m_{0}.npy", operand.name);
      on_disk += fmt::format(" --out {0}=d_{0}.npy", operand.name);
    }
    Json expected = json(in_memory);
    Json found = json(on_disk);
    std::vector<std::string> results;
    for (const Signature& operand : kernel.returns) {
      EXPECT_EQ(bytes(fmt::format("m_{}.npy", operand.name)),
                bytes(fmt::format("d_{}.npy", operand.name)));
      results.push_back(fmt::format("{}.rb", operand.name));
    }
    std::ranges::sort(results);
    EXPECT_EQ(names(), results);
    for (Json* document : {&expected, &found}) {
      for (Json& phase : (*document)["phases"]) {
        phase.erase("seconds");
      }
    }
    EXPECT_EQ(expected["phases"], found["phases"]);
    expect_itemised(found["store"]);
    const Json& moved = found["store"]["bytes"]["kernel"];
    Index reads = found["total"]["reads"];
    Index writes = found["total"]["writes"];
    if (found.contains("forward")) {
      reads += found["forward"]["total"]["reads"].get<Index>();
      writes += found["forward"]["total"]["writes"].get<Index>();
    }
    EXPECT_EQ(moved["read"]["words"], 4 * reads);
    EXPECT_EQ(moved["written"]["words"], 4 * writes);
    std::filesystem::remove_all(directory_ / "st");
  }
}

// Returns the sum of the results of pread and pwrite on the store's files, as strace printed them.
// A call is on one line, or on two lines if another thread's call came between. Then the first line
// names the file.
Index bytes_seen(const std::string& trace) {
  Index sum = 0;
  std::set<std::string> unfinished;  // threads in a call of two lines
  std::istringstream lines(trace);
  for (std::string line; std::getline(lines, line);) {
    const std::string thread = line.substr(0, line.find(' '));
    const bool resumed = line.find(" resumed>") != std::string::npos;
    if (resumed ? unfinished.erase(thread) == 0 : line.find("/st/") == std::string::npos) {
      continue;
    }
    if (line.find("<unfinished") != std::string::npos) {
      unfinished.insert(thread);
    } else {
      sum += std::stoll(line.substr(line.rfind(" = ") + 3));
    }
  }
  return sum;
}

// The bytes that a run itemises equal the bytes that another process sees it move.
TEST_F(StoreCommand, MovesTheBytesThatStraceSees) {
  const std::vector<std::string> strace = {"/usr/bin/strace",        "-f", "-y",       "-e",
                                           "trace=pread64,pwrite64", "-o", "trace.txt"};
  Process tried = process("--version");
  tried.words.insert(tried.words.begin(), strace.begin(), strace.end());
  if (tried.run().code != 0) {
    GTEST_SKIP() << "nobody may trace here; that items add up to what requests returned is checked "
                    "within the process by EveryKernelDoesWhatItDoesInMemory";
  }
  for (const char* run : {"backward/small --n 150 --m 120 --d 24 --M 600",
                          "backward/large --n 150 --m 120 --d 24 --M 4000",
                          "backward/auto --n 150 --m 120 --d 24 --M 4000 --prefetch 2"}) {
    SCOPED_TRACE(run);
    Process process = this->process(
        fmt::format("run {} --store file:st --engine threads --granule 8KiB --format json", run));
    process.words.insert(process.words.begin(), strace.begin(), strace.end());
    const Outcome outcome = process.run();
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json store = Json::parse(outcome.out)["store"];
    const Index seen = bytes_seen(bytes("trace.txt"));
    EXPECT_EQ(expect_itemised(store), seen);
    EXPECT_GT(seen, 4 * Json::parse(outcome.out)["total"]["io"].get<Index>() / 2);
    std::filesystem::remove_all(directory_ / "st");
  }
}

// The memory of a process depends on M, not on n: four times the operands add less than a MiB.
// There is no prefetch here, because the number of threads with buffers would depend on the
// machine.
TEST_F(StoreCommand, MemoryDoesNotGrowWithTheProblem) {
  if (kSanitized) {
    GTEST_SKIP() << "a sanitizer's allocator keeps what is freed";
  }
  const auto resident = [&](Index n) {
    const Json store = json(
        fmt::format("run forward/rows --n {} --m 64 --d 64 --M 16K --store file:st", n))["store"];
    return store["resident"].get<Index>();
  };
  constexpr Index kMiB = Index{1} << 20;
  const Index small = resident(32768);  // 8 MiB of A1 and 8 of O fill all buffers
  const Index large = resident(131072);
  EXPECT_GT(small, kMiB);
  EXPECT_LT(large - small, kMiB);
}

// Operands of a store replace files and seeds, with the same bits. An exported matrix equals the
// imported one.
TEST_F(StoreCommand, ImportsExportsAndFindsOperands) {
  const std::string problem = "--n 30 --m 20 --d 6";
  data("run backward/small " + problem + " --M 100 --out g=m.npy");
  data("store generate st " + problem);
  data("store export st A1=a1.npy X=x.npy");
  data("store import other A1=a1.npy X=x.npy");
  data("store export other A1=b1.npy");
  EXPECT_EQ(bytes("a1.npy"), bytes("b1.npy"));
  const Json there = json("store info other");
  EXPECT_EQ(there["matrices"][0]["name"], "A1");
  EXPECT_EQ(there["matrices"][0]["rows"], 30);
  EXPECT_EQ(there["matrices"][0]["columns"], 6);
  EXPECT_EQ(json("store info st X")["matrices"][0]["fingerprint"],
            json("store info other X")["matrices"][0]["fingerprint"]);
  EXPECT_NE(data("store info st").find("30"), std::string::npos);
  EXPECT_TRUE(data("store info st --format csv").starts_with("matrix,rows,columns,"));

  const Json found = json("run backward/small --M 100 --store file:st --out g=d.npy");
  EXPECT_EQ(found["store"]["found"].size(), 6U);
  EXPECT_TRUE(found["seed"].is_null());
  EXPECT_EQ(bytes("m.npy"), bytes("d.npy"));
  data("store export st g=g.npy");
  EXPECT_EQ(bytes("m.npy"), bytes("g.npy"));
  // A file takes precedence over the store.
  data("run backward/small --M 100 --store file:st --in A1=a1.npy --out g=d.npy");
  EXPECT_EQ(bytes("m.npy"), bytes("d.npy"));
  // A vector stays a vector.
  data("run forward/rows " + problem + " --M 400 --store file:st");
  data("run forward/rows " + problem + " --M 400 --out L=m.npy");
  data("store export st L=L.npy");
  EXPECT_EQ(bytes("L.npy"), bytes("m.npy"));
}

// Generated operands equal the operands that a run makes itself.
TEST_F(StoreCommand, GeneratesOperands) {
  data("store generate st --n 30 --m 20 --d 6 --seed 5 --scale 2");
  EXPECT_EQ(
      json("run backward/small --M 100 --store file:st --out g=d.npy")["store"]["found"].size(),
      6U);
  const std::string run = "run backward/small --n 30 --m 20 --d 6 --M 100 --seed 5 --out g=m.npy";
  data(run + " --scale 2");
  EXPECT_EQ(bytes("m.npy"), bytes("d.npy"));
  // A rule generates the same operand as in a run. Some operands come from the store, others from a
  // seed.
  EXPECT_EQ(data("store generate made X dO --n 30 --d 6 --seed 5 --make X=identity"),
            "X: 6 x 6 made: identity\ndO: 30 x 6 from seed 5\n");
  data("run backward/small --n 30 --m 20 --d 6 --M 100 --seed 5 --store file:made --out g=d.npy");
  data(run + " --make X=identity");
  EXPECT_EQ(bytes("m.npy"), bytes("d.npy"));
}

TEST_F(StoreCommand, KeepsIntermediatesIfAsked) {
  data("run backward/small --n 30 --d 6 --M 100 --store file:st --keep");
  const std::vector<std::string> kept = names();
  EXPECT_NE(std::ranges::find(kept, "f.intermediate.kept.rb"), kept.end());
  EXPECT_NE(data("store verify st").find("f.intermediate.kept: "), std::string::npos);
  data("store export st f.intermediate.kept=f.npy");
  // Matrices that a run leaves as results are kept, too.
  data("run layer/rows-keys --n 30 --d 6 --M 200 --store file:layer --resume --keep");
  EXPECT_NE(data("store verify layer").find("dQ.intermediate.kept: "), std::string::npos);
}

// A flipped bit in any file is found by `store verify`, and by the run that reads it. That run
// leaves no g.
TEST_F(StoreCommand, FindsDamage) {
  data("store generate st --n 30 --d 6");
  EXPECT_NE(data("store verify st").find("A1: 1 granule is what was written\n"), std::string::npos);
  std::string damaged = bytes("st/A2.rb");
  damaged[2 * kSector + 17] ^= 4;
  directory_.write("st/A2.rb", damaged);
  directory_.write("st/A3.rb", bytes("st/A3.rb") + "more");
  expect_refused("store verify st A3", 1, "A3.rb: too long: 12292 bytes; expected 12288");
  expect_refused("store verify st A2", 1, "A2.rb: the 4096 bytes at offset 8192 are not what was");
  const Outcome all = redblue("store verify st");
  EXPECT_EQ(all.code, 1);
  EXPECT_NE(all.out.find("dO: 1 granule is what was written"), std::string::npos)
      << "what lies behind A2 is seen, too";
  EXPECT_EQ(redblue("run backward/small --M 100 --store file:st --out g=g.npy").code, 1);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "g.npy"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "st/g.rb"));
}

// In memory: what a process has written outlives its kill on either.
class KilledStore : public StoreCommand {
 protected:
  KilledStore() : StoreCommand(TemporaryDirectory::in_memory()) {}

  // Kills a run at any moment and resumes it. It must end with the bits and the counts of an
  // undisturbed run, and not repeat work from before the last checkpoint.
  void goes_on(const std::string& problem, const std::vector<std::string>& results) {
    std::string in_memory = problem;
    std::string line = problem + " --store file:st --resume --format json";
    std::vector<std::string> stored;
    for (const std::string& result : results) {
      in_memory += fmt::format(" --out {0}=m_{0}.npy", result);
      line += fmt::format(" --out {0}=d_{0}.npy", result);
      stored.push_back(result + ".rb");
    }
    data(in_memory);
    std::mt19937_64 random(7);
    double whole = redblue(line).seconds;
    int resumed = 0;
    for (int round = 0; round < 8 || (resumed == 0 && round < 80); ++round) {
      std::filesystem::remove_all(directory_ / "st");
      const Outcome killed =
          signalled(line, "KILL", whole * std::uniform_real_distribution<>(0.1, 0.95)(random));
      if (killed.code == 0) {
        whole = killed.seconds;  // the machine is less busy than before
      }
      const Outcome outcome = redblue(line);
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      for (const std::string& result : results) {
        EXPECT_EQ(bytes("m_" + result + ".npy"), bytes("d_" + result + ".npy")) << result;
      }
      const Json found = Json::parse(outcome.out);
      EXPECT_EQ(found["total"]["io"], found["formula"]["io"]);
      resumed += found["store"]["resumed_at"].is_null() ? 0 : 1;
      EXPECT_EQ(names(), stored);
    }
    EXPECT_GT(resumed, 0) << "some of them were killed after a checkpoint";
  }
};

// A sum over row blocks. Then two stages under a mask; the first stage leaves L and v.
TEST_F(KilledStore, GoesOnWithASum) {
  goes_on("run backward/rows --n 600 --m 500 --d 16 --M 4096", {"g"});
}

TEST_F(KilledStore, GoesOnInEitherStage) {
  goes_on("run gradients/rows-keys-onepass --n 600 --m 500 --d 16 --M 4096 --mask causal",
          {"dK", "dQ", "dV"});
}

// Without L, there is no first stage.
TEST_F(KilledStore, GoesOnWithAnActivation) {
  goes_on("run backward/rows --n 600 --m 500 --d 16 --M 4096 --activation silu", {"g"});
}

// With clustered rows, the rows of a group are not contiguous in dQ.
TEST_F(KilledStore, GoesOnWithClusteredRows) {
  std::string marks;
  std::mt19937_64 random(3);
  for (int block = 0; block < 30 * 25; ++block) {
    marks += random() % 4 == 0 ? '\1' : '\0';
  }
  directory_.write("l.npy", npy_file(npy_header("|u1", false, "(30, 25)"), marks));
  const std::string clustered =
      " --n 600 --m 500 --d 16 --M 4096 --mask blocks:l.npy --blocks clustered=50";
  goes_on("run backward/rows-onepass" + clustered, {"g"});
  goes_on("run gradients/rows-keys-onepass" + clustered, {"dK", "dQ", "dV"});
}

// Each group of rows leaves its dK and dV, which have different widths.
TEST_F(KilledStore, GoesOnGroupByGroup) {
  goes_on("run gradients/score-rows --n 6000 --m 500 --d 16 --dv 8 --M 100K --blocks groups=12",
          {"dK", "dQ", "dV"});
}

// A layer keeps Q, V, dQ and dV in the store next to its results. A product that was interrupted
// starts again. Cases: X and dX in fast memory, blocks of both, and dead rows.
TEST_F(KilledStore, GoesOnInALayer) {
  goes_on("run layer/rows-keys --n 600 --m 500 --d 16 --M 4096", {"dA1", "dA2", "dA3", "dX", "dY"});
  goes_on(
      "run layer/rows-keys --n 600 --m 300 --d 24 --M 500 --mask window:40,9&prefix:200 "
      "--wanted dA1,dA2,dY",
      {"dA1", "dA2", "dY"});
  goes_on("run layer/score-rows --n 600 --m 200 --d 16 --M 40K --blocks groups=6",
          {"dA1", "dA2", "dA3", "dX", "dY"});
}

// One group of rows writes parts of dV and dA2 that share granules, because streamed keys start
// anywhere in a granule.
TEST_F(KilledStore, GoesOnInALayerOfOneGroup) {
  goes_on(
      "run layer/score-rows --n 300 --m 500 --d 16 --M 20K "
      "--blocks Br=10,Bc=7,kept=100,groups=1",
      {"dA1", "dA2", "dA3", "dX", "dY"});
  goes_on(
      "run layer/score-rows --n 600 --m 500 --d 16 --M 20K --mask window:40,9&prefix:400 "
      "--blocks Br=10,Bc=7,kept=100,groups=1",
      {"dA1", "dA2", "dA3", "dX", "dY"});
}

// Each group of keys leaves O and L of its row blocks.
TEST_F(KilledStore, GoesOnGroupOfKeysByGroupOfKeys) {
  goes_on("run forward/rows --n 900 --m 700 --d 16 --M 4096 --blocks groups=5", {"L", "O"});
}

// Far more work than fits before a signal, in row blocks that take little time.
const std::string kLong =
    "run forward/rows --n 200000 --m 20000 --d 16 --M 4096 --store file:st --resume";

// A signal that asks the command to end leaves no file behind, except the files that `--resume`
// needs.
TEST_F(StoreCommand, EndsCleanlyAtASignal) {
  for (const bool resume : {false, true}) {
    const std::string line = resume ? kLong : kLong.substr(0, kLong.find(" --resume"));
    for (const char* signal : {"TERM", "INT", "HUP"}) {
      EXPECT_EQ(signalled(line, signal, kSanitized ? 4 : 0.7).err,
                fmt::format("redblue: ended by SIG{}\n", signal));
      EXPECT_EQ(names().empty(), !resume);
    }
  }
  expect_refused("run forward/rows --n 100 --d 16 --M 4096 --store file:st --resume", 2,
                 "--resume: .*checkpoint is of .*not of .*remove that file");
}

// A checkpoint belongs to its operands. With other operands the run is refused, and the checkpoint
// stays.
TEST_F(StoreCommand, GoesOnWithTheSameOperandsAlone) {
  const std::vector<std::string> left = leave_checkpoint(kLong);
  ASSERT_FALSE(HasFailure());
  for (const char* other : {" --seed 2", " --scale 2"}) {
    expect_refused(kLong + other, 2,
                   "--resume: .*checkpoint is of A1 from seed 1, scale 1, and not of A1 from seed");
  }
  expect_refused("run forward/rows --n 200 --d 16 --M 4096 --store file:st", 2,
                 "--store: a run that was ended left .*checkpoint: go on from it with --resume");
  // Other vector instructions round differently.
  const char* chosen = std::getenv("REDBLUE_SIMD");
  const std::string other = simd_targets().back();  // every processor has this one
  if (other != (chosen != nullptr ? chosen : simd_targets().front())) {
    expect_refused("REDBLUE_SIMD=" + other + " " + kLong, 2,
                   "checkpoint is of .*not of .* in " + other);
  }
  // A damaged checkpoint is refused, too.
  const std::string good = bytes("st/redblue.checkpoint");
  for (const std::size_t at : {std::size_t{3}, std::size_t{30}, good.size() - 2}) {
    std::string damaged = good;
    damaged[at] ^= 1;
    directory_.write("st/redblue.checkpoint", damaged);
    expect_refused(kLong, 1, "no checkpoint, or a damaged one: remove st/redblue.checkpoint");
  }
  directory_.write("st/redblue.checkpoint", good);
  EXPECT_EQ(names(), left);
}

// A checkpoint belongs to its mask. A file of the same name with other content is another mask.
TEST_F(StoreCommand, GoesOnWithTheSameMaskAlone) {
  const auto layout = [&](const std::string& marks) {
    directory_.write("l.npy", npy_file(npy_header("|u1", false, "(2, 2)"), marks));
  };
  const std::string line =
      "run backward/rows-onepass --n 200000 --m 20000 --d 16 --M 4096 --mask blocks:l.npy --store "
      "file:st --resume";
  layout(std::string("\1\0\1\1", 4));
  leave_checkpoint(line);
  layout(std::string("\1\1\0\1", 4));
  expect_refused(line, 2, "--resume: .*mask of fingerprint .*, and not of .*mask of fingerprint");
}

// A checkpoint belongs to its activation.
TEST_F(StoreCommand, GoesOnWithTheSameActivationAlone) {
  const std::vector<std::string> left = leave_checkpoint(kLong + " --activation relu");
  for (const char* other : {" --activation silu", ""}) {
    expect_refused(kLong + other, 2, "--resume: .*checkpoint is of .*relu.*, and not of ");
  }
  EXPECT_EQ(names(), left);
}

// The O of linear attention has no L, under a causal mask either. It is never stored with the L of
// another O.
TEST_F(StoreCommand, HasOOfLinearAttentionWithoutL) {
  const std::string line = "run linear/products --n 30 --m 25 --d 6 --M 60 --mask causal --out O=";
  data(line + "m.npy");
  data(line + "d.npy --store file:st --resume");
  EXPECT_EQ(bytes("m.npy"), bytes("d.npy"));
  data("run forward/rows --n 30 --m 25 --d 6 --M 400 --store file:st");
  expect_refused(line + "d.npy --store file:st", 2,
                 "--store: st has L: O there is that of softmax attention: take another store");
}

// O and L in a store are used only with the operands that they were computed from.
TEST_F(StoreCommand, TakesOAndLWithTheirOperandsAlone) {
  data("run forward/rows --n 30 --d 6 --M 400 --store file:st");
  const std::string line = "run backward/rows --n 30 --d 6 --M 400 --seed 2";
  EXPECT_TRUE(json(line + " --store file:st --out g=d.npy")["store"]["found"].empty());
  data(line + " --out g=m.npy");
  EXPECT_EQ(bytes("m.npy"), bytes("d.npy"));
  data("store generate file:st A1 A2 A3 X Y --n 30 --d 6");
  expect_refused(line + " --store file:st", 2, "--store: st has O and L from before A1 came");
  data("store export st A1=a1.npy");
  expect_refused("run forward/rows --M 400 --store file:st --in A1=a1.npy", 2,
                 "--in A1: the store st has another A1, beside which O and L would stay");
  data("run forward/rows --M 400 --store file:st");
  EXPECT_EQ(json(line + " --store file:st --verify")["store"]["found"].size(), 7U);
  std::filesystem::remove(directory_ / "st/L.rb");
  expect_refused(line + " --store file:st", 2, "--store: st has O without L");
}

TEST_F(StoreCommand, BelongsToOneProcess) {
  data("store generate st A1 --n 4 --d 3");
  const Descriptor held(::open((directory_ / "st").c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(::flock(held.get(), LOCK_EX | LOCK_NB), 0);
  for (const char* line : {"run backward/small --n 4 --d 3 --M 100 --store file:st",
                           "store info st", "store verify st", "store export st A1=a.npy"}) {
    expect_refused(line, 1, "the store st is in use by another process: wait for it, or take");
  }
}

TEST_F(StoreCommand, BadInput) {
  std::filesystem::create_directory(directory_ / "empty");
  directory_.write("a1.npy", npy_bytes(4, 3, std::vector<float>(12, 1)));
  std::vector<float> words(12, 1);
  words[7] = std::numeric_limits<float>::quiet_NaN();
  directory_.write("nan.npy", npy_bytes(4, 3, words));
  directory_.write("cube.npy", npy_bytes({2, 2, 3}, std::vector<float>(12, 1)));
  directory_.write("foreign/A1.rb", std::string(20000, 'x'));
  data("store generate small A1 --n 4 --d 3");
  const std::string run = "run backward/small --n 4 --d 3 --M 100 ";
  const std::string rows = "run backward/rows --n 4 --d 3 --M 100 ";
  const struct {
    std::string command;
    int code;
    const char* message;
  } table[] = {
      {run + "--store st", 2, "--store 'st': expected file:DIR"},
      {run + "--store file:", 2, "--store 'file:': expected file:DIR"},
      {run + "--resume", 2, "--resume: only with --store file:DIR"},
      {run + "--keep", 2, "--keep: only with --store file:DIR"},
      {run + "--granule 4KiB", 2, "--granule: only with --store file:DIR"},
      {run + "--engine threads", 2, "--engine: only with --store file:DIR"},
      {run + "--direct no", 2, "--direct: only with --store file:DIR"},
      {run + "--store file:st --engine aio", 2, "--engine 'aio': expected io_uring or threads"},
      {run + "--store file:st --direct maybe", 2, "--direct 'maybe': expected yes or no"},
      {run + "--store file:st --granule 1MiB", 2,
       "--granule '1MiB' is too large: .*at most 512KiB"},
      {run + "--store file:st --granule 1TiB", 2,
       "--granule '1TiB' is too large: expected a multiple of 4KiB, at most 512KiB"},
      {run + "--store file:st --granule 1KiB", 2, "--granule '1KiB': expected a multiple of 4KiB"},
      {run + "--store file:st --granule 64", 2, "--granule: \"64\" is not a size in bytes"},
      {run + "--store file:empty --resume", 2,
       "--resume: backward/small does not work row block by row block; forward/rows, .* do"},
      {run + "--store file:empty --heads 2", 2, "one problem at a time runs in a store; 2 heads"},
      {"run attention/rows --n 4 --d 3 --M 99 --store file:empty --heads 2 --kv-heads 1", 2,
       "one problem at a time runs in a store; 2 heads"},
      {rows + "--store file:empty --threads 2", 2, "--threads 2: one worker runs in a store"},
      {run + "--prefetch 2", 2, "--prefetch 2: backward/small streams no keys; forward/rows, .*do"},
      {rows + "--prefetch 0", 2, "--prefetch: \"0\" is zero"},
      {"run backward/rows --n 4 --d 3 --M 20 --prefetch 4 --store file:empty", 2,
       "does not fit in M = 20 words: .*it needs M of at least"},
      {run + "--store file:nowhere/st", 1, "cannot make the directory nowhere/st: No such file"},
      {run + "--store file:a1.npy", 1, "cannot open the directory a1.npy: Not a directory"},
      {run + "--store file:foreign", 1, "foreign/A1.rb: a foreign file; expected a matrix of a"},
      {"run backward/small --n 5 --d 3 --M 100 --store file:small", 1,
       "A1 of small/A1.rb makes n = 4, but --n makes n = 5"},
      {run + "--store file:empty --seed 1 --in A1=nan.npy", 1,
       "A1 of nan.npy: nan at row 2, column 1"},
      {"run matmul/blocked --n 100M --m 1 --d 1000 --M 8K --store file:empty", 1,
       "the store empty has [0-9]+ bytes free and needs [0-9]+ more for this run"},
      {"store", 2, "subcommand"},
      {"store info nowhere", 1, "there is no store nowhere: redblue store import or generate"},
      {"store info empty", 1, "empty is no store: no matrix is there"},
      {"store verify empty", 1, "empty is no store: no matrix is there"},
      {"store export empty A1=a.npy", 1, "empty is no store: no matrix is there"},
      {"store info small B", 1, "the store small has no matrix B"},
      {"store verify foreign", 1, "foreign/A1.rb: a foreign file"},
      {"store export small B=b.npy", 1, "the store small has no matrix B"},
      {"store export small A1", 2, "'A1': expected NAME=FILE"},
      {"store export small A1=nowhere/a.npy", 1, "nowhere/a.npy: No such file"},
      {"store import new A1", 2, "'A1': expected NAME=FILE"},
      {"store import new a/b=a1.npy", 2, "'a/b' is no name of a matrix"},
      {"store import new A.run=a1.npy", 2, "'A.run' is no name of a matrix"},
      {"store import new A1=none.npy", 1, "none.npy: No such file"},
      {"store import new A1=cube.npy", 1, "cube.npy has 3 dimensions, expected 1 or 2"},
      {"store import small B=nan.npy", 1, "B of nan.npy: nan at row 2, column 1"},
      {"store import new A1=a1.npy --granule 3KiB", 2, "--granule '3KiB': expected a multiple"},
      {"store generate new --n 4", 2, "--d is missing"},
      {"store generate new --n 4 --d 3 B", 2, "'B': expected some of A1"},
      {"store generate empty --n 4 --d 3 --scale 1e40 X", 2, "scale"},
      {"store generate new --n 4 --d 3 X --make Y=identity", 2, "--make Y=identity: .* given X"},
      {"store generate new --n 4 --d 3 --make A1=identity", 2, "square operands: .*X, Y"},
  };
  for (const auto& [command, code, message] : table) {
    expect_refused(command, code, message);
  }
}

}  // namespace
}  // namespace redblue
