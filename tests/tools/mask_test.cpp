// Tests --mask: the live pairs of a run, a count, a plan and bounds. Tests also which commands take
// a mask, and which results a mask leaves unchanged.

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/cli.hpp"
#include "tests/support/json.hpp"
#include "tests/support/tested_kernel.hpp"
#include "tests/support/zip_bytes.hpp"

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

// Tests every kernel that takes masks: its results are verified and its words equal its formula. A
// mask of all pairs equals no mask.
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

// With 6 queries and 4 keys, the diagonal aligns query i with key i - 2.
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
  EXPECT_EQ(json("count attention/rows --n 6 --m 4 --d 2 --M 900 --mask causal")["pairs"], 10);
}

// The results have the same bits for any number of threads. Several heads are verified, too.
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

// `plan` has a first choice under a mask, and prints its loops on request. `bounds` leaves out the
// paper's statements, because they are for all pairs.
TEST_F(MaskOption, IsPlannedAndBounded) {
  const std::string size = " --n 4096 --d 64 --M 16K --mask causal";
  for (const std::string pass : {"forward", "backward", "attention", "gradients", "layer"}) {
    SCOPED_TRACE(pass);
    const Json plan = json("plan --problem " + pass + size);
    EXPECT_EQ(plan["mask"]["pairs"], 4096 * 4097 / 2);
    EXPECT_LE(plan["lower_bound"]["words"], plan["plan"]["words"]);
    const Json bounds = json("bounds --problem " + pass + size);
    EXPECT_EQ(bounds["best"]["words"], plan["plan"]["words"]);
    EXPECT_FALSE(bounds.contains("statements"));
    const Json counted =
        json("count " + plan["plan"]["kernel"].get<std::string>() + size + " --objective words");
    EXPECT_EQ(counted["formula"]["reads"].get<Index>() + counted["formula"]["writes"].get<Index>(),
              plan["plan"]["words"]);
    const Json loops = json("plan --loops " + plan["plan"]["kernel"].get<std::string>() + size);
    Index moved = 0;
    for (const Json& line : loops["loops"]) {
      moved += line.value("reads", Index{0}) + line.value("writes", Index{0});
    }
    EXPECT_EQ(moved, plan["plan"]["words"]);
  }
  // Ten million queries: the planner sums over groups of rows instead of visiting each row.
  const Outcome large = redblue("plan --n 10000000 --d 64 --M 64K --mask causal");
  EXPECT_EQ(large.code, 0) << large.err;
}

// O and L in a store belong to all pairs. Under a mask they are computed again and not stored.
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

// A run can take O and L from the files of a run with the same mask. L is -inf exactly for queries
// that meet no key.
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

// Points of a suite may have masks. A pattern of names leaves out kernels without masks.
TEST_F(MaskOption, InASuite) {
  directory_.write("suite.json", R"({"how": "run", "points": [
    {"kernel": "attention/*", "n": 40, "d": 8, "M": [1000], "mask": ["causal", "window:5,0"]}]})");
  EXPECT_EQ(redblue("record suite.json -o base.json").code, 0);
  const Outcome same = redblue("check base.json");
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  const Json base = Json::parse(content_of(directory_ / "base.json"));
  EXPECT_EQ(base["points"].size(), 16)
      << "rows, rows-resident and tiles, shared or not, columns, and auto";
  EXPECT_EQ(base["points"][0]["arguments"]["mask"], "causal");
  directory_.write("bad.json", R"({"points": [
    {"kernel": "attention/rows", "n": 40, "d": 8, "M": 1000, "mask": "casual"}]})");
  expect_refused(process("record bad.json -o b.json"), 1, "bad.json.*mask 'casual'.*casual is no");
  directory_.write("none.json", R"({"points": [
    {"kernel": "matmul/blocked", "n": 40, "d": 8, "M": 1000, "mask": "causal"}]})");
  expect_refused(process("record none.json -o b.json"), 1, "matmul/blocked takes no 'mask'");
}

class MaskOfFiles : public Cli {
 protected:
  void layout(const std::string& name, Index rows, Index cols, const std::string& marks) {
    std::string bytes;
    for (const char mark : marks) {
      bytes += mark == '1' ? '\1' : '\0';
    }
    directory_.write(
        name, npy_file(npy_header("|b1", false, fmt::format("({}, {})", rows, cols)), bytes));
  }
  void offsets(const std::string& name, const std::vector<Index>& numbers) {
    directory_.write(name, npy_integers(numbers));
  }
  // Writes a 6 x 8 pattern with the same pairs as the layout of 2 x 4 blocks with marks 01, 00, 11.
  void pattern(const std::string& name, Index last = 7) {
    const std::vector<Index> half = {4, 5, 6, last};
    std::vector<Index> columns = half;
    columns.insert(columns.end(), half.begin(), half.end());
    for (int row = 0; row < 2; ++row) {
      for (Index column = 0; column < 8; ++column) {
        columns.push_back(column);
      }
    }
    directory_.write(name,
                     zip_bytes({{"indices.npy", npy_integers(columns)},
                                {"indptr.npy", npy_integers({0, 4, 8, 8, 8, 16, 24})},
                                {"format.npy", npy_file(npy_header("|S3", false, "()"), "csr")},
                                {"shape.npy", npy_integers({6, 8})},
                                {"data.npy", npy_bytes(24, 0, std::vector<float>(24))}}));
  }
};

// Different files can describe the same pairs. Then every kernel has the same fingerprint and reads
// the same words of values. The index words depend on the form of the file, and a run counts what
// its formula says.
TEST_F(MaskOfFiles, AreThePairsThatTheySay) {
  layout("blocks.npy", 3, 2, "010011");
  layout("pairs.npy", 6, 8, "000011110000111100000000000000001111111111111111");
  pattern("a.npz");
  directory_.write("odd|&:).npz", content_of(directory_ / "a.npz"));
  const std::string count_line = " --n 6 --m 8 --d 3 --M 1000 --mask ";
  const std::string line = " --verify" + count_line;
  const auto values_read = [](const Json& run) {
    return run["total"]["reads"].get<Index>() - run["total"]["index_reads"].get<Index>();
  };
  for (const TestedKernel& kernel : some_tested_kernels()) {
    if (!kernel.kernel->takes_masks) {
      continue;
    }
    SCOPED_TRACE(kernel.name);
    const Json blocks = json("run " + kernel.name + line + "blocks:blocks.npy");
    EXPECT_TRUE(blocks["error"]["ok"]);
    EXPECT_EQ(blocks["total"]["reads"], blocks["formula"]["reads"]);
    for (const std::string mask :
         {"blocks:pairs.npy", "pattern:a.npz", "pattern:a.npz|pattern:a.npz",
          "(blocks:blocks.npy|pattern:a.npz)&full", "pattern:\"odd|&:).npz\""}) {
      const Json other = json("run " + kernel.name + line + mask);
      EXPECT_EQ(other["mask"]["fingerprint"], blocks["mask"]["fingerprint"]) << mask;
      if (other["blocks"] == blocks["blocks"]) {  // index words can change the planned blocks
        for (const char* counted : {"writes", "flops", "elementwise"}) {
          EXPECT_EQ(other["total"][counted], blocks["total"][counted]) << mask << ", " << counted;
        }
        EXPECT_EQ(values_read(other), values_read(blocks)) << mask;
      }
      EXPECT_EQ(other["total"]["reads"], other["formula"]["reads"]) << mask;
      EXPECT_EQ(json("count " + kernel.name + count_line + mask)["total"]["index_reads"],
                other["total"]["index_reads"])
          << mask;
      EXPECT_GT(other["total"]["index_reads"], 0) << mask;
      EXPECT_EQ(other["total"]["index_writes"], 0) << mask;
      EXPECT_EQ(other.contains("prepare"), mask.find("pattern") != std::string::npos) << mask;
      EXPECT_EQ(other["pairs"], 24) << mask;
    }
  }
}

// The block mask has four live queries, in block rows with 1 and 2 blocks. The pattern has 24 pairs
// and 8 keys, and each key has a word of bits for the rows that meet it.
TEST_F(MaskOfFiles, IndexWords) {
  layout("blocks.npy", 3, 2, "010011");
  pattern("a.npz");
  const std::string line = "count attention/rows --n 6 --m 8 --d 3 --M 400 --mask ";
  const Json blocks = json(line + "blocks:blocks.npy");
  EXPECT_EQ(blocks["total"]["index_reads"], 2 + 1 + 2 + 2);
  EXPECT_FALSE(blocks.contains("prepare"));
  const Json pairs = json(line + "pattern:a.npz");
  EXPECT_EQ(pairs["total"]["index_reads"], 1 + 8 * 2);
  EXPECT_EQ(pairs["prepare"], (Json{{"reads", 24 + 6 + 1}, {"writes", 1 + 8 * 2}}));
  EXPECT_EQ(
      json("plan --problem attention --n 6 --m 8 --d 3 --M 400 --mask pattern:a.npz")["plan"]
                                                                                     ["prepare"]
                                                                                     ["reads"],
      24 + 6 + 1);
  const std::string text = data(line + "pattern:a.npz");
  EXPECT_NE(text.find("prepare: the pattern is regrouped once, for many calls: 31 words read, 17 "
                      "written\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("indices"), std::string::npos);
  EXPECT_EQ(data(line + "causal").find("indices"), std::string::npos);
  EXPECT_EQ(json(line + "causal")["total"]["index_reads"], 0);
}

// Documents are boxes along the diagonal. Causal within documents equals causal over all pairs
// inside the boxes if n = m.
TEST_F(MaskOfFiles, DocumentsAreBoxes) {
  offsets("d.npy", {0, 4, 8, 12});
  layout("d3.npy", 3, 3, "100010001");
  const std::string line = "count attention/rows --n 12 --d 2 --M 900 --mask ";
  EXPECT_EQ(json(line + "documents:d.npy")["mask"]["fingerprint"],
            json(line + "blocks:d3.npy")["mask"]["fingerprint"]);
  EXPECT_EQ(json(line + "causal&documents:d.npy")["pairs"], 3 * (1 + 2 + 3 + 4));
  offsets("q.npy", {0, 2, 2, 12});
  offsets("k.npy", {0, 1, 6, 6});
  const std::string two = "count attention/rows --n 12 --m 6 --d 2 --M 900 --mask ";
  EXPECT_EQ(json(two + "documents:q.npy:k.npy")["mask"]["live_queries"], 2);
  EXPECT_EQ(json(two + "documents:q.npy:k.npy|prefix:1")["pairs"], 12);
  expect_refused(process(two + "documents:d.npy"), 2,
                 "documents:FILE is for n = m, and these are 12 and 6: expected documents:QFILE");
  offsets("k.npy", {0, 6});
  expect_refused(process(two + "documents:q.npy:k.npy"), 1,
                 "k.npy: 1 documents; expected 3, as q.npy has");
  expect_refused(process(two + "documents:d.npy:d.npy"), 1,
                 "d.npy: offsets from 0 to 12; expected from 0 to 6");
}

// An index has four bytes: with words of two bytes it counts as two words, in M and in every move.
// The words of values stay the same. With four-byte sums, a run still counts what its formulas say.
TEST_F(MaskOfFiles, HaveIndicesOfTwoWords) {
  layout("l.npy", 4, 4, "1100011000111001");
  const std::string line =
      " attention/rows --n 48 --d 4 --M 600 --blocks Br=16,Bc=4 --mask blocks:l.npy";
  const Json floats = json("count" + line), halves = json("count" + line + " --word 2");
  const auto indices = [](const Json& count) {
    Index words = 0;
    for (const Json& phase : count["phases"]) {
      words += phase["index_reads"].get<Index>();
    }
    return words;
  };
  EXPECT_GT(indices(floats), 0);
  EXPECT_EQ(indices(halves), 2 * indices(floats));
  EXPECT_EQ(halves["formula"]["reads"], floats["formula"]["reads"].get<Index>() + indices(floats));
  EXPECT_EQ(halves["formula"]["writes"], floats["formula"]["writes"]);
  const Json run = json("run" + line + " --word 2 --sums 4 --seed 1 --verify");
  EXPECT_TRUE(run["error"]["ok"]);
  EXPECT_EQ(run["total"]["reads"], run["formula"]["reads"]);
  EXPECT_EQ(run["total"]["writes"], run["formula"]["writes"]);
}

// Every fourth block row meets the same keys. A plan puts such rows together, and counts, runs and
// verifies in that order. Groups of one row keep the original order.
TEST_F(MaskOfFiles, MayBeClustered) {
  std::string marks;
  for (int row = 0; row < 12; ++row) {
    for (int col = 0; col < 12; ++col) {
      marks += col % 4 == row % 4 ? '1' : '0';
    }
  }
  layout("l.npy", 12, 12, marks);
  const std::string line = " --n 48 --d 4 --M 150 --mask blocks:l.npy";
  for (const std::string kernel : {"attention/rows", "forward/rows", "gradients/rows-keys"}) {
    SCOPED_TRACE(kernel);
    const Json counted = json("count " + kernel + line);
    ASSERT_TRUE(counted["blocks"].contains("clustered")) << counted["blocks"];
    for (const std::string threads : {"1", "3"}) {
      const Json found = json("run " + kernel + line + " --verify --threads " + threads);
      EXPECT_TRUE(found["error"]["ok"]);
      EXPECT_EQ(found["blocks"], counted["blocks"]);
      EXPECT_EQ(found["total"]["io"], counted["formula"]["io"]);
    }
    const Json in_order = json("run " + kernel + line + " --verify --blocks clustered=1");
    EXPECT_TRUE(in_order["error"]["ok"]);
    EXPECT_GT(in_order["total"]["io"], counted["formula"]["io"]);
  }
  expect_refused(process("count attention/rows --n 48 --d 4 --M 400 --blocks clustered=4"), 2,
                 "--blocks clustered: rows are clustered by the keys that they meet, and all meet "
                 "all: give a --mask");
  expect_refused(process("count gradients/flash" + line + " --blocks clustered=4"), 2,
                 "--blocks clustered: gradients/flash has v.Br, core.Br, core.Bc");
}

// Rows that meet far more keys than others stay resident, for masks from a file or a formula.
TEST_F(MaskOfFiles, RowsStay) {
  const std::string line = " --n 96 --d 4 --M 600 --mask window:5,5|global:0-3";
  for (const std::string kernel :
       {"attention/rows-resident", "forward/rows-resident", "backward/rows-resident"}) {
    SCOPED_TRACE(kernel);
    const Json counted = json("count " + kernel + line);
    ASSERT_TRUE(counted["blocks"].contains("staying")) << counted["blocks"];
    const Json found = json("run " + kernel + line + " --verify");
    EXPECT_TRUE(found["error"]["ok"]);
    EXPECT_EQ(found["blocks"], counted["blocks"]);
    EXPECT_EQ(found["total"]["io"], counted["formula"]["io"]);
    const Json fewer = json("run " + kernel + line + " --verify --blocks staying=1");
    EXPECT_TRUE(fewer["error"]["ok"]);
    EXPECT_GT(fewer["total"]["io"], counted["formula"]["io"]);
    const Json none = json("count " + kernel + line + " --blocks staying=0");
    EXPECT_FALSE(none["blocks"].contains("staying")) << none["blocks"];
    expect_refused(process("count " + kernel + line + " --blocks staying=96"), 2,
                   "--blocks staying=96: of these 96 rows at most 95 may stay");
  }
  expect_refused(process("count attention/rows-resident --n 48 --d 4 --M 400 --blocks staying=4"),
                 2,
                 "--blocks staying: the rows that meet most keys stay, and all meet all: give a "
                 "--mask");
  expect_refused(
      process("count attention/rows-resident --n 48 --d 4 --M 400 --mask prefix:9 --blocks "
              "staying=4"),
      2,
      "--blocks staying: the rows that meet most keys stay, and all meet all: give another --mask");
  expect_refused(process("count attention/rows" + line + " --blocks staying=4"), 2,
                 "--blocks staying: attention/rows has Br, Bc");
}

TEST_F(MaskOfFiles, Refused) {
  const std::string line = "plan --n 6 --m 8 --d 2 --M 900 --mask ";
  expect_refused(process(line + "pattern:none.npz"), 1, "cannot read 'none.npz'");
  expect_refused(process(line + "pattern:"), 2, "the name of a file is missing at position 9");
  expect_refused(process(line + "causal|blocks:&full"), 2, "is missing at position 15");
  expect_refused(process(line + "pattern:\"a.npz"), 2, "a \" is missing after position 9");
  expect_refused(process(line + "patterns:a.npz"), 2, "patterns is no mask");
  pattern("a.npz");
  expect_refused(process("plan --n 8 --d 2 --M 900 --mask pattern:a.npz"), 1,
                 "a.npz: a matrix of 6 x 8; expected 8 x 8, n queries and m keys");
}

// Names of files are relative to the suite, and to its recording. A changed file is a difference.
TEST_F(MaskOfFiles, InASuite) {
  directory_.write("deep/suite.json", R"({"points": [
    {"kernel": "attention/rows", "n": 6, "m": 8, "d": 2, "M": 900, "mask": "pattern:a.npz"}]})");
  pattern("deep/a.npz", 6);
  EXPECT_EQ(redblue("record deep/suite.json -o deep/base.json").code, 1) << "6 is there twice";
  pattern("deep/a.npz");
  EXPECT_EQ(redblue("record deep/suite.json -o deep/base.json").code, 0);
  EXPECT_EQ(redblue("check deep/base.json").code, 0);
  const Json base = Json::parse(content_of(directory_ / "deep/base.json"));
  EXPECT_EQ(base["points"][0]["arguments"]["mask"], "pattern:a.npz");
  EXPECT_EQ(base["points"][0]["fingerprints"]["mask"],
            json("count attention/rows --n 6 --m 8 --d 2 --M 900 --mask "
                 "pattern:deep/a.npz")["mask"]["fingerprint"]);
  EXPECT_EQ(redblue("record deep/base.json -o deep/again.json").code, 0);
  EXPECT_EQ(content_of(directory_ / "deep/again.json"), content_of(directory_ / "deep/base.json"));
  EXPECT_EQ(redblue("sweep deep/suite.json -o swept").code, 0);

  layout("deep/l.npy", 6, 8, "000011110000111100000000000000001111111111111110");
  std::string changed = content_of(directory_ / "deep/base.json");
  const std::string name = "pattern:a.npz";
  changed.replace(changed.find(name), name.size(), "blocks:l.npy");
  directory_.write("deep/changed.json", changed);
  const Outcome differs = redblue("check deep/changed.json --format json");
  EXPECT_EQ(differs.code, 3) << differs.err;
  const Json difference = Json::parse(differs.out)["differences"][0];
  EXPECT_EQ(difference["kind"], "other_input");
  EXPECT_TRUE(difference["text"].get<std::string>().starts_with(
      "mask is another: its file has changed (fingerprint "))
      << difference;
  std::filesystem::remove(directory_ / "deep/a.npz");
  const Outcome gone = redblue("check deep/base.json");
  EXPECT_EQ(gone.code, 3);
  EXPECT_NE(gone.out.find("cannot read 'deep/a.npz'"), std::string::npos) << gone.out;
}

}  // namespace
}  // namespace redblue
