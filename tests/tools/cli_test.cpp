// Tests the output of the command against its promises: its JSON and CSV key by key, its counts
// against the closed forms of Algorithm 6, its environment, and its help.

#include "tests/support/cli.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "kernels/arithmetic/simd.hpp"
#include "kernels/kernel.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/run/options.hpp"
#include "runtime/system/build_info.hpp"
#include "runtime/theory/planner.hpp"
#include "tests/kernels/contract.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/npy_bytes.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

Keys operator+(Keys all, const Keys& more) {
  all.insert(more.begin(), more.end());
  return all;
}

const Keys kIndices = {"index_reads", "index_writes"};
const Keys kOnlyOfARun = {"elementwise", "seconds"};
const Keys kOnlyOfAWholeRun = {"span", "gflops", "peak_gflops", "percent_of_peak"};

// Checks the keys of a part of a report: phases, total and formula.
void expect_part(const Json& part, bool ran) {
  const Keys run_keys = ran ? kOnlyOfARun : Keys{};
  Json sum = {{"reads", 0},        {"writes", 0}, {"index_reads", 0},
              {"index_writes", 0}, {"flops", 0},  {"elementwise", 0}};
  double seconds = 0;
  Index peak = 0;
  ASSERT_FALSE(part["phases"].empty());
  for (const Json& phase : part["phases"]) {
    SCOPED_TRACE(phase.dump());
    ASSERT_EQ(keys(phase),
              (run_keys + kIndices + Keys{"path", "reads", "writes", "peak", "flops", "formula"}));
    EXPECT_TRUE(phase["path"].is_string());
    ASSERT_EQ(keys(phase["formula"]), (Keys{"reads", "writes", "peak"}));
    for (const char* key : {"reads", "writes", "peak"}) {
      EXPECT_TRUE(phase[key].is_number_integer());
      EXPECT_EQ(phase[key], phase["formula"][key]) << key;
    }
    for (const auto& [key, value] : sum.items()) {
      if (phase.contains(key)) {
        value = value.get<Index>() + phase[key].get<Index>();
      }
    }
    peak = std::max(peak, phase["peak"].get<Index>());
    if (ran) {
      EXPECT_TRUE(phase["seconds"].is_number());
      EXPECT_GE(phase["seconds"], 0);
      seconds += phase["seconds"].get<double>();
    }
  }
  const Json& total = part["total"];
  const Keys shared = {"reads", "writes", "io", "peak"};
  ASSERT_EQ(keys(total),
            run_keys + shared + kIndices + Keys{"flops"} + (ran ? kOnlyOfAWholeRun : Keys{}));
  ASSERT_EQ(keys(part["formula"]), shared);
  for (const std::string& key : shared) {
    EXPECT_EQ(total[key], part["formula"][key]) << key;
  }
  EXPECT_EQ(total["reads"], sum["reads"]);
  EXPECT_EQ(total["writes"], sum["writes"]);
  EXPECT_EQ(total["io"], sum["reads"].get<Index>() + sum["writes"].get<Index>());
  EXPECT_EQ(total["index_reads"], sum["index_reads"]);
  EXPECT_EQ(total["index_writes"], sum["index_writes"]);
  EXPECT_EQ(total["flops"], sum["flops"]);
  EXPECT_EQ(total["peak"], peak);
  if (ran) {
    EXPECT_EQ(total["elementwise"], sum["elementwise"]);
    EXPECT_GE(total["seconds"], seconds);
    EXPECT_GE(total["span"], peak);
  }
}

// Returns the document without the facts that only a run knows. The rest must be equal to the
// output of `count`.
Json without_the_run(Json document) {
  if (document.is_object()) {
    for (const char* key : {"elementwise", "seconds", "span", "seed", "operands", "error", "gflops",
                            "peak_gflops", "percent_of_peak", "simd"}) {
      document.erase(key);
    }
  }
  if (document.is_structured()) {
    for (auto& [key, value] : document.items()) {
      value = without_the_run(value);
    }
  }
  return document;
}

class Command : public Cli {
 protected:
  // The sizes are neither square nor multiples of anything. M is somewhat above the least M.
  static std::string ragged(const TestedKernel& kernel) {
    const Index least = kernel.least_M({37, 23, 11});
    return fmt::format("{} --n 37 --m 23 --d 11 --M {}", kernel.name, least + least / 3 + 5);
  }
};

TEST_F(Command, EveryKeyOfARun) {
  for (const TestedKernel& kernel : some_tested_kernels()) {
    SCOPED_TRACE(kernel.name);
    const bool takes_forward = std::ranges::any_of(
        kernel.given, [](const Signature& operand) { return operand.name == "O"; });
    const Json run =
        json("run " + ragged(kernel) + " --objective words --verify --seed 18446744073709551615");
    const Keys expected =
        Keys{"schema", "context",     "kernel",  "given",
             "n",      "m",           "d",       "heads",
             "M",      "seed",        "threads", "blocks",
             "phases", "total",       "formula", "total_from_nothing",
             "error",  "lower_bound", "ratio",   "operands"} +
        Keys{"problem", "objective"} +
        (kernel.kernel->pass == Pass::product ? Keys{} : Keys{"mask", "pairs", "wanted"}) +
        (inputs_of(kernel.kernel->pass) == Inputs::plain ? Keys{"softmax_scale", "kv_heads", "dv"}
                                                         : Keys{}) +
        (takes_forward ? Keys{"forward", "ratio_given_OL"} : Keys{}) +
        (kernel.sharing == Sharing::kv ? Keys{"sharing"} : Keys{});
    ASSERT_EQ(keys(run), expected);
    EXPECT_EQ(run["schema"], 1);
    EXPECT_EQ(run["context"]["redblue"], build_info::kVersion);
    EXPECT_EQ(run["kernel"], kernel.name);
    std::vector<std::string> given;
    for (const Signature& operand : kernel.given) {
      given.emplace_back(operand.name);
    }
    EXPECT_EQ(run["given"], given);
    EXPECT_EQ(run["n"], 37);
    EXPECT_EQ(run["m"], 23);
    EXPECT_EQ(run["d"], 11);
    EXPECT_EQ(run["heads"], 1);
    EXPECT_LE(run["total"]["peak"], run["M"]);
    EXPECT_EQ(run["seed"].get<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(run["threads"], 1);
    const Plan plan = kernel.plan({37, 23, 11}, run["M"].get<Index>());
    Json blocks = Json::object();
    for (const auto& [name, size] : plan.blocks) {
      blocks[name] = size;
    }
    EXPECT_EQ(run["blocks"], blocks);
    ASSERT_EQ(run["phases"].size(), plan.phases.size());
    for (std::size_t i = 0; i < plan.phases.size(); ++i) {
      EXPECT_EQ(run["phases"][i]["path"], plan.phases[i].path) << "in the order of the algorithm";
    }
    expect_part(run, true);

    Index from_nothing = run["total"]["io"].get<Index>();
    if (takes_forward) {
      ASSERT_EQ(keys(run["forward"]), (Keys{"kernel", "blocks", "phases", "total", "formula"}));
      const bool plain = inputs_of(kernel.kernel->pass) == Inputs::plain;
      EXPECT_TRUE(run["forward"]["kernel"].get<std::string>().starts_with(plain ? "attention/"
                                                                                : "forward/"));
      expect_part(run["forward"], true);
      from_nothing += run["forward"]["total"]["io"].get<Index>();
    }
    EXPECT_EQ(run["total_from_nothing"], from_nothing);

    const Json& error = run["error"];
    for (const char* key : {"value", "bound", "ok"}) {
      ASSERT_TRUE(error.contains(key)) << key;
    }
    EXPECT_EQ(error["ok"], true);
    EXPECT_LE(error["value"], error["bound"]);
    EXPECT_TRUE(std::isfinite(error["bound"].get<double>()));
  }
}

TEST_F(Command, CountHasTheKeysAndTheNumbersOfARun) {
  for (const TestedKernel& kernel : tested_kernels_of_any_shape()) {
    SCOPED_TRACE(kernel.name);
    const Json count = json("count " + ragged(kernel));
    expect_part(count, false);
    if (count.contains("forward")) {
      expect_part(count["forward"], false);
    }
    EXPECT_EQ(count, without_the_run(json("run " + ragged(kernel) + " --verify")));
  }
}

TEST_F(Command, TheWordsOfAlgorithm6) {
  const auto expect = [&](Index n, Index m, Index d, Index M, Index B, Index reads, Index writes) {
    const std::string problem =
        fmt::format("backward/small --n {} --m {} --d {} --M {}", n, m, d, M);
    SCOPED_TRACE(problem);
    const std::vector<MovedPhase> rows = small_table({n, m, d}, B);
    const Json run = json("run " + problem + " --verify");
    EXPECT_EQ(run["blocks"], (Json{{"B", B}}));
    EXPECT_EQ(run["total"]["reads"], reads);
    EXPECT_EQ(run["total"]["writes"], writes);
    EXPECT_EQ(run["error"]["ok"], true);
    ASSERT_EQ(run["phases"].size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(run["phases"][i]["path"], rows[i].path);
      EXPECT_EQ(run["phases"][i]["reads"], rows[i].reads) << rows[i].path;
      EXPECT_EQ(run["phases"][i]["writes"], rows[i].writes) << rows[i].path;
    }
  };
  expect(1000, 1000, 48, 1024, 16, 23'986'304, 4'146'304);
  expect(257, 129, 33, 500, 11, 877'836, 150'696);
}

TEST_F(Command, CountsAreExactIn64Bits) {
  const Index n = 300'000'007;
  const Index m = 300'000'023;
  const Json count = json(fmt::format("count backward/small --n {} --m {} --d 3 --M 400", n, m));
  const Json& f = count["phases"][2];
  EXPECT_EQ(f["path"], "phase1/f");
  ASSERT_GT(n * m, Index{1} << 53);
  EXPECT_EQ(f["reads"].get<Index>(), n * m);
  EXPECT_EQ(f["writes"].get<Index>(), n * m);
  expect_part(count, false);
}

// NAME-shared is NAME with A3 = A2: the same words and the same bits. The planner knows this option
// too.
TEST_F(Command, SharedKeysAreAnOptionOfTheProblem) {
  const std::string sizes = " --n 37 --m 23 --d 11 --M 5000";
  for (const Kernel& kernel : kernels()) {
    const std::string name(kernel.name);
    if (!kernel.shares_keys) {
      expect_refused(process("count " + name + sizes + " --sharing kv"), 2,
                     "--sharing kv: " + name + " does not share keys; .*backward/rows.* do");
      continue;
    }
    SCOPED_TRACE(name);
    const std::string out = fmt::format(" --out {}=", kernel.returns.front().name);
    Json asked = json("run " + name + sizes + " --sharing kv" + out + "asked.npy");
    Json spelled = json("run " + name + "-shared" + sizes + out + "spelled.npy");
    EXPECT_EQ(content_of(directory_ / "asked.npy"), content_of(directory_ / "spelled.npy"));
    EXPECT_EQ(asked["kernel"], name);
    EXPECT_EQ(spelled["kernel"], name + "-shared");
    EXPECT_EQ(asked["sharing"], "kv");
    for (Json* run : {&asked, &spelled}) {
      for (Json& phase : (*run)["phases"]) {
        phase.erase("seconds");
      }
    }
    for (const char* key : {"given", "phases", "formula", "sharing", "blocks", "lower_bound"}) {
      EXPECT_EQ(asked[key], spelled[key]) << key;
    }
    EXPECT_EQ(std::ranges::count(asked["given"], "A3"), 0);
    EXPECT_EQ(std::ranges::count(asked["given"], "V"), 0);
    EXPECT_FALSE(json("count " + name + sizes + " --sharing none").contains("sharing"));
  }
  const Json chosen = json("run backward/auto --verify --sharing kv" + sizes);
  EXPECT_EQ(chosen["sharing"], "kv");
  EXPECT_EQ(chosen["asked"], "backward/auto");
  // From scratch, once with an M for which the forward pass works by tiles, and once by rows.
  for (const char* M : {"400", "4000"}) {
    const Json both =
        json("run backward/auto --verify --sharing kv --n 200 --d 48 --M " + std::string(M));
    EXPECT_TRUE(both["error"]["ok"].get<bool>());
  }
  expect_refused(process("count backward/rows-shared --sharing none" + sizes), 2,
                 "--sharing none: backward/rows-shared shares keys");
  expect_refused(process("count backward/rows --sharing self" + sizes), 2,
                 "--sharing 'self': expected none or kv");
}

using PerfOfCount = Cli;

TEST_F(PerfOfCount, AnswersAtOnce) {
  const Shape shape{10'000'000, 10'000'000, 128};
  const double most = 0.050;
  for (const TestedKernel& kernel : tested_kernels()) {
    const std::string line = fmt::format("count {} --n 10000000 --d 128 --M 64K", kernel.name);
    const Outcome outcome = redblue(line);
    EXPECT_EQ(outcome.code, kernel.least_M(shape) > 65536 ? 2 : 0) << outcome.err;
    EXPECT_LT(seconds_after_start(line, most), most) << kernel.name;
  }
}

// The scale c is 1 / sqrt(d) by default. The kernel, its forward pass and the outputs in files all
// use the same c.
TEST_F(Command, TheSoftmaxScaleIsAPartOfTheProblem) {
  for (const TestedKernel& kernel : tested_kernels()) {
    const std::string size =
        fmt::format(" --n 21 --m {} --d 16 --M 900 ", kernel.shape({21, 17, 16}).m);
    if (inputs_of(kernel.kernel->pass) != Inputs::plain) {
      continue;
    }
    SCOPED_TRACE(kernel.name);
    const std::string out = fmt::format(" --out {}=", kernel.returns.front().name);
    const Json usual = json("run " + kernel.name + size + out + "usual.npy");
    EXPECT_EQ(usual["softmax_scale"], 0.25);
    static_cast<void>(
        json("run " + kernel.name + size + "--softmax-scale 0.25" + out + "same.npy"));
    EXPECT_EQ(content_of(directory_ / "usual.npy"), content_of(directory_ / "same.npy"));
    const Json other = json("run " + kernel.name + size + "--softmax-scale 0.7 --verify");
    EXPECT_EQ(other["softmax_scale"], static_cast<double>(0.7F));
    EXPECT_TRUE(other["error"]["ok"]);
  }
}

TEST_F(Command, CsvIsStrictAndAddsUp) {
  for (const TestedKernel& kernel : some_tested_kernels()) {
    const std::vector<CsvRow> run = parse_csv(data("run " + ragged(kernel) + " --format csv"));
    const std::vector<CsvRow> count = parse_csv(data("count " + ragged(kernel) + " --format csv"));
    const Json expected = json("run " + ragged(kernel));
    ASSERT_EQ(run.size(), count.size());

    std::vector<Json> parts = {expected};
    if (expected.contains("forward")) {
      parts.push_back(expected["forward"]);
    }
    std::size_t at = 0;
    for (const Json& part : parts) {
      std::map<std::string, Index> sum;
      double seconds = 0;
      for (std::size_t i = 0; i <= part["phases"].size(); ++i, ++at) {
        ASSERT_LT(at, run.size());
        CsvRow row = run[at];
        const bool last = i == part["phases"].size();
        const Json& phase = last ? part["total"] : part["phases"][i];
        SCOPED_TRACE(fmt::format("{} {}", part["kernel"].dump(), i));
        EXPECT_EQ(row["kernel"], part["kernel"]);
        EXPECT_EQ(row["n"] + " " + row["m"] + " " + row["d"], "37 23 11");
        EXPECT_EQ(row["M"], expected["M"].dump());
        EXPECT_EQ(row["phase"], last ? "total" : phase["path"].get<std::string>());
        EXPECT_EQ(row["formula_reads"], row["reads"]);
        EXPECT_EQ(row["formula_writes"], row["writes"]);
        EXPECT_EQ(row["formula_peak"], row["peak"]);
        for (const char* key : {"reads", "writes", "flops", "elementwise", "peak"}) {
          EXPECT_EQ(row[key], phase[key].dump()) << key;
          if (last && key != std::string("peak")) {
            EXPECT_EQ(std::stoll(row[key]), sum[key]) << key;
          }
          sum[key] += std::stoll(row[key]);
        }
        if (last) {
          EXPECT_GE(std::stod(row["seconds"]), seconds);
        }
        seconds += std::stod(row["seconds"]);
        // `count` leaves these columns empty, because only a run knows them.
        row["elementwise"] = row["seconds"] = row["operands"] = "";
        EXPECT_EQ(count[at], row);
      }
    }
    EXPECT_EQ(at, run.size());
  }
}

// Every format says where each operand came from. An O and L that the run computes are not reported
// as given.
TEST_F(Command, SaysWhereOperandsComeFrom) {
  directory_.write("a1.npy", npy_bytes(4, 3, std::vector<float>(12, 1)));
  const struct {
    std::string flags;
    std::string words;
    Json operands;
    Json seed;
  } table[] = {
      {"",
       "A1, A2, A3, X, Y, dO from seed 1",
       {{"A1", "seed"},
        {"A2", "seed"},
        {"A3", "seed"},
        {"X", "seed"},
        {"Y", "seed"},
        {"dO", "seed"}},
       1},
      {"--in A1=a1.npy --in dO=a1.npy --make X=identity --seed 7",
       "A1, dO from files; A2, A3, Y from seed 7; X made",
       {{"A1", "file"},
        {"A2", "seed"},
        {"A3", "seed"},
        {"X", "made"},
        {"Y", "seed"},
        {"dO", "file"}},
       7},
      {"--in A1=a1.npy --in A2=a1.npy --in A3=a1.npy --in dO=a1.npy --make X=identity "
       "--make Y=identity --seed 7",
       "A1, A2, A3, dO from files; X, Y made",
       {{"A1", "file"},
        {"A2", "file"},
        {"A3", "file"},
        {"X", "made"},
        {"Y", "made"},
        {"dO", "file"}},
       Json()},
  };
  for (const auto& [flags, words, operands, seed] : table) {
    SCOPED_TRACE(flags);
    const std::string run = "run backward/large --n 4 --d 3 --M 200 " + flags;
    EXPECT_NE(data(run).find("\noperands: " + words + "\n"), std::string::npos) << data(run);
    const Json document = json(run);
    EXPECT_EQ(document["operands"], operands);
    EXPECT_EQ(document["seed"], seed);
    std::string cell;
    for (const auto& [name, origin] : operands.items()) {
      cell += (cell.empty() ? "" : " ") + name + "=" + origin.get<std::string>();
    }
    for (const CsvRow& row : parse_csv(data(run + " --format csv"))) {
      EXPECT_EQ(row.at("operands"), cell);
    }
  }
  data("store generate st --n 4 --d 3");
  const std::string stored = "run forward/rows --M 200 --store file:st --make X=identity --seed 2";
  expect_refused(process(stored), 2, "--make X: the store st has another X");
  std::filesystem::remove(directory_ / "st/X.rb");
  EXPECT_EQ(
      json(stored)["operands"],
      (Json{{"A1", "store"}, {"A2", "store"}, {"A3", "store"}, {"X", "made"}, {"Y", "store"}}));
}

// An operand has the same bits whether it is generated or read from a file, for all heads, threads
// and stores.
TEST_F(Command, MakesOperands) {
  std::vector<float> identity(5 * 5);
  for (std::size_t i = 0; i < 5; ++i) {
    identity[6 * i] = 1;
  }
  std::vector<float> two = identity;
  two.insert(two.end(), identity.begin(), identity.end());
  directory_.write("one.npy", npy_bytes(5, 5, identity));
  directory_.write("two.npy", npy_bytes({2, 5, 5}, two));
  for (const auto& [more, file] :
       {std::pair("", "one.npy"), std::pair("--threads 2", "one.npy"),
        std::pair("--heads 2 --threads 2", "two.npy"), std::pair("--store file:st", "one.npy")}) {
    SCOPED_TRACE(more);
    const std::string run =
        fmt::format("run backward/rows --n 40 --m 30 --d 5 --M 400 --seed 3 --verify {} ", more);
    data(run + fmt::format("--in X={0} --in Y={0} --out g=file.npy", file));
    data(run + "--make X=identity --make Y=identity --out g=made.npy");
    EXPECT_EQ(content_of(directory_ / "file.npy"), content_of(directory_ / "made.npy"));
    data(run + "--out g=seed.npy");
    EXPECT_NE(content_of(directory_ / "file.npy"), content_of(directory_ / "seed.npy"));
  }
}

TEST_F(Command, TheTableHasARowAPhase) {
  const std::string run = data("run backward/small --n 257 --m 129 --d 33 --M 500 --verify");
  for (const std::string expected :
       {"backward/small n=257 m=129 d=33 M=500: B=11", "phase1/S", "phase1/A", "phase1/f",
        "phase2/h", "phase2/q", "phase3/v", "phase3/p", "phase4/T", "phase4/g", "877,836",
        "150,696", "100.0%", "verified: yes"}) {
    EXPECT_NE(run.find(expected), std::string::npos) << expected << "\n" << run;
  }
  const std::string count = data("count backward/large --n 100 --m 80 --d 7 --M 999");
  for (const std::string expected : {"phase1", "phase2", "O and L by forward/", "from scratch, "}) {
    EXPECT_NE(count.find(expected), std::string::npos) << expected << "\n" << count;
  }
  // The paper's own block sizes need more than M, and the peak says how much.
  const Json printed = json("count backward/large --n 1000 --d 48 --M 8192 --blocks printed");
  EXPECT_EQ(printed["blocks"]["phase2.Br"], 43);
  EXPECT_GT(printed["total"]["peak"], printed["M"]);
}

TEST_F(Command, BlocksOfOnesOwn) {
  const Json run = json("run backward/large --n 50 --d 6 --M 999 --blocks phase2.Br=7 --verify");
  EXPECT_EQ(run["blocks"]["phase2.Br"], 7);
  EXPECT_EQ(run["phases"][1]["reads"], 4 * 50 * 6 + 50 + 2 * 50 * 6 * 8);
  EXPECT_EQ(run["error"]["ok"], true);
  expect_part(run, true);
  const std::string both = "count backward/large --n 50 --d 6 --M 999 --format json --blocks ";
  EXPECT_EQ(data(both + "phase1.Br=3,phase2.Br=7"),
            data(both + "phase1.Br=3 --blocks phase2.Br=7"));
  // Blocks that the fitted plan does not have.
  for (const char* line : {"backward/rows --n 90 --d 6 --M 250 --blocks kept=2",
                           "backward/rows-xg --n 90 --d 6 --M 300 --blocks Br=2,resident=3"}) {
    EXPECT_EQ(json(std::string("run ") + line + " --verify")["error"]["ok"], true) << line;
  }
}

// `run` takes each option of the table except the options of problems without a kernel. Its help
// has each option with its type and its line.
TEST_F(Command, RunTakesTheTableOfOptions) {
  const std::string help = data("run --help");
  for (const Option& option : options()) {
    const std::string flag = spelled(option.key, Spelling::flag);
    const bool of_run = option.key != "kernel" && option.key != "problem" && option.key != "given";
    EXPECT_EQ(help.find("\n  " + flag + " ") != std::string::npos, of_run) << flag;
    if (of_run) {
      EXPECT_NE(help.find(option.text), std::string::npos) << flag;
      EXPECT_NE(help.find(std::string(option.type)), std::string::npos) << flag;
    }
  }
}

// A suite takes each option that changes a count, and counts the same words as the command.
TEST_F(Command, SuitesTakeTheTableOfOptions) {
  struct Case {
    std::string flags;  // the flags of `count KERNEL --n 40 --d 6`
    std::string entry;  // the same options as members of a suite entry
    std::string kernel = "attention/rows";
  };
  const std::string M = R"(, "M": 2048)";
  std::map<std::string_view, Case> cases = {
      {"kernel", {"--M 2K", R"("M": "2K")", "backward/auto"}},
      {"given", {"--M 2K", R"("M": "2K", "given": "nothing")", "backward/rows"}},
      {"n", {"--M 2K", R"("M": 2048)"}},
      {"m", {"--m 31 --M 2K", R"("m": 31)" + M}},
      {"d", {"--M 2K", R"("M": 2048)"}},
      {"dv", {"--dv 3 --M 2K", R"("dv": 3)" + M}},
      {"heads", {"--heads 3 --M 2K", R"("heads": 3)" + M}},
      {"kv_heads", {"--heads 4 --kv-heads 2 --M 2K", R"("heads": 4, "kv_heads": 2)" + M}},
      {"mask", {"--mask window:5,2 --M 2K", R"("mask": "window:5,2")" + M}},
      {"activation", {"--activation relu --M 2K", R"("activation": "relu")" + M}},
      {"softmax_scale", {"--softmax-scale 0.5 --M 2K", R"("softmax_scale": 0.5)" + M}},
      {"sharing", {"--sharing kv --M 2K", R"("sharing": "kv")" + M, "backward/rows"}},
      {"wanted", {"--wanted dQ --M 2K", R"("wanted": "dQ")" + M, "gradients/rows-keys"}},
      {"word", {"--word 2 --M 2K", R"("word": 2)" + M}},
      {"sums", {"--word 2 --sums 4 --M 2K", R"("word": 2, "sums": 4)" + M}},
      {"threads", {"--threads 2 --M 2K", R"("threads": 2)" + M}},
      {"M", {"--M 1K,2K", R"("M": "1K,2K")"}},
      {"device", {"--device zen3 --threads 2", R"("device": "zen3", "threads": 2)"}},
      {"prefetch", {"--prefetch 2 --M 2K", R"("prefetch": 2)" + M}},
      {"word_costs", {"--M 1K,2K --word-costs 9,1", R"("M": "1K,2K", "word_costs": "9,1")"}},
      {"objective", {"--objective time --M 2K", R"("objective": "time")" + M}},
      {"multiple", {"--multiple 8 --M 2K", R"("multiple": 8)" + M}},
      {"blocks", {"--blocks Br=7,Bc=3 --M 2K", R"("blocks": "Br=7,Bc=3")" + M}},
      {"in", {"--in A1=A1.npy --M 2K", R"("in": {"A1": "A1.npy"})" + M, "forward/sparse-rows"}},
      {"make",
       {"--make A1=random:2 --M 2K", R"("make": {"A1": "random:2"})" + M, "forward/sparse-rows"}},
      {"seed",
       {"--make A1=random:2 --seed 5 --M 2K", R"("make": {"A1": "random:2"}, "seed": 5)" + M,
        "forward/sparse-rows"}},
      {"store", {"--M 2K", R"("store": "disk")" + M}}};
  // No count depends on these options. Suites describe one machine with one fast memory; gates for
  // ranks use their own kernels.
  const std::set<std::string_view> others = {"problem", "scale",   "out",     "verify", "engine",
                                             "direct",  "granule", "keep",    "resume", "grid",
                                             "ranks",   "ring",    "patience"};
  data("run attention/rows --n 40 --d 6 --M 2K --out O=A1.npy");
  for (const Option& option : options()) {
    SCOPED_TRACE(option.key);
    const auto found = cases.find(option.key);
    ASSERT_NE(found != cases.end(), others.contains(option.key));
    if (found == cases.end()) {
      continue;
    }
    const auto& [flags, entry, kernel] = found->second;
    // The command plans for `balanced` by default, a suite for `words`.
    const std::string plan =
        flags.find("--objective") == std::string::npos ? " --objective words" : "";
    const Json counted = json("count " + kernel + " --n 40 --d 6 " + flags + plan);
    directory_.write(
        "suite.json",
        fmt::format(R"({{"how": "count", "points": [{{"kernel": "{}", "n": 40, "d": 6, {}}}]}})",
                    kernel, entry));
    const Outcome recorded = redblue("record suite.json -o -");
    ASSERT_EQ(recorded.code, 0) << recorded.err;
    const Json total = Json::parse(recorded.out)["points"][0]["total"];
    const auto forward = [&](const char* metric) {
      return option.key == "given" ? counted["forward"]["total"][metric].get<Index>() : 0;
    };
    const auto of_kernel = [&](const char* metric) {
      return counted["total"][metric].get<Index>();
    };
    EXPECT_EQ(total["reads"], of_kernel("reads") + forward("reads"));
    EXPECT_EQ(total["writes"], of_kernel("writes") + forward("writes"));
    EXPECT_EQ(total["peak"], std::max(of_kernel("peak"), forward("peak")));
  }
}

// Repeated runs give one report: the counts of the first run and the spread of the times.
TEST_F(Command, RepeatsRuns) {
  const std::string run = "run backward/rows --n 60 --d 8 --M 1K";
  const Json once = json(run), often = json(run + " --repeat 3 --verify");
  const Json& repeat = often["repeat"];
  EXPECT_EQ(repeat["runs"], 3);
  EXPECT_GT(repeat["least"], 0);
  EXPECT_LE(repeat["least"], repeat["median"]);
  EXPECT_LE(repeat["median"], repeat["most"]);
  EXPECT_EQ(often["total"]["io"], once["total"]["io"]);
  EXPECT_TRUE(often["error"]["ok"]);
  EXPECT_FALSE(once.contains("repeat"));
  EXPECT_FALSE(json(run + " --repeat 1").contains("repeat"));
  EXPECT_NE(data(run + " --repeat 2").find("\n2 runs: median "), std::string::npos);
}

// `--help` groups the subcommands under headings and lists each once.
TEST_F(Command, HelpIsInGroups) {
  const std::string help = data("--help");
  std::size_t last = 0;
  for (const char* const heading :
       {"Count and plan:\n  count ", "Gate:\n  record ", "Measure:\n  info ", "Study:\n  pebble ",
        "Many runs:\n  sweep ", "Store:\n  store ", "Shell:\n  manual "}) {
    const std::size_t at = help.find(heading);
    ASSERT_NE(at, std::string::npos) << heading << help;
    EXPECT_GT(at, last) << heading;
    last = at;
  }
  EXPECT_EQ(help.find("Subcommands:"), std::string::npos);
}

// An environment variable that was set for another purpose has no effect.
TEST_F(Command, TheEnvironmentChangesNoCount) {
  const std::string count = "count backward/small --n 40 --m 30 --d 5 --M 300 --format json";
  std::string variables;
  for (const Option& option : options()) {
    std::string name = "REDBLUE_" + std::string(option.key);
    variables += name + "=7 ";
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    variables += name + "=7 ";
  }
  EXPECT_EQ(data(variables + "REDBLUE_FORMAT=csv " + count), data(count));
}

TEST_F(Command, SizesInUnits) {
  const std::string count = "count backward/small --n 4096 --d 16 ";
  EXPECT_EQ(data(count + "--M 64KiB"), data(count + "--M 16K"));
  EXPECT_EQ(data(count + "--M 2MiB"), data(count + "--M 512K"));
  EXPECT_EQ(data(count + "--M 16384"), data("count backward/small --n 4K --d 16 --M 16K"));
}

// M as a part of a cache gives the same counts as the same number of words. The context says where
// the words came from.
TEST_F(Command, FastMemoryFromACache) {
  if (!read_topology().unavailable.empty()) {  // then the size of each cache is unknown
    const Outcome refused = redblue("count backward/small --n 40 --d 5 --M L2*0.5");
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.err.find("--M L2*0.5: the size of L2 is not known"), std::string::npos);
    return;
  }
  for (const std::string command : {"count", "run"}) {
    const std::string problem = command + " backward/small --n 40 --d 5 --M ";
    const Json half = json(kSixCores + problem + "L2*0.5");
    EXPECT_EQ(half["M"], 163840);
    const Json from = half["context"]["M_from"];
    EXPECT_EQ(from["text"], "L2*0.5");
    EXPECT_EQ(from["cache"], "L2");
    EXPECT_EQ(from["bytes"], 1310720);
    EXPECT_EQ(from["share"], 0.5);
    EXPECT_EQ(from["sharers"], 1);
    EXPECT_NE(from["source"].get<std::string>().find("another system"), std::string::npos) << from;
    const Json typed = json(kSixCores + problem + "160K");
    EXPECT_FALSE(typed["context"].contains("M_from"));
    EXPECT_EQ(typed["total"]["reads"], half["total"]["reads"]);
    EXPECT_EQ(json(kSixCores + problem + "L3*0.25")["M"], 786432);
    EXPECT_NE(
        data(kSixCores + problem + "L2*0.5").find("\nM is L2*0.5: L2 has 1,310,720 bytes (hwloc"),
        std::string::npos);
  }
}

// The page of the command names each kernel that the planner may choose.
TEST_F(Command, ThePageNamesEveryAuto) {
  const std::string page = content_of(REDBLUE_SOURCE_DIR "/docs/command.md");
  for (const AutoName& name : kAuto) {
    EXPECT_NE(page.find(fmt::format("`{}`", name.name)), std::string::npos) << name.name;
  }
}

TEST_F(Command, HelpAndVersionEverywhere) {
  std::vector<std::string> commands = {""};
  for (std::size_t k = 0; k < commands.size(); ++k) {
    const std::string command = commands[k];
    const std::string help = data(command + "--help");
    EXPECT_EQ(data(command + "-h"), help);
    EXPECT_NE(help.find("Usage: redblue " + command), std::string::npos) << help;
    EXPECT_NE(help.find("--version"), std::string::npos) << help;
    EXPECT_EQ(data(command + "--version"), fmt::format("redblue {}\n", build_info::kVersion));
    // Subcommands of a command, such as "store info " below "store ".
    const std::string all = help.substr(0, help.find("Environment:\n"));
    std::istringstream lines(all);
    bool of_arguments = false;
    for (std::string line; std::getline(lines, line);) {
      of_arguments = line.ends_with(":") ? line == "Positionals:" : of_arguments;
      if (!of_arguments && line.starts_with("  ") && line[2] != ' ' && line[2] != '-') {
        commands.push_back(command + line.substr(2, line.find(' ', 2) - 1));
      }
    }
  }
  for (const std::string known : {"list ", "diff ", "store ", "store export ", "plot figure1 "}) {
    EXPECT_EQ(std::ranges::count(commands, known), 1) << known << "is not in the help";
  }
  // `--help` also works after other arguments.
  EXPECT_EQ(data("run backward/small --n 4 --help"), data("run --help"));
  // The help lists every flag and every variable.
  const std::string run = data("run --help");
  for (const std::string flag :
       {"n", "m", "d", "M", "heads", "blocks", "in", "out", "seed", "scale", "verify", "format"}) {
    EXPECT_NE(run.find("--" + flag), std::string::npos) << flag;
  }
  EXPECT_NE(data("--help").find("\n  REDBLUE_SIMD "), std::string::npos);
}

TEST_F(Command, ListNamesEveryKernel) {
  const Json plain = json("list");
  const Json sized = json("list --n 37 --m 23 --d 11");
  const std::vector<CsvRow> csv = parse_csv(data("list --n 37 --m 23 --d 11 --format csv"));
  ASSERT_EQ(plain["kernels"].size(), all_kernel_names().size());
  ASSERT_EQ(sized["kernels"].size(), all_kernel_names().size());
  ASSERT_EQ(csv.size(), all_kernel_names().size());
  for (std::size_t i = tested_kernels().size(); i < csv.size(); ++i) {  // of sparse operands
    EXPECT_EQ(plain["kernels"][i]["name"], all_kernel_names()[i].text());
    EXPECT_EQ(plain["kernels"][i]["sparse"], true);
    EXPECT_EQ(sized["kernels"][i]["least_M"], nullptr);  // depends on their entries, too
    EXPECT_EQ(csv[i].at("kernel"), all_kernel_names()[i].text());
  }
  EXPECT_EQ(plain["schema"], 1);
  for (std::size_t i = 0; i < tested_kernels().size(); ++i) {
    const TestedKernel kernel = tested_kernels()[i];
    EXPECT_EQ(plain["kernels"][i]["name"], kernel.name);
    EXPECT_EQ(plain["kernels"][i]["kernel"], kernel.kernel->name);
    EXPECT_EQ(plain["kernels"][i]["axes"]["sharing"], kernel.sharing == Sharing::none ? "none"
                                                      : kernel.sharing == Sharing::kv ? "kv"
                                                                                      : "self");
    EXPECT_FALSE(plain["kernels"][i].contains("least_M"));
    EXPECT_EQ(csv[i].at("kernel"), kernel.name);
    EXPECT_EQ(csv[i].at("summary"), kernel.summary);
    if (kernel.sharing == Sharing::self) {  // 37 queries are not 23 keys
      EXPECT_EQ(sized["kernels"][i]["least_M"], nullptr);
    } else {
      EXPECT_EQ(sized["kernels"][i]["least_M"], kernel.least_M({37, 23, 11}));
      EXPECT_EQ(csv[i].at("least_M"), std::to_string(kernel.least_M({37, 23, 11})));
    }
    EXPECT_NE(data("list").find(kernel.name), std::string::npos);
  }
}

TEST_F(Command, InfoSaysWhatThisIs) {
  const Json info = json("info");
  EXPECT_EQ(info["schema"], 1);
  EXPECT_EQ(info["redblue"], build_info::kVersion);
  EXPECT_GT(info["memory_available_bytes"], 0);
  EXPECT_NE(data("info").find("float32"), std::string::npos);
}

// A run reports the instruction set that the flag or the variable asked for, and the flag wins. The
// instruction set changes only bits of the results.
TEST_F(Command, RunsInTheInstructionSetThatIsAskedFor) {
  const std::string run = "run " + ragged(tested_kernel("forward/flash")) + " --verify ";
  const std::vector<std::string> targets = simd_targets();
  for (const std::string& target : targets) {
    SCOPED_TRACE(target);
    const Json asked = json(run + "--simd " + target);
    EXPECT_EQ(asked["context"]["simd"], target);
    EXPECT_EQ(json("REDBLUE_SIMD=" + target + " " + run)["context"]["simd"], target);
    EXPECT_EQ(json("REDBLUE_SIMD=AVX9 " + run + "--simd " + target)["context"]["simd"], target);
    EXPECT_EQ(asked["total"]["reads"], json(run)["total"]["reads"]);
    EXPECT_EQ(asked["total"]["elementwise"], json(run)["total"]["elementwise"]);

    const Json info = json("info --simd " + target);
    EXPECT_EQ(info["simd"], (Json{{"in_use", target}, {"available", targets}}));
    EXPECT_EQ(json("REDBLUE_SIMD=" + target + " info")["simd"], info["simd"]);
    EXPECT_NE(data("info --simd " + target)
                  .find(fmt::format("\nsimd              {}, of {}", target, targets.front())),
              std::string::npos);
  }
  EXPECT_EQ(json("REDBLUE_SIMD= info")["simd"]["in_use"], targets.front());
}

// The caches of a machine that a file describes: unknown values are null. Each optional part has
// its version, or the reason why it is missing.
TEST_F(Command, InfoSaysWhatTheMachineOffers) {
  const Json info = json(kSixCores + "info");
  for (const char* part : {"hwloc", "papi", "valgrind"}) {
    ASSERT_EQ(info["parts"][part].size(), 1U);
    EXPECT_TRUE(info["parts"][part].contains("version") ||
                info["parts"][part]["unavailable"].get<std::string>().ends_with("=OFF"));
    EXPECT_NE(data("info").find(fmt::format("\n{} ", part)), std::string::npos);
  }
  EXPECT_EQ(info["counters"].contains("unavailable"), !info["counters"].contains("events"));
  EXPECT_NE(data("info").find("\ncounters "), std::string::npos);

  const Json& topology = info["topology"];
  if (info["parts"]["hwloc"].contains("unavailable")) {
    EXPECT_EQ(topology, (Json{{"unavailable", "built without hwloc"}}));
    EXPECT_NE(data("info").find("unavailable: built without hwloc"), std::string::npos);
    return;
  }
  EXPECT_EQ(topology["this_system"], false);
  EXPECT_EQ(topology["cores"], 6);
  EXPECT_EQ(topology["units"], 6);
  EXPECT_EQ(topology["pinning"], "the topology is not of this system");
  ASSERT_EQ(topology["caches"].size(), 6U + 3U + 1U);
  EXPECT_EQ(topology["caches"][0],
            (Json{{"cache", "L1"}, {"bytes", 49152}, {"line", 64}, {"ways", 12}, {"cores", {0}}}));
  EXPECT_EQ(topology["caches"][9]["line"], Json()) << "unknown is null";
  const std::string table = data(kSixCores + "info");
  EXPECT_NE(table.find("1.2 MiB, lines of 64 bytes, 10 ways, 1 of them, each for 2 cores; others"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("A made-up processor"), std::string::npos);
}

// Every Linux has software events, unless it forbids all counters.
TEST_F(Command, InfoFollowsPapiEvents) {
  const Json counters = json("PAPI_EVENTS=perf::PAGE-FAULTS,perf::TASK-CLOCK info")["counters"];
  if (counters.contains("unavailable")) {
    GTEST_SKIP() << counters;
  }
  EXPECT_EQ(counters["events"], (Json{"perf::PAGE-FAULTS", "perf::TASK-CLOCK"}));
  const Json none = json("PAPI_EVENTS=NO_SUCH_EVENT info")["counters"];
  EXPECT_TRUE(none["unavailable"].get<std::string>().starts_with("NO_SUCH_EVENT: ")) << none;
}

// The scores are so large that their rounding errors exceed the range of exp, and L came as an
// input. The result cannot be verified, and this counts as a failure.
TEST_F(Command, AFailedVerification) {
  const float score = 1e6F * 1e6F;
  directory_.write("large.npy", npy_bytes(1, 1, {1e6F}));
  directory_.write("one.npy", npy_bytes(1, 1, {1}));
  directory_.write("L.npy", npy_bytes(1, 0, {score}));
  const std::string line =
      "run backward/flash --M 100 --in A1=large.npy --in A2=large.npy --in X=one.npy "
      "--in O=one.npy --in L=L.npy --seed 1";
  EXPECT_EQ(redblue(line).code, 0);
  const auto before = files();
  for (const std::string format : {"table", "json", "csv"}) {
    SCOPED_TRACE(format);
    const Outcome outcome =
        redblue(line + " --verify --out g=g.npy --out dQ=dQ.npy --format " + format);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("redblue: ")) << outcome.err;
    EXPECT_NE(outcome.err.find("too large"), std::string::npos) << outcome.err;
    EXPECT_EQ(files(), before);
    if (format == "json") {
      EXPECT_EQ(Json::parse(outcome.out)["error"]["ok"], false);
    } else if (format == "table") {
      EXPECT_NE(outcome.out.find("verified: NO"), std::string::npos) << outcome.out;
    }
  }
}

TEST_F(Command, ArgumentsThatNobodyExpectsComeInTheirOrder) {
  expect_refused(process("list first second third"), 2, "not expected: first second third \\(");
  expect_refused(process("store info st --one --two"), 2, "not expected: --one --two \\(");
  expect_refused(process("count backward/small --maskk=causal"), 2,
                 "not expected: --maskk=causal: did you mean --mask\\? \\(redblue count --help\\)");
}

// A limit on file sizes makes the write fail with an error. It does not kill the process.
TEST_F(Command, AFileThatMayNotGrowIsSaid) {
  if (!kFilesAreLimited) {
    GTEST_SKIP() << "below a limit of files clang's OpenMP does not start";
  }
  Process limited = process("run matmul/blocked --n 400 --d 40 --M 2000 --out C=c.npy");
  limited.largest_file = 1000;
  expect_refused(limited, 1, "c.npy.*: File too large");
}

}  // namespace
}  // namespace redblue
