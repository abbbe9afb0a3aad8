// The output of `redblue table1`: its JSON key by key, and the same in a table and in CSV.

#include "runtime/report/table1.hpp"

#include <fmt/format.h>

#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"

namespace redblue {
namespace {

class Table1Command : public Cli {};

TEST_F(Table1Command, EveryKeyAndTheSameInATableAndCsv) {
  const Outcome outcome = redblue("table1 --format json");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_LT(outcome.seconds, 20 * kSlowdown);
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(keys(json), (Keys{"schema", "context", "tolerance", "grids", "rows"}));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["tolerance"], kTolerance);

  const std::string table = data("table1");
  std::set<std::string> grids;
  for (const Json& grid : json["grids"]) {
    EXPECT_EQ(keys(grid), (Keys{"name", "n", "d", "M", "text", "points"}));
    EXPECT_EQ(grid["points"], 27);
    for (const char* size : {"n", "d", "M"}) {
      EXPECT_EQ(keys(grid[size]), (Keys{"from", "to"}));
      EXPECT_LT(grid[size]["from"], grid[size]["to"]);
    }
    grids.insert(grid["name"]);
    EXPECT_NE(table.find(fmt::format("\n{}: {}\n", grid["name"].get<std::string>(),
                                     grid["text"].get<std::string>())),
              std::string::npos);
  }

  const std::vector<CsvRow> rows = parse_csv(data("REDBLUE_FORMAT=csv table1"));
  ASSERT_EQ(rows.size(), json["rows"].size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& entry = json["rows"][i];
    SCOPED_TRACE(entry.dump());
    EXPECT_EQ(keys(entry), (Keys{"pass", "bound", "cache", "from", "says", "words_of", "claimed",
                                 "fit", "holds", "verdict"}));
    for (const char* text : {"pass", "bound", "cache", "from", "says", "words_of", "verdict"}) {
      EXPECT_EQ(rows[i].at(text), entry[text]);
      EXPECT_NE(table.find(entry[text].get<std::string>()), std::string::npos) << text;
    }
    const Json& fit = entry["fit"];
    if (fit.is_null()) {
      EXPECT_TRUE(entry["holds"].is_null());
      EXPECT_TRUE(entry["claimed"].is_null());
      EXPECT_EQ(rows[i].at("grid"), "");
      continue;
    }
    EXPECT_EQ(keys(fit), (Keys{"grid", "constant", "exponents", "residual", "peak_over_M"}));
    EXPECT_EQ(keys(fit["exponents"]), (Keys{"n", "d", "M"}));
    EXPECT_EQ(keys(entry["claimed"]), (Keys{"n", "d", "M"}));
    EXPECT_TRUE(grids.contains(fit["grid"]));
    EXPECT_EQ(rows[i].at("grid"), fit["grid"]);
    EXPECT_EQ(std::stod(rows[i].at("constant")), fit["constant"]);
    EXPECT_EQ(std::stod(rows[i].at("M")), fit["exponents"]["M"]);
    EXPECT_EQ(entry["holds"], entry["verdict"] == "holds");
  }
  EXPECT_EQ(table.find("-0.00"), std::string::npos);
}

TEST_F(Table1Command, Usage) {
  expect_refused(process("table1 --n 4"), 2, "--n");
  expect_refused(process("table1 --format xml"), 2, "--format.*xml");
}

}  // namespace
}  // namespace redblue
