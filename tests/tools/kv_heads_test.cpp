// Tests `--kv-heads` of count, run, plan and bounds, and `kv_heads` of suites. No bit of a result
// depends on the number of threads.

#include <fmt/format.h>

#include "kernels/kernel.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/json.hpp"

namespace redblue {
namespace {

using Json = nlohmann::json;

class KvHeadsOption : public Cli {
 protected:
  static Index io(const Json& counts) {
    return counts["reads"].get<Index>() + counts["writes"].get<Index>();
  }
};

constexpr const char* kSize = " --n 29 --m 23 --d 6 --M 1500";

// As many key heads as query heads equals the option `--heads` alone.
TEST_F(KvHeadsOption, AsManyAsHeadsIsNothingNew) {
  for (const Kernel& kernel : kernels()) {
    if (inputs_of(kernel.pass) == Inputs::weighted || kernel.of_one_source) {
      continue;
    }
    SCOPED_TRACE(kernel.name);
    const std::string run = fmt::format("run {}{} --heads 3", kernel.name, kSize);
    const std::string returned(kernel.returns.back().name);
    Json before = json(run + " --out " + returned + "=before.npy");
    Json now = json(run + " --kv-heads 3 --out " + returned + "=now.npy");
    EXPECT_EQ(content_of(directory_ / "now.npy"), content_of(directory_ / "before.npy"));
    EXPECT_EQ(now["kv_heads"], 3);
    EXPECT_EQ(now["formula"], before["formula"]);
    EXPECT_EQ(now["lower_bound"], before["lower_bound"]);
    EXPECT_EQ(data("count" + run.substr(3) + " --kv-heads 3"), data("count" + run.substr(3)));
  }
}

TEST_F(KvHeadsOption, SaysTheHeadsOfBoth) {
  const std::string count =
      "count gradients/rows-keys --n 29 --m 23 --d 6 --M 1500 --heads 6 --kv-heads 2 --mask causal";
  const Json counted = json(count);
  const Json one = json("count gradients/rows-keys --n 29 --m 23 --d 6 --M 1500 --mask causal");
  EXPECT_EQ(counted["n"], 29);
  EXPECT_EQ(counted["heads"], 6);
  EXPECT_EQ(counted["kv_heads"], 2);
  EXPECT_EQ(counted["mask"], one["mask"]) << "of one head";
  EXPECT_EQ(counted["pairs"], one["pairs"]);
  EXPECT_EQ(one["kv_heads"], 1);
  EXPECT_FALSE(json("count forward/rows --n 29 --d 6 --M 1500").contains("kv_heads"));
  EXPECT_NE(data(count).find("gradients/rows-keys n=29 m=23 d=6 heads=6 kv_heads=2 M=1500 "
                             "mask=causal: "),
            std::string::npos);
  for (const CsvRow& row : parse_csv(data(count + " --format csv"))) {
    EXPECT_EQ(row.at("n"), "29");
    EXPECT_EQ(row.at("heads"), "6");
    EXPECT_EQ(row.at("kv_heads"), "2");
  }
}

// If row blocks stream the keys and n is large, G query heads that share keys read fewer words of
// them. They never move more words than separate heads with the same blocks.
TEST_F(KvHeadsOption, KeysPassForAllThatShareThem) {
  for (const std::string pass : {"attention", "gradients"}) {
    const std::string size = " --n 512 --d 32 --M 8K --heads 8 --objective words";
    Index before = json("count " + pass + "/auto" + size)["total"]["io"];
    for (const int kv_heads : {4, 2, 1}) {
      const Json shared = json(fmt::format("count {}/auto{} --kv-heads {}", pass, size, kv_heads));
      EXPECT_LT(shared["total"]["io"], before);
      EXPECT_LE(shared["lower_bound"]["words"], shared["total_from_nothing"]);
      before = shared["total"]["io"];
    }
  }
}

// Workers get whole key heads. The rows of a single key head are split.
TEST_F(KvHeadsOption, EqualBitsForAnyNumberOfThreads) {
  for (const std::string kernel :
       {"attention/rows", "gradients/rows-keys", "gradients/rows-keys-onepass"}) {
    for (const std::string mask : {"full", "causal", "window:5,2|global:0-1"}) {
      for (const int kv_heads : {1, 2}) {
        const std::string line = fmt::format("run {}{} --heads 4 --kv-heads {} --mask {}", kernel,
                                             kSize, kv_heads, mask);
        SCOPED_TRACE(line);
        const std::vector<std::string> results = kernel == "attention/rows"
                                                     ? std::vector<std::string>{"O", "L"}
                                                     : std::vector<std::string>{"dQ", "dK", "dV"};
        for (const int threads : {1, 2, 3, 7}) {
          std::string outputs;
          for (const std::string& name : results) {
            outputs += fmt::format(" --out {0}={0}_{1}.npy", name, threads);
          }
          const Json run = json(fmt::format("{} --threads {} --verify{}", line, threads, outputs));
          EXPECT_TRUE(run["error"]["ok"]);
          EXPECT_EQ(io(run["total"]), io(run["formula"]));
          for (const std::string& name : results) {
            EXPECT_EQ(content_of(directory_ / fmt::format("{}_{}.npy", name, threads)),
                      content_of(directory_ / fmt::format("{}_1.npy", name)));
          }
        }
      }
    }
  }
}

// Plans and bounds, like counts, cover all heads together.
TEST_F(KvHeadsOption, IsPlannedAndBounded) {
  for (const std::string mask : {"full", "causal"}) {
    for (const std::string pass : {"attention", "gradients"}) {
      const std::string size = " --n 200 --m 300 --d 16 --M 4K --mask " + mask;
      const std::string heads = size + " --heads 12 --kv-heads 3";
      SCOPED_TRACE(pass + heads);
      const Json plan = json("plan --problem " + pass + heads);
      EXPECT_EQ(plan["n"], 200);
      EXPECT_EQ(plan["heads"], 12);
      EXPECT_EQ(plan["kv_heads"], 3);
      EXPECT_EQ(plan["mask"], json("plan --problem " + pass + size)["mask"]);
      const std::string kernel = plan["plan"]["kernel"];
      const Json counted = json("count " + kernel + heads + " --objective words");
      EXPECT_EQ(counted["total"]["io"], plan["plan"]["words"]);
      EXPECT_EQ(counted["blocks"], plan["plan"]["blocks"]);
      EXPECT_EQ(counted["lower_bound"], plan["plan"]["lower_bound"]);
      EXPECT_EQ(counted["ratio"].is_null(), false);
      const Json bounds = json("bounds --problem " + pass + heads);
      EXPECT_EQ(bounds["lower_bound"], plan["lower_bound"]);
      EXPECT_EQ(bounds["best"]["words"], plan["plan"]["words"]);
      const Json of_one = json("bounds --problem " + pass + size + " --heads 4 --kv-heads 1");
      for (std::size_t k = 0; k < bounds["bounds"].size(); ++k) {
        EXPECT_EQ(bounds["bounds"][k]["words"], 3 * of_one["bounds"][k]["words"].get<Index>());
      }
      for (const CsvRow& row :
           parse_csv(data("plan --problem " + pass + heads + " --format csv"))) {
        EXPECT_EQ(row.at("heads"), "12");
        EXPECT_EQ(row.at("kv_heads"), "3");
      }
      EXPECT_NE(data("plan --problem " + pass + heads).find(" M=4096, 12 heads, 3 of keys"),
                std::string::npos);
      Index moved = 0;
      const Json nest = json("plan --loops " + kernel + size + " --heads 4 --kv-heads 1");
      for (const Json& line : nest["loops"]) {
        moved += line.value("reads", Index{0}) + line.value("writes", Index{0});
      }
      EXPECT_EQ(3 * moved, plan["plan"]["words"]);
      EXPECT_EQ(nest["heads"], 4);
    }
  }
  // Heads without shared keys are separate problems.
  const std::string size = " --n 200 --d 16 --M 4K";
  const Json one = json("bounds" + size);
  const Json five = json("bounds --heads 5" + size);
  EXPECT_EQ(five["lower_bound"]["words"], 5 * one["lower_bound"]["words"].get<Index>());
  EXPECT_EQ(five["best"]["words"], 5 * one["best"]["words"].get<Index>());
  EXPECT_FALSE(five.contains("kv_heads"));
  EXPECT_FALSE(five.contains("statements"));
  EXPECT_NE(data("plan --heads 5" + size).find("\n5 heads of backward/"), std::string::npos);
}

TEST_F(KvHeadsOption, IsAParameterOfSuites) {
  directory_.write("suite.json", R"({"points": [
      {"kernel": ["attention/*", "gradients/rows-keys"], "n": 17, "m": 9, "d": 4, "M": 600,
       "heads": 4, "kv_heads": [1, 2, 4], "mask": ["full", "causal"]}]})");
  ASSERT_EQ(redblue("record suite.json -o base.json").code, 0);
  EXPECT_EQ(redblue("check base.json").code, 0);
  const Json base = Json::parse(content_of(directory_ / "base.json"));
  int shared = 0;
  for (const Json& point : base["points"]) {
    const Json& arguments = point["arguments"];
    EXPECT_NE(arguments.value("kv_heads", 0), 4) << "as many as heads is the default";
    if (!point.contains("total") || !arguments.contains("kv_heads")) {
      continue;
    }
    ++shared;
    const Json counted = json(fmt::format(
        "count {} --n 17 --m 9 --d 4 --M 600 --objective words --heads 4 --kv-heads {} --mask {}",
        point["kernel"].get<std::string>(), arguments["kv_heads"].get<Index>(),
        arguments.value("mask", "full")));
    EXPECT_EQ(io(point["total"]), io(counted["total"]));
  }
  EXPECT_GT(shared, 5);
  for (const auto& [entry, message] :
       {std::pair(R"("attention/rows", "kv_heads": 3)", "kv_heads 3 does not divide heads 4"),
        std::pair(R"("forward/rows", "kv_heads": 2)", "forward/rows takes no 'kv_heads'")}) {
    directory_.write("bad.json", fmt::format(R"({{"points": [
        {{"n": 17, "d": 4, "M": 600, "heads": 4, "kernel": {}}}]}})",
                                             entry));
    expect_refused(process("record bad.json"), 1, message);
  }
}

}  // namespace
}  // namespace redblue
