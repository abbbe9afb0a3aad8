// Tests measurements that no run of the command reaches on every machine: events of cache lines in
// words, and profiles that do not fit the run.

#include "runtime/report/measurement.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/csv.hpp"
#include "tests/support/phase_counts.hpp"

namespace redblue {
namespace {

using Parsed = nlohmann::json;

Measurement of_lines() {
  Measurement measurement;
  measurement.via = "papi";
  measurement.version = "PAPI 7";
  measurement.events = {{"PAPI_L1_DCM", CacheLevel::L1, 64}, {"perf::PAGE-FAULTS"}};
  measurement.kernel.kernel = "some/kernel";
  measurement.kernel.shape = {3, 4, 5};
  measurement.kernel.M = 100;
  measurement.kernel.phases = {{phase_counts("S", 1000, 20, 50), {150, 7}}};
  measurement.kernel.total = {phase_counts("", 1000, 20, 50), {160, 8}};
  return measurement;
}

TEST(Measurement, LinesIntoACacheAreWordsForPeopleAndLinesForPrograms) {
  const std::string table = to_table(of_lines());
  EXPECT_NE(table.find("PAPI_L1_DCM: lines of 64 bytes into L1, here in words"), std::string::npos)
      << table;
  EXPECT_NE(table.find("into L1"), std::string::npos) << table;
  EXPECT_NE(table.find("1,000      20    2,400                  7"), std::string::npos) << table;
  EXPECT_NE(table.find("1,000      20    2,560                  8"), std::string::npos) << table;

  const Parsed json = Parsed::parse(to_json(of_lines()));
  EXPECT_EQ(json["used"]["events"][0],
            (Parsed{{"name", "PAPI_L1_DCM"}, {"lines_into", "L1"}, {"line", 64}}));
  EXPECT_EQ(json["used"]["events"][1], (Parsed{{"name", "perf::PAGE-FAULTS"}}));
  EXPECT_EQ(json["phases"][0]["events"]["PAPI_L1_DCM"], 150);
  EXPECT_FALSE(json["phases"][0].contains("traffic")) << "one direction is no traffic";

  const CsvRow row = parse_csv(to_csv(of_lines())).front();
  EXPECT_EQ(row.at("PAPI_L1_DCM"), "150");
  EXPECT_EQ(row.at("traffic_in") + row.at("traffic_out") + row.at("ratio"), "");
}

TEST(Measurement, TheRatioOfALevel) {
  Measurement measurement = of_lines();
  EXPECT_DOUBLE_EQ(*traffic_ratio(measurement, CacheLevel::L1), 160 * 16 / 1020.0);
  EXPECT_EQ(traffic_ratio(measurement, CacheLevel::L2), std::nullopt);
  measurement.simulation = Simulation{CacheLevel::L2, {128, 2, 64}, {32768, 8, 64}};
  EXPECT_EQ(traffic_ratio(measurement, CacheLevel::L2), std::nullopt) << "no traffic yet";
  measurement.kernel.total.traffic = LineTraffic{1000, 530};
  EXPECT_DOUBLE_EQ(*traffic_ratio(measurement, CacheLevel::L2), 1.5);
  EXPECT_EQ(traffic_ratio(measurement, CacheLevel::L1), std::nullopt) << "another was simulated";
  measurement.kernel.total.counted = {};
  EXPECT_EQ(traffic_ratio(measurement, CacheLevel::L2), std::nullopt);
}

constexpr const char* kRun =
    R"({"context": {"simd": "SSE4"}, "kernel": "matmul/blocked", "n": 8, "m": 8, "d": 8, "M": 48,
        "seed": 3, "operands": {"A": "file", "B": "seed"}, "blocks": {"B": 4},
        "phases": [{"path": "C", "reads": 256, "writes": 64, "peak": 48, "flops": 1024,
                    "elementwise": 0}],
        "total": {"reads": 256, "writes": 64, "peak": 48, "flops": 1024, "elementwise": 0}})";

CallgrindEvents misses(std::int64_t reads, std::int64_t writes, std::int64_t dirty) {
  return {{"DLmr", reads}, {"DLmw", writes}, {"ILdmr", 0}, {"DLdmr", dirty}, {"DLdmw", 0}};
}
constexpr Simulation kSmall{CacheLevel::L1, {128, 2, 64}, {32768, 8, 64}};

// Lines outside all phases have their own row. The lines that emptied the cache do not count as
// traffic of the kernel.
TEST(Measurement, OfASimulation) {
  const CallgrindProfile profile = {
      {"matmul/blocked",
       {{"C", misses(10, 5, 2)}, {"", misses(1, 1, 0)}, {"(left)", misses(1000, 0, 3)}}}};
  const Measurement measurement = simulated_measurement(kRun, profile, kSmall);
  EXPECT_EQ(measurement.kernel.blocks["B"], 4);
  EXPECT_NE(to_table(measurement).find("\noperands: A from files; B from seed 3\n"),
            std::string::npos);
  EXPECT_EQ(parse_csv(to_csv(measurement)).front().at("operands"), "A=file B=seed");
  const auto& phases = measurement.kernel.phases;
  ASSERT_EQ(phases.size(), 3U);
  EXPECT_EQ(phases[0].counted, (PhaseCounts{"C", {256, 64}, {1024, 0}, 48}));
  EXPECT_EQ(phases[0].traffic->in, 15 * 16);
  EXPECT_EQ(phases[0].traffic->out, 2 * 16);
  EXPECT_EQ(phases[1].counted.path, "(outside)");
  EXPECT_EQ(phases[1].traffic->in, 2 * 16);
  EXPECT_EQ(phases[2].counted.path, "(left)");
  EXPECT_EQ(phases[2].traffic->in, 0);
  EXPECT_EQ(phases[2].traffic->out, 3 * 16);
  EXPECT_EQ(measurement.kernel.total.traffic->in, 17 * 16);
  EXPECT_EQ(measurement.kernel.total.traffic->out, 5 * 16);
  const Parsed json = Parsed::parse(to_json(measurement));
  EXPECT_DOUBLE_EQ(json["total"]["ratio"].get<double>(), 22. * 16 / 320);
  EXPECT_EQ(json["phases"][2]["ratio"], Parsed());
  EXPECT_EQ(json["context"]["simd"], "SSE4");
}

constexpr const char* kRunOfLevels =
    R"({"context": {"simd": "SSE4"}, "kernel": "backward/rows", "n": 8, "m": 8, "d": 8, "M": 900,
        "seed": 3, "operands": {"A1": "seed"}, "blocks": {"Br": 8, "L1.Br": 2},
        "phases": [{"path": "core", "reads": 256, "writes": 64, "peak": 48, "flops": 1024,
                    "elementwise": 0}],
        "total": {"reads": 256, "writes": 64, "peak": 48, "flops": 1024, "elementwise": 0},
        "levels": [{"M": 100, "total": {"reads": 700, "writes": 100, "peak": 90},
                    "phases": [{"path": "core", "reads": 700, "writes": 100, "peak": 90}]},
                   {"M": 900, "total": {"reads": 256, "writes": 64, "peak": 48},
                    "phases": [{"path": "core", "reads": 256, "writes": 64, "peak": 48}]}]})";

// Each level has its own cache, from the innermost out. For the inner cache, only the incoming
// lines are known. The lines that emptied the caches belong to no phase.
TEST(Measurement, OfTwoLevels) {
  const auto misses_of_both = [](std::int64_t inner, std::int64_t outer, std::int64_t dirty) {
    CallgrindEvents events = misses(outer, 0, dirty);
    events["D1mr"] = inner;
    events["D1mw"] = 1;
    return events;
  };
  const CallgrindProfile profile = {{"backward/rows",
                                     {{"core", misses_of_both(49, 15, 2)},
                                      {"", misses_of_both(2, 0, 0)},
                                      {"(left)", misses_of_both(1000, 999, 3)}}}};
  const Simulation both{CacheLevel::L2, {4096, 8, 64}, {32768, 8, 64}, CacheLevel::L1};
  const Measurement measurement = simulated_measurement(kRunOfLevels, profile, both);
  const Parsed levels = Parsed::parse(to_json(measurement))["levels"];
  ASSERT_EQ(levels.size(), 2U);
  EXPECT_EQ(levels[0]["M"], 100);
  EXPECT_EQ(levels[0]["cache"], "L1");
  EXPECT_EQ(levels[0]["phases"][0], (Parsed{{"path", "core"},
                                            {"reads", 700},
                                            {"writes", 100},
                                            {"traffic", {{"in", 50 * 16}}},
                                            {"ratio", 1.0}}));
  EXPECT_EQ(levels[0]["phases"][1]["traffic"]["in"], 3 * 16) << "outside of all phases";
  EXPECT_EQ(levels[0]["phases"].size(), 2U);
  EXPECT_EQ(levels[0]["total"]["traffic"]["in"], 53 * 16);
  EXPECT_DOUBLE_EQ(levels[0]["total"]["ratio"], 53. * 16 / 800);
  EXPECT_EQ(levels[1]["cache"], "L2");
  EXPECT_EQ(levels[1]["total"]["traffic"], (Parsed{{"in", 15 * 16}, {"out", 5 * 16}}));
  EXPECT_DOUBLE_EQ(levels[1]["total"]["ratio"], 20. * 16 / 320);
  EXPECT_DOUBLE_EQ(*traffic_ratio(measurement, CacheLevel::L2), 1);

  const std::string table = to_table(measurement);
  EXPECT_NE(table.find("level 1, M = 100 words, compared with L1"), std::string::npos) << table;
  EXPECT_NE(table.find("M=100,900"), std::string::npos) << table;
  EXPECT_EQ(table.find("level 2"), std::string::npos) << "the machine's own table has it";
  const std::vector<CsvRow> rows = parse_csv(to_csv(measurement));
  EXPECT_EQ(rows.front().at("level"), "2");
  EXPECT_EQ(rows.back().at("level"), "1");
  EXPECT_EQ(rows.back().at("M_levels"), "100/900");
  EXPECT_EQ(rows.back().at("traffic_in"), std::to_string(53 * 16));
  EXPECT_EQ(rows.back().at("traffic_out") + rows.back().at("DLmr"), "");
}

// By counters: lines into L1 for level 1, and lines into L2 for the machine.
TEST(Measurement, LinesIntoTheCachesOfTwoLevels) {
  Measurement measurement = of_lines();
  measurement.events[1] = {"PAPI_L2_DCM", CacheLevel::L2, 64};
  measurement.caches = {CacheLevel::L1, CacheLevel::L2};
  measurement.kernel.inner = {
      {50, {phase_counts("S", 2000, 400, 40)}, phase_counts("", 2000, 560, 40)}};
  const Parsed levels = Parsed::parse(to_json(measurement))["levels"];
  EXPECT_EQ(levels[0]["phases"][0]["traffic"], (Parsed{{"in", 150 * 16}}));
  EXPECT_DOUBLE_EQ(levels[0]["phases"][0]["ratio"], 1);
  EXPECT_DOUBLE_EQ(levels[0]["total"]["ratio"], 1);
  EXPECT_EQ(levels[1]["total"]["traffic"], (Parsed{{"in", 8 * 16}}));
  EXPECT_DOUBLE_EQ(levels[1]["total"]["ratio"], 8. * 16 / 1020);
  const std::string table = to_table(measurement);
  EXPECT_NE(table.find("level 2, M = 100 words, compared with L2"), std::string::npos) << table;
}

TEST(Measurement, DumpsThatAreNotThoseOfTheRun) {
  const CallgrindProfile other = {{"forward/flash", {{"core", misses(1, 1, 1)}}}};
  EXPECT_THROW(simulated_measurement(kRun, other, kSmall), std::runtime_error);
  const CallgrindProfile without = {{"matmul/blocked", {{"", misses(1, 1, 1)}}}};
  EXPECT_THROW(simulated_measurement(kRun, without, kSmall), std::runtime_error) << "no phase C";
  EXPECT_THROW(simulated_measurement("", other, kSmall), std::runtime_error);
}

}  // namespace
}  // namespace redblue
