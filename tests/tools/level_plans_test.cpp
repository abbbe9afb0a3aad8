// Tests `redblue plan`, `bounds` and `count` with several levels of fast memory and with costs of
// words.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/json.hpp"

namespace redblue {
namespace {

class LevelPlans : public Cli {
 protected:
  // Returns the words at each level that `count` reports for a listed kernel and its forward pass.
  [[nodiscard]] std::vector<Index> counted(const Json& choice, const std::string& size) const {
    std::vector<Index> words;
    for (const Json& name : {choice["kernel"], choice["forward"]}) {
      if (name.is_null()) {
        continue;
      }
      // These are the words of the kernel alone. A forward pass that `count` adds is under
      // `forward`.
      const Json count =
          json(fmt::format("count {} {} --objective words", name.get<std::string>(), size));
      words.resize(count["levels"].size());
      for (std::size_t level = 0; level < words.size(); ++level) {
        words[level] += count["levels"][level]["total"]["io"].get<Index>();
      }
    }
    return words;
  }
};

std::vector<Json> choices_in_levels(const Json& plan) {
  std::vector<Json> all = {plan["plan"]};
  all.insert(all.end(), plan["runners_up"].begin(), plan["runners_up"].end());
  return all;
}

TEST_F(LevelPlans, ListWhatCountSays) {
  for (const std::string M : {"1K,8K", "700,3K,20K --word-costs 1,4,100"}) {
    const std::string size = "--n 300 --m 200 --d 16 --M " + M;
    for (const std::string of :
         {"--given OL", "--given nothing", "--problem forward", "--sharing kv",
          "--problem attention --mask causal --m 300", "--activation relu"}) {
      SCOPED_TRACE(M + " " + of);
      std::string task = size + " " + of;
      std::string same = size;
      if (of.find("mask") != std::string::npos) {
        same = "--n 300 --d 16 --mask causal --M " + M;
        task = "--problem attention " + same;
      } else if (of.find("sharing") != std::string::npos || of.find("activ") != std::string::npos) {
        same += " " + of;
      }
      const Json plan = json("plan " + task);
      const std::vector<Json> all = choices_in_levels(plan);
      for (const Json& choice : all) {
        EXPECT_GE(choice["weighted"], all.front()["weighted"]);
        const std::vector<Index> words = counted(choice, [&] {
          std::string spelled = same;
          const auto sharing = spelled.find(" --sharing kv");
          return sharing == std::string::npos ? spelled : spelled.erase(sharing, 13);
        }());
        ASSERT_EQ(choice["levels"].size(), words.size());
        double sum = 0;
        for (std::size_t level = 0; level < words.size(); ++level) {
          const Json& of_level = choice["levels"][level];
          EXPECT_EQ(of_level["total"]["io"], words[level]) << choice;
          EXPECT_EQ(of_level["M"], plan["levels"][level]["M"]);
          EXPECT_LE(of_level["total"]["peak"], of_level["M"]);
          EXPECT_GE(of_level["ratio"], 1);
          EXPECT_GE(of_level["lower_bound"]["words"],
                    plan["levels"][level]["lower_bound"]["words"]);
          sum += of_level["word_cost"].get<double>() * static_cast<double>(words[level]);
        }
        EXPECT_DOUBLE_EQ(choice["weighted"].get<double>(), sum);
        EXPECT_EQ(choice["words"], words.back());
      }
    }
  }
}

// `auto` runs the first kernel of the plan, for any costs of words.
TEST_F(LevelPlans, AutoRunsTheFirst) {
  for (const std::string costs : {"", " --word-costs 1,1", " --word-costs 1,1000"}) {
    const std::string size = "--n 90 --m 70 --d 6 --M 500,3K" + costs;
    const Json plan = json("plan --given nothing " + size);
    const Json run = json("run backward/auto --objective words --verify " + size);
    EXPECT_EQ(run["kernel"], plan["plan"]["kernel"]);
    EXPECT_EQ(run["blocks"], plan["plan"]["blocks"]);
    EXPECT_TRUE(run["error"]["ok"].get<bool>());
    ASSERT_EQ(run.contains("word_costs"), !costs.empty());
    if (!costs.empty()) {
      EXPECT_DOUBLE_EQ(run["weighted"].get<double>(), plan["plan"]["weighted"].get<double>());
      EXPECT_EQ(run["word_costs"][0], 1);
    }
  }
}

TEST_F(LevelPlans, OfOneKernel) {
  const std::string size = " --n 300 --d 16 --M 1K,8K";
  const Json plan = json("plan backward/rows" + size);
  EXPECT_EQ(plan["plan"]["kernel"], "backward/rows");
  EXPECT_TRUE(plan["runners_up"].empty());
  EXPECT_EQ(plan["plan"]["blocks"], json("count backward/rows" + size)["blocks"]);
  expect_refused(process("plan backward/small" + size), 2,
                 "--M 1024,8192: backward/small has one level of fast memory; .*backward/rows");
  expect_refused(process("plan --loops backward/rows" + size), 2,
                 "--M: --loops shows the loops of one level of fast memory: give one size");
}

TEST_F(LevelPlans, TableAndCsv) {
  const std::string size = " --n 300 --d 16 --M 1K,8K";
  const Json plan = json("plan" + size);
  const std::string table = data("plan" + size);
  EXPECT_NE(
      table.find("a word of each level weighs 1,024 / 8,192 (default: the size of the level)"),
      std::string::npos)
      << table;
  EXPECT_NE(table.find("not listed (one level of fast memory only): "), std::string::npos) << table;
  EXPECT_NE(table.find(plan["reason"].get<std::string>()), std::string::npos) << table;
  const std::vector<CsvRow> rows = parse_csv(data("plan --format csv" + size));
  std::size_t k = 0;
  for (const Json& choice : choices_in_levels(plan)) {
    for (std::size_t level = 0; level < 2; ++level, ++k) {
      ASSERT_LT(k, rows.size());
      EXPECT_EQ(rows[k].at("kernel"), choice["kernel"]);
      EXPECT_EQ(rows[k].at("M_levels"), "1024/8192");
      EXPECT_EQ(rows[k].at("level"), std::to_string(level + 1));
      EXPECT_EQ(rows[k].at("words"), choice["levels"][level]["total"]["io"].dump());
    }
  }
  EXPECT_EQ(k, rows.size());
}

// The bounds of each level equal the bounds of a machine with that level's M alone.
TEST_F(LevelPlans, BoundsOfEachM) {
  for (const std::string problem : {"backward", "forward", "gradients", "product"}) {
    const std::string line = "bounds --n 300 --d 16 --problem " + problem + " --M ";
    const Json both = json(line + "1K,8K --word-costs 3,5");
    double sum = 0;
    for (std::size_t level = 0; level < 2; ++level) {
      const Json alone = json(line + (level == 0 ? "1K" : "8K"));
      const Json& of = both["levels"][level];
      EXPECT_EQ(of["M"], alone["M"]);
      EXPECT_EQ(of["lower_bound"], alone["lower_bound"]);
      ASSERT_EQ(of["bounds"].size(), alone["bounds"].size());
      for (std::size_t k = 0; k < of["bounds"].size(); ++k) {
        EXPECT_EQ(of["bounds"][k]["words"], alone["bounds"][k]["words"]);
        EXPECT_EQ(of["bounds"][k]["name"], alone["bounds"][k]["name"]);
      }
      sum += (level == 0 ? 3 : 5) * of["lower_bound"]["words"].get<double>();
    }
    EXPECT_DOUBLE_EQ(both["weighted_bound"].get<double>(), sum);
    EXPECT_EQ(both["bounds"], both["levels"][1]["bounds"]);
    EXPECT_NE(data(line + "1K,8K").find("\nlevel 1, M = 1,024 words\n"), std::string::npos);
    EXPECT_NE(data(line + "1K,8K --format csv").find("1024/8192"), std::string::npos);
  }
}

TEST_F(LevelPlans, EqualLevelsAreOne) {
  const std::string size = " --n 300 --d 16 --M ";
  EXPECT_EQ(json("plan" + size + "8K,8K")["plan"], json("plan" + size + "8K")["plan"]);
  EXPECT_EQ(json("bounds" + size + "8K,8K")["bounds"], json("bounds" + size + "8K")["bounds"]);
  const Json count = json("count backward/rows" + size + "8K,8K --word-costs 1,2");
  EXPECT_EQ(count["weighted"].get<double>(), 3 * count["total_from_nothing"].get<double>());
}

TEST_F(LevelPlans, WordCostsAreRefused) {
  const std::string size = " --n 300 --d 16 --M 1K,8K";
  for (const std::string& command :
       {std::string("plan"), std::string("bounds"), std::string("count backward/rows"),
        std::string("run backward/rows")}) {
    const std::pair<std::string, const char*> refused[] = {
        {size + " --word-costs 1", "--word-costs 1: 1 number for 2 levels of --M: give one"},
        {size + " --word-costs 1,2,3", "--word-costs 1,2,3: 3 numbers for 2 levels of --M"},
        {size + " --word-costs 1,0", "--word-costs.*\"0\""},
        {size + " --word-costs 1,-2", "--word-costs.*\"-2\""},
        {size + " --word-costs 1,inf", "--word-costs.*\"inf\""},
        {size + " --word-costs 1,", "--word-costs.*\"\""},
        {size + " --word-costs calibrated",
         "--word-costs calibrated: what a word costs .* not known: run `redblue calibrate`"},
        {" --n 300 --d 16 --M 8K --word-costs 1", "--word-costs 1: only with several levels"}};
    for (const auto& [rest, message] : refused) {
      SCOPED_TRACE(command + rest);
      expect_refused(process("XDG_CACHE_HOME=/none " + command + rest), 2, message);
    }
    expect_refused(process(command + size + " --word-costs 1"), 2, "--word-costs 1: 1 number");
  }
  expect_refused(
      process("plan --n 300 --d 16 --problem linear --M 1K,8K"), 2,
      "--M 1024,8192: no kernel of linear has several levels of fast memory; .*backward/rows");
  expect_refused(process("plan --n 300 --d 16 --M 2,8K"), 2, "M = 2 words of level 1");
  expect_refused(process("bounds --n 300 --d 16 --M 1K,8K --partition"), 2,
                 "--partition: partitions are of one level of fast memory: give --M one size");
  expect_refused(process("plan --cache 32KiB --d 64 --word-costs 1,2"), 2,
                 "--word-costs '1,2': --cache asks about one level of fast memory");
}

// Without a calibration, the time of a word is unknown.
TEST_F(LevelPlans, LeastTimeSaysWhatIsNotTimed) {
  const std::string line =
      "XDG_CACHE_HOME=/none plan --n 300 --d 16 --M 1K,8K --given nothing --objective time";
  const Json plan = json(line);
  EXPECT_TRUE(plan["plan"]["seconds"].is_null());
  EXPECT_TRUE(plan["rates"].is_null());
  EXPECT_NE(data(line).find("not timed: what a word takes at each level is not known: run `redblue "
                            "calibrate`"),
            std::string::npos);
}

}  // namespace
}  // namespace redblue
