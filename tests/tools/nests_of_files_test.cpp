// Tests nests in files, wherever the name of a kernel goes. FlashAttention-2's backward loops move
// these words without a mask, with T = ceil(m / Bc). v reads 2 n d and writes n. core reads 2 m d +
// (3 d + 2) n T - n d and writes n d T + 2 m d.

#include <filesystem>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"

namespace redblue {
namespace {

constexpr const char* kFlash2 = R"(kernel flash2
problem gradients
matrix Q[n,d] K[m,d] V[m,dv] dO[n,dv] O[n,dv] L[n] -> dQ[n,d] dK[m,d] dV[m,dv]
temp v[n]
phase v
  for I in n by Bv
    read dO[I,dv] O[I,dv]
    new v[I]
    write v[I]
phase core
  for J in m by Bc
    read K[J,d] V[J,dv]
    new dK[J,d] dV[J,dv]
    for I in n by Br met by J
      read Q[I,d] dO[I,dv] L[I] v[I]
      new s[I,J] p[I,J]
      new dQ[I,d] first J
      read dQ[I,d] unless first J
      flops 10 * I * J * d
      write dQ[I,d]
    write dK[J,d] dV[J,dv]
)";

class NestsOfFiles : public Cli {
 protected:
  NestsOfFiles() { directory_.write("flash2.nest", kFlash2); }
};

TEST_F(NestsOfFiles, AreCounted) {
  for (const auto& [n, m, d, Bc] :
       {std::tuple{1000, 1000, 64, 63}, std::tuple{37, 101, 5, 7}, std::tuple{1, 1, 1, 1}}) {
    const Json count = json(fmt::format(
        "count flash2.nest --n {} --m {} --d {} --M 64K --blocks Bc={},Br=3", n, m, d, Bc));
    const int T = (m + Bc - 1) / Bc;
    EXPECT_EQ(count["phases"][0]["reads"], 2 * n * d);
    EXPECT_EQ(count["phases"][0]["writes"], n);
    EXPECT_EQ(count["phases"][1]["reads"], 2 * m * d + (3 * d + 2) * n * T - n * d);
    EXPECT_EQ(count["phases"][1]["writes"], n * d * T + 2 * m * d);
    EXPECT_EQ(count["kernel"], "file:flash2.nest");
  }
}

// The option --nest names the same file, and a planned nest of the same loops moves the words of
// redblue's kernel with its blocks.
TEST_F(NestsOfFiles, StandBesideKernels) {
  const std::string sizes = "--n 200 --d 16 --M 4K";
  EXPECT_EQ(json("count --nest flash2.nest " + sizes), json("count flash2.nest " + sizes));
  const Json plan = json("plan --problem gradients " + sizes + " --nest flash2.nest");
  bool found = plan["plan"]["kernel"] == "file:flash2.nest";
  for (const Json& other : plan["runners_up"]) {
    found = found || other["kernel"] == "file:flash2.nest";
  }
  EXPECT_TRUE(found);
  expect_refused(process("plan --problem attention " + sizes + " --nest flash2.nest"), 2,
                 "--nest flash2.nest: its problem is gradients, and this one is attention: give "
                 "--problem 'gradients'");
  directory_.write("copy.nest",
                   "kernel copy\nmatrix A[n,d] -> B[n,d]\nread A[n,d]\nnew B[n,d]\n"
                   "write B[n,d]\n");
  expect_refused(process("plan --problem attention " + sizes + " --nest copy.nest"), 2,
                 "--nest copy.nest: it names no problem: write 'problem attention' in its head");
}

// A nest that plan leaves out is named, with the reason. Q, K, V and O have 4 n d words, all of
// which this nest holds.
TEST_F(NestsOfFiles, AreLeftOutOfAPlanWithAReason) {
  directory_.write("all.nest",
                   "kernel all\nproblem attention\nmatrix Q[n,d] K[m,d] V[m,dv] -> O[n,dv]\n"
                   "read Q[n,d] K[m,d] V[m,dv]\nnew O[n,dv]\nwrite O[n,dv]\n");
  const auto left_out = [&](const std::string& options) {
    const std::string plan = "plan --problem attention --n 200 --d 16 --nest all.nest " + options;
    const Json report = json(plan);
    const std::string why = report.value("nests_left_out", Json::array({""}))[0];
    EXPECT_EQ(redblue(plan).out.find("not listed: file:all.nest") != std::string::npos,
              !why.empty());
    return why;
  };
  EXPECT_EQ(left_out("--M 12800"), "");
  EXPECT_EQ(left_out("--M 12799"), "file:all.nest: it needs M of at least 12,800");
  EXPECT_EQ(left_out("--M 16K --threads 2"), "file:all.nest: it has no threads");
  EXPECT_EQ(left_out("--M 16K --activation relu"), "file:all.nest: it computes softmax alone");
  EXPECT_EQ(left_out("--M 1K,16K"), "file:all.nest: it has one level of fast memory");

  // 2^32 times 2^32 scores are more than 2^63 words. Other kernels are still planned.
  directory_.write("scores.nest",
                   "kernel scores\nproblem attention\nmatrix Q[n,d] K[m,d] V[m,dv] -> O[n,dv]\n"
                   "new s[n,m]\nread Q[n,d] K[m,d] V[m,dv]\nnew O[n,dv]\nwrite O[n,dv]\n");
  Json plan = json("plan --problem attention --n 4G --d 16 --M 1M --nest scores.nest");
  EXPECT_EQ(plan["nests_left_out"][0], "file:scores.nest: its least M passes 63 bits");

  directory_.write(
      "dQ.nest",
      "kernel dQ\nproblem gradients\nmatrix Q[n,d] K[m,d] V[m,dv] dO[n,dv] -> dQ[n,d]\n"
      "read K[m,d] V[m,dv]\nfor I in n by B\n  read Q[I,d] dO[I,dv]\n  new s[I,m]\n"
      "  new dQ[I,d]\n  write dQ[I,d]\n");
  plan = json("plan --problem gradients --n 200 --d 16 --M 16K --wanted dK,dV --nest dQ.nest");
  EXPECT_EQ(plan["nests_left_out"][0], "file:dQ.nest: it returns dQ");
}

// A nest that returns O alone is compared with the bound of O, which has no words of L. A nest
// below the bound of its problem is refused wherever it is counted.
TEST_F(NestsOfFiles, AreComparedWithTheBoundOfTheirResults) {
  const std::string loops =
      "kernel some\nproblem attention\nmatrix Q[n,d] K[m,d] V[m,dv] -> O[n,dv]\n"
      "for I in n by 25\n  read Q[I,d]\n  new O[I,dv]\n  write O[I,dv]\n";
  directory_.write("once.nest", loops + "for J in m by 25\n  read K[J,d] V[J,dv]\n");
  const Json plan = json("plan --problem attention --n 200 --d 16 --M 12800 --nest once.nest");
  EXPECT_EQ(plan["plan"]["kernel"], "file:once.nest");
  EXPECT_EQ(plan["plan"]["words"], 4 * 200 * 16);
  EXPECT_EQ(plan["plan"]["lower_bound"]["words"], 4 * 200 * 16);
  for (const std::string command : {"plan --problem attention --M 4K --nest once.nest",
                                    "curve --problem attention --nest once.nest",
                                    "bounds --problem attention --M 4K --nest once.nest",
                                    "count once.nest --M 4K", "run once.nest --M 4K"}) {
    expect_refused(process(command + " --n 2000 --d 16"), 2,
                   "file:once.nest moves 128000 words, fewer than the lower bound of");
  }
}

// A run moves the words of the formulas on a machine, whatever the mask.
TEST_F(NestsOfFiles, RunAsCounted) {
  for (const std::string mask : {"full", "causal", "window:30,3", "prefix:40|window:3,0"}) {
    const Json ran = json("run flash2.nest --n 200 --d 16 --M 4K --verify --mask " + mask);
    EXPECT_EQ(ran["counts_equal_formulas"], true) << mask;
  }
}

TEST_F(NestsOfFiles, AreHeldByAGate) {
  directory_.write("suite.json",
                   R"({"points": [{"kernel": "flash2.nest", "n": 100, "d": 8, "M": 2000}]})");
  ASSERT_EQ(redblue("record suite.json -o b.json").code, 0);
  EXPECT_EQ(redblue("check b.json").code, 0);
  // One read more.
  std::string more(kFlash2);
  more.replace(more.find("    write v[I]"), 0, "    read L[I]\n");
  directory_.write("flash2.nest", more);
  const Outcome changed = redblue("check b.json");
  EXPECT_EQ(changed.code, 3);
  EXPECT_NE(changed.out.find("reads"), std::string::npos) << changed.out;
}

// A relative path starts at the suite, and at the baseline, like the file of a mask. So a file of
// the same name where the command runs is not looked at.
TEST_F(NestsOfFiles, AreFoundBesideTheirSuite) {
  directory_.write("gate/flash2.nest", kFlash2);
  directory_.write("gate/suite.json",
                   R"({"points": [{"kernel": "flash2.nest", "n": 100, "d": 8, "M": 2000}]})");
  directory_.write("flash2.nest", "kernel other\nmatrix Q[n,d] -> O[n,d]\n");
  ASSERT_EQ(redblue("record gate/suite.json -o gate/b.json").code, 0);
  const Outcome same = redblue("check gate/b.json");
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  EXPECT_EQ(redblue("sweep gate/suite.json --out swept").code, 0);
  EXPECT_EQ(parse_csv(content_of(directory_ / "swept/sweep.csv"))[0].at("subject"),
            "file:flash2.nest");
  std::filesystem::remove(directory_ / "gate/flash2.nest");
  const Outcome missing = redblue("check gate/b.json");
  EXPECT_NE(missing.code, 0);
  EXPECT_NE((missing.out + missing.err).find("gate/flash2.nest"), std::string::npos)
      << missing.out << missing.err;
}

TEST_F(NestsOfFiles, SayWhatIsWrong) {
  directory_.write("bad.nest",
                   "kernel bad\nmatrix Q[n,d] -> O[n,d]\nfor I in n by B\n  read Q[I,m]\n");
  const Outcome bad = redblue("count bad.nest --n 9 --d 3 --M 99");
  EXPECT_EQ(bad.code, 2);
  EXPECT_EQ(bad.err, "redblue: bad.nest:4: index 2 of Q: m, but Q has d there\n");
  const Outcome missing = redblue("count nowhere.nest --n 9 --d 3 --M 99");
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.err.find("nowhere.nest"), std::string::npos);
}

// With `group`, each query head reads the keys of its head: (n d + sum over blocks of the keys met)
// for 8 heads. With `heads`, the file counts all of them. Under a causal mask, block k of 10
// queries meets 10 k keys.
TEST_F(NestsOfFiles, KnowHeads) {
  const std::string loops = R"(
  for I in n by Br
    read Q[H,I,d]
    new O[H,I,dv]
    for J in m by Bc met by I
      read K[KEYSJ,d] V[KEYSJ,dv]
      new s[I,J]
    write O[H,I,dv]
)";
  const auto with = [&](const std::string& heads, const std::string& key_heads) {
    std::string text = "kernel heads\nproblem " +
                       std::string(key_heads.empty() ? "attention" : "none") + "\nmatrix Q[" +
                       heads + ",n,d] K[" + key_heads + "m,d] V[" + key_heads + "m,dv] -> O[" +
                       heads + ",n,dv]\nfor H in " + heads + " by 1" + loops;
    for (std::size_t at = 0; (at = text.find("KEYS")) != std::string::npos;) {
      text.replace(at, 4, key_heads.empty() ? "" : "1,");
    }
    return text;
  };
  directory_.write("group.nest", with("group", ""));
  directory_.write("heads.nest", with("heads", "kv_heads,"));
  directory_.write("both.nest", with("heads", "kv_heads,").replace(21, 4, "attention"));
  EXPECT_EQ(redblue("count both.nest --n 100 --d 16 --M 4K").code, 2);
  for (const std::string file : {"group.nest", "heads.nest"}) {
    const std::string line =
        file + " --n 100 --d 16 --M 4K --heads 8 --kv-heads 2 --blocks Br=10,Bc=10";
    EXPECT_EQ(json("count " + line)["total"]["reads"], 8 * (1600 + 10 * 3200)) << file;
    const Json causal = json("run --verify " + line + " --mask causal");
    EXPECT_EQ(causal["total"]["reads"], 8 * (1600 + 550 * 32)) << file;
    EXPECT_EQ(causal["counts_equal_formulas"], true) << file;
  }
}

// All nests that come with redblue can be counted.
TEST_F(NestsOfFiles, OfOtherProjectsAreCounted) {
  const Json known = json("list --nests");
  ASSERT_GE(known["nests"].size(), 20U);
  for (const Json& nest : known["nests"]) {
    const std::string name = nest["name"].get<std::string>();
    EXPECT_EQ(redblue("count " + name + " --n 300 --d 64 --M 1M").code, 0) << name;
    EXPECT_EQ(redblue("count " + name + " --n 300 --d 64 --M 1M --mask causal").code, 0) << name;
  }
}

}  // namespace
}  // namespace redblue
