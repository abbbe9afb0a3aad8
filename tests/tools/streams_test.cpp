// Tests outputs to files that are not regular: standard output, devices, pipes and symbolic links.

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cli.hpp"

namespace redblue {
namespace {

class Streams : public Cli {
 protected:
  Streams() {
    directory_.write("suite.json",
                     R"({"points": [{"kernel": "backward/small", "n": 4, "d": 3, "M": 200}]})");
  }
  // Runs a line of a shell, in which $redblue is the command.
  [[nodiscard]] Outcome shell(const std::string& line) const {
    Process process = this->process("");
    process.environment.push_back("redblue=" + process.words.front());
    process.environment.push_back("PATH=/usr/bin:/bin");
    process.words = {"/bin/sh", "-c", line};
    return process.run();
  }
  [[nodiscard]] std::string bytes(const std::string& file) const {
    return content_of(directory_ / file);
  }
};

const std::string kRun = "run forward/flash --n 4 --m 5 --d 3 --M 200";

// If data go to standard output, messages go to standard error, so that the data stay intact.
TEST_F(Streams, ADashIsStandardOutput) {
  data(kRun + " --out O=O.npy");
  const std::string recorded =
      redblue("record suite.json -o base.json").code == 0 ? bytes("base.json") : "";
  const Outcome trace = redblue("trace backward/small --n 4 --d 3 --M 200 -o a.json");
  EXPECT_EQ(trace.code, 0) << trace.err;
  data("store generate st A1 --n 4 --d 3");
  data("store export st A1=a1.npy");
  const std::string checked = data("check base.json --format json");
  const auto before = files();
  const struct {
    std::string command;
    std::string expected;
    std::string said;
  } table[] = {
      {kRun + " --out O=-", bytes("O.npy"), "operands: A1, A2"},
      {kRun + " --out O=- --format json", bytes("O.npy"), "\"operands\""},
      {kRun + " --out O=/dev/stdout", bytes("O.npy"), "operands: A1, A2"},
      {kRun + " --out O=/dev/fd/1", bytes("O.npy"), "operands: A1, A2"},
      {"record suite.json -o -", recorded, "1 point recorded"},
      {"record suite.json", recorded, "1 point recorded"},
      {"trace backward/small --n 4 --d 3 --M 200 --out -", bytes("a.json"), ""},
      {"store export st A1=-", bytes("a1.npy"), "A1: 4 x 3 to -"},
      {"check base.json --also json=-", checked, "same, the only point"},
  };
  for (const auto& [command, expected, said] : table) {
    SCOPED_TRACE(command);
    const Outcome outcome = redblue(command);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_TRUE(outcome.out == expected) << outcome.out;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(files(), before);
  expect_refused(process(kRun + " --out O=- --out L=-"), 2, "--out O=-: two results to one file");
  expect_refused(process("trace backward/small --n 4 --d 3 --M 200 -o - --din /dev/stdout"), 2,
                 "one file");
}

// The text that a shell wrote before stays, and a failed run adds no text.
TEST_F(Streams, AppendsToWhatStandardOutputIs) {
  const std::string recorded = redblue("record suite.json").out;
  for (const std::string name : {"-", "/dev/stdout", "/proc/self/fd/1"}) {
    const Outcome outcome = shell("echo before > f; $redblue record suite.json -o " + name +
                                  " >> f; $redblue record none.json -o " + name + " >> f");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(bytes("f"), "before\n" + recorded) << name;
  }
}

TEST_F(Streams, DevicesAreWrittenToAsTheyAre) {
  EXPECT_EQ(redblue("record suite.json -o /dev/null").code, 0);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  expect_refused(process("record suite.json -o /dev/full"), 1,
                 "cannot write /dev/full: No space left on device");
  Process full = process(kRun + " --out O=-");
  full.standard_output = "/dev/full";
  expect_refused(full, 1, "cannot write standard output: No space left on device");
}

TEST_F(Streams, ANamedPipe) {
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  const Outcome outcome = shell("cat pipe > got & $redblue record suite.json -o pipe && wait");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(bytes("got"), redblue("record suite.json").out);
  EXPECT_TRUE(std::filesystem::is_fifo(directory_ / "pipe"));
}

// A pipe works like any other file: a baseline can be read from it and a report written to it. Each
// file takes one document.
TEST_F(Streams, PipesAndDescriptorsOfAGate) {
  EXPECT_EQ(redblue("record suite.json -o base.json").code, 0);
  const std::string json = data("check base.json --format json");
  const Outcome piped =
      shell("cat base.json | $redblue check /dev/stdin --also junit=/dev/stdout | cat");
  EXPECT_TRUE(piped.out.starts_with("<?xml")) << piped.out << piped.err;
  EXPECT_EQ(shell("$redblue check base.json --also json=/dev/fd/3 3> got").code, 0);
  EXPECT_EQ(bytes("got"), json);
  expect_refused(process("check base.json --also json=- --also csv=/dev/stdout"), 2,
                 "another form goes there");
  EXPECT_EQ(redblue("sweep suite.json -o swept").code, 0);
  EXPECT_NE(shell("$redblue report swept -o /dev/stdout | cat").out.find("</html>"),
            std::string::npos);
}

// A pipe without a reader: one line, and a failure.
TEST_F(Streams, AClosedPipe) {
  for (const std::string& command :
       {std::string("record suite.json -o -"), std::string("list"), kRun + " --out O=-"}) {
    SCOPED_TRACE(command);
    const Outcome outcome = shell("{ sleep 0.5; $redblue " + command + "; echo $? >&2; } | :");
    EXPECT_NE(outcome.err.find("standard output: Broken pipe\n1\n"), std::string::npos)
        << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 2) << outcome.err;
  }
}

// A link stays a link. The file that it names appears completely or not at all.
TEST_F(Streams, SymbolicLinksAreFollowed) {
  const std::string recorded = redblue("record suite.json").out;
  directory_.write("far/base.json", "older");
  std::filesystem::create_symlink("base.json", directory_ / "far/link.json");
  std::filesystem::create_symlink("far/link.json", directory_ / "link.json");
  std::filesystem::create_symlink("far/new.json", directory_ / "dangling.json");
  const auto before = files();
  EXPECT_EQ(redblue("record none.json -o link.json").code, 1);
  EXPECT_EQ(files(), before);
  if (!kFilesAreLimited) {
    GTEST_SKIP() << "below a limit of files clang's OpenMP does not start";
  }
  Process process = this->process("record suite.json -o link.json");
  process.largest_file = 300;
  expect_refused(process, 1, "cannot write link.json: File too large");
  EXPECT_EQ(redblue("record suite.json -o link.json").code, 0);
  EXPECT_EQ(redblue("record suite.json -o dangling.json").code, 0);
  EXPECT_EQ(bytes("far/base.json"), recorded);
  EXPECT_EQ(bytes("far/new.json"), recorded);
  for (const std::string link : {"link.json", "far/link.json", "dangling.json"}) {
    EXPECT_TRUE(std::filesystem::is_symlink(directory_ / link)) << link;
  }
  EXPECT_EQ(files().size(), before.size() + 1);
  // A link to a device acts as the device.
  std::filesystem::create_symlink("/dev/full", directory_ / "full");
  expect_refused(this->process("record suite.json -o full"), 1, "cannot write full: No space left");
}

}  // namespace
}  // namespace redblue
