// Tests the output of `redblue table1`: its JSON key by key, and the same in a table and in CSV.
// Sparse operands are on a small grid here, because the command's own grid takes seconds.

#include "runtime/report/table1.hpp"

#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/report_forms.hpp"
#include "tests/support/small_table1.hpp"

namespace redblue {
namespace {

using Json = nlohmann::json;
class Table1Command : public Cli {};

TEST_F(Table1Command, EveryKeyAndTheSameInATableAndCsv) {
  const Table1 report = report_table1(small_sparse_laws());
  const Json json = Json::parse(to_json(report));
  EXPECT_EQ(keys(json), (Keys{"schema", "context", "tolerance", "grids", "rows"}));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["tolerance"], Claim::kTolerance);

  const std::string table = to_table(report);
  std::set<std::string> grids;
  for (const Json& grid : json["grids"]) {
    const bool sparse = grid.contains("s");
    EXPECT_EQ(keys(grid), sparse ? (Keys{"name", "n", "s", "M", "text", "points", "d", "X"})
                                 : (Keys{"name", "n", "d", "M", "text", "points"}));
    EXPECT_EQ(grid["points"], 27);
    for (const char* size : {"n", sparse ? "s" : "d", "M"}) {
      EXPECT_EQ(keys(grid[size]), (Keys{"from", "to"}));
      EXPECT_LT(grid[size]["from"], grid[size]["to"]);
    }
    grids.insert(grid["name"]);
    EXPECT_NE(table.find(fmt::format("\n{}: {}\n", grid["name"].get<std::string>(),
                                     grid["text"].get<std::string>())),
              std::string::npos);
  }

  const std::vector<CsvRow> rows = parse_csv(to_csv(report));
  ASSERT_EQ(rows.size(), json["rows"].size());
  std::set<std::string> counted;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& entry = json["rows"][i];
    SCOPED_TRACE(entry.dump());
    EXPECT_EQ(keys(entry), (Keys{"pass", "bound", "cache", "from", "says", "words_of", "counted",
                                 "claimed", "tolerance", "fit", "holds", "verdict"}));
    for (const char* text : {"pass", "bound", "cache", "from", "says", "words_of", "verdict"}) {
      EXPECT_EQ(rows[i].at(text), entry[text]);
      // A row without a bound belongs to a kernel, and the table says so.
      const std::string said = entry[text];
      EXPECT_NE(table.find(said == "none" ? "sparse kernel" : said), std::string::npos) << text;
    }
    counted.insert(entry["counted"]);
    EXPECT_EQ(rows[i].at("counted"), entry["counted"]);
    const Json& fit = entry["fit"];
    EXPECT_EQ(keys(fit),
              (Keys{"grid", "constant", "exponents", "residual", "over_claim", "peak_over_M"}));
    const std::string width = entry["pass"] == "sparse" ? "s" : "d";
    const Keys exponents = {"n", width, "M"};
    EXPECT_EQ(keys(fit["exponents"]), exponents);
    EXPECT_EQ(keys(entry["claimed"]), exponents);
    EXPECT_EQ(keys(entry["tolerance"]), exponents);
    EXPECT_TRUE(grids.contains(fit["grid"]));
    EXPECT_EQ(rows[i].at("grid"), fit["grid"]);
    EXPECT_EQ(std::stod(rows[i].at("constant")), fit["constant"]);
    EXPECT_EQ(std::stod(rows[i].at(width)), fit["exponents"][width]);
    EXPECT_EQ(rows[i].at(width == "s" ? "d" : "s"), "");
    EXPECT_EQ(std::stod(rows[i].at("M")), fit["exponents"]["M"]);
    EXPECT_EQ(std::stod(rows[i].at("most_over_claim")), fit["over_claim"]["most"]);
    EXPECT_LE(fit["over_claim"]["least"], fit["over_claim"]["most"]);
    if (entry["bound"] == "none") {
      EXPECT_TRUE(entry["holds"].is_null());
    } else {
      EXPECT_EQ(entry["holds"] == true, entry["verdict"] == "holds");
    }
  }
  EXPECT_EQ(counted, (std::set<std::string>{"all", "values", "core", "values of core"}));
  EXPECT_EQ(table.find("-0.00"), std::string::npos);
}

TEST_F(Table1Command, Usage) {
  expect_refused(process("table1 --n 4"), 2, "--n");
  expect_refused(process("table1 --format xml"), 2, "--format.*xml");
}

}  // namespace
}  // namespace redblue
