// Every bad input: one clear line on standard error, nothing on standard output, no file left
// behind or changed. The exit code is 2 for a command line that asks for something that does not
// exist, 1 for the rest.

#include <cerrno>
#include <cstring>
#include <limits>

#include <sched.h>
#include <sys/mount.h>

#include "kernels/kernel.hpp"
#include "runtime/observe/callgrind.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/run/buffers.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/npy_bytes.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

// A command line, where @ stands for "--n 4 --m 5 --d 3 --M 200"; its exit code; what its
// message must match.
struct Bad {
  const char* command;
  int code;
  const char* message;
};

class BadInput : public Cli {
 protected:
  BadInput() {
    std::filesystem::create_directory(directory_ / "out");
    const std::vector<float> ones(64, 1);
    file("a1.npy", npy_bytes(4, 3, ones));
    file("a1_5.npy", npy_bytes(5, 3, ones));
    file("a2.npy", npy_bytes(5, 3, ones));
    file("wide.npy", npy_bytes(5, 4, ones));
    file("row.npy", npy_bytes(4, 0, ones));
    file("column.npy", npy_bytes(4, 1, ones));
    file("O.npy", npy_bytes(4, 3, ones));
    file("L.npy", npy_bytes(4, 0, ones));
    // (2, 1) is not finite, in either order.
    for (const auto& [name, bad] :
         {std::pair("nan", std::numeric_limits<float>::quiet_NaN()),
          std::pair("inf", std::numeric_limits<float>::infinity()),
          std::pair("minus_inf", -std::numeric_limits<float>::infinity())}) {
      std::vector<float> words = ones;
      words[2 * 3 + 1] = bad;
      file(std::string(name) + ".npy", npy_bytes(4, 3, words));
      file(std::string(name) + "_fortran.npy",
           npy_bytes(4, 3, words, {.float64 = true, .fortran = true}));
    }
    file("huge.npy", npy_bytes(4, 3, std::vector<float>(12, 3e38F)));
    // A double that no float32 comes near: 1e300, little-endian.
    const char* const large = "\x9c\x75\x00\x88\x3c\xe4\x37\x7e";
    file("double.npy", npy_file(npy_header("<f8", false, "(1, 1)"), std::string(large, 8)));

    const std::string good = npy_bytes(4, 3, ones);
    file("empty.npy", "");
    for (const std::size_t length : {1U, 6U, 7U, 9U, 60U, 128U, 175U}) {
      file("cut" + std::to_string(length) + ".npy", good.substr(0, length));
    }
    file("long.npy", good + "x");
    file("foreign.npy", "PK\3\4 this is a zip, as .npz files are");
    file("text.npy", "1 2 3\n4 5 6\n");
    file("format9.npy", "\x93NUMPY\x09" + good.substr(7));
    file("int.npy", npy_file(npy_header("<i8", false, "(4, 3)"), std::string(96, '\0')));
    file("void.npy", npy_file(npy_header("|V2", false, "(4, 3)"), std::string(24, '\0')));
    file("complex.npy", npy_file(npy_header("<c8", false, "(4, 3)"), std::string(96, '\0')));
    file("object.npy", npy_file(npy_header("|O", false, "(4, 3)"), std::string(96, '\0')));
    file("cube.npy", npy_file(npy_header("<f4", false, "(1, 2, 3, 2)"), std::string(48, '\0')));
    // Of heads.
    file("a1_2x4x3.npy", npy_bytes({2, 4, 3}, ones));
    file("a2_2x5x3.npy", npy_bytes({2, 5, 3}, ones));
    file("a2_3x5x3.npy", npy_bytes({3, 5, 3}, ones));
    file("O_2x4x3.npy", npy_bytes({2, 4, 3}, ones));
    file("L_2x4.npy", npy_bytes({2, 4}, ones));
    file("L_2x5.npy", npy_bytes({2, 5}, ones));
    file("cut_2x4x3.npy", npy_bytes({2, 4, 3}, ones).substr(0, 200));
    for (const auto& [name, bad] :
         {std::pair("nan", std::numeric_limits<float>::quiet_NaN()), std::pair("huge", 3e38F)}) {
      std::vector<float> words = ones;
      words[12 + 2 * 3 + 1] = bad;  // (2, 1) of head 1
      file(std::string(name) + "_2x4x3.npy", npy_bytes({2, 4, 3}, words, {.fortran = true}));
    }
    file("scalar.npy", npy_file(npy_header("<f4", false, "()"), std::string(4, '\0')));
    file("no_rows.npy", npy_file(npy_header("<f4", false, "(0, 3)"), ""));
    file("header.npy", npy_file("{'descr': '<f4', 'shape': (4, 3)}", std::string(48, '\0')));
  }

  void file(const std::string& name, const std::string& bytes) { directory_.write(name, bytes); }

  static std::string expanded(std::string command) {
    if (const std::size_t at = command.find('@'); at != std::string::npos) {
      command.replace(at, 1, "--n 4 --m 5 --d 3 --M 200");
    }
    return command;
  }

  using Cli::expect_refused;
  void expect_refused(const Bad& bad) const {
    SCOPED_TRACE(bad.command);
    expect_refused(process(expanded(bad.command)), bad.code, bad.message);
  }
  template <std::size_t rows>
  void expect_refused(const Bad (&table)[rows]) const {
    for (const Bad& bad : table) {
      expect_refused(bad);
    }
  }
};

TEST_F(BadInput, Words) {
  expect_refused({
      {"", 2, "subcommand"},
      {"cuont", 2, "cuont"},
      {"runn backward/small @", 2, "runn"},
      {"plot figur1 sweep -o out/p.svg", 2, "'figur1': did you mean figure1"},
      {"store verfiy .", 2, "'verfiy': did you mean verify"},
      {"--n 4", 2, "."},
      {"run", 2, "kernel"},
      {"count", 2, "kernel"},
      {"count --n 4 --d 4 --M 64", 2, "kernel"},
      {"run backward/smal @ --out g=out/g.npy", 2, "'backward/smal'.*backward/small"},
      {"count flash @", 2, "'flash'.*forward/flash or backward/flash"},
      {"count Backward/Large @", 2, "'Backward/Large'.*backward/large"},
      {"count '' @", 2, "kernel"},
      {"run backward/small extra @", 2, "extra"},
      {"run backward/small @ --verfiy", 2, "--verfiy"},
      {"run backward/small @ --Seed 3", 2, "--Seed"},
      {"run backward/small @ --Seed=3", 2, "--Seed"},
      {"run backward/small @ -n 3", 2, "-n"},
      {"run backward/small @ --seed", 2, "--seed"},
      {"list backward/small", 2, "backward/small"},
      {"count backward/small @ --verify", 2, "--verify"},
      {"info --n 4", 2, "--n"},
  });
}

TEST_F(BadInput, Sizes) {
  expect_refused({
      {"run backward/small --d 3 --M 200", 2, "--n is missing"},
      {"count backward/small --d 3 --M 200", 2, "--n is missing"},
      {"count backward/small --n 4 --M 200", 2, "--d is missing"},
      {"count backward/small --n 4 --d 3", 2, "--M is missing"},
      {"count backward/small --m 4 --d 3 --M 200", 2, "--n is missing"},
      {"run backward/small --in A2=a2.npy --M 200", 2, "--n is missing"},
      {"list --n 4", 2, "--d"},
      {"list --d 4", 2, "--n"},
      {"list --m 4", 2, "--n"},
      {"count backward/small --n 0 --d 3 --M 200", 2, "--n.*\"0\".*zero"},
      {"count backward/small --n 4 --m 0 --d 3 --M 200", 2, "--m.*\"0\".*zero"},
      {"count backward/small --n 4 --d 0K --M 200", 2, "--d.*\"0K\".*zero"},
      {"count backward/small --n 4 --d 3 --M 0", 2, "--M.*\"0\".*zero"},
      {"count backward/small --n -4 --d 3 --M 200", 2, "--n.*\"-4\".*positive"},
      {"count backward/small --n=-4 --d 3 --M 200", 2, "--n.*\"-4\".*positive"},
      {"count backward/small --n 4 --d 3 --M -200", 2, "--M.*\"-200\".*positive"},
      {"count backward/small --n 4 --d 3 --M 64KB", 2, "--M.*\"64KB\".*64KiB.*64K"},
      {"count backward/small --n 4 --d 3 --M 64kib", 2, "--M.*\"64kib\".*64KiB"},
      {"count backward/small --n 1.5K --d 3 --M 200", 2, "--n.*\"1.5K\""},
      {"count backward/small --n 4 --d 3 --M 1.5K", 2, "--M.*\"1.5K\""},
      {"count backward/small --n 4KiB --d 3 --M 200", 2, "--n.*\"4KiB\".*4K"},
      {"count backward/small --n 1e3 --d 3 --M 200", 2, "--n.*\"1e3\""},
      {"count backward/small --n '' --d 3 --M 200", 2, "--n"},
      {"count backward/small --n 4, --d 3 --M 200", 2, "--n.*\"4,\""},
      {"count backward/small --n 4 --n 5 --d 3 --M 200", 2, "--n is given 2 times"},
      {"count backward/small --n 99999999999999999999 --d 3 --M 200", 2, "--n.*too large"},
      {"count backward/small --n 9000000000G --d 3 --M 200", 2, "--n.*too large"},
      {"count backward/small --n 4G --m 4G --d 3 --M 200", 2, "63 bits"},
      {"count backward/small --n 9223372036854775807 --d 3 --M 200", 2, "63 bits"},
      {"count backward/large --n 4 --d 4G --M 200", 2, "63 bits"},
      {"list --n 4G --d 4G", 2, "63 bits"},
      {"run backward/small --n 10M --m 10M --d 3 --M 200", 1, "need .*[PE]iB of memory.*count"},
      {"run forward/naive --n 1M --m 1M --d 3 --M 4096G --verify", 1, "need .*TiB of memory"},
      {"run matmul/blocked --n 1M --m 1M --d 3 --M 200 --out C=out/C.npy", 1,
       "need .*TiB of memory"},
  });
}

TEST_F(BadInput, Bounds) {
  expect_refused({
      {"bounds", 2, "--n is missing"},
      {"bounds --n 4 --M 200", 2, "--d is missing"},
      {"bounds --n 4 --d 3", 2, "--M is missing"},
      {"plan --n 4 --d 3 --M 2", 2,
       "no kernel fits in M = 2 .*; backward/tiles needs the least, M of at least 3"},
      {"plan --n 4G --d 4G --M 200", 2, "63 bits"},
      {"plan --n 9223372036854775807 --d 1 --M 64K --objective time", 2, "63 bits"},
      {"plan --n 2500000000 --d 64 --M 12K", 2, "every kernel that fits pass 63 bits"},
      {"plan --n 4G --d 64 --M 64K --given nothing", 2, "every kernel that fits pass 63 bits"},
      {"count backward/auto --n 2500000000 --d 64 --M 12K", 2,
       "every kernel that fits pass 63 bits"},
      {"plan --n 4 --d 3", 2, "--M is missing"},
      {"plan --n 4 --d 3 --M 200 --problem sideways", 2, "--problem 'sideways': expected product"},
      {"run backward/auto --n 4 --d 3 --M 2", 2,
       "backward/auto does not fit in M = 2 words: no kernel does; backward/tiles needs the least, "
       "M "
       "of at least 4"},
      {"run backward/auto --n 4 --d 3 --M 200 --blocks Br=2", 2, "--blocks.*chooses its own"},
      {"plan --n 4 --d 3 --M 200 --objective speed", 2,
       "--objective 'speed': expected words or time"},
      {"run sideways/auto --n 4 --d 3 --M 200", 2, "no kernel is called 'sideways/auto'"},
      {"bounds --n 4 --d 3 --M 0", 2, "--M.*\"0\".*zero"},
      {"bounds @ extra", 2, "extra"},
      {"bounds @ --problem gradient", 2,
       "--problem 'gradient': expected product, logsumexp, forward, backward, attention, "
       "gradients, layer, "
       "linear or "
       "linear-gradient"},
      {"plan --problem linear --n 30 --d 4 --M 300 --mask window:3,0", 2,
       "--mask 'window:3,0': linear takes causal alone: under other masks what a query meets is no "
       "running sum of keys"},
      {"run linear/auto --n 30 --d 4 --M 300 --mask prefix:3", 2,
       "--mask 'prefix:3': linear takes causal alone"},
      {"run linear-gradient/rows --n 30 --d 4 --M 300 --threads 2", 2,
       "--threads 2: linear-gradient/rows runs one head on one thread"},
      {"plan --problem linear-gradient --n 30 --d 4 --M 300 --sharing kv", 2,
       "--sharing 'kv': linear attention reads queries, keys and values apart"},
      {"bounds @ --partition --problem layer", 2, "--partition: .*product, forward and backward"},
      {"bounds @ --partition --mask causal", 2, "--partition: .*without a mask"},
      {"bounds @ --partition --sharing kv", 2, "--partition: .*without sharing"},
      {"bounds @ --sharing all", 2, "--sharing 'all': expected none, kv or self"},
      {"bounds @ --given O", 2, "--given 'O': expected nothing or OL"},
      {"bounds @ --given OL --given OL", 2, "--given is given 2 times"},
      {"bounds @ --problem forward --given OL", 2, "--given 'OL': only --problem backward"},
      {"bounds @ --problem attention --given OL", 2, "--given 'OL': only --problem backward"},
      {"bounds @ --problem product --sharing kv", 2, "--sharing 'kv': a product"},
      {"bounds @ --sharing self", 2, "--m 5 is not --n 4"},
      {"REDBLUE_m=6 bounds --n 4 --d 3 --M 200 --sharing self", 2, "REDBLUE_m 6 is not --n 4"},
      {"REDBLUE_SHARING=q bounds @", 2, "REDBLUE_SHARING 'q'"},
      {"bounds @ --format xml", 2, "--format.*xml"},
      {"bounds --n 4G --d 4G --M 200", 2, "63 bits"},
  });
}

TEST_F(BadInput, CachesOfDevices) {
  expect_refused({
      {"plan --cache 192KB --d 4", 2, "--cache: \"192KB\".*mean 192KiB"},
      {"plan --cache 48K --d 4", 2, "--cache: \"48K\".*mean 48KiB"},
      {"plan --cache 49152 --d 4", 2, "--cache: \"49152\".*in bytes such as 192KiB"},
      {"plan --cache 50B --d 4", 2, "--cache: \"50B\".*multiple of 4"},
      {"plan --cache 0B --d 4", 2, "--cache: \"0B\" is zero"},
      {"plan --cache 9000000000GiB --d 4", 2, "--cache.*too large"},
      {"plan --cache a10 --d 4", 2, "no device is called 'a10': expected gtx1060, .*a100.*192KiB"},
      {"plan --cache a100, --d 4", 2, "--cache: \"\""},
      {"plan --cache '' --d 4", 2, "--cache: \"\""},
      {"REDBLUE_CACHE=a1 plan --d 4", 2, "REDBLUE_CACHE: no device"},
      {"plan --cache a100", 2, "--d is missing: a width, or several"},
      {"plan --cache a100 --d 4,", 2, "--d: \"\""},
      {"plan --cache a100 --d 4,x", 2, "--d: \"x\""},
      {"plan --cache a100 --d 4 --M 200", 2, "--M '200': --cache says"},
      {"REDBLUE_OBJECTIVE=time plan --cache a100 --d 4", 2, "REDBLUE_OBJECTIVE time: --cache"},
      {"plan --cache a100 --d 4 --problem forward", 2, "--problem 'forward': --cache"},
      {"plan --cache a100 --d 4 --m 5 --n 4 --sharing self", 2, "--m 5 is not --n 4"},
      {"plan --cache 4B --d 4", 2, "no kernel fits in M = 1"},
      {"plan --cache a100 --n 4G --d 4,4G", 2, "63 bits"},
      {"plan --n 4 --d 4,8 --M 200", 2, "--d: \"4,8\""},
  });
}

TEST_F(BadInput, Loops) {
  expect_refused({
      {"plan --loops", 2, "--loops"},
      {"plan --loops '' --n 4 --d 3 --M 200", 2, "no kernel is called ''"},
      {"plan --loops backward/smal --n 4 --d 3 --M 200", 2,
       "no kernel is called 'backward/smal': did you mean backward/small"},
      {"plan --loops backward/auto --n 4 --d 3 --M 200", 2, "no kernel is called 'backward/auto'"},
      {"plan --loops backward/small --loops backward/large --n 4 --d 3 --M 200", 2,
       "--loops is given 2 times"},
      {"plan --loops backward/small --d 3 --M 200", 2, "--n is missing"},
      {"plan --loops backward/small --n 4 --M 200", 2, "--d is missing"},
      {"plan --loops backward/small --n 4 --d 3", 2, "--M is missing"},
      {"plan --loops backward/small --n 4 --d 3 --M 2", 2,
       "backward/small does not fit in M = 2 words: .*at least 5"},
      {"plan --loops backward/small --n 4G --d 4G --M 200", 2, "63 bits"},
      {"plan --loops backward/small --n 4 --d 3 --M 200 --problem backward", 2,
       "--problem 'backward': --loops names the kernel"},
      {"REDBLUE_GIVEN=OL plan --loops backward/small --n 4 --d 3 --M 200", 2,
       "REDBLUE_GIVEN 'OL': --loops names the kernel"},
      {"REDBLUE_LOOPS=backward/small plan --cache a100 --d 64", 2,
       "--cache 'a100': REDBLUE_LOOPS asks about one M"},
      {"plan --loops backward/small --n 4 --d 3 --M 200 --sharing kv", 2,
       "--sharing 'kv': backward/small does not share keys"},
      {"plan --loops backward/tiles --n 4 --d 3 --M 200 --sharing self", 2,
       "--sharing 'self': expected none or kv"},
      {"plan --loops backward/tiles-shared --n 4 --d 3 --M 200 --sharing none", 2,
       "--sharing 'none': backward/tiles-shared shares keys"},
      {"plan --loops backward/small --n 4 --d 3 --M 200 --format xml", 2, "--format.*xml"},
  });
}

TEST_F(BadInput, CachesForM) {
  expect_refused({
      {"count backward/small --n 4 --d 3 --M l2", 2, "--M.*\"l2\".*mean L2"},
      {"count backward/small --n 4 --d 3 --M L4", 2, "--M.*\"L4\".*L1, L2 or L3"},
      {"run backward/small --n 4 --d 3 --M L2*", 2, "--M.*\"L2\\*\".*L2\\*0.5"},
      {"run backward/small --n 4 --d 3 --M L2*0", 2, "--M.*\"L2\\*0\".*share"},
      {"run backward/small --n 4 --d 3 --M L2*1.5", 2, "--M.*\"L2\\*1.5\".*up to 1"},
      {"REDBLUE_M=L2*2 count backward/small --n 4 --d 3", 2, "REDBLUE_M.*\"L2\\*2\""},
  });
  if (!synthetic_topology("core:1 pu:1").unavailable.empty()) {
    expect_refused({"run backward/small --n 4 --d 3 --M L2", 2,
                    "--M L2: the size of L2 is not known \\(built without hwloc\\): give words"});
    return;
  }
  expect_refused({
      {"HWLOC_SYNTHETIC=core:2 count backward/small --n 4 --d 3 --M L2", 2,
       "HWLOC_SYNTHETIC 'core:2'"},
      {"HWLOC_SYNTHETIC=pu:2 count backward/small --n 4 --d 3 --M L2", 2,
       "--M L2: the size of L2 is not known \\(hwloc .*synthetic.*\\): give words, .*--M 8192"},
      {"HWLOC_SYNTHETIC=pu:2 REDBLUE_M=L1 count backward/small --n 4 --d 3", 2,
       "REDBLUE_M L1: .*REDBLUE_M 8192"},
      {"HWLOC_XMLFILE=none.xml count backward/small --n 4 --d 3 --M L2", 2,
       "HWLOC_XMLFILE 'none.xml'"},
  });
  expect_refused(process(kSixCores + "count backward/small --n 4 --d 3 --M L2*1e-6"), 2,
                 "--M L2\\*1e-6: .*less than a word: L2 has 1310720");
}

TEST_F(BadInput, FastMemoryBelowTheLeast) {
  const Shape shape{17, 13, 5};
  for (const TestedKernel& kernel : some_tested_kernels()) {
    for (const std::string command : {"count ", "run "}) {
      const Index least = kernel.least_M(shape);
      const std::string problem = command + std::string(kernel.name) + " --n 17 --m 13 --d 5 --M ";
      SCOPED_TRACE(problem);
      // With less than 4 words, nobody makes the O and L that the kernel takes.
      if (least < 4 && find_operand(kernel.given, "O") != nullptr) {
        expect_refused(process(problem + std::to_string(least)), 2,
                       std::string(kernel.name) + " takes O and L, .*no less than M = 4 .*give");
        EXPECT_EQ(redblue(problem + "4").code, 0);
      } else {
        EXPECT_EQ(redblue(problem + std::to_string(least)).code, 0);
      }
      for (const Index M : {Index{1}, least - 1}) {
        expect_refused(process(problem + std::to_string(M)), 2,
                       std::string(kernel.name) + ".*M = " + std::to_string(M) + " .*at least " +
                           std::to_string(least) + "\n");
      }
    }
  }
}

// What `--M auto` finds in the place of a calibration of the machine of six cores.
TEST_F(BadInput, MByACalibration) {
  const std::string none = "--M auto: there is no /none/redblue/calibration.json: run `redblue ";
  expect_refused({
      {"run backward/small --n 4 --d 3 --M Auto", 2, "--M.*\"Auto\".*or auto"},
      {"run backward/small --n 4 --d 3 --M auto*0.5", 2, "--M.*\"auto\\*0.5\""},
  });
  if (!synthetic_topology("core:1 pu:1").unavailable.empty()) {
    expect_refused({"run backward/small --n 4 --d 3 --M auto", 2,
                    "--M auto: the caches are not known \\(built without hwloc\\): give words"});
    return;
  }
  const std::string problem = "backward/small --n 4 --d 3 --M auto";
  for (const std::string command : {"run ", "count ", "measure "}) {
    SCOPED_TRACE(command);
    expect_refused(process(kSixCores + "XDG_CACHE_HOME=/none " + command + problem), 2, none);
  }
  expect_refused(process(kSixCores + "XDG_CACHE_HOME=/none REDBLUE_M=auto count backward/small "
                                     "--n 4 --d 3"),
                 2, "REDBLUE_M auto: there is no /none");
  expect_refused(process(kSixCores + "HOME=/none count " + problem), 2,
                 "no /none/.cache/redblue/calibration.json");
  expect_refused(process(kSixCores + "count " + problem), 2, "set XDG_CACHE_HOME .* or HOME");

  const std::string model = "A made-up processor of two big cores and four small ones";
  const auto content = [](const std::string& schema, const std::string& its_model,
                          const std::string& L2) {
    return R"({"schema": )" + schema + R"(, "context": {"model": ")" + its_model +
           R"(", "caches": [{"cache": "L1", "bytes": 49152}, {"cache": "L2", "bytes": )" + L2 +
           R"(}, {"cache": "L3", "bytes": 12582912}]}, "levels": [{"cache": "L2", "fastest": )" +
           R"({"share": 0.5}}]})";
  };
  const std::string good = content("1", model, "1310720");
  const struct {
    std::string text;
    const char* message;
  } bad[] = {
      {"", "truncated, or no JSON"},
      {good.substr(0, good.size() - 1), "truncated, or no JSON"},
      {"PK", "truncated, or no JSON"},
      {"[]", "not what `redblue calibrate` writes"},
      {"{}", "not what `redblue calibrate` writes"},
      {content("2", model, "1310720"), "schema 2, expected 1"},
      {content("\"1\"", model, "1310720"), "schema \"1\", expected 1"},
      {content("1", "Another", "1310720"), "of another processor: 'Another', and this one is 'A "},
      {content("1", model, "262144"), "whose L2 has 262144 bytes; here it has 1310720 bytes"},
      {content("1", model, "\"large\""), "not what `redblue calibrate` writes"},
  };
  const std::string from = "XDG_CACHE_HOME=" + (directory_ / "cache").string() + " ";
  for (const auto& [text, message] : bad) {
    SCOPED_TRACE(text);
    directory_.write("cache/redblue/calibration.json", text);
    expect_refused(
        process(kSixCores + from + "count " + problem), 1,
        "cache/redblue/calibration.json[:, ].*" + std::string(message) + ".*redblue calibrate`");
  }
  directory_.write("cache/redblue/calibration.json", good);
  EXPECT_EQ(redblue(kSixCores + from + "count " + problem).code, 0) << "the rows fail for a reason";
  std::filesystem::remove(directory_ / "cache/redblue/calibration.json");
  std::filesystem::create_directory(directory_ / "cache/redblue/calibration.json");
  expect_refused(process(kSixCores + from + "count " + problem), 1, "not a regular file");
  directory_.write("file", "");
  expect_refused(
      process(kSixCores + "XDG_CACHE_HOME=" + (directory_ / "file").string() + " count " + problem),
      1, "file/redblue/calibration.json': Not a directory");
}

TEST_F(BadInput, Calibrate) {
  expect_refused({
      {"calibrate backward/rows", 2, "backward/rows"},
      {"calibrate --n 0", 2, "--n.*\"0\".*zero"},
      {"REDBLUE_CALIBRATE_N=x calibrate", 2, "REDBLUE_CALIBRATE_N.*\"x\""},
      {"calibrate --d 64", 2, "--d"},
      {"calibrate --format xml", 2, "--format.*xml"},
      {"calibrate --out", 2, "--out"},
  });
  if (!synthetic_topology("core:1 pu:1").unavailable.empty()) {
    expect_refused({"calibrate", 1, "caches of this machine are not known: built without hwloc"});
    return;
  }
  const std::string machine = "HWLOC_THISSYSTEM=1 " + kSixCores;
  const Bad bad[] = {
      {"calibrate --n 8", 2, "set XDG_CACHE_HOME .* or HOME"},
      {"calibrate --n 8 --out ''", 2, "--out '': expected a file"},
      {"calibrate --n 8 --out none/c.json", 1, "none/c.json: No such file"},
      {"calibrate --n 8 --out out", 1, "out: Is a directory"},
      {"calibrate --n 1G --out out/c.json", 1, "calibrate with n = 1073741824 would need"},
      {"calibrate --n 9000000000000000000 --out out/c.json", 1, "would need .*take a smaller n"},
  };
  for (const auto& [command, code, message] : bad) {
    SCOPED_TRACE(command);
    expect_refused(process(machine + command), code, message);
  }
  expect_refused({
      {"HWLOC_SYNTHETIC=pu:2 calibrate --n 8 --out out/c.json", 2,
       "those of another machine .*unset HWLOC_SYNTHETIC"},
      {"HWLOC_SYNTHETIC=pu:2 HWLOC_THISSYSTEM=1 calibrate --n 8 --out out/c.json", 1,
       "neither L1 nor L2 is known"},
  });
}

// What callgrind needs, on a machine of 6 cores that a file describes.
TEST_F(BadInput, Measure) {
  expect_refused({
      {"measure", 2, "kernel"},
      {"measure backward/smal @", 2, "'backward/smal'.*backward/small"},
      {"measure backward/small --n 4 --d 3", 2, "--M is missing"},
      {"measure backward/small @ --via perf", 2, "--via 'perf': expected papi or callgrind"},
      {"measure backward/small @ --via", 2, "--via"},
      {"measure backward/small @ --via papi --via papi", 2, "--via is given 2 times"},
      {"REDBLUE_VIA=x measure backward/small @", 2, "REDBLUE_VIA 'x'"},
      {"measure backward/small @ --level L1", 2, "--level is for --via callgrind"},
      {"measure backward/rows --n 4 --d 3 --M 999 --threads 2", 2, "--threads: .*one"},
      {"REDBLUE_THREADS=2 measure backward/rows --n 4 --d 3 --M 999 --via callgrind", 2,
       "REDBLUE_THREADS: .*one"},
      {"measure backward/small @ --format xml", 2, "--format.*xml"},
      {"measure backward/small @ --simd AVX9", 2, "--simd 'AVX9'.*have [A-Z]"},
      {"measure backward/small @ --via callgrind --simd ''", 2, "--simd ''.*have [A-Z]"},
      {"REDBLUE_SIMD=AVX9 measure backward/small @", 2, "REDBLUE_SIMD 'AVX9'.*have [A-Z]"},
      {"measure backward/small @ --verify", 2, "--verify"},
      {"measure backward/small @ --in A1", 2, "--in.*'A1'.*NAME=FILE"},
      {"PAPI_EVENTS=NO_SUCH_EVENT measure backward/small @", 1,
       "counters are unavailable: (NO_SUCH_EVENT: |built without PAPI)"},
  });
  std::string why = callgrind_unavailable();
  if (why.empty() && !read_topology().unavailable.empty()) {
    why = read_topology().unavailable;
  }
  if (!why.empty()) {
    expect_refused(process(expanded("measure backward/small @ --via callgrind")), 1,
                   "callgrind is unavailable: .*" + why);
    return;
  }
  const Bad bad[] = {
      {"measure backward/small @ --via callgrind --level l1", 2, "--level 'l1'.*L1, L2 or L3"},
      {"REDBLUE_LEVEL=L4 measure backward/small @ --via callgrind", 2, "REDBLUE_LEVEL 'L4'"},
      {"measure backward/small --n 4 --d 3 --M 1G --via callgrind", 2,
       "--level is missing.*1073741824"},
      {"PATH=/none measure backward/small @ --via callgrind", 1,
       "valgrind is not installed \\(apt-get install valgrind\\)"},
      {"TMPDIR=/none measure backward/small @ --via callgrind", 1, "/none"},
  };
  for (const auto& [command, code, message] : bad) {
    SCOPED_TRACE(command);
    expect_refused(process(kSixCores + expanded(command)), code, message);
  }
  expect_refused({"HWLOC_SYNTHETIC=pu:2 measure backward/small @ --via callgrind --level L2", 2,
                  "--level L2: its size is not known"});
  // Found out by the run that is simulated, whose message and exit code come through.
  const Bad inside[] = {
      {"measure backward/small --n 17 --d 5 --M 3 --via callgrind", 2, "M = 3 .*at least"},
      {"measure backward/large @ --blocks printed --via callgrind", 2, "--blocks printed"},
      {"measure backward/small @ --seed 1 --in A1=nan.npy --via callgrind", 1,
       "nan.npy: nan at row 2"},
      {"measure backward/small @ --in A1=none.npy --via callgrind", 1, "none.npy: No such file"},
      {"measure backward/small @ --in A1=a1_2x4x3.npy --via callgrind", 1,
       "--in: 2 heads, but a run is measured on one"},
  };
  for (const auto& [command, code, message] : inside) {
    SCOPED_TRACE(command);
    expect_refused(process(kSixCores + expanded(command)), code, message);
  }
}

TEST_F(BadInput, OtherOptions) {
  std::string many_masks = "run attention/rows @ --mask causal";
  for (int more = 0; more < 64; ++more) {
    many_masks += "|causal";
  }
  expect_refused({
      {"run backward/small @ --format xml", 2, "--format.*xml.*table, json or csv"},
      {"count backward/small @ --format JSON", 2, "--format.*JSON.*json"},
      {"list --format ''", 2, "--format.*table"},
      {"run backward/small @ --seed -1", 2, "--seed.*\"-1\""},
      {"run backward/small @ --seed x", 2, "--seed.*\"x\""},
      {"run backward/small @ --seed 18446744073709551616", 2, "--seed.*18446744073709551615"},
      {"run backward/small @ --seed 1 --seed 2", 2, "--seed is given 2 times"},
      {"run backward/small @ --scale 0", 2, "--scale.*\"0\""},
      {"run backward/small @ --scale -1", 2, "--scale.*\"-1\""},
      {"run backward/small @ --scale nan", 2, "--scale.*\"nan\""},
      {"run backward/small @ --scale inf", 2, "--scale.*\"inf\""},
      {"run backward/small @ --scale 1e999", 2, "--scale"},
      {"run backward/small @ --scale 1e200", 2, "scale.*1e\\+200"},
      {"run backward/small @ --scale 1e-200", 2, "scale.*1e-200"},
      {"run backward/small @ --scale 1x", 2, "--scale.*\"1x\""},
      {"run attention/rows @ --softmax-scale 0", 2, "--softmax-scale.*\"0\""},
      {"run attention/rows @ --softmax-scale -1", 2, "--softmax-scale.*\"-1\""},
      {"run attention/rows @ --softmax-scale nan", 2, "--softmax-scale.*\"nan\""},
      {"count attention/rows @ --softmax-scale 1e-50", 2, "--softmax-scale 1e-50: expected 2.-60"},
      {"run attention/rows @ --softmax-scale 1e50", 2, "--softmax-scale 1e50: expected 2.-60"},
      {"run attention/rows @ --softmax-scale ''", 2, "--softmax-scale"},
      {"run backward/rows @ --softmax-scale 0.5", 2,
       "--softmax-scale 0.5: backward/rows has no softmax scale"},
      {"count matmul/blocked @ --softmax-scale 0.5", 2, "--softmax-scale 0.5: matmul/blocked"},
      {"run attention/rows @ --mask casual", 2,
       "--mask 'casual': casual is no mask: expected full"},
      {"run attention/rows @ --mask ''", 2, "--mask '': expected full, causal"},
      {"run attention/rows @ --mask window:3", 2, "--mask 'window:3': expected window:L,R at"},
      {"run attention/rows @ --mask window:3,-2", 2, "--mask 'window:3,-2': R at position 10"},
      {"run attention/rows @ --mask window", 2,
       "--mask 'window': expected window:L,R at position 7"},
      {"run attention/rows @ --mask prefix:x", 2, "--mask 'prefix:x': P at position 8"},
      {"count attention/rows @ --mask prefix:99999999999999999999", 2, "P at position 8: expected"},
      {"run attention/rows @ --mask global:3-1", 2, "--mask 'global:3-1': global:3-1: expected A"},
      {"run attention/rows @ --mask global:9999-9999", 2, "global:9999-9999: expected A <= B"},
      {"run attention/rows @ --mask (causal", 2, "a \\) is missing at position 8"},
      {"run attention/rows @ --mask causal)", 2, "\\) is not expected at position 7"},
      {"run attention/rows @ --mask causal|", 2, "a mask is missing at position 8"},
      {many_masks.c_str(), 2, "expected at most 64 masks in one"},
      {"run attention/rows @ --mask causal --mask full", 2, "--mask is given 2 times"},
      {"run gradients/flash @ --wanted dX", 2, "--wanted dX: gradients/flash returns dQ, dK, dV"},
      {"run gradients/flash @ --wanted dQ,dQ", 2, "--wanted: dQ is named twice"},
      {"run gradients/flash @ --wanted dQ,", 2, "--wanted: the name of a result is missing"},
      {"run gradients/flash @ --wanted dQ --out dK=out/dK.npy", 2,
       "--out dK=out/dK.npy: --wanted leaves dK out"},
      {"run gradients/score-rows @ --wanted dQ", 2,
       "--wanted dQ: gradients/score-rows does not return that alone; gradients/flash, "
       "gradients/rows-keys do"},
      {"run forward/auto @ --wanted L", 2,
       "--wanted L: forward/auto does not return that alone; nor does another kernel"},
      {"plan --n 9 --d 2 --M 99 --problem product --wanted C", 2, "a product has one result"},
      {"bounds --n 9 --d 2 --M 99 --wanted dQ", 2, "--wanted dQ: --problem backward returns g"},
      {"run matmul/blocked @ --mask causal", 2, "--mask 'causal': matmul/blocked is a product"},
      {"plan --n 9 --d 2 --M 99 --problem product --mask causal", 2, "a product has no mask"},
      {"plan --n 9 --d 2 --M 99 --mask causa", 2, "--mask 'causa': causa is no mask"},
      {"bounds --n 9 --d 2 --M 99 --mask causa", 2, "--mask 'causa': causa is no mask"},
      {"plan --d 64 --cache all --mask causal", 2, "--mask 'causal'.*asks about all pairs"},
      {"run layer/flash @ --sharing kv", 2, "--sharing kv: layer/flash does not share"},
      {"run layer/auto @ --sharing kv", 2, "--sharing: no kernel of layer does that"},
      {"run layer/flash @ --softmax-scale 2", 2, "--softmax-scale 2: layer/flash has no softmax"},
      {"run layer/flash @ --heads 2 --kv-heads 1", 2,
       "--kv-heads 1: layer/flash has as many heads"},
      {"run layer/flash @ --dv 5", 2, "--dv 5: layer/flash has one width"},
      {"bounds --problem layer @ --dv 5", 2, "--dv 5: --problem layer has one width"},
      {"run gradients/flash @ --sharing kv --wanted dV", 2,
       "--wanted dV: gradients/flash with --sharing kv returns dQ, dK"},
      {"run gradients/flash-shared @ --out dV=x.npy", 2,
       "--out dV=x.npy: gradients/flash-shared returns dQ, dK"},
      {"plan --problem gradients @ --sharing kv --wanted dV", 2,
       "--wanted dV: --problem gradients with --sharing kv returns dQ, dK"},
      {"run attention/rows @ --in A1=a1.npy", 2, "attention/rows is given Q, K, V"},
      {"run attention/rows @ --make V=identity", 2, "V=identity"},
      {"run attention/rows @ --threads 0", 2, "--threads"},
      {"run backward/small @ --simd AVX9", 2, "--simd 'AVX9'.*have [A-Z]"},
      {"run backward/small @ --simd ''", 2, "--simd ''.*have [A-Z]"},
      {"run backward/small @ --simd", 2, "--simd"},
      {"run backward/small @ --simd SSE4 --simd SSE4", 2, "--simd is given 2 times"},
      {"count backward/small @ --simd SSE4", 2, "--simd"},
      {"info --simd avx2", 2, "--simd 'avx2'.*have [A-Z]"},
      {"count backward/small @ --blocks C=4", 2, "--blocks.*C.*backward/small has B"},
      {"count backward/large @ --blocks B=4", 2, "--blocks.*phase1.Br, phase1.Bc"},
      {"count backward/naive @ --blocks B=4", 2, "--blocks.*backward/naive"},
      {"count backward/small @ --blocks B", 2, "--blocks.*'B'.*NAME=SIZE"},
      {"count backward/small @ --blocks =4", 2, "--blocks.*'=4'.*NAME=SIZE"},
      {"count backward/small @ --blocks B=", 2, "--blocks B"},
      {"count backward/small @ --blocks B=0", 2, "--blocks B.*zero"},
      {"count backward/small @ --blocks B=4,B=5", 2, "--blocks.*B"},
      {"count attention/rows --n 1 --m 8 --d 4 --M 99 --blocks groups=9", 2,
       "--blocks groups=9: this problem takes at most 8"},
      {"count attention/columns --n 1 --m 8 --d 4 --M 99 --blocks groups=2", 2,
       "--blocks groups: attention/columns has"},
      {"count backward/small @ --blocks B=4 --blocks B=5", 2, "--blocks.*B"},
      {"count backward/small --n 99 --d 99 --M 200 --blocks B=99", 2,
       "--blocks.*[0-9]+ words more than M = 200"},
      {"run backward/small --n 99 --d 99 --M 200 --blocks B=99", 2,
       "--blocks.*[0-9]+ words more than M = 200"},
      {"run backward/large @ --blocks printed", 2, "--blocks printed.*count"},
      {"run backward/small @ --blocks printed", 2, "--blocks printed"},
      {"count backward/small @ --blocks printed", 2, "--blocks printed.*only backward/large"},
      {"count forward/flash @ --blocks printed", 2, "--blocks printed.*only backward/large"},
      {"count backward/large @ --blocks printed,phase1.Br=2", 2, "--blocks.*not both"},
  });
}

TEST_F(BadInput, Heads) {
  expect_refused({
      {"run backward/small @ --heads 0", 2, "--heads.*\"0\".*zero"},
      {"count backward/small @ --heads -1", 2, "--heads.*\"-1\".*positive"},
      {"run backward/small @ --heads ''", 2, "--heads"},
      {"run backward/small @ --heads 1.5", 2, "--heads.*\"1.5\""},
      {"run backward/small @ --heads 2 --heads 2", 2, "--heads is given 2 times"},
      {"REDBLUE_HEADS=x run backward/small @", 2, "REDBLUE_HEADS.*\"x\""},
      {"count backward/small @ --heads 9000000000000000000", 2, "63 bits"},
      {"count backward/large @ --heads 9000000000000000000", 2, "63 bits"},
      {"run backward/small @ --heads 1000000000000 --out g=out/g.npy", 1,
       "need .*[TP]iB of memory.*fewer heads"},
      {"run backward/small @ --heads 9000000000000000", 1, "need .*EiB of memory.*fewer heads"},
      {"measure backward/small @ --heads 2", 2, "--heads"},
      {"calibrate --heads 2", 2, "--heads"},
      {"list --heads 2", 2, "--heads"},
      {"measure backward/small --M 200 --m 5 --in A1=a1_2x4x3.npy --via papi", 1,
       "--in: 2 heads, but a run is measured on one|counters are unavailable"},
      // Files and what is said of their heads.
      {"run backward/small @ --heads 3 --in A1=a1_2x4x3.npy --out g=out/g.npy", 1,
       "A1 of a1_2x4x3.npy makes heads = 2, but --heads makes heads = 3"},
      {"REDBLUE_HEADS=3 run backward/small @ --in A1=a1_2x4x3.npy", 1,
       "makes heads = 2, but REDBLUE_HEADS makes heads = 3"},
      {"run backward/small @ --heads 2 --in A1=a1.npy", 1,
       "A1 of a1.npy has no dimension of heads, but --heads makes heads = 2"},
      {"run backward/small @ --heads 1 --in A1=a1.npy", 1,
       "A1 of a1.npy has no dimension of heads, but --heads makes heads = 1"},
      {"run backward/small @ --in A1=a1_2x4x3.npy --in A2=a2_3x5x3.npy", 1,
       "A2 of a2_3x5x3.npy makes heads = 3, but A1 of a1_2x4x3.npy makes heads = 2"},
      {"run backward/small @ --in A1=a1_2x4x3.npy --in A2=a2.npy", 1,
       "A2 of a2.npy has no dimension of heads, but A1 of a1_2x4x3.npy makes heads = 2"},
      {"run backward/small @ --in A1=a1.npy --in A2=a2_2x5x3.npy", 1,
       "A2 of a2_2x5x3.npy makes heads = 2, but A1 of a1.npy has no dimension of heads"},
      {"run backward/small @ --in A1=a2_2x5x3.npy", 1,
       "A1 of a2_2x5x3.npy, heads first, makes n = 5, but --n makes n = 4"},
      {"run backward/large --M 200 --m 5 --in O=O_2x4x3.npy --in L=L_2x5.npy", 1,
       "O of O_2x4x3.npy, heads first, makes n = 4, but L of L_2x5.npy, heads first, makes n = 5"},
      {"run backward/large @ --in O=O_2x4x3.npy --in L=L.npy", 1,
       "O of O_2x4x3.npy makes heads = 2, but L of L.npy has no dimension of heads"},
      {"run backward/large @ --in O=O.npy --in L=a1_2x4x3.npy", 1,
       "L of a1_2x4x3.npy has 3 dimensions, expected 1, or 2 with heads first"},
      {"run backward/small @ --in A1=cut_2x4x3.npy", 1,
       "cut_2x4x3.npy: truncated: 72 bytes of data; expected 96 for shape \\(2, 4, 3\\)"},
      // The head of a bad number.
      {"run backward/small @ --seed 1 --in A1=nan_2x4x3.npy --out g=out/g.npy", 1,
       "nan_2x4x3.npy: nan at head 1, row 2, column 1"},
      {"run backward/small @ --seed 1 --in A1=huge_2x4x3.npy --out g=out/g.npy", 1,
       "g of backward/small is .* at head 1, \\([0-9], [0-9]\\): .*too large"},
      {"run backward/flash @ --seed 1 --in A1=huge_2x4x3.npy --threads 2 --out g=out/g.npy", 1,
       "of forward/flash is .* at head 1, \\([0-9], [0-9]\\): .*too large"},
  });
}

// The width of values, and what options and files say of it.
TEST_F(BadInput, Dv) {
  file("V_5x2.npy", npy_bytes(5, 2, std::vector<float>(10, 1)));
  expect_refused({
      {"count attention/rows @ --dv 0", 2, "--dv.*\"0\".*zero"},
      {"REDBLUE_DV=x run attention/rows @", 2, "REDBLUE_DV.*\"x\""},
      {"count forward/rows @ --dv 3", 2, "--dv 3: forward/rows has one width"},
      {"run backward/auto @ --dv 3", 2, "--dv 3: backward/auto has one width"},
      {"plan @ --dv 3", 2, "--dv 3: --problem backward has one width"},
      {"bounds --problem product @ --dv 3", 2, "--dv 3: --problem product has one width"},
      {"count attention/rows-shared @ --dv 99", 2, "--dv 99: with --sharing kv"},
      {"plan --problem attention --sharing kv @ --dv 99", 2, "--dv 99: with --sharing kv"},
      {"run attention/rows @ --dv 3 --in V=V_5x2.npy --seed 1", 1,
       "V of V_5x2.npy makes dv = 2, but --dv makes dv = 3"},
  });
}

// Heads of keys, and what options and files say of them.
TEST_F(BadInput, KvHeads) {
  file("Q_2x4x3.npy", npy_bytes({2, 4, 3}, std::vector<float>(24, 1)));
  file("Q.npy", npy_bytes(4, 3, std::vector<float>(12, 1)));
  expect_refused({
      {"count attention/rows @ --heads 4 --kv-heads 0", 2, "--kv-heads.*\"0\".*zero"},
      {"REDBLUE_KV_HEADS=x run attention/rows @ --heads 4", 2, "REDBLUE_KV_HEADS.*\"x\""},
      {"count attention/rows @ --kv-heads 2", 2, "--kv-heads 2: --heads is missing"},
      {"run gradients/rows-keys @ --kv-heads 1", 2, "--kv-heads 1: --heads is missing"},
      {"run attention/rows @ --kv-heads 2 --in K=a2_2x5x3.npy --seed 1", 2,
       "--kv-heads 2: --heads is missing"},
      {"count attention/rows @ --heads 8 --kv-heads 3", 2,
       "--kv-heads 3 does not divide --heads 8"},
      {"REDBLUE_KV_HEADS=3 count attention/auto @ --heads 8", 2,
       "REDBLUE_KV_HEADS 3 does not divide --heads 8"},
      {"count attention/rows @ --heads 2 --kv-heads 4", 2,
       "--kv-heads 4 does not divide --heads 2"},
      {"plan --problem attention @ --heads 8 --kv-heads 3", 2,
       "--kv-heads 3 does not divide --heads 8"},
      {"bounds --problem gradients @ --kv-heads 3", 2, "--kv-heads 3: --heads is missing"},
      // Not of the paper's problems.
      {"count forward/rows @ --heads 4 --kv-heads 2", 2,
       "--kv-heads 2: forward/rows has as many heads of keys as of queries"},
      {"run backward/auto @ --heads 4 --kv-heads 4", 2, "--kv-heads 4: backward/auto has as many"},
      {"plan @ --heads 4 --kv-heads 2", 2, "--kv-heads 2: --problem backward has as many"},
      {"bounds --problem product @ --heads 4 --kv-heads 2", 2, "--kv-heads 2: --problem product"},
      {"plan --loops forward/rows @ --heads 4 --kv-heads 2", 2, "--kv-heads 2: forward/rows"},
      {"plan --loops attention/rows @ --heads 8 --kv-heads 2", 2,
       "--heads 8: --loops .*one head of keys: --heads 4 --kv-heads 1"},
      {"plan --loops forward/rows @ --heads 8", 2, "--heads 8: --loops .*: --heads 1"},
      {"plan --cache 32KiB --d 64 --heads 2", 2, "--heads 2: --cache asks about one head"},
      {"plan --cache 32KiB --d 64 --kv-heads 2", 2, "--kv-heads 2: --cache asks about one head"},
      {"bounds --problem attention --n 4 --d 3 --M 99 --sharing self --heads 4 --kv-heads 2", 2,
       "--kv-heads 2: with --sharing self, queries and keys are one"},
      // Too many.
      {"count attention/rows @ --heads 9000000000000000000 --kv-heads 1", 2, "63 bits"},
      {"count attention/rows @ --heads 1000000000000 --kv-heads 1 --mask causal", 2, "too large"},
      {"bounds --heads 9000000000000000000 @", 2, "63 bits"},
      {"plan --heads 9000000000000000000 @", 2, "63 bits"},
      {"run attention/rows @ --heads 1000000000000 --kv-heads 1 --out O=out/O.npy", 1,
       "need .*[TP]iB of memory.*fewer heads"},
      {"measure attention/rows @ --kv-heads 1", 2, "--kv-heads"},
      // What files say.
      {"run attention/rows --M 200 --in Q=Q_2x4x3.npy --in K=a2_3x5x3.npy --seed 1", 1,
       "K of a2_3x5x3.npy.* makes kv_heads = 3, which does not divide heads = 2 of Q of Q_2x4x3"},
      {"run attention/rows @ --in Q=Q_2x4x3.npy --kv-heads 3 --seed 1", 1,
       "--kv-heads makes kv_heads = 3, which does not divide heads = 2 of Q of Q_2x4x3.npy"},
      {"run attention/rows @ --heads 6 --kv-heads 2 --in K=a2_3x5x3.npy --seed 1", 1,
       "K of a2_3x5x3.npy makes kv_heads = 3, but --kv-heads makes kv_heads = 2"},
      {"run attention/rows @ --in K=a2_3x5x3.npy --in V=a2_2x5x3.npy --seed 1", 1,
       "V of a2_2x5x3.npy makes kv_heads = 2, but K of a2_3x5x3.npy.* makes kv_heads = 3"},
      {"run attention/rows @ --in Q=Q.npy --in K=a2_2x5x3.npy --seed 1", 1,
       "Q of Q.npy has no dimension of heads, but K of a2_2x5x3.npy makes kv_heads = 2"},
      {"run attention/rows @ --in Q=Q_2x4x3.npy --in K=a2.npy --seed 1", 1,
       "K of a2.npy has no dimension of heads, but Q of Q_2x4x3.npy makes heads = 2"},
      {"run attention/rows @ --heads 4 --kv-heads 1 --in K=a2.npy --seed 1", 1,
       "K of a2.npy has no dimension of heads, but --kv-heads makes kv_heads = 1"},
  });
}

// More workers than one need several heads or a kernel that splits; the message says which do.
TEST_F(BadInput, Threads) {
  std::string who;
  for (const Kernel& kernel : kernels()) {
    who += kernel.schedule.split ? (who.empty() ? "" : ", ") + std::string(kernel.name) : "";
  }
  EXPECT_NE(who, "");
  for (const TestedKernel& kernel : some_tested_kernels()) {
    for (const std::string command : {"run ", "count "}) {
      const std::string line = command + std::string(kernel.name) + " --n 4 --d 3 --M 999";
      SCOPED_TRACE(line);
      EXPECT_EQ(redblue(line + " --threads 1").code, 0);
      if (kernel.split()) {
        EXPECT_EQ(redblue(line + " --threads 2").code, 0);
      } else {
        expect_refused(process(line + " --threads 2"), 2,
                       "--threads 2: " + std::string(kernel.name) + " .*" + who + " split");
        EXPECT_EQ(redblue(line + " --threads 2 --heads 2").code, 0);
      }
    }
  }
  expect_refused({
      {"run forward/rows @ --threads 0", 2, "--threads.*\"0\".*zero"},
      {"count forward/rows @ --threads 0", 2, "--threads.*\"0\".*zero"},
      {"run forward/rows @ --threads -1", 2, "--threads.*\"-1\".*positive"},
      {"run forward/rows @ --threads 4097", 2, "--threads 4097 is too many.*4096"},
      {"run forward/rows @ --threads 5000", 2, "--threads 5000 is too many.*4096"},
      {"count forward/rows @ --threads 5000", 2, "--threads 5000 is too many.*4096"},
      {"run forward/rows @ --threads 1.5", 2, "--threads.*\"1.5\""},
      {"run forward/rows @ --threads ''", 2, "--threads"},
      {"run forward/rows @ --threads 2 --threads 2", 2, "--threads is given 2 times"},
      {"list --threads 2", 2, "--threads"},
  });
}

// The message names what the person set.
TEST_F(BadInput, EnvironmentTwins) {
  expect_refused({
      {"REDBLUE_N=0 count backward/small --d 3 --M 200", 2, "REDBLUE_N.*\"0\""},
      {"REDBLUE_m=x count backward/small --n 4 --d 3 --M 200", 2, "REDBLUE_m.*\"x\""},
      {"REDBLUE_D=1.5K count backward/small --n 4 --M 200", 2, "REDBLUE_D.*\"1.5K\""},
      {"REDBLUE_M=64KB count backward/small --n 4 --d 3", 2, "REDBLUE_M.*64KiB"},
      {"REDBLUE_BLOCKS=B count backward/small @", 2, "REDBLUE_BLOCKS.*'B'"},
      {"REDBLUE_BLOCKS=C=4 count backward/small @", 2, "REDBLUE_BLOCKS.*C.*has B"},
      {"REDBLUE_BLOCKS=printed run backward/large @", 2, "REDBLUE_BLOCKS"},
      {"REDBLUE_BLOCKS=B=99 count backward/small --n 99 --d 99 --M 200", 2,
       "REDBLUE_BLOCKS.*words more"},
      {"REDBLUE_FORMAT=xml count backward/small @", 2, "REDBLUE_FORMAT.*xml"},
      {"REDBLUE_SIMD=AVX9 run backward/small @", 2, "REDBLUE_SIMD 'AVX9'.*have [A-Z]"},
      {"REDBLUE_THREADS=0 run forward/rows --n 4 --d 3 --M 999", 2, "REDBLUE_THREADS.*zero"},
      {"REDBLUE_THREADS=5000 run forward/rows --n 4 --d 3 --M 999", 2,
       "REDBLUE_THREADS 5000 is too many.*4096"},
      {"REDBLUE_THREADS=2 run backward/small @", 2, "REDBLUE_THREADS 2: backward/small"},
      {"REDBLUE_SEED=-1 run backward/small @", 2, "REDBLUE_SEED.*\"-1\""},
      {"REDBLUE_SCALE=0 run backward/small @", 2, "REDBLUE_SCALE.*\"0\""},
      {"REDBLUE_VERIFY=yes run backward/small @", 2, "REDBLUE_VERIFY.*yes.*0 or 1"},
      {"REDBLUE_IN=A1 run backward/small @", 2, "REDBLUE_IN.*'A1'.*NAME=FILE"},
      {"REDBLUE_IN=Q=a1.npy run backward/small @", 2, "REDBLUE_IN.*Q=a1.npy.*A1, A2"},
      {"REDBLUE_IN=A1=a1.npy,A1=a1.npy run backward/small @", 2, "REDBLUE_IN.*A1.*twice"},
      {"REDBLUE_OUT=g run backward/small @", 2, "REDBLUE_OUT.*'g'.*NAME=FILE"},
      {"REDBLUE_OUT=O=out/O.npy run backward/small @", 2, "REDBLUE_OUT.*O.*returns g"},
      {"REDBLUE_N=7 run backward/small --in A1=a1.npy --M 200", 1, "a1.npy.*4.*REDBLUE_N.*7"},
      {"REDBLUE_N=64 list", 2, "REDBLUE_N is given: .*--n and --d, and --d is missing"},
      {"REDBLUE_m=64 list", 2, "REDBLUE_m is given: .*these are missing"},
      {"REDBLUE_D=64 list --m 5", 2, "REDBLUE_D is given: .*--n is missing"},
      {"REDBLUE_KEEP=1 run backward/small @", 2, "REDBLUE_KEEP: only with --store"},
      {"REDBLUE_RESUME=1 run backward/small @", 2, "REDBLUE_RESUME: only with --store"},
      {"REDBLUE_RESUME=1 run backward/small @ --store file:out", 2,
       "REDBLUE_RESUME: backward/small does not work row block by row block"},
      {"REDBLUE_SCALE=1e40 run backward/small @", 2, "REDBLUE_SCALE: X: the scale"},
      {"REDBLUE_CACHE=4KiB plan --d 64 --M 4096", 2, "--M '4096': REDBLUE_CACHE says how much"},
      {"REDBLUE_MAKE=X=ones run backward/small @", 2, "REDBLUE_MAKE X=ones: .*identity"},
      {"REDBLUE_MAKE=Q=identity run backward/small @", 2, "REDBLUE_MAKE Q=identity: .*A1, A2"},
      {"REDBLUE_IN=A1=a1.npy run backward/small @", 2, "REDBLUE_IN gives A1, but nothing gives"},
  });
}

// What one command is to write, no other does.
TEST_F(BadInput, TwinsOfOneCommand) {
  file("suite.json", R"({"points": [{"kernel": "backward/small", "n": 4, "d": 3, "M": 200}]})");
  const auto before = files();
  const Outcome recorded = redblue("REDBLUE_OUT=g=x.npy record suite.json");
  EXPECT_EQ(recorded.code, 0) << recorded.err;
  EXPECT_TRUE(Json::parse(recorded.out).contains("points"));
  expect_refused({
      {"REDBLUE_OUT=O=x.json trace backward/small @", 2, "neither --out nor --din"},
      {"REDBLUE_DIN=x.din trace backward/small @", 2, "neither --out nor --din"},
      {"REDBLUE_OUT=x.svg plot occupancy backward/small @", 2, "--out is missing"},
      {"REDBLUE_OUT=x sweep suite.json", 2, "--out is missing"},
      {"REDBLUE_TRACE_DIN=none/x.din trace backward/small @", 1, "none/x.din"},
      {"REDBLUE_TRACE_OUT=none/x.json trace backward/small @", 1, "none/x.json"},
      {"REDBLUE_RECORD_OUT=none/x.json record suite.json", 1, "none/x.json"},
      {"REDBLUE_PLOT_OUT=x plot occupancy backward/small @", 2, "REDBLUE_PLOT_OUT 'x'"},
      {"REDBLUE_SWEEP_OUT=- sweep suite.json", 2, "REDBLUE_SWEEP_OUT -: .*directory"},
      {"REDBLUE_MERGE_OUT=- merge out out", 2, "REDBLUE_MERGE_OUT -: .*directory"},
      {"REDBLUE_DIFF_ALSO=x diff suite.json suite.json", 2, "REDBLUE_DIFF_ALSO 'x'"},
      {"REDBLUE_CALIBRATE_N=0 calibrate --out out/c.json", 2, "REDBLUE_CALIBRATE_N"},
  });
  EXPECT_EQ(files(), before);
  for (const auto& [command, twin] :
       {std::pair("run", "[REDBLUE_OUT]"), std::pair("record", "[REDBLUE_RECORD_OUT]"),
        std::pair("trace", "[REDBLUE_TRACE_OUT]"), std::pair("trace", "[REDBLUE_TRACE_DIN]"),
        std::pair("sweep", "[REDBLUE_SWEEP_OUT]"), std::pair("merge", "[REDBLUE_MERGE_OUT]"),
        std::pair("report", "[REDBLUE_REPORT_OUT]"),
        std::pair("plot figure1", "[REDBLUE_PLOT_OUT]"),
        std::pair("calibrate", "[REDBLUE_CALIBRATE_OUT]"),
        std::pair("calibrate", "[REDBLUE_CALIBRATE_N]"), std::pair("check", "[REDBLUE_CHECK_ALSO]"),
        std::pair("diff", "[REDBLUE_DIFF_ALSO]")}) {
    const std::string help = data(std::string(command) + " --help");
    EXPECT_NE(help.find(twin), std::string::npos) << command << " " << twin << "\n" << help;
  }
}

// A seed beside files or a store is asked for, and what is missing is named.
TEST_F(BadInput, OperandsThatNothingGives) {
  data("store generate st A1 A2 --n 4 --m 5 --d 3");
  expect_refused({
      {"run backward/small @ --in A1=a1.npy --in A2=a2.npy --in A3=a2.npy --in dO=a1.npy", 2,
       "--in gives A1, A2, A3, dO, but nothing gives X, Y: give --in X=FILE, or --seed S for the "
       "rest, or --make X=identity"},
      {"run backward/small @ --in A1=a1.npy --make X=identity --make Y=identity", 2,
       "nothing gives A2, A3, dO: give --in A2=FILE, or --seed S for the rest\n"},
      {"run backward/auto @ --in A1=a1.npy", 2, "but nothing gives A2, A3, X, Y, dO"},
      {"run matmul/blocked @ --in A=a1.npy", 2, "nothing gives B: give --in B=FILE, or --seed S"},
      {"trace backward/small @ --in A1=a1.npy --out out/t.json", 2, "nothing gives A2"},
      {"run backward/small @ --store file:st", 2,
       "--store gives A1, A2, but nothing gives A3, X, Y, dO"},
      {"run backward/small @ --store file:st --in A3=a2.npy", 2,
       "--in gives A3, --store gives A1, A2, but nothing gives X, Y, dO"},
  });
}

TEST_F(BadInput, OperandsThatAreMade) {
  expect_refused({
      {"run backward/small @ --make X=ones", 2, "--make X=ones: expected a pattern: identity"},
      {"run backward/small @ --make X", 2, "--make 'X': expected NAME=PATTERN"},
      {"run backward/small @ --make Q=identity", 2, "--make Q=identity: .*A1, A2, A3, X, Y, dO"},
      {"run backward/small @ --make A1=identity", 2, "--make A1=identity: .*square.*X, Y"},
      {"run matmul/blocked @ --make A=identity", 2, "--make A=identity: .*square.*none"},
      {"run backward/small @ --make X=identity --make X=identity", 2, "--make: X is named twice"},
      {"run backward/small @ --make X=identity --in X=a1.npy", 2,
       "--make X=identity: X comes from a1.npy, too"},
  });
}

TEST_F(BadInput, OperandsThatTheKernelHasNot) {
  expect_refused({
      {"run backward/small @ --in O=O.npy", 2, "--in O=O.npy.*A1, A2, A3, X, Y, dO"},
      {"run backward/small @ --in L=L.npy", 2, "--in L=L.npy"},
      {"run forward/flash @ --in dO=a1.npy", 2, "--in dO=a1.npy.*A1, A2, A3, X, Y"},
      {"run matmul/blocked @ --in A1=a1.npy", 2, "--in A1=a1.npy.*A, B"},
      {"run backward/small @ --in a1=a1.npy", 2, "--in a1=a1.npy"},
      {"run backward/large @ --in O=O.npy", 2, "O without L"},
      {"run backward/flash @ --in L=L.npy", 2, "L without O"},
      {"run backward/small @ --in A1=a1.npy --in A1=a1.npy", 2, "--in.*A1.*twice"},
      {"run backward/small @ --in A1", 2, "--in.*'A1'.*NAME=FILE"},
      {"run backward/small @ --in A1=", 2, "--in.*'A1='.*NAME=FILE"},
      {"run backward/small @ --in =a1.npy", 2, "--in.*'=a1.npy'.*NAME=FILE"},
      {"run backward/small @ --in ''", 2, "--in.*NAME=FILE"},
      {"run backward/small @ --in", 2, "--in"},
  });
}

TEST_F(BadInput, SizesThatDisagree) {
  expect_refused({
      {"run backward/small @ --in A1=a1_5.npy", 1, "A1 of a1_5.npy.* n = 5.*--n.*4"},
      {"run backward/small @ --in A2=wide.npy", 1, "A2 of wide.npy.* d = 4.*--d.*3"},
      {"run backward/small @ --in A3=a1.npy", 1, "A3 of a1.npy.* m = 4.*--m.*5"},
      {"run backward/small @ --in X=a1.npy", 1, "X of a1.npy.* d = 4.*3"},
      {"run backward/small --M 200 --in A1=a1.npy --in dO=a1_5.npy", 1,
       "dO of a1_5.npy.* n = 5.*A1 of a1.npy.*4"},
      {"run backward/small --M 200 --in A2=a2.npy --in A3=wide.npy --n 3", 1,
       "A3 of wide.npy.* d = 4.*A2 of a2.npy.*3"},
      {"run backward/large --M 200 --in O=a1_5.npy --in L=L.npy --d 3", 1,
       "O of a1_5.npy.* n = 5.*L of L.npy.*4"},
      {"run matmul/blocked --M 200 --in A=a1.npy --in B=a2.npy", 1, "B of a2.npy.* d = 5.*3"},
      {"run backward/small @ --in A1=row.npy", 1, "A1 of row.npy.*1 dimension.*2"},
      {"run backward/large @ --in O=O.npy --in L=column.npy", 1,
       "L of column.npy, heads first, makes n = 1, but --n makes n = 4"},
      {"run backward/large --M 200 --in O=O.npy --in L=column.npy", 1,
       "O of O.npy has no dimension of heads, but L of column.npy makes heads = 4"},
      {"run backward/small @ --in A1=a1_5.npy --out g=out/g.npy", 1, "a1_5.npy"},
  });
}

TEST_F(BadInput, FilesThatHoldNoMatrix) {
  expect_refused({
      {"run backward/small @ --in A1=none.npy", 1, "none.npy: No such file"},
      {"run backward/small @ --in A1=none/a1.npy", 1, "none/a1.npy: No such file"},
      {"run backward/small @ --in A1=a1.npy/a1.npy", 1, "a1.npy/a1.npy: Not a directory"},
      {"run backward/small @ --in A1=out", 1, "out: not a regular file"},
      {"run backward/small @ --in A1=/dev/null", 1, "/dev/null: not a regular file"},
      {"run backward/small @ --in A1=empty.npy", 1, "empty.npy: .*0 bytes"},
      {"run backward/small @ --in A1=cut1.npy", 1, "cut1.npy: truncated header"},
      {"run backward/small @ --in A1=cut6.npy", 1, "cut6.npy: truncated header"},
      {"run backward/small @ --in A1=cut7.npy", 1, "cut7.npy: truncated header"},
      {"run backward/small @ --in A1=cut9.npy", 1, "cut9.npy: truncated header"},
      {"run backward/small @ --in A1=cut60.npy", 1, "cut60.npy: truncated header"},
      {"run backward/small @ --in A1=cut128.npy", 1, "cut128.npy: truncated.* 0 bytes.*48"},
      {"run backward/small @ --in A1=cut175.npy", 1, "cut175.npy: truncated.*47 bytes.*48"},
      {"run backward/small @ --in A1=long.npy", 1, "long.npy: trailing bytes.*49.*48"},
      {"run backward/small @ --in A1=foreign.npy", 1, "foreign.npy: a foreign file"},
      {"run backward/small @ --in A1=text.npy", 1, "text.npy: a foreign file"},
      {"run backward/small @ --in A1=format9.npy", 1, "format9.npy: .*format 9"},
      {"run backward/small @ --in A1=header.npy", 1, "header.npy: malformed header"},
      {"run backward/small @ --in A1=int.npy", 1, "int.npy: .*<i8.*float32.*float64"},
      {"run backward/small @ --in A1=void.npy", 1, "void.npy: .*\\|V2.*bfloat16 .<V2.*float64"},
      {"run backward/small @ --in A1=complex.npy", 1, "complex.npy: .*<c8"},
      {"run backward/small @ --in A1=object.npy", 1, "object.npy: .*\\|O"},
      {"run backward/small @ --in A1=cube.npy", 1, "cube.npy: 4 dimensions"},
      {"run backward/small @ --in A1=scalar.npy", 1, "scalar.npy: 0 dimensions"},
      {"run backward/small @ --in A1=no_rows.npy", 1, "no_rows.npy: .*empty"},
      {"run backward/small @ --in A1=cut175.npy --out g=out/g.npy", 1, "cut175.npy"},
  });
}

TEST_F(BadInput, NumbersThatAreNotFinite) {
  expect_refused({
      {"run backward/small @ --seed 1 --in A1=nan.npy --out g=out/g.npy", 1,
       "nan.npy: nan at row 2, column 1"},
      {"run backward/small @ --seed 1 --in A1=inf.npy --out g=out/g.npy", 1,
       "inf.npy: inf at row 2, column 1"},
      {"run backward/small @ --seed 1 --in dO=minus_inf.npy", 1,
       "minus_inf.npy: -inf at row 2, column 1"},
      {"run backward/large @ --seed 1 --in O=nan.npy --in L=L.npy", 1,
       "nan.npy: nan at row 2, column 1"},
      {"run backward/small @ --seed 1 --in A1=nan_fortran.npy", 1,
       "nan_fortran.npy: nan at row 2, column 1"},
      {"run backward/small @ --seed 1 --in A1=minus_inf_fortran.npy", 1,
       "minus_inf_fortran.npy: -inf at row 2, column 1"},
      {"run matmul/blocked --M 200 --n 1 --seed 1 --in A=double.npy", 1,
       "double.npy: 1e\\+300 at row 0, column 0.*float32"},
      // Finite inputs whose products are not.
      {"run backward/small @ --seed 1 --in A1=huge.npy --out g=out/g.npy", 1,
       "g of backward/small .*\\([0-9]+, [0-9]+\\).*too large"},
      {"run backward/naive @ --seed 1 --in A1=huge.npy --M 9999 --out g=out/g.npy", 2, "--M"},
      {"run forward/flash @ --seed 1 --in A1=huge.npy --out O=out/O.npy --out L=out/L.npy", 1,
       "[OL] of forward/flash .*\\([0-9]+, [0-9]+\\).*too large"},
      {"run backward/flash @ --seed 1 --in A1=huge.npy --out g=out/g.npy --out dQ=out/dQ.npy", 1,
       "of forward/flash .*\\([0-9]+, [0-9]+\\).*too large"},
      {"run backward/flash @ --seed 1 --in dO=huge.npy --out g=out/g.npy --out dQ=out/dQ.npy", 1,
       "of backward/flash .*\\([0-9]+, [0-9]+\\).*too large"},
      {"run matmul/blocked --m 5 --M 200 --seed 1 --in A=huge.npy --out C=out/C.npy", 1,
       "C of matmul/blocked .*\\([0-9]+, [0-9]+\\).*too large"},
  });
}

TEST_F(BadInput, Outputs) {
  expect_refused({
      {"run backward/small @ --out O=out/O.npy", 2, "--out O=out/O.npy.*returns g"},
      {"run backward/small @ --out g", 2, "--out.*'g'.*NAME=FILE"},
      {"run backward/small @ --out g=", 2, "--out.*'g='.*NAME=FILE"},
      {"run backward/small @ --out g=out/a.npy --out g=out/b.npy", 2, "--out.*g.*twice"},
      {"run forward/flash @ --out O=out/x.npy --out L=out/x.npy", 2, "--out.*out/x.npy"},
      {"run forward/flash @ --out O=out/x.npy --out L=out/../out/x.npy", 2, "--out.*x.npy"},
      {"run forward/flash @ --out O=none/O.npy", 1, "none/O.npy: No such file"},
      {"run forward/flash @ --out O=out/O.npy --out L=none/L.npy", 1, "none/L.npy: No such file"},
      {"run forward/flash @ --out O=out", 1, "out: Is a directory"},
      {"run forward/flash @ --out O=out/", 1, "out/: Is a directory"},
      {"run forward/flash @ --out O=a1.npy/O.npy", 1, "a1.npy/O.npy: Not a directory"},
      {"run forward/flash @ --out O=/dev/full", 1, "/dev/full: No space left on device"},
      {"run forward/flash @ --out O=/dev/stdin", 1, "/dev/stdin: Bad file descriptor"},
      {"run forward/flash @ --out O=- --out L=/dev/stdout", 2, "--out.*two results to one file"},
      {"run forward/flash @ --out O=/proc/O.npy", 1, "/proc/O.npy"},
      {"run backward/small --n 4 --d 3 --M 1 --out g=out/g.npy", 2, "at least"},
  });
}

// A directory and a file that may not be written, and a command that is not root.
TEST_F(BadInput, OutputsWithoutPermission) {
  using std::filesystem::perms;
  directory_.write("mine/g.npy", "older");
  const auto all = perms::owner_all | perms::group_all | perms::others_all;
  const auto no_write = perms::owner_write | perms::group_write | perms::others_write;
  std::filesystem::permissions(directory_.path(), all);
  std::filesystem::permissions(directory_ / "mine", all);
  std::filesystem::permissions(directory_ / "mine/g.npy", perms::owner_read | perms::others_read);
  std::filesystem::permissions(directory_ / "out", all & ~no_write);
  for (const std::string path : {"out/g.npy", "mine/g.npy"}) {
    SCOPED_TRACE(path);
    Process write = process(expanded("run backward/small @ --out g=" + path));
    write.without_root = true;
    expect_refused(write, 1, path + ": Permission denied");
  }
  std::filesystem::permissions(directory_ / "out", all);
}

// As much room as a limit leaves: none for the result, and the older file stays.
TEST_F(BadInput, OutputsLargerThanAFileMayBe) {
  directory_.write("out/O.npy", "older");
  if (!kFilesAreLimited) {
    GTEST_SKIP() << "below a limit of files clang's OpenMP does not start";
  }
  Process write = process(expanded("run forward/flash @ --out O=out/O.npy --out L=out/L.npy"));
  write.largest_file = 160;  // enough for L, for O not
  expect_refused(write, 1, "out/O.npy: File too large");
}

// A file system of its own, one page large, that nobody else sees.
TEST_F(BadInput, OutputsToAFullDisk) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("redblue", (directory_ / "out").c_str(), "tmpfs", 0, "size=4096") != 0) {
    GTEST_SKIP() << "no file system to fill: " << std::strerror(errno)
                 << "; OutputsLargerThanAFileMayBe stands in";
  }
  directory_.write("out/small.npy", "older");  // takes the page
  expect_refused(process(expanded("run backward/small @ --out g=out/g.npy")), 1,
                 "out/g.npy: No space left on device");
  expect_refused(process("run matmul/blocked --n 999 --d 9 --M 99 --out C=out/small.npy"), 1,
                 "out/small.npy: No space left on device");
  EXPECT_EQ(content_of(directory_ / "out/small.npy"), "older");
  EXPECT_EQ(::umount((directory_ / "out").c_str()), 0);
}

TEST_F(BadInput, StandardOutputThatIsFull) {
  for (const std::string command :
       {"list", "list --format json", "info", "bounds @", "count backward/small @",
        "run backward/small @", "run backward/small @ --format json --verify", "--version",
        "--help", "run --help"}) {
    SCOPED_TRACE(command);
    Process full = process(expanded(command));
    full.standard_output = "/dev/full";
    expect_refused(full, 1, "standard output: No space left on device");
  }
}

// An output never replaces a file that the same command reads.
TEST_F(BadInput, AnOutputIsNoInput) {
  ASSERT_EQ(redblue("store generate st --n 20 --d 4").code, 0);
  ASSERT_EQ(redblue("store export st A1=a.npy").code, 0);
  ASSERT_EQ(redblue("pebble dag attention --n 2 --d 1 -o g.txt").code, 0);
  std::filesystem::create_directory(directory_ / "d");
  directory_.write("d/sweep.json", R"({"how": "count", "points": [
      {"kernel": "forward/rows", "n": 8, "d": 2, "M": 99}]})");
  std::filesystem::copy(directory_ / "d/sweep.json", directory_ / "d/other.json");
  const std::string reads = ": this command reads the file: name another for its output";
  const std::string trace = "trace forward/rows --n 20 --d 4 --M 99 --in A1=a.npy ";
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {trace + "-o ./a.npy", "--out './a.npy'" + reads},
           {trace + "--din a.npy", "--din 'a.npy'" + reads},
           {trace + "-o l.npy --mask blocks:l.npy", "--out 'l.npy'" + reads},
           {trace + "-o m:k.npy --mask blocks:\"m:k.npy\"", "--out 'm:k.npy'" + reads},
           {"run forward/rows --n 20 --d 4 --M 99 --mask blocks:l.npy --out O=./l.npy",
            "--out O=./l.npy: --mask is read from this file"},
           {"check base.json --suite d/sweep.json --also markdown=d/sweep.json",
            "--also 'markdown=d/sweep.json': this file is read, or another form goes there"},
           {"pebble dag g.txt -o ./g.txt", "--out './g.txt'" + reads},
           {"pebble solve g.txt --M 9 --moves g.txt", "--moves 'g.txt'" + reads},
           {"pebble run forward/small --n 4 --d 2 --M 64 --in A1=a.npy --dag a.npy",
            "--dag 'a.npy'" + reads},
           {"sweep d/sweep.json -o d", "--out 'd/sweep.json'" + reads},
           {"record d/sweep.json -o d/other.json", "--out 'd/other.json': a suite is there"},
           {"store export st A1=b.npy A2=./b.npy", "another matrix goes to this file"}}) {
    SCOPED_TRACE(line);
    expect_refused(process(line), 2, message);
  }
}

// Attention has no forward pass before it: it is given nothing, and may say so.
TEST_F(BadInput, WhatIsGivenNothingMaySaySo) {
  for (const std::string problem : {"product", "forward", "attention"}) {
    const std::string line = "bounds --n 8 --d 2 --M 100 --problem " + problem;
    EXPECT_EQ(data(line + " --given nothing"), data(line));
  }
}

}  // namespace
}  // namespace redblue
