// Tests every bad input: one clear line on standard error, an empty standard output, and no file
// left behind or changed. The exit code is 2 for a command line that asks for something that does
// not exist, and 1 for all other faults. Most cases are in bad_input.txt.

#include <cerrno>
#include <cstring>
#include <limits>
#include <sstream>
#include <vector>

#include <sched.h>
#include <sys/mount.h>

#include "kernels/kernel.hpp"
#include "runtime/observe/callgrind.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/system/environment.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/npy_bytes.hpp"
#include "tests/support/tested_kernel.hpp"
#include "tools/commands/redblue.hpp"

namespace redblue {
namespace {

// A command line, its exit code, and a regular expression for its message. In the command, @ stands
// for "--n 4 --m 5 --d 3 --M 200".
struct Bad {
  std::string command;
  int code;
  std::string message;
};

// A part of bad_input.txt. The file itself explains its lines.
struct BadInputs {
  std::string name;
  std::vector<Bad> lines;
  friend void PrintTo(const BadInputs& part, std::ostream* out) { *out << part.name; }
};
std::vector<BadInputs> bad_inputs() {
  std::vector<BadInputs> parts;
  std::istringstream text(content_of(REDBLUE_SOURCE_DIR "/tests/tools/bad_input.txt"));
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    const std::size_t arrow = line.find(" => ");
    if (line.starts_with('[')) {
      parts.push_back({.name = line.substr(1, line.size() - 2), .lines = {}});
    } else if (arrow == std::string::npos) {
      parts.back().lines.push_back(
          {.command = line, .code = -1, .message = "no line of this file"});
    } else {
      parts.back().lines.push_back({.command = line.substr(2, arrow - 2),
                                    .code = line.front() - '0',
                                    .message = line.substr(arrow + 4)});
    }
  }
  return parts;
}

// Calls the command in this process, in the given directory, with an empty environment.
Outcome called(const std::filesystem::path& directory, std::vector<std::string> words) {
  words.insert(words.begin(), "redblue");
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const Environment none;
  const WithEnvironment with(none);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory);
  Outcome outcome;
  std::string complaints;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  outcome.code =
      run_redblue(static_cast<int>(words.size()), arguments.data(), nullptr,
                  [&](const std::string& what) { complaints += "redblue: " + what + "\n"; });
  outcome.err = testing::internal::GetCapturedStderr() + complaints;
  outcome.out = testing::internal::GetCapturedStdout();
  std::filesystem::current_path(before);
  return outcome;
}

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
    // Element (2, 1) is not finite; one file for each order of elements.
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
    // A double that no float32 is near: 1e300, little-endian.
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
    // Arrays with a dimension of heads.
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
    file("V_5x2.npy", npy_bytes(5, 2, ones));
    file("Q_2x4x3.npy", npy_bytes({2, 4, 3}, ones));
    file("Q.npy", npy_bytes(4, 3, ones));
    file("suite.json", R"({"points": [{"kernel": "backward/small", "n": 4, "d": 3, "M": 200}]})");
  }

  void file(const std::string& name, const std::string& bytes) { directory_.write(name, bytes); }

  static std::string expanded(std::string command) {
    if (const std::size_t at = command.find('@'); at != std::string::npos) {
      command.replace(at, 1, "--n 4 --m 5 --d 3 --M 200");
    }
    return command;
  }

  using Cli::expect_refused;
  void expect_refused(const std::vector<Bad>& table) const {
    for (const Bad& bad : table) {
      SCOPED_TRACE(bad.command);
      expect_refused(process(expanded(bad.command)), bad.code, bad.message);
    }
  }
};

class PartOfBadInput : public BadInput, public testing::WithParamInterface<BadInputs> {};

// Most lines run in this process, where a command starts in a millisecond. Every 20th line runs in
// a new process, and so does each line that sets the environment.
TEST_P(PartOfBadInput, IsRefused) {
  data("store generate st A1 A2 --n 4 --m 5 --d 3");
  int line = 0;
  for (const auto& [command, code, message] : GetParam().lines) {
    SCOPED_TRACE(command);
    const CommandLine as_words = split(expanded(command));
    if (line++ % 20 == 0 || !as_words.assignments.empty()) {
      expect_refused(process(expanded(command)), code, message);
    } else {
      expect_refused([&] { return called(directory_.path(), as_words.words); }, code, message);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Project, PartOfBadInput, testing::ValuesIn(bad_inputs()),
                         [](const auto& part) { return part.param.name; });

TEST_F(BadInput, CachesForM) {
  if (!synthetic_topology("core:1 pu:1").unavailable.empty()) {
    expect_refused({{"run backward/small --n 4 --d 3 --M L2", 2,
                     "--M L2: the size of L2 is not known \\(built without hwloc\\): give words"}});
    return;
  }
  expect_refused({
      {"HWLOC_SYNTHETIC=core:2 count backward/small --n 4 --d 3 --M L2", 2,
       "HWLOC_SYNTHETIC 'core:2'"},
      {"HWLOC_SYNTHETIC=pu:2 count backward/small --n 4 --d 3 --M L2", 2,
       "--M L2: the size of L2 is not known \\(hwloc .*synthetic.*\\): give words, .*--M 8192"},
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
      // With less than 4 words of M, no kernel can compute the O and L that this kernel takes.
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
                           std::to_string(least) + "$");
      }
    }
  }
}

// `--M auto` on a machine of six cores, with files of `redblue tune` that are none.
TEST_F(BadInput, MByAnAnswer) {
  if (!synthetic_topology("core:1 pu:1").unavailable.empty()) {
    expect_refused({{"run backward/small --n 4 --d 3 --M auto", 2,
                     "--M auto: the caches are not known \\(built without hwloc\\): give words"}});
    return;
  }
  const std::string problem = "attention/rows --n 40 --d 3 --M auto";
  for (const std::string where : {"XDG_CACHE_HOME=/none ", "HOME=/none ", ""}) {
    EXPECT_EQ(redblue(kSixCores + where + "count " + problem).code, 0)
        << "without a file, the rule";
  }
  const std::string model = "A made-up processor of two big cores and four small ones";
  const auto content = [](const std::string& schema, const std::string& its_model,
                          const std::string& L2) {
    return R"({"schema": )" + schema + R"(, "context": {"model": ")" + its_model +
           R"(", "caches": [{"cache": "L1", "bytes": 49152}, {"cache": "L2", "bytes": )" + L2 +
           R"(}, {"cache": "L3", "bytes": 12582912}]}, "problems": []})";
  };
  const std::string good = content("1", model, "1310720");
  const struct {
    std::string text;
    const char* message;
  } bad[] = {
      {"", "truncated, or no JSON"},
      {good.substr(0, good.size() - 1), "truncated, or no JSON"},
      {"PK", "truncated, or no JSON"},
      {"[]", "not what `redblue tune` writes"},
      {"{}", "not what `redblue tune` writes"},
      {content("2", model, "1310720"), "schema 2, expected 1"},
      {content("\"1\"", model, "1310720"), "schema \"1\", expected 1"},
      {content("1", "Another", "1310720"), "of another processor: 'Another', and this one is 'A "},
      {content("1", model, "262144"), "whose L2 has 262144 bytes; here it has 1310720 bytes"},
      {content("1", model, "\"large\""), "not what `redblue tune` writes"},
  };
  const std::string from = "XDG_CACHE_HOME=" + (directory_ / "cache").string() + " ";
  for (const auto& [text, message] : bad) {
    SCOPED_TRACE(text);
    directory_.write("cache/redblue/tuned.json", text);
    expect_refused(process(kSixCores + from + "count " + problem), 1,
                   "cache/redblue/tuned.json[:, ].*" + std::string(message) + ".*redblue tune`");
  }
  directory_.write("cache/redblue/tuned.json", good);
  EXPECT_EQ(redblue(kSixCores + from + "count " + problem).code, 0) << "the rows fail for a reason";
  std::filesystem::remove(directory_ / "cache/redblue/tuned.json");
  std::filesystem::create_directory(directory_ / "cache/redblue/tuned.json");
  expect_refused(process(kSixCores + from + "count " + problem), 1, "not a regular file");
}

TEST_F(BadInput, Calibrate) {
  if (!synthetic_topology("core:1 pu:1").unavailable.empty()) {
    expect_refused({{"calibrate", 1, "caches of this machine are not known: built without hwloc"}});
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

// `measure --via callgrind` on a machine of six cores that a file describes.
TEST_F(BadInput, Measure) {
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
      {"measure backward/small @ --via callgrind --level L4", 2, "--level 'L4'"},
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
  expect_refused({{"HWLOC_SYNTHETIC=pu:2 measure backward/small @ --via callgrind --level L2", 2,
                   "--level L2: its size is not known"}});
  // The simulated run finds these faults. Its message and its exit code come through.
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

// A separate process has a standard input that cannot be written.
TEST_F(BadInput, AnOutputToStandardInput) {
  expect_refused(process(expanded("run forward/flash @ --out O=/dev/stdin")), 1,
                 "/dev/stdin: Bad file descriptor");
}

TEST_F(BadInput, TooManyMasks) {
  std::string line = "run attention/rows @ --mask causal";
  for (int more = 0; more < 64; ++more) {
    line += "|causal";
  }
  expect_refused(process(expanded(line)), 2, "expected at most 64 masks in one");
}

// Several workers need several heads, or a kernel that splits. The message names the kernels that
// split.
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
}

// A directory and a file without write permission, and a command that does not run as root.
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

// The limit leaves no room for the result O. The older file stays.
TEST_F(BadInput, OutputsLargerThanAFileMayBe) {
  directory_.write("out/O.npy", "older");
  if (!kFilesAreLimited) {
    GTEST_SKIP() << "below a limit of files clang's OpenMP does not start";
  }
  Process write = process(expanded("run forward/flash @ --out O=out/O.npy --out L=out/L.npy"));
  write.largest_file = 160;  // enough for L, too small for O
  expect_refused(write, 1, "out/O.npy: File too large");
}

// A private file system of one page, which no other process sees.
TEST_F(BadInput, OutputsToAFullDisk) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("redblue", (directory_ / "out").c_str(), "tmpfs", 0, "size=4096") != 0) {
    GTEST_SKIP() << "no file system to fill: " << std::strerror(errno)
                 << "; OutputsLargerThanAFileMayBe stands in";
  }
  directory_.write("out/small.npy", "older");  // takes the only page
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

// The passes in this list need no O and L. Their `--given nothing` is allowed and has no effect.
TEST_F(BadInput, WhatIsGivenNothingMaySaySo) {
  for (const std::string problem : {"product", "forward", "attention"}) {
    const std::string line = "bounds --n 8 --d 2 --M 100 --problem " + problem;
    EXPECT_EQ(data(line + " --given nothing"), data(line));
  }
}

}  // namespace
}  // namespace redblue
