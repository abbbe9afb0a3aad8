// Tests record, check and diff as a person types them: recordings that pass the gate, and
// recordings that fail.

#include <functional>
#include <regex>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/json.hpp"

namespace redblue {
namespace {

// Keeps the arguments in the recorded order.
using Ordered = nlohmann::ordered_json;

class GateCommand : public Cli {
 protected:
  // Two kernels in two sizes of fast memory: four points.
  void SetUp() override {
    record(R"({"points": [{"kernel": ["backward/small", "forward/flash"],
                           "n": 17, "m": 12, "d": 5, "M": [150, 300]}]})");
  }

  // Writes base.json.
  void record(const std::string& suite) const {
    directory_.write("suite.json", suite);
    const Outcome outcome = redblue("record suite.json -o base.json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(std::regex_match(outcome.err, std::regex("redblue: \\d+ points? recorded.*\n")))
        << outcome.err;
  }

  [[nodiscard]] std::string baseline() const { return content_of(directory_ / "base.json"); }

  // Writes edited.json: the baseline with a change.
  void edit(const std::function<void(Ordered& points)>& change) const {
    auto document = Ordered::parse(baseline());
    change(document["points"]);
    directory_.write("edited.json", document.dump());
  }

  // Checks edited.json, which must differ, and returns the first difference. The table must say the
  // same.
  [[nodiscard]] Json culprit() const {
    const Outcome outcome = redblue("check edited.json --format json");
    EXPECT_EQ(outcome.code, 3);
    EXPECT_EQ(outcome.err, "");
    const Json json = Json::parse(outcome.out);
    EXPECT_FALSE(json["same"].get<bool>());
    EXPECT_EQ(json["different"], 1);
    const Outcome table = redblue("check edited.json");
    EXPECT_EQ(table.code, 3);
    EXPECT_NE(table.out.find("DIFFERENT, 1 of 4 points\n"), std::string::npos) << table.out;
    return json["differences"].empty() ? Json() : json["differences"][0];
  }
};

TEST_F(GateCommand, WhatWasRecordedIsTheSame) {
  EXPECT_EQ(data("check base.json"), "this program\nagainst base.json: same, all 4 points\n");
  EXPECT_EQ(data("diff base.json base.json"), "base.json\nagainst base.json: same, all 4 points\n");
  EXPECT_EQ(redblue("record suite.json").out, baseline()) << "without -o, to standard output";
}

// In every phase and in the total, for every metric, a baseline that differs by one word fails.
TEST_F(GateCommand, AWordMoreOrFewerIsADifference) {
  const Json points = Json::parse(baseline())["points"];
  for (const char* metric : {"reads", "writes", "index_reads", "peak"}) {
    for (std::size_t k = 0; k <= points[0]["phases"].size(); ++k) {
      for (const Index change : {Index{1}, Index{-1}}) {
        const bool total = k == points[0]["phases"].size();
        Index recorded = 0;
        edit([&](Ordered& edited) {
          Ordered& part = total ? edited[0]["total"] : edited[0]["phases"][k];
          recorded = part.value(metric, Index{0}) + change;  // absent if no index is read
          part[metric] = recorded;
        });
        if (recorded < 0) {
          continue;
        }
        const Json found = culprit();
        EXPECT_EQ(found["kernel"], "backward/small");
        EXPECT_EQ(found["arguments"], points[0]["arguments"]);
        EXPECT_EQ(found["kind"], "words");
        EXPECT_EQ(found["phase"], total ? Json() : points[0]["phases"][k]["path"]);
        EXPECT_EQ(found["metric"], metric);
        EXPECT_EQ(found["before"], recorded);
        EXPECT_EQ(found["after"], recorded - change);
      }
    }
  }
}

TEST_F(GateCommand, NamesWhatChangedMostFirst) {
  edit([](Ordered& points) {
    Ordered& point = points[1];
    for (const Index k : {0, 3}) {
      Ordered& reads = point["phases"][static_cast<std::size_t>(k)]["reads"];
      reads = reads.get<Index>() - 1 - k;
      point["total"]["reads"] = point["total"]["reads"].get<Index>() - 1 - k;
    }
  });
  EXPECT_EQ(culprit()["phase"], Json::parse(baseline())["points"][1]["phases"][3]["path"]);
  EXPECT_TRUE(std::regex_search(
      redblue("check edited.json").out,
      std::regex("\nbackward/small n=17 m=12 d=5 M=300 +phase2/h +reads +[0-9]+ +[0-9]+ +\\+4 ")))
      << redblue("check edited.json").out;
}

// The command at the end of a report accepts the differences. After it is pasted into a shell with
// a reason, the next check passes.
TEST_F(GateCommand, TheCommandThatAcceptsIsOne) {
  edit([](Ordered& points) {
    for (Ordered* part : {&points[1]["phases"][0], &points[1]["total"], &points[2]["phases"][0],
                          &points[2]["total"]}) {
      (*part)["reads"] = (*part)["reads"].get<Index>() - 2;
    }
  });
  const std::string said = redblue("check edited.json").out;
  const std::size_t at = said.find("\nto accept: redblue check edited.json ");
  ASSERT_NE(at, std::string::npos) << said;
  Process shell = process("");
  shell.words = {"/bin/sh", "-ec",
                 "redblue() { " REDBLUE_COMMAND " \"$@\" --who me; }\n" + said.substr(at + 12)};
  const Outcome accepted = shell.run();
  EXPECT_EQ(accepted.code, 0) << accepted.err;
  EXPECT_EQ(data("check edited.json"), "this program\nagainst edited.json: same, all 4 points\n");
  EXPECT_EQ(redblue("check edited.json --part 1/2").out.find("to accept"), std::string::npos);
}

// Annotations name the line of the suite entry that asks for the point, or the line of the
// baseline.
TEST_F(GateCommand, AnnotationsNameALine) {
  record(
      "{\"points\": [  // of two entries\n"
      "  {\"kernel\": \"forward/flash\", \"n\": 17, \"d\": 5, \"M\": 300},\n\n"
      "  {\"kernel\": [\"forward/flash\", \"backward/small\"],\n"
      "   \"n\": 17, \"d\": 5, \"M\": 300}\n]}\n");
  const std::string text = baseline();
  directory_.write("edited.json",
                   std::regex_replace(text, std::regex("(\"peak\": ?)[0-9]+"), "$011"));
  const std::string of_suite = redblue("check edited.json --suite suite.json --format github").out;
  EXPECT_TRUE(std::regex_search(
      of_suite, std::regex("::error file=suite.json,line=2,title=redblue%3A forward/flash ")))
      << of_suite;
  EXPECT_TRUE(std::regex_search(
      of_suite, std::regex("::error file=suite.json,line=4,title=redblue%3A backward/small ")))
      << of_suite;
  std::vector<std::string> lines;  // lines of the baseline, from 1
  std::istringstream in("\n" + content_of(directory_ / "edited.json"));
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  for (const std::string line : {"check edited.json", "diff base.json edited.json"}) {
    const std::string found = redblue(line + " --format github").out;
    const std::regex place("::error file=edited.json,line=([0-9]+),title=redblue%3A ([a-z/]+) ");
    int points = 0;
    for (std::sregex_iterator at(found.begin(), found.end(), place), end; at != end; ++at) {
      const std::size_t k = std::stoul((*at)[1]);
      ASSERT_LT(k, lines.size());
      EXPECT_NE(lines[k].find((*at)[2].str()), std::string::npos) << lines[k];
      ++points;
    }
    EXPECT_EQ(points, 2) << found;
  }
  expect_refused(process("check edited.json --suite gone.json"), 1, "cannot read 'gone.json'");
}

TEST_F(GateCommand, PhasesThatCameAndWent) {
  edit([](Ordered& points) { points[2]["phases"].erase(0); });
  EXPECT_EQ(culprit()["kind"], "phase_new");
  edit([](Ordered& points) { points[2]["phases"][0]["path"] = "renamed"; });
  const Json found = culprit();
  EXPECT_EQ(found["kind"], "phase_gone");
  EXPECT_EQ(found["phase"], "renamed");
}

TEST_F(GateCommand, LeastMAndWhatFits) {
  edit([](Ordered& points) { points[0]["least_M"] = points[0]["least_M"].get<Index>() - 1; });
  EXPECT_EQ(culprit()["metric"], "least_M");
  edit([](Ordered& points) { points[0]["fits"] = false; });
  EXPECT_EQ(culprit()["kind"], "fits_now");
  edit([](Ordered& points) { points[0]["arguments"]["M"] = 1; });
  EXPECT_EQ(culprit()["kind"], "no_longer_fits");
}

// A point that no longer exists is reported as gone, with the reason. The other points are checked
// all the same.
TEST_F(GateCommand, KernelsAndArgumentsThatAreNoMore) {
  const auto gone = [&](const std::string& why) {
    const Json found = culprit();
    EXPECT_EQ(found["kind"], "gone");
    EXPECT_NE(found["text"].get<std::string>().find(why), std::string::npos) << found;
    EXPECT_NE(redblue("check edited.json").out.find(why), std::string::npos);
  };
  edit([](Ordered& points) { points[3]["kernel"] = "forward/flush"; });
  gone("no kernel is called 'forward/flush': did you mean forward/flash or ");
  edit([](Ordered& points) { points[3]["arguments"]["shards"] = 2; });
  gone("forward/flash takes no 'shards': it takes n, m, d, M, threads, ");
  edit([](Ordered& points) { points[3]["arguments"]["store"] = "tape"; });
  gone("store is 'tape': expected memory or disk");
  edit([](Ordered& points) { points[3]["arguments"].erase("d"); });
  gone("forward/flash: d is missing");
  edit([](Ordered& points) { points[3]["arguments"]["n"] = 0; });
  gone("n is '0': expected a size of at least 1");
}

TEST_F(GateCommand, WhatIsNoBaselineIsRefused) {
  const auto refused = [&](const std::string& text, const std::string& message) {
    directory_.write("bad.json", text);
    expect_refused(process("check bad.json"), 1, message);
    expect_refused(process("diff base.json bad.json"), 1, message);
    expect_refused(process("diff bad.json base.json"), 1, message);
  };
  const std::string whole = baseline();
  refused("", "bad.json is cut off or no JSON, at byte");
  refused(whole.substr(0, whole.size() / 2), "bad.json is cut off or no JSON, at byte");
  refused("{}", "bad.json is no recording");
  Json other = Json::parse(whole);
  other["schema"] = 2;
  refused(other.dump(), "bad.json has schema 2; this program reads 1: record it again");
  other["schema"] = 1;
  other["points"] = Json::array();
  refused(other.dump(), "bad.json has no points");
  refused(content_of(directory_ / "suite.json"), "bad.json is no recording");
  for (const std::string line : {"check gone.json", "diff base.json gone.json",
                                 "diff gone.json base.json", "record gone.json"}) {
    expect_refused(process(line), 1, "cannot read 'gone.json': No such file or directory");
  }
  expect_refused(process("check ."), 1, "cannot read '.': Is a directory");
}

// A point that can no longer run is a difference, and does not hide other differences.
TEST_F(GateCommand, APointThatFailsIsADifference) {
  edit([](Ordered& points) {
    points[0]["arguments"]["threads"] = 3;  // backward/small cannot be split
  });
  const Json first = culprit();
  EXPECT_EQ(first["kind"], "failed");
  EXPECT_NE(first["text"].get<std::string>().find("threads"), std::string::npos) << first;
}

TEST_F(GateCommand, WhatIsComparedIsNotWrittenOver) {
  const std::string before = baseline();
  expect_refused(process("check base.json --also json=./base.json"), 2, "this file is read");
  expect_refused(process("diff base.json base.json --also csv=base.json"), 2, "this file is read");
  EXPECT_EQ(baseline(), before);
}

// Every format gives the reason, because a developer needs it.
TEST_F(GateCommand, WhatNoLongerFitsSaysWhy) {
  edit([](Ordered& points) { points[0]["arguments"]["M"] = 1; });
  for (const std::string form : {"table", "json", "csv", "markdown", "github", "junit"}) {
    const Outcome outcome = redblue("check edited.json --format " + form);
    EXPECT_EQ(outcome.code, 3);
    EXPECT_TRUE(std::regex_search(outcome.out, std::regex("backward/small needs|M = 1")))
        << form << outcome.out;
  }
}

TEST_F(GateCommand, AToleranceOfAMetricIsGivenOnce) {
  for (const std::string given : {"reads=100%,reads=0", "p:reads=1,reads=1,p:reads=2"}) {
    expect_refused(process("check base.json --tolerance " + given), 2,
                   "--tolerance .*reads=.: .*reads=.* says how far this may move: leave one");
  }
  EXPECT_EQ(redblue("check base.json --tolerance reads=1,phase1/S:reads=2,writes=1").code, 0);
}

// A mistyped phase in a tolerance is reported, and hides no difference.
TEST_F(GateCommand, AToleranceOfNoPhaseIsSaid) {
  const Outcome outcome = redblue("check base.json --tolerance phase1/s:reads=1");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "redblue: --tolerance phase1/s:reads=1: no point has this phase\n");
  EXPECT_EQ(redblue("check base.json --tolerance phase1/S:reads=1,total:peak=1").err, "");
}

TEST_F(GateCommand, MisuseIsRefusedBeforeAnythingIsRead) {
  for (const std::string command : {"check gone.json", "diff gone.json gone.json"}) {
    for (const std::string option : {"--format xml", "--also xml=x"}) {
      expect_refused(process(command + " " + option), 2,
                     "expected one of table, json, csv, markdown, github, junit, "
                     "customSmallerIsBetter, bmf");
    }
    for (const std::string option : {"--also json", "--also json="}) {
      expect_refused(process(command + " " + option), 2, "expected FORM=FILE");
    }
    expect_refused(process(command + " --also json=x --also csv=./x"), 2,
                   "--also 'csv=./x': this file is read, or another form goes there");
    for (const std::string tolerance : {"reads", "reads=x", "moves=1", "reads=1,", "reads=--1%",
                                        "reads=1000001%", "reads=1e308%", "reads=nan%"}) {
      expect_refused(process(command + " --tolerance " + tolerance), 2,
                     "--tolerance '.*': expected \\[PHASE:\\]METRIC=WORDS");
    }
  }
  for (const std::string jobs : {"0", "-1", "257", "many"}) {
    expect_refused(process("check base.json --jobs " + jobs), 2, "--jobs");
    expect_refused(process("record suite.json --jobs " + jobs), 2, "--jobs");
  }
  for (const std::string line : {"check", "record", "diff base.json", "check base.json more"}) {
    expect_refused(process(line), 2, "--help");
  }
}

TEST_F(GateCommand, AToleranceHidesAndSaysSo) {
  edit([](Ordered& points) {
    for (Ordered* part : {&points[0]["phases"][0], &points[0]["total"]}) {
      (*part)["reads"] = (*part)["reads"].get<Index>() - 2;
    }
  });
  EXPECT_EQ(redblue("check edited.json --tolerance reads=1").code, 3);
  for (const std::string tolerance :
       {"--tolerance reads=2", "--tolerance phase1/S:reads=2", "--tolerance writes=1,reads=5%",
        "--tolerance writes=1 --tolerance reads=2"}) {
    const std::string said = data("check edited.json " + tolerance);
    EXPECT_NE(said.find("same, all 4 points; 2 differences hidden by tolerances\n"),
              std::string::npos)
        << said;
    EXPECT_TRUE(std::regex_search(said, std::regex("phase1/S +reads .*  hidden by .*reads=")));
    EXPECT_EQ(data("diff edited.json base.json " + tolerance).find("DIFFERENT"), std::string::npos);
  }
  EXPECT_EQ(redblue("check edited.json --tolerance reads=2").code, 0);
  EXPECT_EQ(redblue("check edited.json --tolerance phase1/A:reads=9").code, 3);
}

TEST_F(GateCommand, AlsoWritesOtherForms) {
  edit([](Ordered& points) { points[0]["phases"][0]["reads"] = 1; });
  const Outcome outcome = redblue(
      "check edited.json --format csv --also junit=gate.xml --also json=gate.json "
      "--also markdown=summary.md");
  EXPECT_EQ(outcome.code, 3) << "the files are there where it differs, too";
  EXPECT_EQ(parse_csv(outcome.out).size(), 1U);
  EXPECT_EQ(content_of(directory_ / "gate.json"), redblue("check edited.json --format json").out);
  EXPECT_EQ(content_of(directory_ / "gate.xml"), redblue("check edited.json --format junit").out);
  EXPECT_EQ(content_of(directory_ / "summary.md"),
            redblue("check edited.json --format markdown --also bmf=b.json").out);
  EXPECT_EQ(Json::parse(content_of(directory_ / "b.json")).size(), 4U);
}

// `--also` writes all files or none. No work is done if one of them cannot be written.
TEST_F(GateCommand, AlsoIsWholeOrNotAtAll) {
  directory_.write("gate.json", "what was there");
  for (const std::string bad : {"csv=no/such/directory.csv", "csv=."}) {
    expect_refused(process("check base.json --also json=gate.json --also " + bad), 1,
                   "cannot write|cannot create");
    expect_refused(process("diff base.json base.json --also json=gate.json --also " + bad), 1,
                   "cannot write|cannot create");
  }
  Process full = process("check base.json --also json=gate.json");
  full.standard_output = "/dev/full";
  const Outcome outcome = full.run();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(content_of(directory_ / "gate.json"), "what was there");
  EXPECT_EQ(files().size(), 3U) << "nothing else is left";
  expect_refused(process("record suite.json -o no/such/directory.json"), 1, "no/such");
  expect_refused(process("record suite.json -o ./suite.json"), 2,
                 "--out './suite.json': a suite is there: name another file");
}

TEST_F(GateCommand, DiffOfTwoRecordings) {
  edit([](Ordered& points) {
    points.erase(1);
    points[0]["total"]["peak"] = 1;
    points[2]["kernel"] = "forward/new";
  });
  const Outcome there = redblue("diff base.json edited.json --format json");
  EXPECT_EQ(there.code, 3);
  const Json json = Json::parse(there.out);
  EXPECT_EQ(json["before"], "base.json");
  EXPECT_EQ(json["now"], "edited.json");
  EXPECT_EQ(json["points"], 5);
  EXPECT_EQ(json["different"], 4);
  std::string kinds;
  for (const Json& each : json["differences"]) {
    kinds += each["kind"].get<std::string>() + " ";
  }
  EXPECT_EQ(kinds, "gone gone added words ");
  kinds.clear();
  const Outcome back = redblue("diff edited.json base.json --format json");
  EXPECT_EQ(back.code, 3);
  const Json found = Json::parse(back.out);
  for (const Json& each : found["differences"]) {
    kinds += each["kind"].get<std::string>() + " ";
  }
  EXPECT_EQ(kinds, "gone added added words ");
}

TEST_F(GateCommand, DiffOfARunAndACountIsRefused) {
  Json counted = Json::parse(baseline());
  counted["how"] = "count";
  directory_.write("counted.json", counted.dump());
  EXPECT_EQ(redblue("check counted.json").code, 0) << "what runs move is what formulas say";
  for (const std::string line : {"diff base.json counted.json", "diff counted.json base.json"}) {
    expect_refused(process(line), 1, "record both alike");
  }
}

}  // namespace
}  // namespace redblue
