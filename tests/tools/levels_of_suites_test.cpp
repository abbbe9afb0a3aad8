// Tests several levels of fast memory in suites. Sweeps, baselines, reports, pictures and traces
// hold the words of each level that `redblue count` and `run` print for the same point.

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/json.hpp"
#include "tests/support/svg.hpp"

namespace redblue {
namespace {

class LevelsOfSuites : public Cli {
 protected:
  void done(const std::string& line) const {
    const Outcome outcome = redblue(line);
    ASSERT_EQ(outcome.code, 0) << line << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    return content_of(directory_ / name);
  }
  void write_suite(const std::string& points, const std::string& how = "count") const {
    directory_.write("suite.json", fmt::format(R"({{"how": "{}", "points": [{}]}})", how, points));
  }
  void refused(const std::string& entry, const std::string& message) const {
    write_suite(entry);
    for (const char* command : {"record suite.json -o out.json", "sweep suite.json -o out"}) {
      expect_refused(process(command), 1, "suite.json, points 1" + message);
    }
  }
};

// Points with one, two and three levels, some of them equal, and points of kernels that auto
// chooses.
constexpr const char* kPoints = R"(
    {"kernel": "forward/rows", "n": 40, "m": 31, "d": 6, "M": ["400,2K", "2K", "300,1K,4K"]},
    {"kernel": "backward/rows", "n": 40, "m": 31, "d": 6, "M": "500,2K", "given": ["OL", "nothing"]},
    {"kernel": ["backward/auto", "attention/auto"], "n": 40, "m": 31, "d": 6, "M": "1K,2K"},
    {"kernel": "attention/rows", "n": 40, "m": 31, "d": 6, "mask": "causal", "M": "2K,2K"})";

// Returns the arguments of `redblue count` for a point of a sweep. They ask for its forward pass if
// the point counts it.
std::string arguments_of(const Json& point) {
  const Json& arguments = point["arguments"];
  std::string levels;
  if (arguments.contains("inner")) {
    levels = arguments["inner"].get<std::string>() + ",";
  }
  return fmt::format("{} --n {} --m {} --d {} --mask {} --M {}{}",
                     point["kernel"].get<std::string>(), arguments["n"].dump(),
                     arguments["m"].dump(), arguments["d"].dump(),
                     arguments["mask"].get<std::string>(), levels, arguments["M"].dump());
}

std::map<std::string, Json> by_path(const Json& phases, const std::string& prefix,
                                    std::map<std::string, Json> found = {}) {
  for (const Json& phase : phases) {
    found[prefix + phase["path"].get<std::string>()] = phase;
  }
  return found;
}

// Every level of every phase has the words and the peak of `count`, and of `run` if the point was
// run.
TEST_F(LevelsOfSuites, HaveTheWordsOfCount) {
  for (const std::string how : {"count", "run"}) {
    SCOPED_TRACE(how);
    write_suite(kPoints, how);
    done("sweep suite.json -o " + how);
    const Json sweep = Json::parse(read(how + "/sweep.json"));
    ASSERT_EQ(sweep["points"].size(), 8U);
    for (const Json& point : sweep["points"]) {
      const std::string command = how + " " + arguments_of(point);
      SCOPED_TRACE(command);
      ASSERT_TRUE(point["fits"].get<bool>());
      const Json alone = json(command);
      const bool with_forward = point["arguments"].value("given", "OL") == "nothing";
      EXPECT_EQ(point.contains("levels"), alone.contains("levels"));
      EXPECT_EQ(point.contains("levels"), point["arguments"].contains("inner"));
      if (!alone.contains("levels")) {
        continue;
      }
      ASSERT_EQ(point["levels"].size(), alone["levels"].size());
      std::string all_M;
      for (std::size_t level = 0; level < alone["levels"].size(); ++level) {
        SCOPED_TRACE(level + 1);
        const Json& swept = point["levels"][level];
        const Json& counted = alone["levels"][level];
        EXPECT_EQ(swept["M"], counted["M"]);
        all_M += (level == 0 ? "" : "/") + counted["M"].dump();
        EXPECT_EQ(swept["bound"], counted["lower_bound"]["words"]);
        auto phases = by_path(counted["phases"], "");
        Index io = counted["total"]["io"].get<Index>();
        if (with_forward) {
          const Json& forward = alone["forward"]["levels"][level];
          phases = by_path(forward["phases"], "forward/", phases);
          io += forward["total"]["io"].get<Index>();
        }
        ASSERT_EQ(swept["phases"].size(), phases.size());
        for (const Json& phase : swept["phases"]) {
          const Json& same = phases.at(phase["path"].get<std::string>());
          for (const char* key : {"reads", "writes", "peak"}) {
            EXPECT_EQ(phase[key], same[key]) << phase["path"] << " " << key;
          }
          EXPECT_EQ(phase["formula"],
                    Json::array({same["formula"]["reads"], same["formula"]["writes"],
                                 same["formula"]["peak"]}))
              << phase["path"];
        }
        EXPECT_EQ(swept["total"]["reads"].get<Index>() + swept["total"]["writes"].get<Index>(), io);
      }
      EXPECT_EQ(point["M_levels"], all_M);
      EXPECT_EQ(point["levels"].back()["total"]["reads"], point["total"]["reads"]);
    }
  }
}

// The CSV has a row for each phase of each level, with the number of the level. M is the outermost
// level.
TEST_F(LevelsOfSuites, AreRowsOfCsv) {
  write_suite(kPoints);
  done("sweep suite.json -o out");
  const Json points = Json::parse(read("out/sweep.json"))["points"];
  const std::vector<CsvRow> rows = parse_csv(read("out/sweep.csv"));
  std::size_t row = 0;
  for (const Json& point : points) {
    const auto expect_rows = [&](const Json& level, std::size_t number) {
      Json phases = level["phases"];
      phases.push_back(level["total"]);
      for (const Json& phase : phases) {
        const CsvRow& line = rows.at(row++);
        EXPECT_EQ(line.at("phase"), phase.value("path", "total"));
        EXPECT_EQ(line.at("reads"), phase["reads"].dump());
        EXPECT_EQ(line.at("peak"), phase["peak"].dump());
        EXPECT_EQ(line.at("M"), point["arguments"]["M"].dump());
        EXPECT_EQ(line.at("level"), std::to_string(number));
        EXPECT_EQ(line.at("M_levels"), point.value("M_levels", ""));
      }
    };
    const std::size_t levels = point.contains("levels") ? point["levels"].size() : 1;
    expect_rows(point, levels);
    for (std::size_t level = 1; level < levels; ++level) {
      expect_rows(point["levels"][level - 1], level);
    }
  }
  EXPECT_EQ(row, rows.size());
  EXPECT_FALSE(rows.front().contains("inner"));
  // A sweep without levels has no such columns.
  write_suite(R"({"kernel": "forward/rows", "n": 40, "d": 6, "M": "2K"})");
  done("sweep suite.json -o one");
  EXPECT_FALSE(parse_csv(read("one/sweep.csv")).front().contains("level"));
}

// The member "inner" lists the levels below M, as an element of M can do.
TEST_F(LevelsOfSuites, AreBesideARangeToo) {
  const auto points = [&](const std::string& levels) {
    write_suite(R"({"kernel": "forward/rows", "n": 40, "d": 6, )" + levels + "}");
    const Outcome outcome = redblue("record suite.json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  const std::string listed = points(R"("M": ["512,2K,4K", "512,2K,8K"])");
  const std::string range = R"("M": {"from": "4K", "to": "8K", "times": 2}, )";
  EXPECT_EQ(points(range + R"("inner": "512,2K")"), listed);
  EXPECT_EQ(points(range + R"("inner": [512, "8KiB"])"), listed);
  EXPECT_EQ(points(range + R"("inner": "512")"), points(R"("M": ["512,4K", "512,8K"])"));
}

TEST_F(LevelsOfSuites, AreRefusedWhereTheyAreNone) {
  const auto entry = [](const std::string& levels, const std::string& kernel = "forward/rows") {
    return fmt::format(R"({{"kernel": "{}", "n": 40, "d": 6, {}}})", kernel, levels);
  };
  refused(entry(R"("M": ["1K,8K", "8K,4K"])"),
          ": M 8192,4096: level 1 has 8192 words, and the next 4096: give the inner level first, "
          "each smaller than the next, or all equal");
  refused(entry(R"("M": "1K,2K,2K")"), ": M 1024,2048,2048: level 2 has 2048 words");
  refused(entry(R"("M": "8K,")"), ", M '8K,': .* is not a positive whole number");
  refused(entry(R"("M": ",8K")"), ", M ',8K': .* is not a positive whole number");
  refused(entry(R"("M": "L1,8K")"), ", M 'L1,8K' 'L1': a suite is for every machine");
  refused(entry(R"("M": "1K,2K", "inner": 512)"), ", inner: M is '1024,2048', which names inner");
  refused(entry(R"("M": "2K", "inner": [])"), ", inner is empty");
  refused(entry(R"("M": {"from": "1K", "to": "4K", "times": 2}, "inner": "2K")"),
          ": M 2048,1024: level 1 has 2048 words");
  refused(entry(R"("M": "1K,2K")", "backward/small"),
          ", M: backward/small has one level of fast memory; .*forward/rows, .* have several");
  // A pattern leaves out kernels that have only one level.
  write_suite(entry(R"("M": "1K,2K")", "forward/*"));
  const Outcome outcome = redblue("record suite.json -o base.json");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("do not take several levels of M as given"), std::string::npos)
      << outcome.err;
}

// One word more or fewer at level 1 alone fails the check, which names the level and the phase. A
// difference in the total of the level fails it too. A tolerance for the phase hides its difference
// and the change of the total that follows.
TEST_F(LevelsOfSuites, AWordOfOneLevelIsADifference) {
  write_suite(kPoints, "run");
  done("record suite.json -o base.json");
  EXPECT_EQ(data("check base.json"), "this program\nagainst base.json: same, all 8 points\n");
  const auto baseline = nlohmann::ordered_json::parse(read("base.json"));
  for (const Index change : {Index{1}, Index{-1}}) {
    for (const std::size_t level : {1U, 2U}) {
      auto edited = baseline;  // point 2 has three levels
      auto& words = edited["points"][2]["inner"][level - 1]["phases"][1];
      ASSERT_EQ(words["path"], "core");
      const Index now = words["reads"].get<Index>();
      words["reads"] = now + change;
      directory_.write("edited.json", edited.dump());
      const Outcome json = redblue("check edited.json --format json");
      EXPECT_EQ(json.code, 3);
      const Json found = Json::parse(json.out)["differences"];
      ASSERT_EQ(found.size(), 1U);
      EXPECT_EQ(found[0]["level"], level);
      EXPECT_EQ(found[0]["phase"], "core");
      EXPECT_EQ(found[0]["metric"], "reads");
      EXPECT_EQ(found[0]["before"], now + change);
      EXPECT_EQ(found[0]["after"], now);
      const Outcome table = redblue("check edited.json");
      EXPECT_EQ(table.code, 3);
      EXPECT_NE(table.out.find(fmt::format("level {}, core   reads", level)), std::string::npos)
          << table.out;
      const std::vector<CsvRow> rows = parse_csv(redblue("check edited.json --format csv").out);
      ASSERT_EQ(rows.size(), 1U);
      EXPECT_EQ(rows[0].at("level"), std::to_string(level));
      // The total changes as well. The hidden change of the phase explains it.
      auto& total = edited["points"][2]["inner"][level - 1]["total"]["reads"];
      total = total.get<Index>() + change;
      directory_.write("edited.json", edited.dump());
      EXPECT_EQ(redblue("check edited.json").code, 3);
      EXPECT_EQ(redblue("check edited.json --tolerance core:reads=1").code, 0);
      EXPECT_EQ(redblue("check edited.json --tolerance S:reads=1").code, 3);
    }
  }
  // A baseline without a level of the point does not agree.
  auto edited = baseline;
  edited["points"][0].erase("inner");
  directory_.write("edited.json", edited.dump());
  const Outcome outcome = redblue("check edited.json");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.out.find("level 1, core"), std::string::npos) << outcome.out;
}

// Parts with levels merge into the whole sweep, byte for byte. Two parts that differ at level 1 are
// refused.
TEST_F(LevelsOfSuites, PartsAreTheWhole) {
  write_suite(kPoints);
  done("sweep suite.json -o whole --jobs 1");
  done("record suite.json -o base.json");
  std::string directories, recordings;
  for (int part = 1; part <= 3; ++part) {
    done(fmt::format("sweep suite.json --part {0}/3 -o part.{0}", part));
    done(fmt::format("record suite.json --part {0}/3 -o part.{0}.json", part));
    directories += fmt::format("part.{} ", part);
    recordings += fmt::format("part.{}.json ", part);
  }
  done("merge " + directories + "-o merged");
  done("merge " + recordings + "-o merged.json");
  for (const char* file : {"/sweep.csv", "/sweep.json", "/points.jsonl"}) {
    EXPECT_TRUE(read(std::string("whole") + file) == read(std::string("merged") + file)) << file;
  }
  EXPECT_EQ(read("merged.json"), read("base.json"));

  std::string lines = read("part.1/points.jsonl");
  const std::size_t core = lines.find("core", lines.find("\"levels\""));
  const std::size_t reads = lines.find("\"reads\":", core) + 8;
  lines.insert(reads, "1");
  directory_.write("other/points.jsonl", lines);
  expect_refused(process("merge part.1 other part.2 part.3 -o none"), 1,
                 "part.1 and other differ at [a-z]+/rows.*: level 1, core reads");
}

// A sweep that continues after an interruption keeps the levels.
TEST_F(LevelsOfSuites, AreKept) {
  write_suite(kPoints);
  done("sweep suite.json -o whole --jobs 1");
  const std::string journal = read("whole/points.jsonl");
  std::size_t end = 0;
  for (int line = 0; line < 4; ++line) {
    end = journal.find('\n', end) + 1;
  }
  directory_.write("begun/points.jsonl", journal.substr(0, end));
  const Outcome outcome = redblue("sweep suite.json -o begun");
  EXPECT_NE(outcome.err.find("3 of 8 points were there"), std::string::npos) << outcome.err;
  EXPECT_TRUE(read("begun/sweep.csv") == read("whole/sweep.csv"));
  EXPECT_TRUE(read("begun/sweep.json") == read("whole/sweep.json"));
}

// The page has a row for each level, and says where a count at level 1 contradicts its formula.
TEST_F(LevelsOfSuites, AreInAReport) {
  write_suite(kPoints, "run");
  done("sweep suite.json -o out");
  EXPECT_EQ(redblue("PATH=/nowhere report out -o page.html").code, 0);
  std::string page = read("page.html");
  EXPECT_NE(page.find("Formula and count agree"), std::string::npos);
  const std::size_t begin = page.find("<section id=\"levels\">");
  ASSERT_NE(begin, std::string::npos);
  const std::string section = page.substr(begin, page.find("</section>", begin) - begin);
  std::size_t rows = 0, expected = 0;
  for (std::size_t at = 0; (at = section.find("<tr><th scope=\"row\">", at)) != std::string::npos;
       ++at) {
    ++rows;
  }
  Json sweep = Json::parse(read("out/sweep.json"));
  for (const Json& point : sweep["points"]) {
    expected += point.contains("levels") ? point["levels"].size() : 0;
  }
  EXPECT_EQ(rows, expected);

  Json& core = sweep["points"][0]["levels"][0]["phases"][1];
  core["reads"] = core["reads"].get<Index>() + 1;
  directory_.write("out/sweep.json", sweep.dump());
  EXPECT_EQ(redblue("PATH=/nowhere report out -o page.html").code, 0);
  EXPECT_NE(read("page.html").find("level 1, core: "), std::string::npos);
}

// Returns the code blocks of the section on levels in docs/gate.md.
std::vector<std::string> blocks_of_the_page() {
  const std::string page =
      content_of(std::filesystem::path(REDBLUE_SOURCE_DIR) / "docs" / "gate.md");
  const std::size_t begin = page.find("\n## Levels of fast memory\n");
  const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
  std::vector<std::string> blocks;
  for (std::size_t at = section.find("\n```"); at != std::string::npos;) {
    const std::size_t first = section.find('\n', at + 1) + 1;
    const std::size_t end = section.find("\n```", first);
    blocks.push_back(section.substr(first, end + 1 - first));
    at = section.find("\n```", end + 1);
  }
  return blocks;
}

// The page shows the output of `check` for its suite, after level 1 reads 256 words more than the
// baseline.
TEST_F(LevelsOfSuites, Documentation) {
  const std::vector<std::string> blocks = blocks_of_the_page();
  ASSERT_EQ(blocks.size(), 2U);
  directory_.write("suite.json", blocks[0]);
  done("record suite.json -o baseline.json");
  auto baseline = nlohmann::ordered_json::parse(read("baseline.json"));
  auto& core = baseline["points"][0]["inner"][0]["phases"][1];
  ASSERT_EQ(core["path"], "core");
  core["reads"] = core["reads"].get<Index>() - 256;
  directory_.write("baseline.json", baseline.dump());
  const Outcome outcome = redblue("check baseline.json");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(blocks[1], "$ redblue check baseline.json\n" + outcome.out);
}

using LevelsOfSuitesPictures = LevelsOfSuites;

// The picture has a curve for each level, and the bound. A report of such a sweep has the picture.
TEST_F(LevelsOfSuitesPictures, AreDrawn) {
  write_suite(R"({"kernel": ["forward/rows", "backward/rows"], "n": 128, "d": 8,
                  "M": ["512,16K", "1K,16K", "2K,16K"]})");
  done("sweep suite.json -o out");
  const auto texts = [&](const std::string& line) {
    const Outcome outcome = redblue(line + " -o picture.svg");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return svg_texts(read("picture.svg"));
  };
  const std::vector<std::string> drawn = texts("plot levels out --kernel forward/rows");
  for (const char* text :
       {"level 1", "level 2", "lower bound", "M of the level, words", "words over the lower bound",
        "Words of forward/rows at each level of fast memory: n = m = 128, d = 8"}) {
    EXPECT_NE(std::ranges::find(drawn, text), drawn.end()) << text;
  }
  EXPECT_EQ(texts("plot levels out --kernel forward/rows --where inner=512,n=128").size(),
            texts("plot levels out --kernel forward/rows --where inner=512").size());
  EXPECT_EQ(redblue("report out -o page.html").code, 0);
  EXPECT_NE(read("page.html").find("Words of backward/rows at each level of fast memory"),
            std::string::npos);

  expect_refused(process("plot levels out -o none.svg"), 2, "--kernel is missing: the sweep has");
  write_suite(R"({"kernel": "forward/rows", "n": 128, "d": [8, 9], "M": ["512,16K", "1K,16K"]})");
  done("sweep suite.json -o two");
  expect_refused(process("plot levels two -o none.svg"), 2, "two varies in d \\(8, 9\\): name one");
  write_suite(R"({"kernel": "forward/rows", "n": 128, "d": 8, "M": "16K"})");
  done("sweep suite.json -o one");
  expect_refused(process("plot levels one -o none.svg"), 2, "has no such points of several levels");
}

// A trace has a track and a counter for each level. The slices add up to the words that `run`
// counts. The counter reaches the peak, never exceeds M, and ends at 0.
TEST_F(LevelsOfSuites, AreTraced) {
  for (const std::string problem :
       {"forward/rows --n 40 --d 6 --M 400,2K", "backward/rows --n 30 --d 5 --M 300,1K,4K",
        "attention/rows --n 33 --m 20 --d 4 --mask causal --M 200,1K"}) {
    SCOPED_TRACE(problem);
    const Json run = json("run " + problem);
    EXPECT_EQ(data("trace " + problem + " --out trace.json"), "");
    const Json trace = Json::parse(read("trace.json"));
    const Json& levels = trace["otherData"]["levels"];
    ASSERT_EQ(levels.size(), run["levels"].size());
    for (std::size_t level = 0; level < levels.size(); ++level) {
      SCOPED_TRACE(level + 1);
      const bool own = level + 1 == levels.size();
      const Json& total = run["levels"][level]["total"];
      EXPECT_EQ(levels[level]["M"], run["levels"][level]["M"]);
      for (const char* key : {"reads", "writes", "io", "peak"}) {
        EXPECT_EQ(levels[level]["total"][key], total[key]) << key;
      }
      const int track = own ? 100 : 101 + static_cast<int>(level);
      const std::string counter = own ? "fast memory" : fmt::format("level {}", level + 1);
      std::map<std::string, Index> words;
      Index live = -1, peak = 0;
      for (const Json& event : trace["traceEvents"]) {
        if (event["ph"] == "X" && event["tid"] == track) {
          EXPECT_EQ(event["dur"], event["args"]["words"]);
          words[event["cat"].get<std::string>()] += event["args"]["words"].get<Index>();
        } else if (event["ph"] == "C" && event["name"] == counter) {
          live = 0;
          for (const auto& [name, now] : event["args"].items()) {
            live += now.get<Index>();
          }
          peak = std::max(peak, live);
        }
      }
      EXPECT_EQ(words["read"], total["reads"].get<Index>());
      EXPECT_EQ(words["write"], total["writes"].get<Index>());
      EXPECT_EQ(peak, total["peak"].get<Index>());
      EXPECT_EQ(live, 0);
    }
  }
}

}  // namespace
}  // namespace redblue
