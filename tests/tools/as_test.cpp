// Tests `--as`: schedules of other projects, from their nests. Most forward schedules keep a block
// of Br queries and pass all keys: n d (queries) + 2 m d ceil(n / Br) + n d + n (O and L) words.

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "memsim/words.hpp"
#include "runtime/run/nest_file.hpp"
#include "runtime/text/table.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"

namespace redblue {
namespace {

// Returns the nest of a name such as nest:ggml-cpu-forward, without the sizes of its blocks. A
// block Part keeps its size: threads or devices share it out.
std::string without_sizes(const std::string& name) {
  const auto nest = std::ranges::find_if(known_nests(), [&](const KnownFile& its) {
    return fmt::format("nest:{}", its.name) == name + ".nest";
  });
  std::string text(nest->text);
  for (std::size_t at = 0; (at = text.find("\nblock ", at)) != std::string::npos; ++at) {
    const std::size_t size = text.find(" =", at), end = text.find('\n', at + 1);
    if (size < end && text.compare(at, 12, "\nblock Part ") != 0) {
      text.erase(size, end - size);
    }
  }
  return text;
}

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
  const std::string gradients = " --problem gradients", causal = " --mask causal";
  expect("flash-attention-2", "--n 999 --d 64", "Bc=128,Br=128");
  expect("flash-attention-2", "--n 999 --d 65", "Bc=64,Br=128");
  expect("flash-attention-2", "--n 999 --d 64" + gradients, "Bc=128,Br=128");
  expect("flash-attention-2", "--n 999 --d 128" + gradients, "Bc=128,Br=64");
  expect("flash-attention-3", "--n 999 --d 64", "Bc=192,Br=192");
  expect("flash-attention-3", "--n 999 --d 64" + causal, "Bc=128,Br=192");
  expect("flash-attention-3", "--n 999 --d 96", "Bc=144,Br=192");
  expect("flash-attention-3", "--n 999 --d 128", "Bc=176,Br=128");
  expect("flash-attention-3", "--n 999 --d 128" + causal, "Bc=128,Br=128");
  expect("flash-attention-3", "--n 999 --d 192", "Bc=112,Br=128");
  expect("flash-attention-3", "--n 999 --d 192 --dv 128", "Bc=128,Br=128");
  expect("flash-attention-3", "--n 999 --d 256", "Bc=80,Br=128");
  expect("flash-attention-3", "--n 999 --d 128" + gradients, "Bc=128,Br=80");
  expect("flash-attention-3", "--n 999 --d 128" + gradients + causal, "Bc=128,Br=64");
  expect("xformers", "--n 999 --d 100", "Bc=128,Bd=32,Br=64,Bt=32");
  expect("pytorch-cpu", "--n 767 --d 300", "Bc=512,Br=64");
  expect("pytorch-cpu", "--n 768 --d 8", "Bc=512,Br=256");
  expect("triton-tutorial", "--n 200 --d 32" + gradients,
         "Bc=32,Bk=128,Bq=32,Br=128,Bs=128,Bv=128");
}

// A project with several nests takes the nest that its source takes for the size. n are the queries
// of one head.
TEST_F(CountAs, NestsAreThoseOfTheShape) {
  const auto expect = [&](const char* name, const std::string& line, const char* nest) {
    EXPECT_EQ(row(name, line + " --M 1M")["kernel"], nest) << name << " " << line;
  };
  expect("xformers", "--n 99 --d 128", "nest:xformers-forward");
  expect("xformers", "--n 99 --d 129", "nest:xformers-wide-forward");
  expect("xformers", "--n 99 --d 64 --problem gradients", "nest:xformers-narrow-backward");
  expect("xformers", "--n 99 --d 65 --problem gradients", "nest:xformers-backward");
  expect("flex-attention-cpu", "--n 2 --m 99 --d 64", "nest:flex-attention-cpu-forward");
  expect("flex-attention-cpu", "--n 1 --m 99 --d 64 --heads 8 --kv-heads 2",
         "nest:flex-attention-cpu-decoding-forward");
  expect("ggml-cpu", "--n 64 --d 64", "nest:ggml-cpu-forward");
  expect("ggml-cpu", "--n 1 --m 512 --d 64", "nest:ggml-cpu-decoding-forward");
  const auto missing = [&](const char* name, const std::string& line, const char* why) {
    const Json its = row(name, line + " --M 1M");
    EXPECT_EQ(its["missing"], why);
    EXPECT_TRUE(its["words"].is_null());
  };
  missing("flash-attention-2", "--n 90 --d 257", "flash-attention-2-forward takes d <= 256");
  missing("xformers", "--n 90 --d 129 --problem gradients",
          "xformers-backward takes max(d, dv) <= 128, "
          "xformers-narrow-backward takes max(d, dv) <= 64");
  missing("ggml-cpu", "--n 9 --d 64 --problem gradients",
          "redblue has no nest of its backward pass");
  missing("flash-attention-2", "--n 90 --d 8 --wanted dQ --problem gradients",
          "it computes all results");
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
  // xFormers reads Q again for each block of 64 keys.
  EXPECT_EQ(row("xformers", "--n 640 --d 64 --M 1M")["words"],
            640 * 64 * 10 + 2 * 640 * 64 * 10 + 640 * 64 + 640);
  // Triton's kernel without TMA visits all keys under a causal mask, and FlashAttention-2 only
  // those that a block of 128 queries meets: 128, 256, ... of them.
  EXPECT_EQ(row("triton-tutorial", "--n 640 --d 64 --M 1M --mask causal")["words"],
            row("triton-tutorial", "--n 640 --d 64 --M 1M")["words"]);
  EXPECT_EQ(row("flash-attention-2", "--n 640 --d 64 --M 1M --mask causal")["words"],
            2 * 640 * 64 + 640 + 2 * 64 * 128 * (1 + 2 + 3 + 4 + 5));
  // A ring of 3 devices with n queries and keys each, in blocks of 128 keys (T of them). Each step
  // is FlashAttention-2's: v and its dQ of 0 (3 n d + n), K and V once and dK and dV once (4 n d),
  // (2 d + 2) n + 2 n d in each block, and dQ converted (2 n d). dQ of a step is then added to a
  // sum (3 n d, in the first step 2 n d), and so are dK and dV (6 n d, or 4 n d), which arrived
  // before (2 n d but in the first step). At the end dQ is converted.
  const Index n = 640, d = 64, T = 5;
  const Index step = 3 * n * d + n + 4 * n * d + (4 * n * d + 2 * n) * T + 2 * n * d;
  EXPECT_EQ(
      row("ring-attention-step", "--n 640 --m 1920 --d 64 --M 1M --problem gradients")["words"],
      3 * step + 3 * (3 + 6 + 2) * n * d - (1 + 2 + 2) * n * d + 2 * n * d);
}

// A row has the counts of its nest. Its planned blocks are those of the same file without sizes,
// unless the file's own sizes move fewer words.
TEST_F(CountAs, RowsAreTheCountsOfNests) {
  for (const auto& [line, problem] :
       {std::pair<std::string, std::string>("--n 700 --d 64 --M 600K", "attention"),
        {"--n 700 --m 300 --d 64 --M 600K --heads 6", "attention"},
        {"--n 400 --d 64 --M 600K --mask causal", "attention"},
        {"--n 1 --m 700 --d 64 --M 600K", "attention"},
        {"--n 300 --d 64 --M 600K", "gradients"},
        {"--n 200 --d 64 --M 600K --mask window:50,3", "gradients"}}) {
    SCOPED_TRACE(line);
    int counted = 0;
    const Json all = json(fmt::format("count --as all {} --problem {}", line, problem));
    for (const Json& its : all["as"]) {
      if (its["kernel"].is_null()) {
        EXPECT_TRUE(its.contains("missing"));
        continue;
      }
      ++counted;
      const std::string kernel = its["kernel"].get<std::string>();
      SCOPED_TRACE(kernel);
      const Json own = json(fmt::format("count {} {}", kernel, line));
      EXPECT_EQ(its["words"], own["total"]["io"]);
      EXPECT_EQ(its["peak"], own["total"]["peak"]);
      EXPECT_EQ(its["too_many"], 0);
      directory_.write("free.nest", without_sizes(kernel));
      const Json free = json(fmt::format("count free.nest {} --objective words", line));
      const Index words = its["words"].get<Index>();
      EXPECT_EQ(its["planned"]["words"], std::min(words, free["total"]["io"].get<Index>()));
      EXPECT_NEAR(its["times_planned"].get<double>(),
                  static_cast<double>(words) / its["planned"]["words"].get<double>(), 0.0005);
    }
    EXPECT_GE(counted, problem == "attention" ? 9 : 6);
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
}

TEST_F(CountAs, IsRefusedWhereItHasNoMeaning) {
  const auto refused = [&](const std::string& line, const std::string& message) {
    expect_refused(process("count " + line), 2, message);
  };
  const std::string size = " --n 90 --d 8 --M 4K";
  refused("--as cudnn" + size,
          "--as 'cudnn': expected flash-attention-1, flash-attention-2, flash-attention-3, "
          "flash-decoding, flex-attention-cpu, ggml-cpu, onnxruntime-cpu, pytorch-cpu, "
          "ring-attention-step, triton-tutorial, xformers or all");
  refused("--as all --problem backward" + size,
          "--problem 'backward': expected attention or gradients");
  refused("attention/rows --as all" + size, "attention/rows: --as all names the schedule");
  refused("--as all --blocks Br=4" + size, "--blocks 'Br=4': --as all has its tiles");
  refused("attention/rows --problem attention" + size,
          "--problem 'attention': a kernel has one problem; it is of --as");
  refused("--as all --n 90 --d 8 --M 1K,4K",
          "--as all: its nests are for one level of fast memory: give --M one size");
  refused("--as all --ranks 2" + size,
          "--as all: its nests are for one machine, without a prefetch: leave out --ranks");
  refused("--as all --prefetch 2" + size,
          "--as all: its nests are for one machine, without a prefetch: leave out --prefetch");
  refused(size, "kernel is required");
  expect_refused(process("list --as --devices"), 2, "--as: --devices lists others");
}

TEST_F(CountAs, AreListedWithTheirSources) {
  const Json all = json("list --as")["as"];
  EXPECT_EQ(all.size(), known_nests().size());
  for (const Json& nest : all) {
    EXPECT_NE(nest["source"].get<std::string>().find(" at "), std::string::npos);
    EXPECT_EQ(redblue("count " + nest["nest"].get<std::string>() + " --n 9 --d 2 --M 1M").code, 0);
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
      EXPECT_NE(text.find(its["kernel"].get<std::string>()), std::string::npos) << name;
      EXPECT_NE(text.find(grouped(its["words"].get<Index>())), std::string::npos) << name;
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
      const std::string blocks = row.at("blocks");
      EXPECT_NE(blocks.find(fmt::format("Br={}", its["blocks"]["Br"].get<Index>())),
                std::string::npos);
      EXPECT_EQ(row.at("words"), its["words"].dump());
      EXPECT_EQ(row.at("peak"), its["peak"].dump());
      EXPECT_EQ(row.at("too_many"), its["too_many"].dump());
      EXPECT_EQ(row.at("planned_words"), its["planned"]["words"].dump());
      EXPECT_EQ(std::stod(row.at("times_planned")), its["times_planned"].get<double>());
    }
    EXPECT_EQ(found, rows.size());
  }
  // A missing number of words is empty, never 0, and the reason is printed.
  const std::string wide = " --as flash-attention-1 --problem attention --n 90 --d 129 --M 48K";
  for (const std::string command : {"plan", "bounds"}) {
    EXPECT_NE(redblue(command + wide)
                  .out.find("flash-attention-1: flash-attention-1-forward takes d <= 128\n"),
              std::string::npos);
    const auto rows = csv(command + wide);
    EXPECT_EQ(rows.back().at("as"), "flash-attention-1");
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
  refused("--as cudnn" + attention, "--as 'cudnn': expected flash-attention-1, .* or all");
  for (const char* problem : {"product", "forward", "backward", "layer", "linear"}) {
    refused(fmt::format("--as all --problem {}{}", problem, size),
            fmt::format("--as all: its nests are for attention and gradients, and not for {}: give "
                        "--problem",
                        problem));
  }
  refused("--as all" + size,
          "--as all: its nests are for attention and gradients, and not for backward");
  refused("--as all --problem attention --n 90 --d 8 --M 1K,4K",
          "--as all: its nests are for one level of fast memory: give --M one size");
  refused("--as all --problem gradients --given nothing" + size,
          "--as all: its nests of gradients start from O and L: leave out --given nothing");
  const auto plan = [&](const std::string& line, const std::string& message) {
    expect_refused(process("plan --as all " + line), 2, message);
  };
  plan("attention/rows --ranks 4 --n 90 --d 8 --M 4K",
       "--as all: it is beside a plan of all kernels: leave out attention/rows");
  plan("--loops attention/rows" + size, "leave out --loops");
  plan("--cache a100 --d 64", "leave out --cache");
}

// `bounds --nest` has a row for the nest, over the bound of its class, and the best kernel is one
// of redblue's.
TEST_F(CountAs, BoundsHaveNests) {
  const std::string line = "--n 700 --d 64 --M 64K";
  const std::string nest = "nest:flash-attention-2-forward";
  const Json bounds = json("bounds --problem attention " + line + " --nest " + nest);
  const Json counted = json("count " + nest + " " + line);
  ASSERT_EQ(bounds["as"].size(), 1U);
  const Json& its = bounds["as"][0];
  EXPECT_EQ(its["as"], nest);
  EXPECT_EQ(its["words"], counted["total"]["io"]);
  EXPECT_EQ(its["bound"], bounds["lower_bound"]["term"]);
  EXPECT_NEAR(its["ratio"].get<double>(),
              its["words"].get<double>() / bounds["lower_bound"]["words"].get<double>(), 0.0005);
  EXPECT_EQ(bounds["best"], json("bounds --problem attention " + line)["best"]);
  directory_.write("mine.nest",
                   "kernel mine\nproblem attention\nmatrix Q[n,d] K[m,d] V[m,dv] -> O[n,dv]\n"
                   "block Br of n = 10\nfor I in n by Br\n  read Q[I,d]\n  new O[I,dv]\n"
                   "  for J in m by 1\n    read K[J,d] V[J,dv]\n  write O[I,dv]\n");
  const Json mine = json("bounds --problem attention --n 100 --d 8 --M 1K --nest mine.nest");
  EXPECT_EQ(mine["as"][0]["as"], "file:mine.nest");
  EXPECT_EQ(mine["as"][0]["words"], 2 * 100 * 8 + 10 * 2 * 100 * 8);
  // Blocks of b queries take 16 b + 16 words of 1,024. With 50 <= b < 100, two blocks pass the
  // keys.
  EXPECT_EQ(mine["as"][0]["planned"]["words"], 2 * 100 * 8 + 2 * 2 * 100 * 8);
  expect_refused(process("bounds --problem attention --n 9 --d 8 --M 1K,4K --nest mine.nest"), 2,
                 "--nest: nests are of one level of fast memory: give --M one size");
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
