// Tests activations other than the softmax from the command line. Each kernel that takes an
// activation counts the words of its formula and is verified. Suites and sweeps can name the
// activation. Kernels that know only the softmax refuse it.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/kernel.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

constexpr Activation kOthers[] = {Activation::relu, Activation::sigmoid, Activation::silu};

class ActivationOption : public Cli {
 protected:
  void expect_line(const std::string& line, int code, const std::string& message) {
    SCOPED_TRACE(line);
    expect_refused(process(line), code, message);
  }
};

TEST_F(ActivationOption, EveryKernelCountsWhatItRuns) {
  int ran = 0;
  for (const KernelName& name : kernel_names()) {
    for (const Activation activation : kOthers) {
      if (name.kernel->pass == Pass::product || !name.kernel->takes(activation) ||
          name.kernel->of_one_source) {
        continue;
      }
      const std::string problem = fmt::format(" {} --n 31 --m 23 --d 7 --M 3000 --activation {}",
                                              name.text(), to_string(activation));
      SCOPED_TRACE(problem);
      const Json run = json("run" + problem + " --verify");
      const Json count = json("count" + problem);
      EXPECT_EQ(run["error"]["ok"], true);
      EXPECT_EQ(run["activation"], to_string(activation));
      EXPECT_EQ(count["activation"], to_string(activation));
      EXPECT_EQ(run["total"]["io"], count["total"]["io"]);
      ++ran;
    }
  }
  EXPECT_GT(ran, 3 * 20);
}

// Each point of a recording and of a sweep states its activation, and moves the words that `count`
// reports.
TEST_F(ActivationOption, InASuite) {
  const std::vector<std::string> kernels = {"forward/rows", "backward/tiles", "attention/auto",
                                            "gradients/auto", "layer/flash"};
  std::string names;
  for (const std::string& kernel : kernels) {
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", kernel);
  }
  directory_.write("s.json", R"({"how": "run", "points": [{"kernel": [)" + names +
                                 R"(], "n": 31, "m": 23, "d": 7, "M": 1500,
                                 "activation": ["softmax", "relu", "silu"]}]})");
  ASSERT_EQ(redblue("record s.json -o base.json").code, 0);
  EXPECT_EQ(redblue("check base.json").code, 0);
  ASSERT_EQ(redblue("sweep s.json -o swept").code, 0);
  const Json recorded = Json::parse(content_of(directory_ / "base.json"))["points"];
  const Json swept = Json::parse(content_of(directory_ / "swept/sweep.json"))["points"];
  ASSERT_EQ(recorded.size(), 3 * kernels.size());
  ASSERT_EQ(swept.size(), recorded.size());
  for (std::size_t k = 0; k < recorded.size(); ++k) {
    const Json& point = recorded[k];
    const std::string activation = swept[k]["arguments"]["activation"];
    SCOPED_TRACE(point["kernel"].get<std::string>() + " " + activation);
    EXPECT_EQ(point["arguments"].value("activation", "softmax"), activation);
    const Json& total = point["total"];
    EXPECT_EQ(swept[k]["total"]["reads"], total["reads"]);
    if (activation != "softmax") {  // O and L are given; the command would compute them
      EXPECT_EQ(json(fmt::format("count {} --n 31 --m 23 --d 7 --M 1500 --activation {}",
                                 point["kernel"].get<std::string>(), activation))["total"]["io"],
                total["reads"].get<Index>() + total["writes"].get<Index>());
    }
  }
  EXPECT_NE(content_of(directory_ / "swept/sweep.csv").find(",activation,"), std::string::npos);

  // A kernel that knows only the softmax is refused by name.
  const auto suite = [&](const std::string& kernel, const std::string& activation) {
    directory_.write("t.json", fmt::format(R"({{"how": "count", "points": [{{"kernel": "{}",
        "n": 31, "d": 7, "M": 1500, "activation": "{}"}}]}})",
                                           kernel, activation));
  };
  suite("logsumexp/sparse-rows", "relu");
  expect_line("record t.json", 1, "logsumexp/sparse-rows takes no 'activation'");
  suite("forward/rows", "rulu");
  expect_line("record t.json", 1,
              "activation is 'rulu': expected softmax or relu or sigmoid or silu");
  suite("matmul/blocked", "relu");
  expect_line("record t.json", 1, "matmul/blocked takes no 'activation'");
}

// The help, the error message and the schemas name every activation of the list.
TEST_F(ActivationOption, TheListIsWhatPeopleRead) {
  std::string all, bars;
  for (const Activation activation : kActivations) {
    all += fmt::format("{}{}", all.empty() ? "" : ", ", to_string(activation));
    bars += fmt::format("{}{}", bars.empty() ? "" : "|", to_string(activation));
    for (const char* const schema : {"suite", "common"}) {
      const std::string text = content_of(std::filesystem::path(REDBLUE_SOURCE_DIR) /
                                          "docs/schemas" / fmt::format("{}.schema.json", schema));
      EXPECT_TRUE((schema == std::string("common") && activation == Activation::softmax) ||
                  text.find(fmt::format("\"{}\"", to_string(activation))) != std::string::npos)
          << schema << " lacks " << to_string(activation);
    }
  }
  const std::string help = redblue("run --help").out;
  EXPECT_NE(help.find(bars), std::string::npos) << help;
  expect_line("run forward/rows --n 8 --d 4 --M 900 --activation gelu", 2,
              "--activation 'gelu': expected one of " + all);
}

TEST_F(ActivationOption, Refusals) {
  const std::string size = " --n 8 --d 4 --M 900 --activation ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"run backward/rows --seed 1 --in L=l.npy" + size + "relu",
       "--in L=l.npy: backward/rows with --activation relu is given"},
      {"run forward/rows --out L=l.npy" + size + "silu",
       "--out L=l.npy: forward/rows with --activation silu returns O"},
      {"run matmul/blocked" + size + "relu",
       "--activation relu: matmul/blocked has no activation: it is a product"},
      {"run linear/rows --mask causal" + size + "relu",
       "--activation relu: linear/rows has no activation: linear attention"},
      {"run logsumexp/sparse-rows" + size + "relu", "logsumexp/sparse-rows knows softmax alone"},
      {"run forward/rows" + size + "rulu", "--activation 'rulu'"}};
  for (const auto& [line, message] : cases) {
    expect_line(line, 2, message);
    EXPECT_FALSE(std::filesystem::exists(directory_ / "l.npy"));
  }
}

}  // namespace
}  // namespace redblue
