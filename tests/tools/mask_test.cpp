// --mask: the live pairs of a run, a count, a plan and bounds; what takes one, and what stays what
// it was.

#include <fmt/format.h>

#include "tests/support/cli.hpp"
#include "tests/support/json.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

using Json = nlohmann::json;

constexpr const char* kMasks[] = {"causal",
                                  "window:3,2",
                                  "window:inf,0",
                                  "causal|prefix:4",
                                  "window:2,2|global:0-1",
                                  "causal&(prefix:5|window:-1,1)",
                                  "prefix:0"};

class MaskOption : public Cli {};

// Every kernel that takes masks: verified, the words of its formula; a mask of all pairs is none.
TEST_F(MaskOption, EveryKernelUnderIt) {
  for (const TestedKernel& kernel : some_tested_kernels()) {
    if (!kernel.kernel->takes_masks) {
      continue;
    }
    SCOPED_TRACE(kernel.name);
    const std::string problem =
        fmt::format("{} --n 29 --m 23 --d 6 --M {}", kernel.name, kernel.least_M({29, 23, 6}) + 90);
    for (const std::string mask : kMasks) {
      SCOPED_TRACE(mask);
      const Json run = json(fmt::format("run {} --mask {} --verify", problem, mask));
      EXPECT_TRUE(run["error"]["ok"]);
      EXPECT_EQ(run["mask"]["spec"], mask);
      EXPECT_EQ(run["pairs"], run["mask"]["pairs"]);
      EXPECT_EQ(run["total"]["reads"], run["formula"]["reads"]);
      EXPECT_EQ(run["total"]["writes"], run["formula"]["writes"]);
      EXPECT_EQ(json(fmt::format("count {} --mask {}", problem, mask))["formula"], run["formula"]);
    }
    const Json none = json("run " + problem);
    const Json full = json("run " + problem + " --mask full");
    const Json all = json("run " + problem + " --mask window:inf,inf");
    EXPECT_EQ(none["mask"]["spec"], "full");
    EXPECT_EQ(none["pairs"], 29 * 23);
    for (const Json& other : {full, all}) {
      for (const char* counted : {"reads", "writes", "peak", "flops"}) {
        EXPECT_EQ(other["total"][counted], none["total"][counted]) << counted;
      }
      EXPECT_EQ(other["mask"]["fingerprint"], none["mask"]["fingerprint"]);
    }
  }
}

// causal & (prefix:5 | window:-1,1): of 6 queries and 4 keys, query i beside key i - 2.
TEST_F(MaskOption, SaysWhatLives) {
  const std::string line = "count attention/rows --n 6 --m 4 --d 2 --M 900 --mask ";
  EXPECT_EQ(json(line + "causal")["mask"],
            (Json{{"spec", "causal"},
                  {"fingerprint", json(line + "window:-1,0")["mask"]["fingerprint"]},
                  {"pairs", 1 + 2 + 3 + 4},
                  {"live_queries", 4},
                  {"live_keys", 4}}));
  EXPECT_EQ(json(line + "causal&prefix:2")["pairs"], 1 + 2 + 2 + 2);
  EXPECT_EQ(json(line + "window:0,1|global:3-3")["pairs"], (1 + 2 + 2 + 2 + 1) + 1 + 4);
  EXPECT_EQ(json(line + "(window:0,0|prefix:1)")["mask"]["live_queries"], 6);
  EXPECT_EQ(json("REDBLUE_MASK=causal count attention/rows --n 6 --m 4 --d 2 --M 900")["pairs"],
            10);
}

// Equal bits for any number of threads, and of heads as of each alone.
TEST_F(MaskOption, TakesThreadsAndHeads) {
  for (const std::string kernel : {"attention/rows", "forward/rows", "backward/rows-onepass"}) {
    const std::string out = kernel.starts_with("backward") ? "g" : "O";
    const std::string line = "run " + kernel + " --n 61 --m 64 --d 8 --M 900 --mask window:9,0 ";
    for (const int threads : {1, 2, 3, 7}) {
      const Json run = json(
          fmt::format("{} --threads {} --verify --out {}={}.npy", line, threads, out, threads));
      EXPECT_TRUE(run["error"]["ok"]);
      EXPECT_EQ(content_of(directory_ / fmt::format("{}.npy", threads)),
                content_of(directory_ / "1.npy"));
    }
    EXPECT_TRUE(json(line + "--heads 3 --threads 2 --verify")["error"]["ok"]);
  }
}

// The first choice under a mask, its plan on request, and bounds without what the paper says of all
// pairs.
TEST_F(MaskOption, IsPlannedAndBounded) {
  const std::string size = " --n 4096 --d 64 --M 16K --mask causal";
  for (const std::string pass : {"forward", "backward", "attention", "gradients"}) {
    SCOPED_TRACE(pass);
    const Json plan = json("plan --problem " + pass + size);
    EXPECT_EQ(plan["mask"]["pairs"], 4096 * 4097 / 2);
    EXPECT_LE(plan["lower_bound"]["words"], plan["plan"]["words"]);
    const Json bounds = json("bounds --problem " + pass + size);
    EXPECT_EQ(bounds["best"]["words"], plan["plan"]["words"]);
    EXPECT_FALSE(bounds.contains("statements"));
    const Json counted = json("count " + plan["plan"]["kernel"].get<std::string>() + size);
    EXPECT_EQ(counted["formula"]["reads"].get<Index>() + counted["formula"]["writes"].get<Index>(),
              plan["plan"]["words"]);
    const Json loops = json("plan --loops " + plan["plan"]["kernel"].get<std::string>() + size);
    Index moved = 0;
    for (const Json& line : loops["loops"]) {
      moved += line.value("reads", Index{0}) + line.value("writes", Index{0});
    }
    EXPECT_EQ(moved, plan["plan"]["words"]);
  }
  // Ten million queries: sums over groups, and not a walk.
  const Outcome large = redblue("plan --n 10000000 --d 64 --M 64K --mask causal");
  EXPECT_EQ(large.code, 0) << large.err;
}

// O and L in a store are of all pairs: under a mask they are made anew, and do not stay.
TEST_F(MaskOption, InAStore) {
  const std::string size = " --n 21 --m 17 --d 8 --M 900 --store file:st";
  EXPECT_EQ(redblue("store generate st Q K V dO --n 21 --m 17 --d 8").code, 0);
  expect_refused(process("run attention/rows --mask causal" + size), 2,
                 "--mask 'causal': O and L would stay in st");
  EXPECT_EQ(redblue("run attention/rows --verify" + size).code, 0);
  const Json masked = json("run gradients/rows-keys --verify --mask causal" + size);
  EXPECT_TRUE(masked["error"]["ok"]);
  EXPECT_TRUE(masked.contains("forward")) << "O and L of the store are of all pairs";
  EXPECT_FALSE(json("run gradients/rows-keys --verify --mask full" + size).contains("forward"));
}

// O and L of a mask are given back as files: L is -inf where a query meets no key, and nowhere
// else.
TEST_F(MaskOption, TakesWhatItReturned) {
  const std::string size = " --n 20 --m 12 --d 4 --M 900 --mask ";
  const Json made = json("run attention/rows --out O=o.npy --out L=l.npy" + size + "causal");
  EXPECT_EQ(made["mask"]["live_queries"], 12);
  const Json given =
      json("run gradients/rows-keys --in O=o.npy --in L=l.npy --seed 1 --verify" + size + "causal");
  EXPECT_TRUE(given["error"]["ok"]);
  EXPECT_LT(given["error"]["given_off"].get<double>(), 1e-6);
  EXPECT_EQ(given["operands"]["L"], "file");
  expect_refused(
      process("run gradients/rows-keys --in O=o.npy --in L=l.npy --seed 1" + size + "prefix:3"), 1,
      "L of l.npy is -inf at row 0, where a query meets keys: O and L are of another");
  expect_refused(
      process("run gradients/rows-keys --in O=o.npy --in L=l.npy --seed 1" + size + "full"), 1,
      "l.npy: -inf at row 0");
}

// A suite's points may have masks; kernels without are left out where a pattern names several.
TEST_F(MaskOption, InASuite) {
  directory_.write("suite.json", R"({"how": "run", "points": [
    {"kernel": "attention/*", "n": 40, "d": 8, "M": [1000], "mask": ["causal", "window:5,0"]}]})");
  EXPECT_EQ(redblue("record suite.json -o base.json").code, 0);
  const Outcome same = redblue("check base.json");
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  const Json base = Json::parse(content_of(directory_ / "base.json"));
  EXPECT_EQ(base["points"].size(), 10) << "rows and rows-resident, shared or not, and auto";
  EXPECT_EQ(base["points"][0]["arguments"]["mask"], "causal");
  directory_.write("bad.json", R"({"points": [
    {"kernel": "attention/rows", "n": 40, "d": 8, "M": 1000, "mask": "casual"}]})");
  expect_refused(process("record bad.json -o b.json"), 1, "bad.json.*mask 'casual'.*casual is no");
  directory_.write("none.json", R"({"points": [
    {"kernel": "attention/tiles", "n": 40, "d": 8, "M": 1000, "mask": "causal"}]})");
  expect_refused(process("record none.json -o b.json"), 1, "attention/tiles takes no mask");
}

}  // namespace
}  // namespace redblue
