// Tests `count --as`: schedules of attention kernels from other projects. They move the words of
// the redblue kernel with the same loops and the same blocks. For attention, they are n d (queries)
// + 2 m d ceil(n / Br) + n d + n (O and L).

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "memsim/words.hpp"
#include "runtime/text/table.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"

namespace redblue {
namespace {

class CountAs : public Cli {
 protected:
  [[nodiscard]] Json row(const std::string& name, const std::string& line) const {
    return json("count --as " + name + " " + line)["as"][0];
  }
  [[nodiscard]] std::vector<CsvRow> csv(const std::string& line) const {
    return parse_csv(redblue(line + " --format csv").out);
  }
};

TEST_F(CountAs, TilesAreThoseOfTheShape) {
  const auto expect = [&](const char* name, const std::string& line, const char* blocks) {
    EXPECT_EQ(blocks_of(row(name, line + " --M 1M")), blocks) << name << " " << line;
  };
  expect("flash-attention-2", "--n 999 --d 64", "Bc=128,Br=128");
  expect("flash-attention-2", "--n 999 --d 65", "Bc=64,Br=128");
  expect("flash-attention-2", "--n 999 --d 64 --problem gradients",
         "core.Bc=128,core.Br=128,v.Br=128");
  expect("flash-attention-2", "--n 999 --d 128 --problem gradients",
         "core.Bc=128,core.Br=64,v.Br=64");
  expect("flash-attention-3", "--n 999 --d 128", "Bc=176,Br=128");
  expect("flash-attention-3", "--n 999 --d 128 --mask causal", "Bc=128,Br=128");
  expect("flash-attention-3", "--n 999 --d 128 --problem gradients",
         "core.Bc=128,core.Br=80,v.Br=80");
  expect("flash-attention-3", "--n 999 --d 128 --problem gradients --mask causal",
         "core.Bc=128,core.Br=64,v.Br=64");
  expect("xformers", "--n 999 --d 100", "Bc=128,Br=64");
  expect("pytorch-cpu", "--n 767 --d 300", "Bc=512,Br=64");
  expect("pytorch-cpu", "--n 768 --d 8", "Bc=512,Br=256");
  expect("triton-tutorial", "--n 99 --d 32 --problem gradients",
         "dKV.Bc=128,dKV.Br=32,dQ.Bc=32,dQ.Br=128");
}

TEST_F(CountAs, WordsAreThoseOfTheLoops) {
  for (const auto& [name, n, d, rows] :
       {std::tuple("flash-attention-2", 8192, 64, 128),
        std::tuple("flash-attention-3", 1001, 96, 192), std::tuple("pytorch-cpu", 3000, 40, 256),
        std::tuple("triton-tutorial", 777, 128, 128)}) {
    const Index words = row(name, fmt::format("--n {} --d {} --M 1M", n, d))["words"].get<Index>();
    const Index blocks = (n + rows - 1) / rows;
    EXPECT_EQ(words, 2 * n * d + n + 2 * n * d * blocks) << name;
  }
  for (const char* line :
       {"--n 700 --d 64 --M 200K", "--n 700 --m 300 --d 64 --M 200K --heads 6",
        "--n 700 --d 64 --M 200K --mask causal", "--n 700 --d 64 --M 200K --problem gradients",
        "--n 700 --d 64 --M 200K --problem gradients --mask window:50,3"}) {
    SCOPED_TRACE(line);
    const Json all = json(fmt::format("count --as all {}", line));
    for (const Json& its : all["as"]) {
      if (its["kernel"].is_null()) {
        EXPECT_TRUE(its.contains("missing"));
        continue;
      }
      std::string kernel_line(line);
      if (const auto at = kernel_line.find("--problem gradients"); at != std::string::npos) {
        kernel_line.erase(at, std::string("--problem gradients").size());
      }
      const std::string kernel = its["kernel"].get<std::string>() + " " + kernel_line;
      const Json counted = json(fmt::format("count {} --blocks {}", kernel, blocks_of(its)));
      EXPECT_EQ(its["words"], counted["total"]["io"]);
      EXPECT_EQ(its["peak"], counted["total"]["peak"]);
      EXPECT_EQ(its["too_many"], 0);
      EXPECT_EQ(its["planned"]["words"],
                json("count " + kernel + " --objective words")["total"]["io"]);
      EXPECT_LE(its["planned"]["words"], its["words"]);
    }
  }
}

// The words do not depend on M. The words that M lacks are reported as `too_many`.
TEST_F(CountAs, TilesThatDoNotFitAreCounted) {
  const Json fits = row("pytorch-cpu", "--n 900 --d 64 --M 1M");
  const Index peak = fits["peak"].get<Index>();
  const Json misses = row("pytorch-cpu", "--n 900 --d 64 --M 48K");
  EXPECT_EQ(misses["words"], fits["words"]);
  EXPECT_EQ(misses["peak"], peak);
  EXPECT_EQ(misses["too_many"], peak - 48 * 1024);
  const Json least = row("pytorch-cpu", fmt::format("--n 900 --d 64 --M {}", peak));
  EXPECT_EQ(misses["ratio"], least["ratio"]);
  EXPECT_EQ(misses["planned"], least["planned"]);
  const Json none = row("flash-attention-2", "--n 90 --d 257 --M 1M");
  EXPECT_EQ(none["missing"], "it has no tiles for d = 257");
}

TEST_F(CountAs, IsRefusedWhereItHasNoMeaning) {
  const auto refused = [&](const std::string& line, const std::string& message) {
    expect_refused(process("count " + line), 2, message);
  };
  const std::string size = " --n 90 --d 8 --M 4K";
  refused("--as cudnn" + size,
          "--as 'cudnn': expected flash-attention-2, flash-attention-3, pytorch-cpu, "
          "triton-tutorial, xformers or all");
  refused("--as all --problem backward" + size,
          "--problem 'backward': expected attention or gradients");
  refused("attention/rows --as all" + size, "attention/rows: --as all names the schedule");
  refused("--as all --blocks Br=4" + size, "--blocks 'Br=4': --as all has its tiles");
  refused("attention/rows --problem attention" + size,
          "--problem 'attention': a kernel has one problem; it is of --as");
  refused("--as all --n 90 --d 8 --M 1K,4K", "--as all: tiles are of one level");
  refused("--as all --ranks 2" + size, "--as all: tiles are of one level");
  refused(size, "kernel is required");
  expect_refused(process("list --as --devices"), 2, "--as: --devices lists others");
}

TEST_F(CountAs, AreListedWithTheirSources) {
  const Json all = json("list --as")["as"];
  EXPECT_GE(all.size(), 15U);
  for (const Json& tiles : all) {
    EXPECT_NE(tiles["source"].get<std::string>().find(" at "), std::string::npos);
    EXPECT_EQ(redblue("count " + tiles["kernel"].get<std::string>() + " --n 9 --d 2 --M 4K").code,
              0);
  }
}

// `plan` and `bounds` list the same rows as `count --as`, number for number.
TEST_F(CountAs, RowsOfPlansAndBoundsAreTheSame) {
  for (const char* line :
       {"--problem attention --n 700 --d 64 --M 48K",
        "--problem attention --n 700 --m 300 --d 64 --dv 32 --M 48K --heads 6 --kv-heads 2",
        "--problem attention --n 300 --d 16 --M 9K --sharing kv --mask causal",
        "--problem gradients --n 300 --d 100 --M 48K --mask window:50,3",
        "--problem gradients --n 90 --d 300 --M 9K --wanted dQ"}) {
    SCOPED_TRACE(line);
    const Json counted = json(fmt::format("count --as all {}", line));
    const Json plan = json(fmt::format("plan --as all {}", line));
    const Json bounds = json(fmt::format("bounds --as all {}", line));
    EXPECT_EQ(plan["as"], counted["as"]);
    EXPECT_EQ(bounds["as"], counted["as"]);
    EXPECT_EQ(plan["plan"]["words"], counted["best"]["words"]);
    EXPECT_EQ(bounds["best"]["words"], counted["best"]["words"]);
    EXPECT_FALSE(json(fmt::format("plan {}", line)).contains("as"));
    // If the other project's tiles fit in M, `planned` is the plan's own choice for the same
    // kernel.
    for (const Json& its : counted["as"]) {
      if (its["too_many"] != 0) {
        continue;
      }
      std::vector<Json> choices = {plan["plan"]};
      choices.insert(choices.end(), plan["runners_up"].begin(), plan["runners_up"].end());
      const auto same = std::ranges::find_if(
          choices, [&](const Json& choice) { return choice["kernel"] == its["kernel"]; });
      ASSERT_NE(same, choices.end());
      EXPECT_EQ(its["planned"]["words"], (*same)["words"]);
      EXPECT_EQ(its["planned"]["ratio"], (*same)["ratio"]);
    }
  }
}

TEST_F(CountAs, PlansAndBoundsHaveThemAsTextAndCsv) {
  const std::string line = " --as all --problem attention --n 700 --d 64 --M 48K";
  for (const std::string command : {"plan", "bounds"}) {
    SCOPED_TRACE(command);
    const Json rows = json(command + line)["as"];
    const std::string text = redblue(command + line).out;
    for (const Json& its : rows) {
      const std::string name = its["as"].get<std::string>();
      EXPECT_NE(text.find(name + ": "), std::string::npos) << "its title is not there";
      EXPECT_NE(text.find(grouped(its["words"].get<Index>())), std::string::npos) << name;
      EXPECT_NE(text.find(its["source"].get<std::string>()), std::string::npos);
    }
    const auto table = csv(command + line);
    std::size_t found = 0;
    for (const auto& row : table) {
      if (row.at("as").empty()) {
        EXPECT_EQ(row.at("peak") + row.at("too_many") + row.at("planned_words"), "");
        continue;
      }
      const Json& its = rows[found++];
      EXPECT_EQ(row.at("as"), its["as"]);
      EXPECT_EQ(row.at("blocks"), fmt::format("Br={} Bc={}", its["blocks"]["Br"].get<Index>(),
                                              its["blocks"]["Bc"].get<Index>()));
      EXPECT_EQ(row.at("words"), its["words"].dump());
      EXPECT_EQ(row.at("peak"), its["peak"].dump());
      EXPECT_EQ(row.at("too_many"), its["too_many"].dump());
      EXPECT_EQ(row.at("planned_words"), its["planned"]["words"].dump());
    }
    EXPECT_EQ(found, rows.size());
  }
  // A missing number of words is empty, never 0, and the reason is printed.
  const std::string wide = " --as xformers --problem attention --n 90 --d 129 --M 48K";
  for (const std::string command : {"plan", "bounds"}) {
    EXPECT_NE(redblue(command + wide).out.find("; it has no tiles for d = 129\n"),
              std::string::npos);
    const auto rows = csv(command + wide);
    EXPECT_EQ(rows.back().at("as"), "xformers");
    EXPECT_EQ(rows.back().at("words"), "");
  }
}

// `bounds` reports the words of other projects' tiles even if no redblue kernel fits in M.
TEST_F(CountAs, BoundsHaveThemWhereNothingFits) {
  const Json bounds = json("bounds --as pytorch-cpu --problem attention --n 90 --d 64 --M 2");
  EXPECT_TRUE(bounds["best"].is_null());
  EXPECT_EQ(bounds["as"][0]["words"], row("pytorch-cpu", "--n 90 --d 64 --M 1M")["words"]);
  EXPECT_EQ(bounds["as"][0]["too_many"], bounds["as"][0]["peak"].get<Index>() - 2);
}

TEST_F(CountAs, PlansAndBoundsRefuseWhatHasNoTiles) {
  const auto refused = [&](const std::string& line, const std::string& message) {
    for (const std::string command : {"plan ", "bounds "}) {
      expect_refused(process(command + line), 2, message);
    }
  };
  const std::string size = " --n 90 --d 8 --M 4K";
  const std::string attention = " --problem attention" + size;
  refused("--as cudnn" + attention, "--as 'cudnn': expected flash-attention-2, .* or all");
  for (const char* problem : {"product", "forward", "backward", "layer", "linear"}) {
    refused(fmt::format("--as all --problem {}{}", problem, size),
            "--as all: other kernels have tiles of attention and gradients: give --problem");
  }
  refused("--as all" + size, "--as all: other kernels have tiles of attention and gradients");
  refused("--as all --problem attention --n 90 --d 8 --M 1K,4K",
          "--as all: tiles are of one level of fast memory");
  refused("--as all --problem gradients --given nothing" + size,
          "--as all: tiles of gradients start from O and L: leave out --given nothing");
  const auto plan = [&](const std::string& line, const std::string& message) {
    expect_refused(process("plan --as all " + line), 2, message);
  };
  plan("attention/rows --ranks 4 --n 90 --d 8 --M 4K",
       "--as all: it is beside a plan of all kernels: leave out attention/rows");
  plan("--loops attention/rows" + size, "leave out --loops");
  plan("--cache a100 --d 64", "leave out --cache");
}

// The measured rates belong to planned blocks. Other tiles have words, but no time.
TEST_F(CountAs, AreNotTimed) {
  const std::string line = " --as all --problem attention --n 700 --d 64 --M 48K";
  EXPECT_EQ(json("plan --objective time" + line)["as"], json("plan" + line)["as"]);
  for (const auto& row : csv("plan --objective time" + line)) {
    EXPECT_EQ(row.at("seconds").empty(), !row.at("as").empty());
  }
}

}  // namespace
}  // namespace redblue
