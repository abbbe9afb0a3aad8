// Tests `redblue plan`, by words, by time and for devices, and the kernels that `auto` chooses for
// runs.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/observe/devices.hpp"
#include "runtime/text/table.hpp"
#include "runtime/theory/planner.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/json.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

class PlanCommand : public Cli {};

// The first choice is the planner's, the other choices do not move fewer words, and each has the
// words that `count` reports.
TEST_F(PlanCommand, ListsEveryKernelThatFits) {
  for (const std::string given : {"OL", "nothing"}) {
    const Json plan = json("plan --n 100 --m 60 --d 8 --M 500 --given " + given);
    const Task task{.problem = {100, 60, 8},
                    .memory = 500,
                    .known = given == "OL" ? Known::O_and_L : Known::nothing};
    const std::vector<Choice> expected = choices(task);
    ASSERT_EQ(plan["runners_up"].size() + 1, expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const Json& found = k == 0 ? plan["plan"] : plan["runners_up"][k - 1];
      EXPECT_EQ(found["kernel"], expected[k].plan.kernel);
      EXPECT_EQ(found["words"], expected[k].words.value());
      EXPECT_EQ(found["lower_bound"]["words"], expected[k].bound.words);
      EXPECT_GE(expected[k].bound.words, plan["lower_bound"]["words"]) << "of every algorithm";
      EXPECT_NEAR(found["ratio"].get<double>(),
                  static_cast<double>(expected[k].words.value()) /
                      static_cast<double>(expected[k].bound.words),
                  1e-9);
      const Json count = json(fmt::format("count {} --n 100 --m 60 --d 8 --M 500 --objective words",
                                          found["kernel"].get<std::string>()));
      Index words = count["total"]["io"].get<Index>();
      if (!found["forward"].is_null()) {
        words += json(fmt::format("count {} --n 100 --m 60 --d 8 --M 500 --objective words",
                                  found["forward"].get<std::string>()))["total"]["io"]
                     .get<Index>();
      }
      EXPECT_EQ(found["words"], words) << found["kernel"];
      EXPECT_EQ(found["blocks"], count["blocks"]) << found["kernel"];
    }
    EXPECT_NE(data("plan --n 100 --m 60 --d 8 --M 500 --given " + given)
                  .find(plan["reason"].get<std::string>()),
              std::string::npos);
  }
}

// If two kernels move the same words with the same flops, the first in `redblue list` comes first.
TEST_F(PlanCommand, SaysWhatDecidesBetweenEquals) {
  const std::string text = data("plan --problem product --n 64 --d 64 --M 2000");
  EXPECT_NE(text.find("moves as many words and flops, and comes later in `redblue list`\n"),
            std::string::npos)
      << text;
}

// With A3 = A2, the plan includes the kernels that read them once. Otherwise it does not.
TEST_F(PlanCommand, SharedSourcesAreReadOnce) {
  const std::string size = "plan --n 4096 --d 64 --M 64K";
  EXPECT_EQ(json(size)["plan"]["kernel"], "backward/rows-xg");
  EXPECT_EQ(json(size + " --sharing kv")["plan"]["kernel"], "backward/rows-xg-shared");
  EXPECT_EQ(data(size).find("-shared"), std::string::npos);
}

// With the objective `balanced`, choices that move too many words have no time and come last.
TEST_F(PlanCommand, BalancedHasTheFastestInFront) {
  const std::string line = "plan --problem gradients --n 4096 --d 64 --M 64K --objective balanced";
  const Json plan = json(line);
  EXPECT_EQ(plan["objective"], "balanced");
  EXPECT_GT(plan["plan"]["seconds"], 0);
  EXPECT_TRUE(plan["runners_up"].back()["seconds"].is_null());
  EXPECT_NE(data(line).find("the next, moves "), std::string::npos);
}

// `auto` runs the kernel of the plan and moves the planned words.
TEST_F(PlanCommand, AutoRunsThePlan) {
  for (const std::string pass : {"forward", "backward"}) {
    for (const Index M : {Index{300}, Index{2000}, Index{100'000}}) {
      const std::string size = fmt::format("--n 90 --m 70 --d 6 --M {}", M);
      const Json plan = json(fmt::format("plan --problem {} {}{}", pass, size,
                                         pass == "backward" ? " --given nothing" : ""));
      const Json run = json(fmt::format("run {}/auto {} --objective words --verify", pass, size));
      EXPECT_EQ(run["asked"], pass + "/auto");
      EXPECT_EQ(run["kernel"], plan["plan"]["kernel"]);
      EXPECT_EQ(run["total_from_nothing"], plan["plan"]["words"]);
      EXPECT_EQ(run["lower_bound"], plan["plan"]["lower_bound"]);
      EXPECT_EQ(run["ratio"], plan["plan"]["ratio"]);
      EXPECT_TRUE(run["error"]["ok"].get<bool>());
    }
  }
  // With several threads, the kernel must be one that splits.
  const Json run = json("run backward/auto --n 90 --d 6 --M 2000 --threads 2 --verify");
  EXPECT_TRUE(tested_kernel(run["kernel"].get<std::string>()).split());
  EXPECT_TRUE(run["lower_bound"].is_null()) << "of one machine";
}

// By the default rates, which are the same everywhere: this environment has no calibration.
TEST_F(PlanCommand, LeastTime) {
  const std::string size = "--n 90 --m 70 --d 6 --M 2000";
  const Json plan = json("plan " + size + " --given nothing --objective time");
  EXPECT_EQ(plan["objective"], "time");
  EXPECT_EQ(plan["rates"], default_rates().origin);
  double last = plan["plan"]["seconds"];
  for (const Json& other : plan["runners_up"]) {
    EXPECT_GE(other["seconds"], last);
    last = other["seconds"];
  }
  const std::string table = data("plan " + size + " --given nothing --objective time");
  EXPECT_NE(table.find("\nrates: " + default_rates().origin), std::string::npos) << table;
  EXPECT_NE(plan["reason"].get<std::string>().find(" ms by the rates, "), std::string::npos);

  for (const std::string command : {"count", "run"}) {
    const Json done = json(command + " backward/auto " + size + " --objective time");
    EXPECT_EQ(done["kernel"], plan["plan"]["kernel"]);
    EXPECT_EQ(done["blocks"], plan["plan"]["blocks"]);
    EXPECT_EQ(done["total_from_nothing"], plan["plan"]["words"]);
  }
  const Json two = json("run backward/auto " + size + " --objective time --threads 2 --verify");
  EXPECT_TRUE(tested_kernel(two["kernel"].get<std::string>()).split());
  EXPECT_TRUE(two["error"]["ok"].get<bool>());

  const Json words = json("plan " + size);
  EXPECT_EQ(words["objective"], "words");
  EXPECT_TRUE(words["rates"].is_null());
  EXPECT_TRUE(words["plan"]["seconds"].is_null());
}

// Threads divide the time of each kernel that they can share, and change no word.
TEST_F(PlanCommand, ThreadsDivideTheTime) {
  const std::string size = "--problem gradients --n 200 --d 8 --M 4000 --objective time";
  const auto seconds = [&](const std::string& threads) {
    const Json plan = json("plan " + size + threads);
    std::map<std::string, std::pair<double, Index>> all;
    std::vector<Json> choices = {plan["plan"]};
    choices.insert(choices.end(), plan["runners_up"].begin(), plan["runners_up"].end());
    for (const Json& choice : choices) {
      all[choice["kernel"]] = {choice["seconds"], choice["words"]};
    }
    return all;
  };
  const auto one = seconds(""), four = seconds(" --threads 4");
  EXPECT_TRUE(one.contains("gradients/flash"));
  EXPECT_FALSE(four.contains("gradients/flash")) << "threads cannot share it";
  ASSERT_GE(four.size(), 2U);
  for (const auto& [kernel, of] : four) {
    EXPECT_NEAR(of.first, one.at(kernel).first / 4, 1e-9 * of.first) << kernel;
    EXPECT_EQ(of.second, one.at(kernel).second) << kernel;
  }
  EXPECT_EQ(json("plan " + size + " --threads 4")["threads"], 4);
  EXPECT_FALSE(json("plan " + size)["threads"].is_number());
  EXPECT_NE(data("plan " + size + " --threads 4").find("4 threads, each with M words"),
            std::string::npos);
  // Several heads are dealt whole, so any kernel takes part.
  EXPECT_EQ(json("plan " + size + " --threads 2 --heads 4")["runners_up"].size() + 1, one.size());
  for (const std::string what : {"--loops backward/rows", "backward/rows --ranks 2"}) {
    expect_refused(process("plan " + what + " --n 9 --d 2 --M 900 --threads 2"), 2,
                   "--threads '2': .* is planned for one thread");
  }
  expect_refused(process("plan --cache a100 --d 8 --threads 2"), 2, "--threads '2': --cache asks");
}

// Section 4 of the paper: an A100 suits its large-cache algorithm, a GTX 1060 the small-cache one.
// Each has M words.
TEST_F(PlanCommand, DevicesOfThePaper) {
  const Json report = json("plan --cache a100,48KiB --d 128,64");
  EXPECT_EQ(report["n"], 4096);
  const Json& devices = report["devices"];
  ASSERT_EQ(devices.size(), 4U);
  EXPECT_EQ(devices[0]["device"], "a100");
  EXPECT_EQ(devices[0]["bytes"], 192 * 1024);
  EXPECT_EQ(devices[0]["paper"]["by_rule"], "backward/large");
  EXPECT_EQ(devices[1]["d"], 64);
  EXPECT_EQ(devices[2]["device"], "48KiB");
  EXPECT_EQ(devices[0]["source"], "L1 and shared memory of an SM (NVIDIA A100 white paper)");
  EXPECT_EQ(devices[2]["source"], "given by --cache");
  EXPECT_EQ(devices[2]["paper"]["by_rule"], "backward/small");
  EXPECT_EQ(devices[3]["paper"]["by_rule"], "backward/large") << "12,288 words, and d^2 = 4,096";
  EXPECT_EQ(json("plan --cache gtx1060 --d 128 --n 100")["n"], 100);
}

// Each line agrees with `count` for the paper's algorithms, and with `plan` for all kernels.
TEST_F(PlanCommand, DevicesAgreeWithCountAndPlan) {
  for (const std::string given : {"OL", "nothing"}) {
    const Json report =
        json("plan --cache 16KiB,36KiB,128KiB --d 40,64 --n 200 --m 90 --given " + given);
    for (const Json& line : report["devices"]) {
      const Index M = line["M"];
      const Index d = line["d"];
      EXPECT_EQ(line["bytes"], 4 * M);
      EXPECT_EQ(line["dividing_point"], d * d);
      EXPECT_EQ(line["paper"]["by_rule"], M < d * d ? "backward/small" : "backward/large");
      const std::string size = fmt::format("--n 200 --m 90 --d {} --M {}", d, M);
      const Json plan = json(fmt::format("plan {} --given {}", size, given));
      for (const char* key : {"kernel", "forward", "words", "lower_bound", "ratio"}) {
        EXPECT_EQ(line["best"][key], plan["plan"][key]) << size;
      }
      EXPECT_EQ(line["lower_bound"], plan["lower_bound"]);
      const Index small = json("count backward/small " + size)["total"]["io"];
      EXPECT_EQ(line["paper"]["small"]["words"], small);
      const bool fits = M >= tested_kernel("backward/large").least_M({200, 90, d});
      ASSERT_EQ(line["paper"]["large"].is_object(), fits) << size;
      Index fewer = small;
      if (fits) {
        fewer = std::min(fewer, line["paper"]["large"]["words"].get<Index>());
      }
      EXPECT_EQ(line["paper"]["by_words"], fewer == small ? "backward/small" : "backward/large");
      EXPECT_NEAR(line["paper_over_best"].get<double>(),
                  static_cast<double>(fewer) / plan["plan"]["words"].get<double>(), 1e-9);
    }
  }
}

TEST_F(PlanCommand, DevicesInTheirForms) {
  const std::vector<CsvRow> rows = parse_csv(data("plan --cache all --d 64,128,256 --format csv"));
  ASSERT_EQ(rows.size(), 3 * devices().size());
  for (std::size_t k = 0; k < rows.size(); ++k) {
    EXPECT_EQ(rows[k].at("device"), devices()[k / 3].name);
    EXPECT_EQ(rows[k].at("bytes"), std::to_string(devices()[k / 3].levels.back().bytes));
  }
  const std::string table = data("plan --cache all --cache 4KiB --d 8");
  for (const Device& device : devices()) {
    EXPECT_NE(table.find(device.name + ": " + std::string(device.source) + "\n"),
              std::string::npos);
  }
}

// Every table says where its sizes come from, once for neighbours with the same source.
TEST_F(PlanCommand, DevicesAndTheirSources) {
  EXPECT_NE(data("plan --cache 4KiB,8KiB,a100,16KiB --d 8,16")
                .find("\n\n4KiB, 8KiB: given by --cache\n"
                      "a100: L1 and shared memory of an SM (NVIDIA A100 white paper)\n"
                      "16KiB: given by --cache\n"),
            std::string::npos);
}

// A device that is too small for every kernel still has a line.
TEST_F(PlanCommand, DevicesTooSmallForAnyKernel) {
  const std::string asked = "plan --cache 8B,4KiB --d 8";
  const Json devices = json(asked)["devices"];
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0]["device"], "8B");
  EXPECT_TRUE(devices[0]["best"].is_null());
  EXPECT_TRUE(devices[0]["paper_over_best"].is_null());
  EXPECT_GT(devices[0]["lower_bound"]["words"], 0);
  EXPECT_EQ(devices[1], json("plan --cache 4KiB --d 8")["devices"][0]);
  const std::string table = data(asked);
  const std::string line =
      table.substr(table.find("\n8B"), table.find("\n4KiB") - table.find("\n8B"));
  EXPECT_NE(line.find("none fits"), line.rfind("none fits")) << "nor of the paper's:" << table;
  const std::vector<CsvRow> rows = parse_csv(data(asked + " --format csv"));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("device"), "8B");
  EXPECT_EQ(rows[0].at("best"), "");
  EXPECT_EQ(rows[0].at("words"), "");
  EXPECT_EQ(rows[1].at("words"), devices[1]["best"]["words"].dump());
}

// The lines add up to the counts, phase by phase. `--sharing kv` and `-shared` mean the same.
TEST_F(PlanCommand, LoopsOfAPlan) {
  const std::string size = "--n 100 --m 60 --d 8 --M 700";
  for (const std::string kernel : {"forward/flash", "backward/large", "backward/tiles-shared"}) {
    const Json report = json(fmt::format("plan --loops {} {}", kernel, size));
    const Json count = json(fmt::format("count {} {}", kernel, size));
    for (const char* key : {"schema", "kernel", "n", "m", "d", "M", "blocks"}) {
      EXPECT_EQ(report.at(key), count.at(key)) << key;
    }
    EXPECT_EQ(report.at("sharing"), count.value("sharing", "none"));
    std::map<std::string, std::pair<Index, Index>> moved;
    for (const Json& line : report["loops"]) {
      const bool loop = line["kind"] == "loop";
      EXPECT_EQ(keys(line), (Keys{"phase", "depth", "kind", "text", "trips", "block", "stays",
                                  "reads", "writes"}));
      EXPECT_EQ(line["trips"].is_number(), loop);
      EXPECT_EQ(line["block"].is_number(), loop);
      moved[line["phase"]].first += line["reads"].get<Index>();
      moved[line["phase"]].second += line["writes"].get<Index>();
    }
    for (const Json& phase : count["phases"]) {
      const std::pair<Index, Index> words = {phase["formula"]["reads"], phase["formula"]["writes"]};
      EXPECT_EQ(moved.at(phase["path"]), words) << phase["path"];
    }
    // So do the words of the matrices.
    Index reads = 0, writes = 0;
    for (const Json& matrix : report["matrices"]) {
      reads += matrix["reads"].get<Index>();
      writes += matrix["writes"].get<Index>();
    }
    EXPECT_EQ(count["formula"]["reads"], reads);
    EXPECT_EQ(count["formula"]["writes"], writes);
    // The CSV has the same lines.
    const std::vector<CsvRow> rows =
        parse_csv(data(fmt::format("plan --loops {} {} --format csv", kernel, size)));
    ASSERT_EQ(rows.size(), report["loops"].size());
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const Json& line = report["loops"][k];
      const bool loop = line["kind"] == "loop";
      EXPECT_EQ(rows[k].at("kernel"), kernel);
      EXPECT_EQ(rows[k].at("text"), line["text"]);
      EXPECT_EQ(rows[k].at("depth"), line["depth"].dump());
      EXPECT_EQ(rows[k].at("trips"), loop ? line["trips"].dump() : "");
      EXPECT_EQ(rows[k].at("block"), loop ? line["block"].dump() : "");
      EXPECT_EQ(rows[k].at("reads"), line["reads"].dump());
      EXPECT_EQ(rows[k].at("writes"), line["writes"].dump());
    }
    // The table has the same lines, indented.
    const std::string table = data(fmt::format("plan --loops {} {}", kernel, size));
    std::size_t at = 0;
    for (const Json& line : report["loops"]) {
      const std::string text = "\n" + std::string(2 * line["depth"].get<std::size_t>(), ' ') +
                               line["text"].get<std::string>() + " ";
      at = table.find(text, at);
      ASSERT_NE(at, std::string::npos) << text << table;
    }
    const std::string last = table.substr(table.rfind("\ntotal "));
    for (const char* words : {"reads", "writes"}) {
      EXPECT_NE(last.find(" " + grouped(count["formula"][words]) + " "), std::string::npos) << last;
    }
  }
  EXPECT_EQ(data("plan --sharing kv --loops backward/tiles " + size),
            data("plan --loops backward/tiles-shared " + size));
  const Json by_time = json("plan --objective time --loops backward/flash " + size);
  EXPECT_EQ(by_time["blocks"], json("count backward/flash --objective time " + size)["blocks"]);
}

// attention/rows keeps Br queries while all keys pass: it reads K and V in ceil(n / Br) passes, and
// Q in one. backward/small writes f and reads it again, and f is neither an operand nor a result.
TEST_F(PlanCommand, PassesOverMatrices) {
  const Json rows = json("plan --loops attention/rows --n 1000 --m 300 --d 8 --M 4K");
  const Index blocks = ceil_div(1000, rows["blocks"]["Br"].get<Index>());
  EXPECT_GT(blocks, 1);
  std::map<std::string, Json> of;
  for (const Json& matrix : rows["matrices"]) {
    of[matrix["matrix"]] = matrix;
  }
  const auto expect = [&](const char* name, Index words, Json read, Json written) {
    ASSERT_TRUE(of.contains(name)) << name;
    EXPECT_EQ(of[name]["words"], words) << name;
    EXPECT_EQ(of[name]["read_passes"], read) << name;
    EXPECT_EQ(of[name]["write_passes"], written) << name;
  };
  expect("Q", 8000, 1., nullptr);
  expect("K", 2400, static_cast<double>(blocks), nullptr);
  expect("V", 2400, static_cast<double>(blocks), nullptr);
  expect("O", 8000, nullptr, 1.);
  expect("L", 1000, nullptr, 1.);
  EXPECT_EQ(of.size(), 5U);
  const Json small = json("plan --loops backward/small --n 100 --d 8 --M 300");
  const auto is_f = [](const Json& matrix) { return matrix["matrix"] == "f"; };
  const auto f = std::ranges::find_if(small["matrices"], is_f);
  ASSERT_NE(f, small["matrices"].end());
  EXPECT_TRUE((*f)["words"].is_null() && (*f)["write_passes"].is_null());
  EXPECT_GE((*f)["reads"].get<Index>(), 100 * 100);
}

// If blocks within 5% of the fewest words are narrow, text and JSON tell the larger share.
TEST_F(PlanCommand, BalancedTellsALargerShare) {
  const std::string problem = " --n 2048 --d 64 --mask causal --M ";
  EXPECT_EQ(json("count gradients/auto" + problem + "512K")["balanced_share"], 1.6);
  EXPECT_FALSE(json("count gradients/auto" + problem + "1M").contains("balanced_share"));
  const std::string plan = "plan --problem gradients --given nothing --objective balanced";
  EXPECT_EQ(json(plan + problem + "512K")["balanced_share"], 1.6);
  EXPECT_NE(redblue(plan + problem + "512K").out.find("within 60% of the fewest words"),
            std::string::npos);
}

// If O and L come from files, `auto` also considers kernels that take them.
TEST_F(PlanCommand, AutoTakesWhatItIsGiven) {
  const std::string size = "--n 90 --m 70 --d 6 --M 900";
  const auto file = [&](const char* name) { return (directory_.path() / name).string(); };
  static_cast<void>(
      json(fmt::format("run forward/naive --n 90 --m 70 --d 6 --M 100K --out O={} --out L={}",
                       file("o.npy"), file("l.npy"))));
  const Json run =
      json(fmt::format("run backward/auto {} --objective words --seed 1 "
                       "--verify --in O={} --in L={}",
                       size, file("o.npy"), file("l.npy")));
  EXPECT_EQ(run["kernel"], json("plan " + size)["plan"]["kernel"]);
  EXPECT_EQ(run["seed"], 1) << "the other operands came from it";
  EXPECT_TRUE(run["error"]["ok"].get<bool>());
}

}  // namespace
}  // namespace redblue
