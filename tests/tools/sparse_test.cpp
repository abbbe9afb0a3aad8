// Sparse operands through the command: made by rules, from files, or fully stored where nothing is
// said; a run counts the words of its formula and is verified; bad input is refused in one line.

#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernels/kernel.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/npy_bytes.hpp"
#include "tests/support/zip_bytes.hpp"

namespace redblue {
namespace {

using Json = nlohmann::json;

std::vector<std::string> sparse_names() {
  std::vector<std::string> found;
  for (const Kernel& kernel : sparse_kernels()) {
    found.emplace_back(kernel.name);
  }
  return found;
}

bool of_product(const std::string& kernel) {
  return kernel.starts_with("matmul/");
}

// Each sparse operand by one of these rules.
std::string rules_of(const std::string& kernel, const std::vector<std::string>& rules) {
  std::string flags;
  std::size_t k = 0;
  for (const char* name : of_product(kernel) ? std::vector<const char*>{"A", "B"}
                                             : std::vector<const char*>{"A1", "A2", "X"}) {
    flags += fmt::format(" --make {}={}", name, rules[k++ % rules.size()]);
  }
  return flags;
}

// A csr of SciPy, with a value and a column for each row.
std::string csr_of_rows(Index rows, Index cols, const std::vector<float>& values) {
  std::vector<Index> offsets = {0}, columns;
  for (Index row = 0; row < rows; ++row) {
    offsets.push_back(row + 1);
    columns.push_back(row * 5 % cols);
  }
  return zip_bytes({{"format.npy", npy_file(npy_header("|S3", false, "()"), "csr")},
                    {"shape.npy", npy_integers({rows, cols})},
                    {"indptr.npy", npy_integers(offsets)},
                    {"indices.npy", npy_integers(columns)},
                    {"data.npy", npy_bytes(rows, 0, values)}});
}

class SparseOperands : public Cli {
 protected:
  void expect_line(const std::string& line, int code, const std::string& message) {
    SCOPED_TRACE(line);
    expect_refused(process(line), code, message);
  }
};

// Counted = formula, verified; `count` says the same.
TEST_F(SparseOperands, EveryKernelByEveryRule) {
  for (const std::string& kernel : sparse_names()) {
    for (const std::vector<std::string>& rules : {std::vector<std::string>{"random:3"},
                                                  {"banded:4"},
                                                  {"powerlaw:3", "random:2"},
                                                  {"clusters:2:3"},
                                                  {"density:1/5", "density:0.3"},
                                                  {"random:1", "density:1/100"}}) {
      const std::string problem = fmt::format("{} --n 31 --m 23 --d 13 --M 3000 --seed 5{}", kernel,
                                              rules_of(kernel, rules));
      SCOPED_TRACE(problem);
      const Json ran = json("run " + problem + " --verify");
      EXPECT_EQ(ran["error"]["ok"], true);
      EXPECT_EQ(ran["total"]["io"], ran["formula"]["io"]);
      const Json counted = json("count " + problem + "");
      EXPECT_EQ(counted["total"]["reads"], ran["total"]["reads"]);
      EXPECT_EQ(counted["total"]["writes"], ran["total"]["writes"]);
      EXPECT_EQ(counted["total"]["index_reads"], ran["total"]["index_reads"]);
      EXPECT_EQ(counted["total"]["index_writes"], ran["total"]["index_writes"]);
      EXPECT_EQ(counted["total"]["peak"], ran["total"]["peak"]);
      EXPECT_EQ(counted["sparse"], ran["sparse"]);
      EXPECT_LE(ran["lower_bound"]["words"], ran["total"]["io"]);
      const std::string first = of_product(kernel) ? "A" : "A1";
      EXPECT_EQ(ran["sparse"][first]["from"], rules.front() == "density:0.3" ? "" : rules.front());
    }
  }
}

TEST_F(SparseOperands, FullyStoredWhereNothingIsSaid) {
  for (const std::string& kernel : sparse_names()) {
    SCOPED_TRACE(kernel);
    const std::string problem = kernel + " --n 11 --m 9 --d 5 --M 2000";
    const Json ran = json("run " + problem + " --verify");
    EXPECT_EQ(ran["error"]["ok"], true);
    const std::string first = of_product(kernel) ? "A" : "A1";
    EXPECT_EQ(ran["sparse"][first]["stored"], 55);
    if (!of_product(kernel)) {
      EXPECT_EQ(ran["sparse"]["pairs"], 99);
      EXPECT_EQ(ran["pairs"], 99);
    }
  }
}

TEST_F(SparseOperands, FromFiles) {
  const std::vector<float> values = {1, -2, 3, 0, 5, -6, 7};
  directory_.write("a.npz", csr_of_rows(7, 4, values));
  directory_.write("b.npz", csr_of_rows(7, 4, values));
  directory_.write(
      "x.mtx", "%%MatrixMarket matrix coordinate real general\n4 4 3\n1 1 .5\n2 3 .25\n4 2 1\n");
  directory_.write("b.smtx", "4, 3, 2\n0 1 1 2 2\n0 2\n");
  directory_.write("dense.npy", npy_bytes(7, 4, std::vector<float>(28, 0.5F)));
  for (const std::string& kernel : sparse_names()) {
    const std::string problem = kernel + " --M 2000 --seed 1" +
                                (of_product(kernel) ? " --in A=a.npz --in B=b.smtx"
                                                    : " --in A1=a.npz --in A2=b.npz --in X=x.mtx");
    SCOPED_TRACE(problem);
    const Json ran = json("run " + problem + " --verify");
    EXPECT_EQ(ran["error"]["ok"], true);
    EXPECT_EQ(ran["n"], 7);
    EXPECT_EQ(ran["d"], 4);
    const std::string first = of_product(kernel) ? "A" : "A1";
    EXPECT_EQ(ran["sparse"][first], (Json{{"stored", 7}, {"from", "a.npz"}}));
    EXPECT_EQ(json("count " + problem + "")["total"]["io"], ran["total"]["io"]);
    const Json dense =
        json("run " + kernel + " --m 3 --M 2000 --seed 1 --verify --in " + first + "=dense.npy");
    EXPECT_EQ(dense["sparse"][first]["stored"], 28);
    EXPECT_EQ(dense["error"]["ok"], true);
  }
}

TEST_F(SparseOperands, InAStore) {
  for (const std::string& kernel : sparse_names()) {
    const std::string problem = fmt::format("{} --n 19 --m 17 --d 7 --M 2000 --seed 2{}", kernel,
                                            rules_of(kernel, {"random:2", "density:1/3"}));
    SCOPED_TRACE(problem);
    const Json stored = json(fmt::format("run {} --verify --store file:{}", problem,
                                         of_product(kernel) ? "p" : kernel.substr(0, 3)));
    EXPECT_EQ(stored["error"]["ok"], true);
    EXPECT_EQ(stored["total"]["io"], json("count " + problem + "")["total"]["io"]);
  }
  const std::string empty =
      "run matmul/sparse-stay --n 5 --m 3 --d 4 --M 200 --store file:e --seed 1 "
      "--make A=density:1/4294967295 --verify";
  data(empty);
}

// One pattern, values by the seed of each head.
TEST_F(SparseOperands, Heads) {
  for (const std::string& kernel : sparse_names()) {
    const std::string problem = fmt::format("{} --n 13 --m 11 --d 6 --M 2000 --seed 2{}", kernel,
                                            rules_of(kernel, {"random:2"}));
    SCOPED_TRACE(problem);
    const Json three = json("run " + problem + " --heads 3 --verify");
    EXPECT_EQ(three["error"]["ok"], true);
    EXPECT_EQ(three["total"]["io"], 3 * json("count " + problem + "")["total"]["io"].get<Index>());
  }
}

// Where operands are dense, what a rule does not store is 0.
TEST_F(SparseOperands, DenseKernelsTakeRules) {
  const Json ran = json(
      "run forward/rows --n 31 --d 13 --M 3000 --make A1=random:3 --make A3=banded:2 --verify");
  EXPECT_EQ(ran["error"]["ok"], true);
  EXPECT_FALSE(ran.contains("sparse"));
  EXPECT_EQ(ran["total"]["io"], json("count forward/rows --n 31 --d 13 --M 3000")["total"]["io"]);
}

TEST_F(SparseOperands, PlansAndBounds) {
  const std::string problem = "--problem product --n 31 --m 23 --d 13 --M 3000 --make A=random:3";
  const Json plan = json("plan " + problem + "");
  EXPECT_TRUE(plan["plan"]["kernel"].get<std::string>().starts_with("matmul/sparse-"));
  EXPECT_EQ(plan["sparse"]["A"]["stored"], 93);
  const Json bounds = json("bounds " + problem + "");
  // Entries of A and B that meet, and all of C.
  EXPECT_EQ(bounds["lower_bound"]["term"], "compulsory");
  EXPECT_EQ(bounds["lower_bound"]["words"],
            93 + 13 * 23 + plan["sparse"]["C"]["stored"].get<Index>());
}

TEST_F(SparseOperands, BadInput) {
  directory_.write("a.npz", csr_of_rows(7, 4, {1, 2, 3, 4, 5, 6, 7}));
  directory_.write("nan.npz", csr_of_rows(2, 4, {1, std::numeric_limits<float>::quiet_NaN()}));
  directory_.write("half.npz", csr_of_rows(7, 4, {1, 2, 3, 4, 5, 6, 7}).substr(0, 200));
  const std::string run = "run matmul/sparse-stay --M 2000 --seed 1 ";
  expect_line(run + "--n 5 --d 4 --make A=ones", 2,
              "--make A=ones: expected a pattern: identity, random:S");
  expect_line(run + "--n 5 --d 4 --make A=random:0", 2,
              "--make A=random:0: S, the entries of a row, is 0");
  expect_line(run + "--n 5 --d 4 --make A=clusters:2:0", 2, "C, the number of clusters, is 0");
  expect_line(run + "--n 5 --d 4 --make A=clusters:2:5", 2,
              "A has 4 columns: of 5 clusters some would");
  expect_line(run + "--n 5 --d 4 --make A=density:1.5", 2, "the density is 1.5: expected above 0");
  expect_line(run + "--n 5 --d 4 --make A=identity", 2,
              "--make A=identity: A is 5 x 4: the identity has");
  expect_line(run + "--n 5 --d 4 --make X=random:2", 2, "--make X=random:2: .*is given A, B");
  expect_line(run + "--n 5 --d 4 --make A=random:2 --in A=a.npz", 2, "A comes from a.npz, too");
  expect_line(run + "--n 5 --in A=a.npz", 1, "makes n = 7");
  expect_line(run + "--d 5 --in A=a.npz", 1, "makes d = 4");
  expect_line(run + "--in A=nan.npz", 1, "A of nan.npz: nan at row 1, column 1; expected finite");
  expect_line(run + "--in A=half.npz", 1, "A of half.npz: ");
  expect_line(run + "--in A=none.npz", 1, "none.npz");
  expect_line(run + "--n 5 --d 4 --out C=c.npy", 2,
              "--out C=c.npy: C of matmul/sparse-stay is sparse");
  expect_line(run + "--n 5 --d 4 --mask causal", 2, "is a product, which has no mask");
  expect_line(
      "run matmul/blocked --M 2000 --seed 1 --in A=a.npz", 2,
      "--in A=a.npz: matmul/blocked takes a dense A: give it as .npy, or take a kernel of sparse");
  expect_line("run backward/flash --n 8 --d 8 --M 2000 --make O=random:2", 2,
              "O and L are of the other");
  expect_line("plan --n 8 --d 8 --M 2000 --make X=identity", 2,
              "--make: words depend on operands where");
  for (const std::string& kernel : sparse_names()) {
    if (!of_product(kernel)) {
      expect_line("run " + kernel + " --n 5 --d 4 --M 2000 --mask causal", 2,
                  "takes no mask: which pairs are live follows from");
      expect_line("run " + kernel + " --M 2000 --seed 1 --in A3=a.npz", 2, "");
    }
  }
}

}  // namespace
}  // namespace redblue
