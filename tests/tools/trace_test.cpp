// Tests `redblue trace` from the outside. Its files are complete or absent, and its words equal the
// words of `redblue run`.

#include <algorithm>
#include <regex>

#include <fmt/format.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

class Trace : public Cli {
 protected:
  [[nodiscard]] Json file(const std::string& name) const {
    return Json::parse(content_of(directory_ / name));
  }
};

const std::string kSmall = "trace backward/small --n 20 --m 13 --d 5 --M 60";

TEST_F(Trace, HoldsTheWordsOfARun) {
  for (const std::string problem :
       {"backward/small --n 20 --m 13 --d 5 --M 60", "backward/rows --n 30 --d 4 --M 300",
        "backward/large --n 30 --d 4 --M 300",
        "forward/flash --n 30 --d 4 --M 300 --blocks core.Br=7",
        "backward/auto --n 30 --d 4 --M 300"}) {
    SCOPED_TRACE(problem);
    const Json run = json("run " + problem + " --objective words");
    EXPECT_EQ(data("trace " + problem + " --out trace.json"), "");
    const Json trace = file("trace.json");
    EXPECT_EQ(trace["otherData"]["kernel"], run["kernel"]) << "and not the forward pass before it";
    EXPECT_EQ(trace["otherData"]["blocks"], run["blocks"]);
    for (const char* key : {"reads", "writes", "io", "peak"}) {
      EXPECT_EQ(trace["otherData"]["total"][key], run["total"][key]) << key;
    }
    const Outcome din = redblue("trace " + problem + " --din trace.din");
    EXPECT_EQ(din.code, 0);
    const std::string text = content_of(directory_ / "trace.din");
    EXPECT_EQ(std::ranges::count(text, '\n'), run["total"]["io"].get<Index>());
    EXPECT_TRUE(std::regex_search(din.err, std::regex("redblue: A1 \\([0-9]+ x [0-9]+\\) lies at "
                                                      "0x[0-9a-f]+000\n")))
        << din.err;
  }
}

TEST_F(Trace, BothAtATimeAndTheSameBytesAgain) {
  const Outcome first = redblue(kSmall + " -o a.json --din a.din");
  const Outcome second = redblue(kSmall + " --seed 7 -o b.json --din b.din");
  EXPECT_EQ(first.code + second.code, 0);
  EXPECT_EQ(first.err, second.err);
  EXPECT_EQ(content_of(directory_ / "a.json"), content_of(directory_ / "b.json"));
  EXPECT_EQ(content_of(directory_ / "a.din"), content_of(directory_ / "b.din"));
  // A file written alone equals the file written together with the other one.
  EXPECT_EQ(redblue(kSmall + " --out c.json").code, 0);
  EXPECT_EQ(content_of(directory_ / "a.json"), content_of(directory_ / "c.json"));
}

TEST_F(Trace, SaysThatItIsCut) {
  const Outcome outcome = redblue(kSmall + " -o a.json --events 100 --din a.din --din-words 50");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  const Json trace = file("a.json");
  const Json& other = trace["otherData"];
  EXPECT_TRUE(other["cut"].get<bool>());
  EXPECT_LE(trace["traceEvents"].size(), 100U);
  EXPECT_EQ(other["events"], trace["traceEvents"].size());
  EXPECT_NE(outcome.err.find("redblue: a.json is cut: it has the first"), std::string::npos)
      << outcome.err;
  const Index io = other["total"]["io"];
  EXPECT_NE(outcome.err.find(fmt::format("(--din-words {} for all)", io)), std::string::npos)
      << outcome.err;
  // The stated number of events is enough for all of them.
  const auto all = other["of"].get<Index>();
  EXPECT_EQ(data(fmt::format("{} -o a.json --events {}", kSmall, all)), "");
  EXPECT_EQ(file("a.json")["traceEvents"].size(), static_cast<std::size_t>(all));
  EXPECT_NE(redblue(fmt::format("{} -o a.json --events {}", kSmall, all - 1)).err, "");
}

TEST_F(Trace, IsRefusedBeforeItRuns) {
  expect_refused(process(kSmall), 2, "--out.*--din");
  expect_refused(process(kSmall + " --events 5"), 2, "--out");
  expect_refused(process(kSmall + " --din a.din --events 5"), 2, "--events.*--out");
  expect_refused(process(kSmall + " --out a.json --din-words 5"), 2, "--din-words.*--din");
  expect_refused(process(kSmall + " --out a --din a"), 2, "one file");
  expect_refused(process(kSmall + " --out a.json --events 0"), 2, "--events");
  expect_refused(process(kSmall + " --out a.json --threads 2"), 2, "--threads");
  expect_refused(process(kSmall + " --out none/a.json"), 1, "none/a.json");
  expect_refused(process(kSmall + " --out a.json --din none/a.din"), 1, "none/a.din");
  expect_refused(process(kSmall + " --out ."), 1, "cannot write");
  // The run would take hours, so the path is checked first.
  expect_refused(process("trace backward/small --n 1500 --d 512 --M 300 --out none/a"), 1,
                 "none/a");
}

TEST_F(Trace, AFailedRunLeavesNothing) {
  directory_.write("bad.npy", "no matrix");
  expect_refused(process(kSmall + " --in A1=bad.npy --out a.json --din a.din"), 1, "bad.npy");
  if (!kFilesAreLimited) {
    GTEST_SKIP() << "below a limit of files clang's OpenMP does not start";
  }
  Process full = process(kSmall + " --out a.json --din a.din");
  full.largest_file = 1000;
  expect_refused(full, 1, "a.json|a.din");
}

}  // namespace
}  // namespace redblue
