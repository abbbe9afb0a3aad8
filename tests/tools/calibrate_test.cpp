// Tests `redblue calibrate`, and reports with the file that it writes. hwloc takes the declared
// small caches for this system's own.

#include <algorithm>
#include <cmath>
#include <csignal>

#include "kernels/kernel.hpp"
#include "runtime/observe/callgrind.hpp"
#include "runtime/observe/topology.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

constexpr const char* kCaches = "HWLOC_SYNTHETIC=l2:1(size=16384) l1d:1(size=4096) core:2 pu:1";

class Calibrate : public Cli {
 protected:
  void SetUp() override {
    if (const std::string why = synthetic_topology("core:1 pu:1").unavailable; !why.empty()) {
      GTEST_SKIP() << why;
    }
  }
  // Runs a line on the given caches. Their description has spaces, so it cannot be a part of the
  // line.
  [[nodiscard]] Outcome on(const std::string& caches, const std::string& line) const {
    Process with = process("HWLOC_THISSYSTEM=1 " + line);
    with.environment.push_back(caches);
    with.environment.push_back("XDG_CACHE_HOME=" + (directory_ / "cache").string());
    return with.run();
  }
  [[nodiscard]] Json json_on(const std::string& caches, const std::string& line) const {
    const Outcome outcome = on(caches, line + " --format json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err.empty(), line.find("calibrate ") == std::string::npos) << outcome.err;
    return Json::parse(outcome.out);
  }
  // Returns a calibration whose files are in this directory. All cases have copies of one, because
  // it takes a second and they only read it.
  [[nodiscard]] const Outcome& calibrated() const {
    static const Outcome once = on(kCaches, "PATH=/none calibrate --n 16 --format json");
    static const std::map<std::string, std::string> made = files();
    for (const auto& [name, content] : made) {
      if (std::filesystem::path(name).has_extension()) {
        directory_.write(name, content);
      }
    }
    EXPECT_EQ(once.code, 0) << once.err;
    return once;
  }
  [[nodiscard]] Json calibrated_json() const { return Json::parse(calibrated().out); }
  static constexpr const char* kFile = "cache/redblue/calibration.json";
};

TEST_F(Calibrate, TheFileIsWhatIsPrinted) {
  const Json printed = calibrated_json();
  EXPECT_EQ(Json::parse(content_of(directory_ / kFile)), printed);
  EXPECT_EQ(files().size(), 3U) << "nothing beside the file and its directories";
  EXPECT_EQ(printed["timed"]["n"], 16);
  ASSERT_EQ(printed["levels"].size(), 2U);
  for (const Json& level : printed["levels"]) {
    const auto words = level["bytes"].get<double>() / 4;
    ASSERT_EQ(level["shares"].size(), 7U);
    double largest = 0;
    for (const Json& share : level["shares"]) {
      EXPECT_EQ(share["words"], std::floor(words * share["share"].get<double>()));
      const bool fits = share["words"] >= 324;  // the least M of backward/rows
      ASSERT_EQ(share["percent_of_peak"].is_number(), fits) << share;
      largest = std::max(largest, fits ? share["percent_of_peak"].get<double>() : 0);
      EXPECT_EQ(share["ratio"].is_null(), level["agreeing"].contains("unavailable"));
    }
    EXPECT_GE(level["fastest"]["percent_of_peak"], 0.979 * largest);
  }
  if (callgrind_unavailable().empty() && printed["levels"][0]["agreeing"].contains("unavailable")) {
    EXPECT_NE(printed["levels"][0]["agreeing"]["unavailable"].get<std::string>().find(
                  "valgrind is not installed"),
              std::string::npos);
  }
}

// calibrate measures the time of a word from each cache and from memory. These times are the costs
// of words in plans with levels. Words that enter the 512-word level cost the time of L2, which
// holds 2,048 words. Words that enter the 2,048-word level cost the time of memory.
TEST_F(Calibrate, WordCostsAreThoseOfTheCaches) {
  const std::string size = "backward/rows --n 60 --d 8 --M 512,2K --word-costs calibrated";
  expect_refused(
      [&] {
        Process with = process("HWLOC_THISSYSTEM=1 count " + size);
        with.environment.push_back(kCaches);
        with.environment.push_back("XDG_CACHE_HOME=" + (directory_ / "cache").string());
        return with;
      }(),
      2, "--word-costs calibrated: what a word costs .* run `redblue calibrate`");
  const Json words = calibrated_json()["word_costs"];
  ASSERT_EQ(words.size(), 3U);
  const char* from[] = {"L1", "L2", "memory"};
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(words[k]["from"], from[k]);
    EXPECT_GT(words[k]["nanoseconds"], 0);
    EXPECT_LT(words[k]["nanoseconds"], 1000);
  }
  EXPECT_EQ(words[1]["bytes"], 16384);
  EXPECT_TRUE(words[2]["bytes"].is_null());
  const Json count = json_on(kCaches, "count " + size);
  EXPECT_EQ(count["word_costs"], (Json{words[1]["nanoseconds"], words[2]["nanoseconds"]}));
  const Json plan =
      json_on(kCaches, "plan --given nothing --n 60 --d 8 --M 512,2K --objective time");
  double seconds = 0;
  for (std::size_t level = 0; level < 2; ++level) {
    seconds += 1e-9 * words[level + 1]["nanoseconds"].get<double>() *
               plan["plan"]["levels"][level]["total"]["io"].get<double>();
  }
  EXPECT_NEAR(plan["plan"]["seconds"].get<double>(), seconds, 1e-9 * seconds);
  EXPECT_EQ(
      json_on(kCaches, "count backward/auto --n 60 --d 8 --M 512,2K --objective time")["kernel"],
      plan["plan"]["kernel"]);
}

// With the speed of a core, a run ends with a line on what takes how long. Without it there is no
// line.
TEST_F(Calibrate, ARunSaysWhetherTheTrafficMatters) {
  const std::string run = "run backward/rows --n 40 --d 16 --M 900";
  EXPECT_FALSE(json_on(kCaches, run).contains("part_times"));
  const Json calibrated = calibrated_json();
  const Json core = calibrated["core"];
  const Json report = json_on(kCaches, run);
  const Json times = report["part_times"];
  const double flops =
      report["total"]["flops"].get<double>() + report["forward"]["total"]["flops"].get<double>();
  EXPECT_NEAR(times["flops_seconds"].get<double>(), flops / core["flops_per_second"].get<double>(),
              1e-9);
  EXPECT_NEAR(times["exp_seconds"].get<double>(),
              2 * 40 * 40 / core["exps_per_second"].get<double>(), 1e-9)
      << "of both passes";
  EXPECT_NEAR(times["words_seconds"].get<double>(),
              1e-9 * calibrated["word_costs"][2]["nanoseconds"].get<double>() *
                  report["total_from_nothing"].get<double>(),
              1e-9);
  EXPECT_EQ(times["from"], "calibrated on " + calibrated["context"]["date"].get<std::string>());
  for (const std::string& line : {run, std::string("plan --n 40 --d 16 --M 900"),
                                  std::string("count backward/rows --n 40 --d 16 --device this")}) {
    const std::string text = on(kCaches, line).out;
    const std::size_t last = text.rfind('\n', text.size() - 2);
    EXPECT_EQ(text.find("alone, words take ", last), last + 1) << text;
  }
  EXPECT_FALSE(
      json_on(kCaches, "count backward/rows --n 40 --d 16 --M 900").contains("part_times"));
  EXPECT_FALSE(
      json_on(kCaches, "count backward/rows --n 40 --d 16 --device a100").contains("part_times"));
}

// calibrate also measures how long messages take, and plans for ranks use this time. `--links`
// measures it again and leaves the rest of the file as it was.
TEST_F(Calibrate, LinksAreTimedBetweenThreads) {
  EXPECT_NE(on(kCaches, "calibrate --links").err.find("run `redblue calibrate` before"),
            std::string::npos);
  Json calibrated = calibrated_json();
  const std::string plan = "plan backward/rows --n 90 --d 16 --M 4000 --ranks 4 --objective time";
  for (int k = 0; k < 2; ++k) {
    const Json& links = calibrated["links"];
    EXPECT_GT(links["seconds_a_message"], 0);
    EXPECT_GE(links["seconds_a_word"], 0);
    EXPECT_EQ(links["origin"].get<std::string>().find("calibrated between two threads on "), 0U);
    EXPECT_EQ(json_on(kCaches, plan)["links"], links);
    Json again = Json::parse(on(kCaches, "calibrate --links --format json").out);
    EXPECT_EQ(Json::parse(content_of(directory_ / kFile)), again);
    Json rest = again, before = calibrated;
    rest.erase("links");
    before.erase("links");
    EXPECT_EQ(rest, before);
    calibrated = again;
  }
  directory_.write(kFile, "{}");
  const Outcome refused = on(kCaches, "calibrate --links");
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("it is not what `redblue calibrate` writes"), std::string::npos);
}

// Every kernel has measured rates, and the plan says which machine they come from.
TEST_F(Calibrate, ObjectiveTimeIsByTheFile) {
  const Json calibrated = calibrated_json();
  const Json& rates = calibrated["rates"];
  EXPECT_EQ(rates["n"], 16);
  ASSERT_EQ(rates["kernels"].size(), tested_kernels().size());
  for (std::size_t k = 0; k < tested_kernels().size(); ++k) {
    EXPECT_EQ(rates["kernels"][k]["kernel"], tested_kernels()[k].name);
    for (const Json& sample : rates["kernels"][k]["samples"]) {
      EXPECT_GT(sample["words_per_flop"].get<double>(), 0);
      EXPECT_GT(sample["seconds_per_flop"].get<double>(), 0);
    }
  }
  const std::string size = " --n 40 --d 16 --M 4000 --objective time";
  const Json plan = json_on(kCaches, "plan --given nothing" + size);
  EXPECT_EQ(plan["rates"], "calibrated on " + calibrated["context"]["date"].get<std::string>());
  EXPECT_EQ(json_on(kCaches, "run backward/auto" + size)["kernel"], plan["plan"]["kernel"]);

  const Outcome elsewhere =
      on("HWLOC_SYNTHETIC=l2:1(size=32768) l1d:1(size=4096) core:2 pu:1", "plan" + size);
  EXPECT_EQ(elsewhere.code, 1);
  EXPECT_EQ(elsewhere.out, "");
  EXPECT_NE(elsewhere.err.find("it is of another machine, whose L2 has 16384 bytes"),
            std::string::npos)
      << elsewhere.err;
}

TEST_F(Calibrate, OutElsewhereAndTwice) {
  for (const std::string n : {"8", "4"}) {
    const Outcome outcome = on(kCaches, "PATH=/none calibrate --out c.json --n " + n);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("\nwritten: c.json\n"), std::string::npos) << outcome.out;
    EXPECT_EQ(Json::parse(content_of(directory_ / "c.json"))["timed"]["n"].dump(), n);
    EXPECT_EQ(files().size(), 1U);
  }
  const Outcome csv = on(kCaches, "PATH=/none calibrate --out c.json --n 4 --format csv");
  EXPECT_EQ(parse_csv(csv.out).size(), 14U);
}

// Progress has one line for each part, because the output is not a terminal that could rewrite a
// line.
TEST_F(Calibrate, SaysWhatItDoes) {
  const std::string said = calibrated().err;
  for (const std::string part :
       {"redblue: timing backward/rows with ", "redblue: timing all ", " with d = 128, "}) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  }
}

// A calibration that continues after an interruption does not repeat finished measurements.
TEST_F(Calibrate, GoesOnAfterAnInterruption) {
  Process process = this->process("HWLOC_THISSYSTEM=1 PATH=/none calibrate --out c.json --n 256");
  process.environment.push_back(kCaches);
  const std::string part = "c.json.part";
  const auto pieces = [&] {  // and a line before them
    const std::string text = content_of(directory_ / part);
    return std::ranges::count(text, '\n') - 1;
  };
  // Interrupts the process after it has measured another piece.
  const auto end_after_a_piece = [&] {
    const auto before = std::max(pieces(), std::ptrdiff_t{0});
    const Outcome outcome = signalled(process, SIGINT, [&] { return pieces() > before; });
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_NE(outcome.err.find("ended by SIGINT: what was measured is kept in c.json.part; the "
                               "same command continues\n"),
              std::string::npos)
        << outcome.err;
    EXPECT_FALSE(files().contains("c.json"));
    return outcome;
  };
  static_cast<void>(end_after_a_piece());
  const std::string kept = content_of(directory_ / part);
  const auto measured = pieces();
  ASSERT_GT(measured, 0);

  // The message names the damaged line and says what to do.
  const std::size_t second = kept.find('\n') + 1;
  for (const std::string damaged :
       {"7", "[\"backward/rows 0\"]", "[1, []]", "[\"backward/rows 0\", [0.5]]",
        "[\"backward/rows 0\", \"x\"]"}) {
    directory_.write(part, kept.substr(0, second) + damaged + "\n");
    const Outcome refused = process.run();
    EXPECT_EQ(refused.code, 1) << damaged;
    EXPECT_NE(refused.err.find("redblue: c.json.part, line 2"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("remove that file, and the pieces are measured again\n"),
              std::string::npos)
        << refused.err;
  }

  // A calibration of another size cannot use the partial file.
  const Outcome other = on(kCaches, "PATH=/none calibrate --n 8 --out c.json");
  EXPECT_EQ(other.code, 0);
  EXPECT_EQ(other.err.find("continuing"), std::string::npos) << other.err;
  EXPECT_FALSE(files().contains(part)) << "it is all in the file";

  // Another call with the same size uses the partial file: its numbers are in the result.
  std::filesystem::remove(directory_ / "c.json");
  directory_.write(part, kept);
  const Outcome more = end_after_a_piece();
  EXPECT_NE(more.err.find("redblue: " + std::to_string(measured) + " piece"), std::string::npos)
      << more.err;
  EXPECT_TRUE(content_of(directory_ / part).starts_with(kept));
}

TEST_F(Calibrate, HomeWhereThereIsNoOtherPlace) {
  Process at_home =
      process("HWLOC_THISSYSTEM=1 PATH=/none XDG_CACHE_HOME=relative calibrate --n 4");
  at_home.environment.push_back(kCaches);
  at_home.environment.push_back("HOME=" + directory_.path().string());
  EXPECT_EQ(at_home.run().code, 0);
  EXPECT_TRUE(files().contains(".cache/redblue/calibration.json"));
  EXPECT_FALSE(files().contains("relative"));
}

TEST_F(Calibrate, TrafficByCallgrind) {
  if (!callgrind_unavailable().empty()) {
    GTEST_SKIP() << "no callgrind: " << callgrind_unavailable();
  }
  const Json calibrated =
      json_on("HWLOC_SYNTHETIC=l1d:1(size=4096) core:1 pu:1", "calibrate --n 4");
  ASSERT_EQ(calibrated["levels"].size(), 1U) << "no L2 is known";
  const Json level = calibrated["levels"][0];
  ASSERT_FALSE(level["agreeing"].contains("unavailable")) << level;
  double nearest = 99;
  for (const Json& share : level["shares"]) {
    nearest = std::min(nearest, std::abs(std::log(share["ratio"].get<double>())));
  }
  EXPECT_DOUBLE_EQ(std::abs(std::log(level["agreeing"]["ratio"].get<double>())), nearest);
}

}  // namespace
}  // namespace redblue
