// Tests the content of suites and their recording by `redblue record`. A recording holds no facts
// of the machine that made it.

#include <regex>
#include <vector>

#include <fmt/format.h>

#include "kernels/kernel.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/json.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

class SuiteCommand : public Cli {
 protected:
  // Returns the text of a suite's recording.
  [[nodiscard]] std::string recorded(const std::string& suite, const std::string& more = {}) const {
    directory_.write("suite.json", suite);
    const Outcome outcome = redblue(more + " record suite.json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
  // Returns a name such as "backward/small n=4 d=2 M=100" for each point of a suite.
  [[nodiscard]] std::vector<std::string> points(const std::string& suite) const {
    std::vector<std::string> names;
    const nlohmann::ordered_json document = nlohmann::ordered_json::parse(recorded(suite));
    for (const auto& point : document["points"]) {
      std::string name = point["kernel"].get<std::string>();
      for (const auto& [key, value] : point["arguments"].items()) {
        name += " " + key + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
      }
      names.push_back(name);
    }
    return names;
  }
  // Returns the points of an entry with these members. The rest of the suite is valid.
  [[nodiscard]] std::vector<std::string> points_of(const std::string& entry) const {
    return points(R"({"how": "count", "points": [{"kernel": "forward/flash", "d": 2, )" + entry +
                  "}]}");
  }
  void refused(const std::string& suite, const std::string& message) const {
    directory_.write("suite.json", suite);
    directory_.write("out.json", "what was there");
    expect_refused(process("record suite.json -o out.json"), 1, "suite.json.*" + message);
  }
  void refused_entry(const std::string& entry, const std::string& message) const {
    refused(
        R"({"points": [{"kernel": "forward/flash", "n": 4, "d": 2, "M": 100}, {)" + entry + "}]}",
        ", points 2" + message);
  }
};
using Names = std::vector<std::string>;

TEST_F(SuiteCommand, IsEveryCombinationTheLastFastest) {
  EXPECT_EQ(points_of(R"("n": [4, "1K"], "M": [100, "1KiB"])"),
            (Names{"forward/flash n=4 d=2 M=100", "forward/flash n=4 d=2 M=256",
                   "forward/flash n=1024 d=2 M=100", "forward/flash n=1024 d=2 M=256"}));
  EXPECT_EQ(
      points_of(R"("M": 100, "store": ["disk", "memory"], "m": [4, 3], "n": 4)"),
      (Names{"forward/flash n=4 d=2 M=100 store=disk", "forward/flash n=4 m=3 d=2 M=100 store=disk",
             "forward/flash n=4 d=2 M=100", "forward/flash n=4 m=3 d=2 M=100"}))
      << "and nothing is said that would be so unsaid";
}

TEST_F(SuiteCommand, Ranges) {
  const auto sizes = [&](const std::string& range) {
    std::string found;
    for (const std::string& point : points_of(R"("M": 1000, "n": )" + range)) {
      found += point.substr(16, point.find(" d=") - 16) + " ";
    }
    return found;
  };
  EXPECT_EQ(sizes(R"({"from": 1, "to": 16, "times": 2})"), "1 2 4 8 16 ");
  EXPECT_EQ(sizes(R"({"from": 1, "to": 15, "times": 2})"), "1 2 4 8 ");
  EXPECT_EQ(sizes(R"({"from": 3, "to": 10, "times": 1.5})"), "3 5 7 10 ") << "3, 4.5, 6.75, 10.125";
  EXPECT_EQ(sizes(R"({"from": 1, "to": 3, "times": 1.1})"), "1 2 3 ") << "each once";
  EXPECT_EQ(sizes(R"({"from": 1, "to": 9, "step": 4})"), "1 5 9 ");
  EXPECT_EQ(sizes(R"({"from": 2, "to": 9, "step": 4})"), "2 6 ");
  EXPECT_EQ(sizes(R"({"from": "1K", "to": "3K", "step": "1K"})"), "1024 2048 3072 ");
  EXPECT_EQ(sizes(R"({"from": 7, "to": 7, "step": 100})"), "7 ");
  EXPECT_EQ(sizes(R"({"from": 7, "to": 7, "times": 100})"), "7 ");
  // The sequence reaches its last value without overflow.
  EXPECT_EQ(
      points_of(
          R"("n": 4, "M": {"from": 100, "to": 9223372036854775807, "step": 9223372036854775000})"),
      (Names{"forward/flash n=4 d=2 M=100", "forward/flash n=4 d=2 M=9223372036854775100"}));
  EXPECT_EQ(
      points_of(
          R"("n": 4, "M": {"from": 4611686018427387904, "to": 9223372036854775807, "times": 1.9})")
          .size(),
      2U);
}

TEST_F(SuiteCommand, GlobsCommentsAndDuplicates) {
  Names all;
  for (const TestedKernel& kernel : tested_kernels()) {
    if (kernel.name.starts_with("backward/rows")) {
      all.push_back(std::string(kernel.name) + " n=4 d=2 M=100");
    }
  }
  EXPECT_EQ(points(R"({"how": "count", // so that it is quick
                       "points": [
      /* all of them */ {"kernel": "backward/rows*", "n": 4, "d": 2, "M": 100}]})"),
            all);
  EXPECT_EQ(points(R"({"how": "count", "points": [
      {"kernel": ["*d/fl*sh", "forward/flash"], "n": [4, 4], "m": 4, "d": 2, "M": [256, 256]},
      {"kernel": "forward/flash", "M": "1KiB", "d": 2, "n": 4, "threads": 1}]})"),
            (Names{"forward/flash n=4 d=2 M=256", "backward/flash n=4 d=2 M=256"}));
}

TEST_F(SuiteCommand, SaysWhatIsWrongAndWhere) {
  const std::string sizes = R"(, "n": 4, "d": 2, "M": 100)";
  const auto kernel = R"("kernel": "forward/flash")" + std::string();
  refused_entry(R"("kernel": "forward/flush")" + sizes,
                ": no kernel is called 'forward/flush': did you mean forward/flash or ");
  refused_entry(R"("kernel": "nothing/*")" + sizes, ": no kernel is called 'nothing/\\*'");
  refused_entry(R"("kernel": ["forward/flash", 7])" + sizes, ", kernel: 7 is no name");
  refused_entry(R"("n": 4, "d": 2, "M": 100)", " has no \"kernel\"");
  refused_entry(kernel + sizes + R"(, "p": 1)",
                ": forward/flash takes no 'p': it takes n, m, d, M, threads, heads, ");
  refused_entry(kernel + R"(, "d": 2, "M": 100)", ": forward/flash: n is missing");
  refused_entry(kernel + R"(, "n": 4, "M": 100)", ": forward/flash: d is missing");
  refused_entry(kernel + R"(, "n": 4, "d": 2)", ": forward/flash: M is missing");
  refused_entry(kernel + R"(, "n": [], "d": 2, "M": 100)", ", n is empty");
  refused_entry(R"("kernel": [])" + sizes, ", kernel is empty");
  refused_entry(kernel + sizes + R"(, "store": "tape")",
                ": forward/flash: store is 'tape': expected memory or disk");
  refused_entry(kernel + sizes + R"(, "given": "OL")", ": forward/flash takes no 'given'");
  for (const std::string size : {"0", "-4", "1.5", "null", "true", "[[4]]", "9223372036854775808",
                                 "\"1.5K\"", "\"\"", "\"-1\"", "\"0\"", "\"64KB\"", "\"4KiB\""}) {
    refused_entry(kernel + R"(, "d": 2, "M": 100, "n": )" + size, ", n");
  }
  for (const std::string M : {"\"L2\"", "\"L1*0.5\"", "\"auto\"", "\"3B\"", "0", "\"1K5\""}) {
    refused_entry(kernel + R"(, "d": 2, "n": 4, "M": )" + M, ", M");
  }
  refused_entry(kernel + R"(, "d": 2, "n": 4, "M": "L2")",
                ", M 'L2': a suite is for every machine: give words, or bytes");
}

TEST_F(SuiteCommand, RangesThatAreNone) {
  for (const std::string range :
       {R"({})", R"({"from": 1, "to": 4})", R"({"from": 1, "to": 4, "times": 2, "step": 2})",
        R"({"from": 1, "to": 4, "steps": 2})", R"({"to": 4, "step": 2})",
        R"({"from": 1, "step": 2})", R"({"from": 5, "to": 4, "step": 1})",
        R"({"from": 5, "to": 4, "times": 2})", R"({"from": 1, "to": 4, "times": 1})",
        R"({"from": 1, "to": 4, "times": 0.5})", R"({"from": 1, "to": 4, "times": -2})",
        R"({"from": 1, "to": 4, "times": "2"})", R"({"from": 1, "to": 4, "step": 0})",
        R"({"from": 0, "to": 4, "step": 1})", R"({"from": 1, "to": -4, "step": 1})",
        R"({"from": 1, "to": 1000000000, "step": 1})"}) {
    SCOPED_TRACE(range);
    refused_entry(R"("kernel": "forward/flash", "d": 2, "M": 100, "n": )" + range, ", n");
  }
  refused_entry(R"("kernel": "forward/flash", "d": {"from": 1, "to": 999, "step": 1}, "M": 100,
                   "n": {"from": 1, "to": 999, "step": 1})",
                " has more than 100000 points");
  refused_entry(R"("kernel": "*", "d": 2, "M": 100, "n": {"from": 1, "to": 90000, "step": 1})",
                ": more than 100000 points up to here");
}

// A pattern is read in time proportional to the name, not to the ways to split it. Each letter
// matches one part of the pattern only.
TEST_F(SuiteCommand, APatternOfManyStarsIsSoonRead) {
  refused_entry(R"("kernel": "forward/flash*sh", "n": 4, "d": 2, "M": 100)",
                ": no kernel is called");
  refused_entry(R"("kernel": "*****************************zz", "n": 4, "d": 2, "M": 100)",
                ": no kernel is called '\\*+zz'");
  EXPECT_EQ(points(R"({"how": "count", "points": [
      {"kernel": "**f*d/*la*s*h**", "n": 4, "d": 2, "M": 256}]})"),
            (Names{"forward/flash n=4 d=2 M=256"}));
}

TEST_F(SuiteCommand, WhatIsNone) {
  refused("{\n\"points\": [\n{]}", ", line 3, column 2");
  refused("", ", line 1, column 1");
  refused(R"({"points": [{"kernel": "forward/flash", "n": 4, "n": 5}]})",
          ": \"n\" is there twice in one object");
  refused("{\"points\": [1e400]}", " has a number that no machine holds");
  refused("[]", " is no suite: expected");
  refused("{}", " has no \"points\"");
  refused(R"({"points": []})", " has an empty list of \"points\": there is nothing to do");
  refused(R"({"points": {"kernel": "forward/flash"}})", " has no \"points\"");
  refused(R"({"points": [7]})", ", points 1 is no object: 7");
  refused(R"({"pionts": []})", ": \"pionts\": a suite has \"how\" and \"points\"");
  refused(R"({"how": "guess", "points": [1]})", ", how: \"guess\": expected run or count");
  refused(R"({"redblue": "recording", "points": []})", " has no \"schema\"");
  refused(R"({"redblue": "recipe", "schema": 1})", " is no recording");
}

// 60,000 levels of nesting, in every place that reads a document. No stack is that deep.
TEST_F(SuiteCommand, WhatIsNestedWithoutEnd) {
  const std::string deep = std::string(60'000, '[') + std::string(60'000, ']');
  refused(deep, " is nested deeper than 64 levels");
  refused(R"({"points": [)" + deep + "]}", " is nested deeper than 64 levels");
  for (const std::string line :
       {"check suite.json", "diff suite.json suite.json", "sweep suite.json -o swept"}) {
    directory_.write("suite.json", deep);
    expect_refused(process(line), 1, "suite.json is nested deeper than 64 levels");
  }
}

TEST_F(SuiteCommand, AMessageIsALineOfSomeLength) {
  const std::string long_text(100'000, 'x');
  for (const std::string& entry :
       {R"("n": ")" + long_text + "\"", R"("n": [[")" + long_text + "\"]]",
        R"("n": 4, "store": ")" + long_text + "\"", R"("n": 4, ")" + long_text + R"(": 1)"}) {
    directory_.write("suite.json", R"({"points": [{"kernel": "forward/flash", "d": 2, "M": 100, )" +
                                       entry + "}]}");
    const Outcome outcome = redblue("record suite.json");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_LT(outcome.err.size(), 400U) << outcome.err.substr(0, 1000);
  }
}

TEST_F(SuiteCommand, ControlCharactersReachNoTerminal) {
  refused("{\"points\": [{\"kernel\": \"a\\u001b[31m\\u0000\"}]}",
          "no kernel is called 'a\\\\x1b\\[31m\\\\x00'");
  const std::string name = "a\x1b[31m\n.json";
  Process missing = process("record");
  missing.words.push_back(name);
  expect_refused(missing, 1, "cannot read 'a\\\\x1b\\[31m\\\\x0a.json'");
}

TEST_F(SuiteCommand, IsAFileOrAPipe) {
  for (const std::string line :
       {"record /dev/zero", "sweep /dev/zero -o swept", "check /dev/zero"}) {
    expect_refused(process(line), 1, "/dev/zero is a device: expected a regular file or a pipe");
  }
  const std::string suite =
      R"({"points": [{"kernel": "forward/flash", "n": 4, "d": 2, "M": 100}]})";
  directory_.write("base.json", recorded(suite));
  const auto piped = [this](const std::string& line) {
    Process shell = process("");
    shell.words = {"/bin/sh", "-c", line, REDBLUE_COMMAND};
    return shell;
  };
  EXPECT_EQ(piped("cat suite.json | \"$0\" record -").run().out,
            content_of(directory_ / "base.json"));
  const Outcome checked = piped("cat base.json | \"$0\" check -").run();
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_EQ(checked.out, "this program\nagainst standard input: same, the only point\n");
  EXPECT_EQ(piped("cat base.json | \"$0\" diff - base.json").run().code, 0);
  EXPECT_EQ(piped("cat suite.json | \"$0\" sweep - -o swept").run().code, 0);
  expect_refused(piped("echo '{' | \"$0\" check -"), 1, "standard input is cut off or no JSON");
  expect_refused(piped("\"$0\" check - < /dev/zero"), 1, "standard input is a device");
  expect_refused(process("diff - -"), 2, "standard input is one recording");
}

// A suite also takes `sharing`. A point recorded as NAME-shared keeps that name.
TEST_F(SuiteCommand, SharesKeysAsAsked) {
  const auto recorded = [&](const std::string& kernel, const std::string& more) {
    directory_.write("suite.json", R"({"how": "run", "points": [{"kernel": ")" + kernel +
                                       R"(", "n": 17, "d": 4, "M": 2000)" + more + "}]}");
    return Json::parse(redblue("record suite.json").out)["points"].at(0);
  };
  const Json option = recorded("backward/rows", R"(, "sharing": "kv")");
  const Json spelling = recorded("backward/rows-shared", "");
  const Json apart = recorded("backward/rows", R"(, "sharing": "none")");
  EXPECT_EQ(option["total"], spelling["total"]);
  EXPECT_EQ(option["phases"], spelling["phases"]);
  EXPECT_EQ(option["least_M"], spelling["least_M"]);
  EXPECT_EQ(option["arguments"]["sharing"], "kv");
  EXPECT_EQ(spelling["kernel"], "backward/rows-shared");
  EXPECT_NE(option["total"], apart["total"]);
  EXPECT_FALSE(apart["arguments"].contains("sharing")) << "as it was recorded before";
}

// A pattern leaves out kernels that do not take the given members.
TEST_F(SuiteCommand, APatternMeansThoseThatTakeIt) {
  const auto entry = [](const std::string& kernels, const std::string& more) {
    return R"({"how": "count", "points": [{"kernel": )" + kernels +
           R"(, "n": 17, "d": 4, "M": 2000, )" + more + "}]}";
  };
  directory_.write("suite.json", entry(R"("backward/*")", R"("threads": 2)"));
  const Outcome some = redblue("record suite.json");
  EXPECT_EQ(some.code, 0) << some.err;
  EXPECT_TRUE(std::regex_search(
      some.err, std::regex("points 1, left out: .*backward/flash.* do not take threads as given")))
      << some.err;
  std::string takers;
  const Json taken = Json::parse(some.out)["points"];
  for (const Json& point : taken) {
    takers += point["kernel"].get<std::string>() + " ";
  }
  EXPECT_NE(takers.find("backward/rows "), std::string::npos) << takers;
  EXPECT_EQ(takers.find("backward/flash "), std::string::npos) << takers;

  // Some kernels do not have the member at all. Others accept only some of its values, and are
  // there with these.
  directory_.write("suite.json", entry(R"("*ward/rows")", R"("given": "nothing")"));
  const Outcome backward = redblue("record suite.json");
  EXPECT_EQ(backward.code, 0) << backward.err;
  EXPECT_NE(backward.err.find("forward/rows does not take given as given"), std::string::npos)
      << backward.err;
  EXPECT_EQ(points(entry(R"("backward/flas*")", R"("threads": [1, 2])")),
            Names{"backward/flash n=17 d=4 M=2000"});

  refused(entry(R"("backward/flas*")", R"("prefetch": 2, "threads": 2)"),
          "no kernel is left: backward/flash does not take threads as given");
  directory_.write("suite.json",
                   entry(R"(["backward/rows", "backward/flash"])", R"("threads": 2)"));
  expect_refused(process("record suite.json"), 1, "backward/flash .*threads 2");
}

// A recording is the same on every machine: it does not depend on instructions, caches or cores.
TEST_F(SuiteCommand, ARecordingHoldsNothingOfTheMachine) {
  const std::string suite = R"({"points": [
      {"kernel": ["backward/small", "backward/rows", "forward/*"], "n": [17, 20], "d": 4, "M": [9, 200]},
      {"kernel": ["forward/rows", "backward/rows"], "n": 33, "m": 20, "d": 4, "M": 250,
       "threads": [1, 2], "heads": [1, 3]},
      {"kernel": ["forward/rows", "backward/rows"], "n": 33, "m": 20, "d": 4, "M": 250,
       "store": ["memory", "disk"], "prefetch": [1, 2]},
      {"kernel": "backward/large", "n": 33, "d": 4, "M": 250, "store": ["memory", "disk"]},
      {"kernel": ["backward/auto", "backward/rows"], "n": 33, "m": 20, "d": 4, "M": 250,
       "given": ["OL", "nothing"]}]})";
  const std::string text = recorded(suite);
  for (const std::string& more : {std::string("REDBLUE_SIMD=SSE4"), kSixCores}) {
    EXPECT_EQ(recorded(suite, more), text) << more;
  }
  EXPECT_EQ(recorded(text), text) << "recorded again from the recording";
  directory_.write("base.json", text);
  EXPECT_EQ(redblue("check base.json --jobs 4").code, 0);
  EXPECT_EQ(redblue("REDBLUE_SIMD=SSE4 check base.json --jobs 1").code, 0);

  // The place of slow memory and the number of workers do not change the reads of a total.
  const Json points = Json::parse(text)["points"];
  for (const Json& point : points) {
    if (point["arguments"].contains("store")) {
      Json in_memory = point["arguments"];
      in_memory.erase("store");
      const auto same = std::ranges::find_if(points, [&](const Json& other) {
        return other["kernel"] == point["kernel"] && other["arguments"] == in_memory;
      });
      ASSERT_NE(same, points.end());
      EXPECT_EQ((*same)["phases"], point["phases"]);
    }
  }
}

// The options of a plan mean the same in a suite as on a command line.
TEST_F(SuiteCommand, TakesOptionsOfThePlan) {
  for (const auto& [keys, flags] :
       {std::pair(R"("blocks": "Br=7,Bc=3")", "--blocks Br=7,Bc=3"),
        std::pair(R"("word": 2, "sums": 4)", "--word 2 --sums 4"),
        std::pair(R"("objective": "time")", "--objective time"),
        std::pair(R"("softmax_scale": "0.5")", "--softmax-scale 0.5")}) {
    const std::string suite = fmt::format(
        R"({{"how": "count", "points": [{{"kernel": "attention/rows", "n": 40, "d": 8, "M": 900, {}}}]}})",
        keys);
    directory_.write("options.json", suite);
    const Json point = Json::parse(redblue("record options.json").out)["points"][0];
    const Json count =
        json(fmt::format("count attention/rows --n 40 --d 8 --M 900 {}", flags))["formula"];
    EXPECT_EQ(point["total"]["reads"], count["reads"]) << keys;
    EXPECT_EQ(point["total"]["writes"], count["writes"]) << keys;
  }
}
// A formula counts exactly the words of the run: the two recordings differ only in the word "count"
// or "run".

TEST_F(SuiteCommand, ACountIsARun) {
  const std::string entries = R"("points": [{"kernel": ["forward/*", "backward/*"], "n": [9, 17],
      "m": 12, "d": 5, "M": [3, 5, 40, 200]}]})";
  std::string counted = recorded(R"({"how": "count", )" + entries);
  const std::string ran = recorded("{" + entries);
  counted.replace(counted.find("\"count\""), 7, "\"run\"");
  EXPECT_EQ(counted, ran);
}

TEST_F(SuiteCommand, APointThatDoesNotFitHasItsLeastM) {
  const auto at = [&](Index M) {
    return Json::parse(recorded(
        fmt::format(R"({{"points": [{{"kernel": "backward/large", "n": 9, "d": 5, "M": {}}}]}})",
                    M)))["points"][0];
  };
  const Json none = at(1);
  EXPECT_EQ(none["fits"], false);
  EXPECT_FALSE(none.contains("total"));
  const Index least = none["least_M"];
  EXPECT_EQ(least, tested_kernel("backward/large").least_M({9, 9, 5}));
  EXPECT_EQ(at(least - 1)["fits"], false);
  EXPECT_GT(at(least)["total"]["reads"], 0);
  EXPECT_LE(at(least)["total"]["peak"], least);
}

}  // namespace
}  // namespace redblue
