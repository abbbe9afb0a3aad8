// Tests that the output of every command keeps its schema in docs/schemas: no key is missing, no
// key is unknown, and each value has its type.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/observe/callgrind.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/report/table1.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/report_forms.hpp"
#include "tests/support/small_table1.hpp"

#define VALIJSON_USE_EXCEPTIONS 1
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace redblue {
namespace {

const std::filesystem::path kSchemas =
    std::filesystem::path(REDBLUE_SOURCE_DIR) / "docs" / "schemas";
constexpr const char* kEnding = ".schema.json";

Json parsed_schema(const std::string& kind) {
  return Json::parse(content_of(kSchemas / (kind + kEnding)));
}

// Makes references to the common file local, because the validator resolves no relative address.
// Forbids keys that the schema does not name: readers would ignore them, but redblue must not write
// them.
void make_strict(Json& schema) {
  if (schema.is_object()) {
    if (schema.contains("$ref")) {
      const std::string address = schema["$ref"].get<std::string>();
      schema["$ref"] = address.substr(address.find('#'));
    }
    if (schema.contains("properties") && !schema.contains("additionalProperties")) {
      schema["additionalProperties"] = false;
    }
  }
  if (schema.is_structured()) {
    std::ranges::for_each(schema, make_strict);
  }
}

class Validator {
 public:
  explicit Validator(const std::string& kind) : schema_json_(parsed_schema(kind)) {
    schema_json_["definitions"].update(parsed_schema("common")["definitions"]);
    make_strict(schema_json_);
    const valijson::adapters::NlohmannJsonAdapter adapter(schema_json_);
    valijson::SchemaParser(valijson::SchemaParser::kDraft7).populateSchema(adapter, schema_);
  }

  // Returns the faults of a document, a line for each; empty if it keeps the schema.
  [[nodiscard]] std::string broken(const Json& document) const {
    valijson::ValidationResults results;
    valijson::Validator(valijson::Validator::kStrongTypes)
        .validate(schema_, valijson::adapters::NlohmannJsonAdapter(document), &results);
    std::string text;
    for (valijson::ValidationResults::Error error; results.popError(error);) {
      text += fmt::format("{}: {}\n", fmt::join(error.context, ""), error.description);
    }
    return text;
  }
  [[nodiscard]] Json required() const { return schema_json_["required"]; }

 private:
  Json schema_json_;
  valijson::Schema schema_;
};

// Calls `visit` with each number of a document, and for an array with the numbers of its first
// elements.
void each_number(Json& part, const std::function<void(Json&)>& visit) {
  constexpr int kElements = 2;
  if (part.is_number()) {
    visit(part);
    return;
  }
  int k = 0;
  for (Json& inner : part) {
    if (inner.is_structured() || inner.is_number()) {
      each_number(inner, visit);
    }
    if (part.is_array() && ++k == kElements) {
      break;
    }
  }
}

class Schemas : public Cli {
 protected:
  static void expect_valid(const std::string& kind, const std::string& document) {
    EXPECT_EQ(Validator(kind).broken(Json::parse(document)), "");
  }

  // Checks that the document keeps its schema, and that it would not without a required key or with
  // `true` for a number.
  static void expect_kept(const std::string& kind, Json document) {
    const Validator validator(kind);
    ASSERT_EQ(validator.broken(document), "");
    for (const Json& key : validator.required()) {
      Json without = document;
      without.erase(key.get<std::string>());
      EXPECT_NE(validator.broken(without), "") << "without " << key;
    }
    each_number(document, [&](Json& number) {
      const Json value = number;
      number = true;
      EXPECT_NE(validator.broken(document), "") << "with `true` for " << value;
      number = value;
    });
  }
  void expect_keep(const std::string& kind, const std::vector<std::string>& lines) const {
    for (const std::string& line : lines) {
      SCOPED_TRACE(line);
      expect_kept(kind, json(line));
    }
  }
};

// A device with two levels. Only one has figures.
const std::string kTwoLevels = R"({"name": "two", "source": "a manual", "levels": [
    {"name": "L1", "bytes": 2000, "line_bytes": 64, "bandwidth_bytes_per_second": 1e11,
     "joules_per_word": 1e-11, "shared_by": 1, "source": "its figures"},
    {"name": "L2", "bytes": 40000}]})";

TEST_F(Schemas, OfDevices) {
  expect_kept("device", Json::parse(kTwoLevels));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(REDBLUE_SOURCE_DIR)) {
    const std::string folder = entry.path().parent_path().filename().string();
    if (folder == "devices" && entry.path().extension() == ".json") {
      expect_valid("device", content_of(entry.path()));
    }
  }
  for (const char* bad : {R"({"bytes": 6})", R"({"bytes": 0})", R"({"joules_per_word": 0})",
                          R"({"bandwidth_bytes_per_second": "1e9"})", R"({"word": 4})"}) {
    Json device = Json::parse(kTwoLevels);
    device["levels"][0].update(Json::parse(bad));
    EXPECT_NE(Validator("device").broken(device), "") << bad;
  }
  directory_.write("two.json", kTwoLevels);
  expect_keep("run", {"count backward/rows --n 30 --d 5 --device ./two.json",
                      "run forward/rows --n 30 --d 5 --device ./two.json",
                      "count backward/large --n 30 --d 5 --device a100"});
  expect_keep("plan", {"plan --n 30 --d 5 --device zen3", "plan --n 30 --d 5 --device ./two.json"});
  expect_keep("bounds",
              {"bounds --n 30 --d 5 --device zen3", "bounds --n 30 --d 5 --device ./two.json"});
  expect_keep("list", {"list --devices"});
  expect_keep("nests", {"list --nests"});
}

TEST_F(Schemas, OfRunsAndCounts) {
  const std::string size = " --n 30 --m 20 --d 5 --M 900";
  expect_keep(
      "run",
      {"count backward/rows" + size,
       "count backward/large" + size,
       "count backward/rows --n 200000000 --d 64 --M 8192",
       "count matmul/blocked" + size,
       "run forward/small" + size,
       "run backward/flash --verify" + size,
       "run backward/auto --verify --heads 2 --threads 2 --sharing kv" + size,
       "run gradients/auto --verify --softmax-scale 0.3" + size,
       "run layer/auto --verify" + size,
       "run linear/auto --verify --mask causal" + size,
       "run linear-gradient/auto --verify" + size,
       "run forward/auto --verify --make A1=density:3/4" + size,
       "count attention/tiles" + size,
       "run backward/rows --store file:store" + size,
       "run backward/rows --grid 2x2 --store file:homes" + size,
       "count attention/rows --n 30 --m 20 --d 5 --M 300,900",
       "run backward/rows --verify --n 30 --m 20 --d 5 --M 200,300,900",
       "run backward/rows-onepass --n 30 --m 20 --d 5 --M 900,900",
       "run forward/flash --n 30 --d 5 --M 900 --out O=O.npy --out L=L.npy",
       "run backward/rows --n 30 --d 5 --M 900 --in O=O.npy --in L=L.npy --seed 1 --verify"});
}

TEST_F(Schemas, OfWhatIsPlanned) {
  directory_.write("two.json", kTwoLevels);
  for (const std::string problem : {"product", "forward", "backward", "attention", "gradients",
                                    "layer", "linear", "linear-gradient"}) {
    const std::string line = " --problem " + problem + " --n 100 --d 8 --M 500";
    expect_keep("bounds", {"bounds" + line});
    expect_keep("plan", {"plan" + line});
  }
  expect_keep("bounds",
              {"bounds --n 100 --d 8 --M 2", "bounds --n 10 --d 3 --M 200 --given nothing",
               "bounds --n 100 --d 8 --M 20 --partition"});
  expect_keep("plan", {"XDG_CACHE_HOME=/none plan --n 100 --d 8 --M 500 --objective time",
                       "plan --n 100 --d 8 --M 500 --given nothing --sharing self",
                       "plan --n 30 --d 8 --M 900 --make A1=density:3/4 --make X=identity",
                       "plan --problem forward --make X=identity --make A1=random:1 --make "
                       "A2=random:1 --n 8192 --d 2 --M 64K"});
  const std::string levels = " --n 100 --d 8 --M 500,4K";
  expect_keep("bounds", {"bounds" + levels, "bounds --problem product" + levels});
  expect_keep("plan", {"plan" + levels, "plan --given nothing --word-costs 1,4" + levels,
                       "plan backward/rows" + levels});
  expect_keep("plan", {"plan --n 100 --d 8 --M 500 --threads 3 --objective time"});
  expect_keep("grids",
              {"plan backward/rows --n 90 --m 70 --d 8 --M 900 --ranks 6",
               "plan backward/rows --n 90 --m 70 --d 8 --M 900 --ranks 6 --ring",
               "plan forward/rows-shared --n 90 --m 70 --d 8 --M 900 --ranks 1 --home 1M",
               "plan attention/rows --n 90 --d 8 --M 900 --ranks 4 --objective time --link-costs "
               "1e-6,3e-9"});
  expect_keep("devices", {"plan --cache 100B,4KiB,a100,./two.json --d 8"});
  expect_keep("loops", {"plan --loops backward/small --n 20 --d 4 --M 300"});
}

TEST_F(Schemas, OfDividingPoints) {
  expect_keep("dividing", {"plot dividing --n 90 --d 24 --make A1=random:6 --make A2=random:6 "
                           "--make X=identity",
                           "plot dividing --n 9 --m 7 --d 3 --make A1=density:1/4294967295"});
}

TEST_F(Schemas, OfRanks) {
  const std::string size = " --n 40 --m 30 --d 5 --M 900";
  expect_keep(
      "run",
      {"count backward/rows --grid 2x2" + size, "count forward/rows --grid 2x2:4" + size,
       "count backward/rows --grid 3x1 --ring" + size, "run attention/rows --ranks 3" + size});
  expect_valid("run", data("count backward/rows --format json --grid 20x20" + size));
  directory_.write("run.json", data("run backward/rows --format json --ranks 4" + size));
  expect_keep("scaling", {"plot ranks backward/rows --ranks 9 --runs run.json" + size,
                          "plot ranks backward/rows --n 2 --d 9 --M 900 --ranks 2"});
}

TEST_F(Schemas, OfWordsOfTwoBytes) {
  expect_keep("run", {"count backward/rows --n 60 --d 8 --M 4KiB --word 2",
                      "count attention/rows --n 60 --d 8 --M 1KiB,4KiB --word 2",
                      "run forward/rows --n 20 --d 4 --M 1KiB --word 2 --seed 1"});
  expect_keep("plan", {"plan --n 60 --d 8 --M 4KiB --word 2",
                       "plan --n 60 --d 8 --M 4KiB --word 2 --problem attention --as all",
                       "plan --n 60 --d 8 --M 1KiB,4KiB --word 2"});
  expect_keep("bounds", {"bounds --n 60 --d 8 --M 4KiB --word 2"});
  expect_keep("curve", {"curve --n 60 --d 8 --word 2 --bytes 1MiB"});
  expect_keep("as", {"count --as all --n 60 --d 8 --M 4KiB --word 2"});
  expect_keep("devices", {"plan --cache 4KiB,a100 --d 8 --word 2"});
  expect_keep("loops", {"plan --loops backward/rows --n 60 --d 8 --M 4KiB --word 2"});
}

TEST_F(Schemas, OfFormulas) {
  expect_keep("symbolic", {"count backward/rows --symbolic --regime small",
                           "count matmul/blocked --symbolic --n 50 --d 9 --M 300",
                           "count forward/naive --symbolic",
                           "count attention/rows --symbolic --n 4K --d 64 --dv 96 --M 64K"});
}

TEST_F(Schemas, OfOtherTiles) {
  expect_keep("as", {"count --as all --n 900 --d 64 --M 48K",
                     "count --as all --problem gradients --n 90 --d 8 --M 4K --mask causal",
                     "count --as pytorch-cpu --n 90 --d 8 --dv 5 --heads 4 --kv-heads 2 --M 4K"});
  for (const char* kind : {"plan", "bounds"}) {
    expect_keep(kind, {fmt::format("{} --as all --problem attention --n 90 --d 8 --M 4K", kind),
                       fmt::format("{} --as all --problem gradients --n 90 --d 300 --M 4K", kind)});
  }
  expect_keep("bounds",
              {"bounds --problem attention --n 90 --d 8 --M 4K --nest nest:ggml-cpu-forward"});
}

TEST_F(Schemas, OfCurves) {
  expect_keep("curve", {"curve --n 90 --d 8 --words 9K", "curve --n 90 --d 8 --objective time",
                        "curve --problem product --n 20 --d 3",
                        "curve --problem gradients --given nothing --d 8 --mask causal --heads 4 "
                        "--kv-heads 2 --M 900 --over n --from 9 --to 90",
                        "curve --problem forward --n 30 --d 6 --make A1=random:3"});
}

// On a small grid, because the command's own grid takes seconds.
TEST_F(Schemas, OfTable1) {
  expect_kept("table1", Json::parse(to_json(report_table1(small_sparse_laws()))));
}

TEST_F(Schemas, OfWhatThereIs) {
  expect_keep("list", {"list", "list --n 30 --d 5"});
  expect_keep("info", {"info", kSixCores + "info"});
  EXPECT_EQ(redblue("store generate kept --n 9 --d 3").code, 0);
  expect_keep("store", {"store info kept"});
}

TEST_F(Schemas, OfGames) {
  directory_.write("graph", "a\nb: a\n");
  directory_.write("moves", "read a\ncompute b\nwrite b\n");
  expect_keep("game", {"pebble check graph moves --M 2"});
  expect_keep("solve", {"pebble solve graph --M 2..3"});
  expect_keep("optima", {"pebble solve attention --n 1 --d 1 --M 3..6 --compare",
                         "pebble solve backward --n 3 --d 2 --M 3 --compare --given nothing"});
  expect_keep("pebbling", {"pebble run backward/rows --n 7 --d 3 --M 60",
                           "pebble run matmul/blocked --n 5 --d 3 --M 20 --products --T 9"});
  directory_.write("trace", "0 10\n1 14\n0 14\n");
  expect_keep("replay", {"replay --from trace", "replay --from trace --at 1,2",
                         "replay backward/rows --n 7 --d 3 --M 60 --per-phase",
                         "replay backward/rows --n 7 --d 3 --M 60 --unit row",
                         "replay backward/rows --n 7 --d 3 --M 30,60",
                         "plot replay matmul/blocked --n 5 --m 4 --d 3 --M 20 --unit row",
                         "plot replay matmul/blocked --n 5 --m 4 --d 3 --M 20"});
}

// The documents of a program with a user's own kernels.
TEST_F(Schemas, OfOwnKernels) {
  const auto own = [&](const std::string& line) {
    Process passes = process(line);
    passes.words.front() = REDBLUE_PASSES;
    const Outcome outcome = passes.run();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  const std::string size = " --n 6 --m 10 --M 16";
  expect_kept("replay", Json::parse(own("replay passes/twice --format json" + size)));
  expect_kept("replay", Json::parse(own("replay passes/once --format json --per-phase" + size)));
  for (const char* how : {"run", "time"}) {
    directory_.write("own.json",
                     fmt::format(R"({{"how": "{}", "points": [{{"kernel": ["passes/twice",
                       "passes/once"], "n": 6, "m": 10, "M": [9, 16]}}]}})",
                                 how));
    own(fmt::format("sweep own.json -o own.{}", how));
    expect_kept("sweep",
                Json::parse(content_of(directory_ / fmt::format("own.{}", how) / "sweep.json")));
  }
}

const std::string kMeasure = "measure backward/rows --n 20 --d 4 --M 900 --format json";

TEST_F(Schemas, OfCalibration) {
  if (const std::string why = read_topology().unavailable; !why.empty()) {
    GTEST_SKIP() << why;
  }
  expect_keep("run", {kSixCores + "count backward/rows --n 90 --d 8 --M L1*0.5"});
  const Outcome calibrated =
      redblue("HWLOC_THISSYSTEM=1 PATH=/none " + kSixCores + "calibrate --n 32 --out c.json");
  EXPECT_EQ(calibrated.code, 0) << calibrated.err;
  expect_kept("calibrate", Json::parse(content_of(directory_ / "c.json")));
}

TEST_F(Schemas, OfTuning) {
  if (const std::string why = read_topology().unavailable; !why.empty()) {
    GTEST_SKIP() << why;
  }
  for (const std::string problem : {"attention", "backward"}) {
    const Outcome tuned =
        redblue("HWLOC_THISSYSTEM=1 XDG_CACHE_HOME=" + directory_.path().string() + " " +
                kSixCores + "tune " + problem + " --n 32 --d 8 --mask causal --format json");
    EXPECT_EQ(tuned.code, 0) << tuned.err;
    expect_kept("tune", Json::parse(tuned.out));
  }
}

// A device with all figures makes reports say whether the traffic matters.
TEST_F(Schemas, OfPartTimes) {
  directory_.write("all.json", R"({"name": "all", "source": "a manual", "flops_per_second": 1e9,
      "levels": [{"name": "L1", "bytes": 8000, "bandwidth_bytes_per_second": 1e9}]})");
  const std::string of = " --n 30 --d 5 --device ./all.json";
  for (const auto& [kind, line] :
       {std::pair("run", "count backward/rows" + of), std::pair("plan", "plan" + of)}) {
    expect_keep(kind, {line});
    EXPECT_TRUE(json(line)["part_times"]["exp_seconds"].is_null());
  }
}

TEST_F(Schemas, OfCounters) {
  const Outcome counted = redblue("PAPI_EVENTS=perf::PAGE-FAULTS " + kMeasure);
  if (counted.code != 0) {
    GTEST_SKIP() << counted.err;
  }
  expect_kept("measure", Json::parse(counted.out));
}

TEST_F(Schemas, OfSimulations) {
  if (!callgrind_unavailable().empty()) {
    GTEST_SKIP() << "no callgrind: " << callgrind_unavailable();
  }
  if (const std::string why = read_topology().unavailable; !why.empty()) {
    GTEST_SKIP() << why;
  }
  const Outcome simulated = redblue(kSixCores + "REDBLUE_SIMD= " + kMeasure + " --via callgrind");
  EXPECT_EQ(simulated.code, 0) << simulated.err;
  expect_kept("measure", Json::parse(simulated.out));
  const Outcome of_levels =
      redblue(kSixCores + "REDBLUE_SIMD= " +
              "measure backward/rows --n 20 --d 4 --M 300,900 --format json --via callgrind");
  EXPECT_EQ(of_levels.code, 0) << of_levels.err;
  expect_kept("measure", Json::parse(of_levels.out));
}

TEST_F(Schemas, OfSuitesAndWhatIsMadeOfThem) {
  const char* const suite = R"({"how": "count", "points": [
      {"kernel": "backward/small", "n": [9, 12], "d": 5, "M": [900, "1K", 4]},
      {"kernel": "forward/rows", "n": 12, "d": 3, "M": ["200,1K", "100,1KiB,4K"]},
      {"kernel": "forward/rows", "n": 12, "d": 3, "M": 512, "inner": ["200"]},
      {"kernel": ["forward/*"], "n": {"from": 8, "to": 16, "times": 2}, "d": 3, "M": "4KiB"}]})";
  directory_.write("suite.json", suite);
  expect_kept("suite", Json::parse(suite));
  for (const char* path : {"tests/gate/suite.json", "tools/suites/figure1.json"}) {
    const std::string text = content_of(std::filesystem::path(REDBLUE_SOURCE_DIR) / path);
    constexpr bool kThrows = true, kComments = true;
    EXPECT_EQ(Validator("suite").broken(Json::parse(text, nullptr, kThrows, kComments)), "");
  }
  EXPECT_EQ(Validator("suite").broken({{"points",
                                        {{{"kernel", "forward/rows"},
                                          {"at_most",
                                           {{"words", "1M"},
                                            {"phase1/S:reads", 9e6},
                                            {"over_bound", 99.5},
                                            {"least_M", 500}}}}}}}),
            "");
  for (const char* bad :
       {R"({"n": 0})", R"({"M": "64KB"})", R"({"n": {"from": 1, "to": 9}})", R"({"given": "O"})",
        R"({"threads": []})", R"({"M": "8K,"})", R"({"inner": []})", R"({"at_most": {}})",
        R"({"at_most": {"moves": 1}})", R"({"at_most": {"a:least_M": 1}})",
        R"({"at_most": {"words": 1e17}})", R"({"at_most": {"over_bound": 0.5}})",
        R"({"at_most": {"over_bound": 1e7}})"}) {
    Json entry = Json::parse(bad);
    entry["kernel"] = "backward/rows";
    EXPECT_NE(Validator("suite").broken({{"points", {entry}}}), "") << bad;
  }

  for (const std::string how : {"count", "run", "time"}) {
    Json timed = Json::parse(suite);
    timed["how"] = how;
    directory_.write(how + ".json", timed.dump());
    EXPECT_EQ(redblue("sweep " + how + ".json -o " + how).code, 0);
    expect_kept("sweep", Json::parse(content_of(directory_ / how / "sweep.json")));
  }
  EXPECT_EQ(redblue("sweep count.json --part 1/2 -o part").code, 0);
  expect_valid("sweep", content_of(directory_ / "part" / "sweep.json"));
  EXPECT_EQ(redblue("merge part -o merged --partial").code, 0);
  expect_valid("sweep", content_of(directory_ / "merged" / "sweep.json"));
  // Merges with the times of another machine.
  const std::string journal = content_of(directory_ / "time" / "points.jsonl");
  directory_.write(
      "another/points.jsonl",
      std::regex_replace(journal, std::regex("\"processor\":[^,]*,"), "\"processor\":\"another\",",
                         std::regex_constants::format_first_only));
  EXPECT_EQ(redblue("merge time another -o two").code, 0);
  expect_valid("sweep", content_of(directory_ / "two" / "sweep.json"));
  const Json recording = Json::parse(redblue("record suite.json").out);
  expect_kept("recording", recording);
  expect_valid("recording", redblue("record suite.json --part 1/2").out);
  directory_.write("now.json", recording.dump());
  Json limited = recording;
  Json& of_first = limited["points"][0];
  of_first["at_most"] = {{"words", 1e12}, {"over_bound", 1e6}};
  of_first["accepted"] = {
      {{"date", "2026-01-31"}, {"who", "A"}, {"reason", "why"}, {"before", 9}, {"after", 8}}};
  directory_.write("limited.json", limited.dump());
  const Json kept = Json::parse(redblue("record limited.json").out);
  EXPECT_EQ(kept["points"][0]["accepted"], of_first["accepted"]);
  expect_kept("recording", kept);
  of_first["at_most"]["words"] = 1;
  directory_.write("limited.json", limited.dump());
  expect_kept("compare", Json::parse(redblue("diff now.json limited.json --format json").out));
  Json changed = recording;
  changed["points"][0]["phases"][0]["reads"] = 7;
  changed["points"][0].erase("least_M");
  changed["points"][1]["phases"][0]["path"] = "before";
  changed["points"].erase(3);
  Json& of_levels = *std::ranges::find_if(
      changed["points"], [](const Json& point) { return point.contains("inner"); });
  of_levels["inner"][0]["total"]["reads"] = 7;
  directory_.write("base.json", changed.dump());
  expect_kept("compare", Json::parse(redblue("diff base.json now.json --format json").out));
  expect_valid("compare", redblue("check now.json --part 1/2 --format json").out);
}

TEST_F(Schemas, OfAHistory) {
  directory_.write("suite.json", R"({"points": [
      {"kernel": "backward/rows", "n": 20, "d": 5, "M": [300, 9]}]})");
  Json recording = Json::parse(redblue("record suite.json").out);
  const auto run = [&](Process process, const std::vector<std::string>& words) {
    if (!words.empty()) {
      process.words = words;
    }
    for (const char* variable :
         {"PATH=/usr/bin:/bin", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
          "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=A",
          "GIT_COMMITTER_EMAIL=a@b"}) {
      process.environment.emplace_back(variable);
    }
    return process.run();
  };
  run(process(""), {"/usr/bin/git", "init", "-q"});
  for (const char* const reason : {"", "why"}) {
    if (*reason != '\0') {
      recording["points"][0]["accepted"] = {
          {{"date", "2026-01-31"}, {"who", "A"}, {"reason", reason}, {"before", 9}, {"after", 8}}};
    }
    directory_.write("base.json", recording.dump());
    run(process(""), {"/usr/bin/git", "add", "base.json"});
    run(process(""), {"/usr/bin/git", "commit", "-q", "-m", "Record"});
  }
  expect_kept("history", Json::parse(run(process("history base.json --format json"), {}).out));
}

TEST_F(Schemas, AreLinkedAndTested) {
  const std::string formats = content_of(kSchemas.parent_path() / "formats.md");
  const std::string tests = content_of(__FILE__);
  for (const auto& entry : std::filesystem::directory_iterator(kSchemas)) {
    const std::string name = entry.path().filename().string();
    EXPECT_NE(formats.find("schemas/" + name), std::string::npos) << name;
    const std::string kind = '"' + name.substr(0, name.find('.')) + '"';
    EXPECT_TRUE(tests.find("expect_keep(" + kind) != std::string::npos ||
                tests.find("expect_kept(" + kind) != std::string::npos || kind == "\"common\"")
        << name;
  }
}

}  // namespace
}  // namespace redblue
