// Tests `redblue plan KERNEL --ranks`: the grids for a number of ranks, ordered by words and by
// time.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/text/table.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"

namespace redblue {
namespace {

class PlanOnRanks : public Cli {};

const std::string kPlan = "plan backward/rows --n 4096 --m 2048 --d 32 --M 16K";

// Each grid has the numbers of `count`, and the first grid is the one that count and run take.
TEST_F(PlanOnRanks, IsWhatCountSays) {
  const Json plan = json(kPlan + " --ranks 12");
  EXPECT_EQ(plan["runners_up"].size(), 5U);
  Json all = plan["runners_up"];
  all.insert(all.begin(), plan["plan"]);
  Index last = 0;
  for (const Json& choice : all) {
    const Json& grid = choice["grid"];
    const std::string line = fmt::format(
        "count backward/rows --n 4096 --m 2048 --d 32 --M 16K --objective words --grid {}x{}",
        grid["rows"].get<Index>(), grid["columns"].get<Index>());
    SCOPED_TRACE(line);
    const Json counted = json(line);
    EXPECT_EQ(choice["blocks"], counted["blocks"]);
    EXPECT_EQ(choice["rank_bounds"]["arena"], counted["rank_bounds"]["arena"]);
    EXPECT_GE(counted["largest"]["received"], choice["received"]) << "O and L are dealt out";
    EXPECT_GE(choice["received"], last);
    last = choice["received"].get<Index>();
  }
  Json taken = json("count backward/rows --n 4096 --m 2048 --d 32 --M 16K --ranks 12")["grid"];
  taken.erase("sets");  // sets are for heads
  EXPECT_EQ(taken, plan["plan"]["grid"]);
  // A kernel that starts from scratch has no words for O and L.
  const Json forward = json("plan forward/rows --n 4096 --d 32 --M 16K --ranks 12")["plan"];
  const Json counted = json("count forward/rows --n 4096 --d 32 --M 16K --ranks 12");
  EXPECT_EQ(forward["received"], counted["largest"]["received"]);
  EXPECT_EQ(forward["path"], counted["path"]);
  EXPECT_EQ(forward["rank_bounds"], counted["rank_bounds"]);
}

TEST_F(PlanOnRanks, FitsTheHome) {
  const Json free = json(kPlan + " --ranks 12");
  const Index least = [&] {
    Index home = free["plan"]["home"].get<Index>();
    for (const Json& other : free["runners_up"]) {
      home = std::min(home, other["home"].get<Index>());
    }
    return home;
  }();
  const Json tight = json(fmt::format("{} --ranks 12 --home {}", kPlan, least));
  EXPECT_EQ(tight["plan"]["home"], least);
  EXPECT_EQ(tight["home"], least);
  expect_refused(process(fmt::format("{} --ranks 12 --home {}", kPlan, least - 1)), 2,
                 fmt::format("--home {}: no grid of 12 ranks has so small a home: the least is {}, "
                             "of ",
                             least - 1, least));
}

TEST_F(PlanOnRanks, SaysTheSameInEveryForm) {
  const Json plan = json(kPlan + " --ranks 6");
  const std::string table = data(kPlan + " --ranks 6");
  EXPECT_NE(table.find(plan["reason"].get<std::string>()), std::string::npos) << table;
  EXPECT_NE(table.find(grouped(plan["plan"]["received"].get<Index>())), std::string::npos) << table;
  const std::vector<CsvRow> rows = parse_csv(data(kPlan + " --ranks 6 --format csv"));
  ASSERT_EQ(rows.size(), plan["runners_up"].size() + 1);
  EXPECT_EQ(rows[0].at("received"), plan["plan"]["received"].dump());
  EXPECT_EQ(rows[0].at("ranks"), "6");
  // The ratio uses the words as the bound counts them, which are fewer than the received words.
  const Index counted = plan["plan"]["rank_bounds"]["links"]["words"].get<Index>();
  EXPECT_LT(counted, plan["plan"]["received"]);
  EXPECT_EQ(rows[0].at("counted"), std::to_string(counted));
  EXPECT_NE(table.find(grouped(counted)), std::string::npos) << table;
  EXPECT_NE(plan["reason"].get<std::string>().find(grouped(counted) + " as the bound "),
            std::string::npos);
}

// By the default rates and the given costs of links.
TEST_F(PlanOnRanks, LeastTime) {
  const std::string timed = kPlan + " --ranks 12 --objective time";
  expect_refused(process(timed), 2,
                 "--objective time: how long messages between ranks take is not known: give "
                 "--link-costs, or run `redblue calibrate`");
  const Json plan = json(timed + " --link-costs 1e-5,1e-9");
  EXPECT_EQ(plan["objective"], "time");
  EXPECT_EQ(plan["links"]["seconds_a_word"], 1e-9);
  double last = plan["plan"]["seconds"];
  for (const Json& other : plan["runners_up"]) {
    EXPECT_GE(other["seconds"], last);
    last = other["seconds"];
  }
  EXPECT_NE(data(timed + " --link-costs 1e-5,1e-9").find("given by --link-costs"),
            std::string::npos);
  const auto path = [&](const std::string& costs) {
    return json(timed + " --link-costs " + costs)["plan"];
  };
  EXPECT_LE(path("1e-9,1")["path"], path("1,1e-12")["path"]);
  EXPECT_LE(path("1,1e-12")["path_messages"], path("1e-9,1")["path_messages"]);
}

TEST_F(PlanOnRanks, RefusesWhatItDoesNotPlan) {
  const std::pair<std::string, const char*> refused[] = {
      {"plan --n 20 --d 4 --M 900 --ranks 4", "--ranks '4': expected a KERNEL and --ranks"},
      {"plan backward/rows --n 20 --d 4 --M 900", "plan takes a kernel only with --ranks"},
      {"plan --n 20 --d 4 --M 900 --home 9", "--home '9': expected a KERNEL"},
      {"plan backward/small --n 20 --d 4 --M 900 --ranks 4",
       "does not run on ranks; .*backward/rows"},
      {"plan backward/row --n 20 --d 4 --M 900 --ranks 4", "no kernel is called 'backward/row'"},
      {kPlan + " --ranks 0", "--ranks: .0. is zero"},
      {kPlan + " --ranks 4 --problem forward",
       "--problem 'forward': backward/rows names the kernel"},
      {kPlan + " --ranks 4 --link-costs 1,2", "--link-costs: messages take time"},
      {kPlan + " --ranks 4 --objective time --link-costs 1", "--link-costs: expected two numbers"},
      {kPlan + " --ranks 4 --loops backward/rows", "--ranks: --loops asks about one machine"},
      {"plan attention/rows --n 20 --d 4 --M 900 --ranks 2 --heads 2 --kv-heads 1",
       "--heads: ranks share out heads first: a plan is of one"},
      {kPlan + " --ranks 4 --mask prefix:0", "no query meets a key under this mask"},
      {"plot ranks backward/rows --n 64 --d 8 --M 4K --ranks 4 --mask prefix:0",
       "no query meets a key under this mask"},
      {kPlan + " --ranks 100K", "--ranks 102400 is too many; expected at most 16384"},
      {"plan backward/rows --n 20 --d 4 --M 20 --ranks 4",
       "does not fit in M = 20 words: it needs"},
  };
  for (const auto& [line, message] : refused) {
    SCOPED_TRACE(line);
    expect_refused(process(line), 2, message);
  }
}

}  // namespace
}  // namespace redblue
