// Tests reports that no run of the command reaches: counts that miss their formula, failed
// verdicts, the largest numbers.

#include "runtime/report/run_report.hpp"

#include <algorithm>
#include <limits>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/csv.hpp"

namespace redblue {
namespace {

using Parsed = nlohmann::json;

// Returns the report of a kernel with two phases. It read one word too many in the second.
Report off_by_one() {
  Report report;
  report.asked = "some/kernel";
  Part& part = report.kernel;
  part.plan.kernel = "some/kernel";
  part.plan.problem.shape = {3, 4, 5};
  part.plan.M = 100;
  part.plan.blocks = {{"B", 2}};
  part.plan.phases = {
      {.path = "one", .reads = 1000, .writes = 200, .peak = 50, .flops = 7},
      {.path = "two/deep", .reads = 300, .writes = 0, .peak = 40, .flops = 0},
  };
  part.formula = part.plan.phases;
  part.peak_gflops = 100;
  RunCounts counted;
  counted.phases = {
      {.path = "one", .io = {1000, 200}, .operations = {7, 8}, .peak = 50},
      {.path = "two/deep", .io = {301, 0}, .operations = {0, 9}, .peak = 40},
  };
  counted.seconds = RunCounts::Seconds{.phases = {0.25, 0.125}, .total = 0.5};
  counted.total = {.path = "", .io = {1301, 200}, .operations = {7, 17}, .peak = 50};
  counted.span = 64;
  part.counted = counted;
  report.given = {"A", "B"};
  return report;
}

bool has_line(const std::string& text, const std::vector<std::string>& words) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream stream(line);
    std::vector<std::string> found;
    for (std::string word; stream >> word;) {
      found.push_back(word);
    }
    if (found.size() >= words.size() && std::equal(words.begin(), words.end(), found.begin())) {
      return true;
    }
  }
  return false;
}

TEST(Report, ADifferenceShowsInEveryForm) {
  const Report report = off_by_one();
  const std::string table = to_table(report);
  EXPECT_TRUE(has_line(table, {"one", "1,000", "200", "79.9%", "50", "0.500", "1,200", "0"}))
      << table;
  EXPECT_TRUE(has_line(table, {"two/deep", "301", "0", "20.1%", "40", "0.400", "300", "1"}))
      << table;
  EXPECT_TRUE(has_line(table, {"total", "1,301", "200", "100.0%", "50", "0.500", "1,500", "1"}))
      << table;

  const Parsed json = Parsed::parse(to_json(report));
  EXPECT_EQ(json["phases"][1]["reads"], 301);
  EXPECT_EQ(json["phases"][1]["formula"]["reads"], 300);
  EXPECT_EQ(json["total"]["io"], 1501);
  EXPECT_EQ(json["formula"]["io"], 1500);

  const std::vector<CsvRow> rows = parse_csv(to_csv(report));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[1].at("reads"), "301");
  EXPECT_EQ(rows[1].at("formula_reads"), "300");
  EXPECT_EQ(rows[1].at("seconds"), "0.125");
  EXPECT_EQ(rows[2].at("phase"), "total");
  EXPECT_EQ(rows[2].at("elementwise"), "17");
}

// The phases and the time outside them add up to the total. For several workers, the table says so.
TEST(Report, SecondsAddUp) {
  Report report = off_by_one();
  EXPECT_EQ(to_table(report).find("mean of the workers"), std::string::npos);
  report.kernel.team.workers = 2;
  EXPECT_NE(to_table(report).find("seconds of a phase are the mean of the workers; outside all "
                                  "phases they spent 0.1250\n"),
            std::string::npos)
      << to_table(report);
}

TEST(Report, FewerThanTheFormulaIsNegative) {
  Report report = off_by_one();
  report.kernel.formula[1].reads = 12301;
  EXPECT_TRUE(has_line(to_table(report),
                       {"two/deep", "301", "0", "20.1%", "40", "0.400", "12,301", "-12,000"}))
      << to_table(report);
}

TEST(Report, IoIsWhatWasCountedElseTheFormula) {
  Report report = off_by_one();
  EXPECT_EQ(report.kernel.io(), 1501);
  report.kernel.counted.reset();
  EXPECT_EQ(report.kernel.io(), 1500);
}

TEST(Report, TotalFromNothingAddsTheForwardKernel) {
  Report report = off_by_one();
  EXPECT_EQ(Parsed::parse(to_json(report))["total_from_nothing"], 1501);
  report.forward = report.kernel;
  report.forward->plan.kernel = "some/forward";
  const Parsed json = Parsed::parse(to_json(report));
  EXPECT_EQ(json["total_from_nothing"], 3002);
  EXPECT_EQ(json["forward"]["kernel"], "some/forward");
  EXPECT_EQ(json["forward"]["total"]["span"], 64);
  EXPECT_NE(to_table(report).find("from scratch, with the forward pass: 3,002 words"),
            std::string::npos);
  ASSERT_EQ(parse_csv(to_csv(report)).size(), 6U);
  EXPECT_EQ(parse_csv(to_csv(report))[5].at("kernel"), "some/forward");
  // If O and L came with the request, the words that computed them are unknown.
  report.forward.reset();
  report.from_nothing = false;
  EXPECT_FALSE(Parsed::parse(to_json(report)).contains("total_from_nothing"));
}

TEST(Report, TheLargestNumbersAreExact) {
  Report report = off_by_one();
  report.seed = std::numeric_limits<std::uint64_t>::max();
  report.kernel.plan.M = INT64_MAX;
  report.kernel.formula = {
      {.path = "one", .reads = INT64_MAX, .writes = 0, .peak = INT64_MAX, .flops = 0}};
  report.kernel.counted.reset();
  const Parsed json = Parsed::parse(to_json(report));
  EXPECT_EQ(json["seed"].get<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(json["M"].get<Index>(), INT64_MAX);
  EXPECT_EQ(json["total"]["io"].get<Index>(), INT64_MAX);
  EXPECT_EQ(parse_csv(to_csv(report))[0].at("reads"), "9223372036854775807");
  EXPECT_TRUE(has_line(to_table(report), {"total", "9,223,372,036,854,775,807", "0", "100.0%"}))
      << to_table(report);
}

TEST(Report, Verdicts) {
  Report report = off_by_one();
  EXPECT_FALSE(Parsed::parse(to_json(report)).contains("error"));
  EXPECT_EQ(to_table(report).find("verified"), std::string::npos);
  report.error.emplace();
  report.error->error = 0.25;
  report.error->allowed = 0.5;
  report.error->output = "g";
  report.error->row = 3;
  report.error->col = 4;
  const Parsed good = Parsed::parse(to_json(report))["error"];
  EXPECT_EQ(good["value"], 0.25);
  EXPECT_EQ(good["bound"], 0.5);
  EXPECT_EQ(good["ok"], true);
  EXPECT_NE(to_table(report).find("verified: yes"), std::string::npos);
  EXPECT_NE(to_table(report).find("g(3, 4)"), std::string::npos);
  report.error->error = 0.75;
  report.error->ok = false;
  EXPECT_EQ(Parsed::parse(to_json(report))["error"]["ok"], false);
  EXPECT_NE(to_table(report).find("verified: NO"), std::string::npos);
}

}  // namespace
}  // namespace redblue
