// Sparse operands through the command: made by rules, from files, or fully stored where nothing is
// said; a run counts the words of its formula and is verified; bad input is refused in one line.

#include <cstring>
#include <limits>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernels/kernel.hpp"
#include "runtime/gate/subject.hpp"
#include "runtime/patterns/zip.hpp"
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

// Tiles take other activations: then nothing is made of L, and no bound counts it.
TEST_F(SparseOperands, OtherActivations) {
  for (const std::string kernel : {"forward/sparse-tiles", "backward/sparse-tiles"}) {
    for (const std::string activation : {"relu", "sigmoid", "silu"}) {
      const std::string problem =
          fmt::format("{} --n 31 --m 23 --d 13 --M 300 --activation {}{}", kernel, activation,
                      rules_of(kernel, {"random:3", "banded:4", "identity"}));
      SCOPED_TRACE(problem);
      const Json ran = json("run " + problem + " --verify");
      EXPECT_EQ(ran["error"]["ok"], true);
      EXPECT_EQ(ran["activation"], activation);
      EXPECT_FALSE(ran.contains("forward"));
      EXPECT_EQ(ran["total"]["io"], ran["formula"]["io"]);
      EXPECT_EQ(json("count " + problem)["total"]["io"], ran["total"]["io"]);
      EXPECT_LE(ran["lower_bound"]["words"], ran["total"]["io"]);
    }
  }
  // Of nothing live all of O is written, and no L.
  const std::string dead =
      "run forward/sparse-tiles --make A1=random:3 --make A2=density:1/4294967295 --n 31 --m 23 "
      "--d 13 --M 300 --seed 1";
  EXPECT_EQ(json(dead)["lower_bound"]["words"], 31 * 13 + 31);
  EXPECT_EQ(json(dead + " --activation relu")["lower_bound"]["words"], 31 * 13);
}

// O and L come from the sparse kernel that the planner puts first.
TEST_F(SparseOperands, ForwardIsTheFirstOfThePlan) {
  for (const std::string schedule : {"sparse-rows", "sparse-x", "sparse-tiles"}) {
    const std::string problem = " --n 31 --m 23 --d 13 --make A1=random:3 --make A2=random:3";
    const Json counted =
        json("count backward/" + schedule + problem + " --M 3000 --objective words");
    Json plan = json("plan --problem forward" + problem + " --M 3000");
    std::vector<Json> makers = plan["runners_up"];
    makers.insert(makers.begin(), plan["plan"]);
    const auto first = std::ranges::find_if(
        makers, [](const Json& choice) { return choice["densified"] == false; });
    EXPECT_EQ(counted["forward"]["kernel"], (*first)["kernel"]);
  }
  EXPECT_EQ(json("count backward/sparse-tiles --n 31 --m 23 --d 64 --make A1=random:3 --make "
                 "A2=random:3 --make X=identity --M 60")["forward"]["kernel"],
            "forward/sparse-tiles");
}

// C = A I has the entries of A; what was written is read again.
TEST_F(SparseOperands, AProductInAFile) {
  const std::vector<float> values = {1, -2, 3, 0, 5, -6, 7};
  directory_.write("a.npz", csr_of_rows(7, 4, values));
  const std::string problem = "run matmul/sparse-stay --M 200 --seed 1 --in B=i.npz ";
  directory_.write("i.npz", csr_of_rows(4, 4, {1, 1, 1, 1}));
  for (const std::string store : {"", " --store file:s"}) {
    data(problem + "--in A=a.npz --out C=c.npz" + store);
    const ZipFile file(content_of(directory_ / "c.npz"), "c.npz");
    EXPECT_TRUE(file.member("format.npy").ends_with("csr"));
    const std::string words = file.member("data.npy");
    std::vector<float> found(values.size());
    std::memcpy(found.data(), words.data() + words.size() - 4 * found.size(), 4 * found.size());
    EXPECT_EQ(found, values);
    data(problem + "--in A=c.npz --out C=again.npz");
    EXPECT_EQ(content_of(directory_ / "again.npz"), content_of(directory_ / "c.npz"));
  }
  data(
      "run matmul/sparse-pass --n 5 --m 3 --d 4 --M 200 --seed 1 --make A=density:1/4294967295 "
      "--out C=none.npz");
  EXPECT_EQ(
      json(
          "run matmul/sparse-pass --in A=none.npz --m 2 --M 200 --seed 1")["sparse"]["A"]["stored"],
      0);
  expect_line("run matmul/sparse-stay --n 5 --d 4 --M 200 --seed 1 --out C=c.npy", 2,
              "C of matmul/sparse-stay is sparse, and goes to an .npz of SciPy");
  expect_line("run matmul/sparse-stay --n 5 --d 4 --M 200 --seed 1 --heads 2 --out C=d.npz", 2,
              "C of several heads is no one sparse matrix");
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
  // All entries of C are stored: as a dense matrix it has no words for its indices.
  EXPECT_EQ(plan["plan"]["densified"], true);
  EXPECT_TRUE(json("plan " + problem + " --make B=random:3")["plan"]["kernel"]
                  .get<std::string>()
                  .starts_with("matmul/sparse-"));
  EXPECT_EQ(plan["sparse"]["A"]["stored"], 93);
  const Json bounds = json("bounds " + problem + "");
  // Entries of A and B that meet, and all of C.
  EXPECT_EQ(bounds["lower_bound"]["term"], "compulsory");
  EXPECT_EQ(bounds["lower_bound"]["words"],
            93 + 13 * 23 + plan["sparse"]["C"]["stored"].get<Index>());
}

// The statement of theorem 4.5, as it stands, on three identities: it claims 2 Z sqrt(n / M) words
// of Z = n live pairs; but 4 n entries and results with their indices, read and written once or a
// few times, are all that anyone moves. No lower bound may claim more than a plan moves.
TEST_F(SparseOperands, TheoremThatAPlanRefutes) {
  const std::string problem =
      "--make A1=identity --make X=identity --make A2=identity --n 16384 --m 16384 --d 16384 "
      "--M 64";
  const Json bounds = json("bounds --problem logsumexp " + problem);
  const Json& claim = bounds["bounds"].back();
  EXPECT_EQ(claim["name"], "Theorem 4.5");
  EXPECT_EQ(claim["words"], 524'288);
  EXPECT_EQ(claim["status"], "asymptotic");
  EXPECT_EQ(claim["refuted_by"], bounds["best"]["kernel"]);
  const Index moved = bounds["best"]["words"];
  EXPECT_EQ(moved, json("count logsumexp/auto " + problem)["total"]["io"]);
  EXPECT_EQ(moved, 267'983);
  EXPECT_EQ(bounds["lower_bound"]["term"], "compulsory");
  EXPECT_EQ(bounds["lower_bound"]["words"], 4 * 16'384);
  for (const Json& bound : bounds["bounds"]) {
    EXPECT_TRUE(bound["status"] != "proven" || bound["words"].get<Index>() <= moved) << bound;
    EXPECT_EQ(!bound.value("refuted_by", Json()).is_null(), bound["words"].get<Index>() > moved)
        << bound;
  }
  const std::string text = data("bounds --problem logsumexp " + problem);
  EXPECT_NE(text.find("524,288"), std::string::npos) << text;
  EXPECT_NE(text.find("logsumexp/sparse-rows moves fewer"), std::string::npos) << text;

  // And on 256 diagonal blocks of 8 x 8.
  const Json blocks = json(
      "bounds --problem logsumexp --make A1=clusters:8:256 --make A2=clusters:8:256 --make "
      "X=identity --n 2048 --d 2048 --M 256");
  EXPECT_EQ(blocks["bounds"].back()["words"], 177'412);
  EXPECT_LE(blocks["best"]["words"], 165'969);
  EXPECT_EQ(blocks["bounds"].back()["refuted_by"], "logsumexp/sparse-rows");

  // Where supports mix it claims less than is moved, and nobody refutes it.
  const Json mixed = json(
      "bounds --problem logsumexp --n 256 --d 64 --M 512 --make A1=random:8 --make A2=random:8");
  for (const Json& bound : mixed["bounds"]) {
    EXPECT_TRUE(bound.value("refuted_by", Json()).is_null()) << bound;
  }
}

// A point of a suite moves what the command counts; `make` is part of which point it is, whatever
// the order and the form in which it is told.
TEST_F(SparseOperands, InASuite) {
  std::string points;
  for (const std::string& kernel : sparse_names()) {
    const std::string first = of_product(kernel) ? "A" : "A1";
    const std::string second = of_product(kernel) ? "B" : "A2";
    points += fmt::format(
        R"({}{{"kernel": "{}", "n": 31, "m": 23, "d": 13, "M": 900, "seed": [1, 2], "make": [
            {{"{}": "random:3", "{}": "density:1/4"}}, "{}=density:1/4 {}=random:3", "none"]}})",
        points.empty() ? "" : ", ", kernel, second, first, first, second);
  }
  for (const std::string how : {"run", "count"}) {
    directory_.write(how + ".json", R"({"how": ")" + how + R"(", "points": [)" + points + "]}");
    EXPECT_EQ(redblue("record " + how + ".json -o " + how + ".base").code, 0);
    EXPECT_EQ(redblue("check " + how + ".base").code, 0);
    EXPECT_EQ(redblue("record " + how + ".base -o again.base").code, 0);
    EXPECT_EQ(content_of(directory_ / "again.base"), content_of(directory_ / (how + ".base")));
    EXPECT_EQ(redblue("sweep " + how + ".json -o " + how).code, 0);
  }
  const Json recorded = Json::parse(content_of(directory_ / "run.base"))["points"];
  const Json swept = Json::parse(content_of(directory_ / "count/sweep.json"))["points"];
  ASSERT_EQ(recorded.size(), 4 * sparse_names().size()) << "two of three say the same";
  ASSERT_EQ(swept.size(), recorded.size());
  for (std::size_t k = 0; k < recorded.size(); ++k) {
    std::string line = recorded[k]["kernel"].get<std::string>();
    for (const auto& [name, value] : recorded[k]["arguments"].items()) {
      if (name == "make") {
        for (const auto& [operand, rule] : parse_named_texts(value.get<std::string>())) {
          line += fmt::format(" --make {}={}", operand, rule);
        }
      } else {
        line += fmt::format(" --{} {}", name, value.dump());
      }
    }
    SCOPED_TRACE(line);
    const Json counted = json("count " + line)["total"]["io"];
    const Json& total = recorded[k]["total"];
    EXPECT_EQ(total["reads"].get<Index>() + total["writes"].get<Index>(), counted);
    EXPECT_EQ(swept[k]["total"]["reads"], total["reads"]);
    EXPECT_EQ(swept[k]["total"]["index_reads"], total["index_reads"]);
  }
  const std::string csv = content_of(directory_ / "run/sweep.csv");
  EXPECT_NE(csv.find(",make,in,seed,"), std::string::npos);
  EXPECT_NE(csv.find(",A1=density:1/4 A2=random:3,none,2,"), std::string::npos);
}

// auto chooses among kernels of sparse operands where rules make some. A pattern means such
// kernels where it is told what makes their operands, or where it names no others.
TEST_F(SparseOperands, ChosenInASuite) {
  const auto kernels = [&](const std::string& entry) {
    directory_.write(
        "s.json", R"({"how": "count", "points": [{"n": 31, "d": 13, "M": 900, )" + entry + "}]}");
    const Outcome outcome = redblue("record s.json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::string names;
    const Json points = Json::parse(outcome.out)["points"];
    for (const Json& point : points) {
      names += point["kernel"].get<std::string>() + " ";
    }
    return names;
  };
  EXPECT_EQ(kernels(R"("kernel": "forward/*", "make": "A1=random:2")"),
            "forward/sparse-rows forward/sparse-x forward/sparse-tiles forward/auto ");
  EXPECT_EQ(kernels(R"("kernel": "forward/*")").find("sparse"), std::string::npos);
  EXPECT_EQ(kernels(R"("kernel": "matmul/sparse-*")"), "matmul/sparse-stay matmul/sparse-pass ");
  for (const std::string pass : {"forward", "backward", "logsumexp"}) {
    kernels(R"("make": "A1=random:1 A2=random:1 X=identity", "kernel": ")" + pass + R"(/auto")");
    EXPECT_EQ(redblue("sweep s.json -o " + pass).code, 0);
    const Json point = Json::parse(content_of(directory_ / pass / "sweep.json"))["points"][0];
    EXPECT_EQ(point["kernel"], json("plan --problem " + pass +
                                    " --n 31 --d 13 --M 900 --make A1=random:1 --make A2=random:1 "
                                    "--make X=identity")["plan"]["kernel"]);
    EXPECT_NE(point["kernel"].get<std::string>().find("/sparse-"), std::string::npos);
  }
}

// Files are beside the suite; one that has other entries than it had is a difference.
TEST_F(SparseOperands, FromFilesOfASuite) {
  const auto file = [&](const std::string& entries) {
    directory_.write("deep/my a.mtx",
                     "%%MatrixMarket matrix coordinate real general\n7 4 2\n" + entries);
  };
  file("1 2 .5\n7 3 -2\n");
  directory_.write("deep/s.json", R"({"points": [{"kernel": "forward/sparse-x", "n": 7, "m": 5,
      "d": 4, "M": 900, "in": {"A1": "my a.mtx"}, "make": {"A2": "random:2"}}]})");
  ASSERT_EQ(redblue("record deep/s.json -o deep/base.json").code, 0);
  const Json point = Json::parse(content_of(directory_ / "deep/base.json"))["points"][0];
  EXPECT_EQ(point["arguments"]["in"], "A1=\"my a.mtx\"");
  EXPECT_TRUE(point["fingerprints"].contains("A1"));
  EXPECT_EQ(redblue("check deep/base.json").code, 0);
  file("1 2 .25\n7 3 -1\n");
  EXPECT_EQ(redblue("check deep/base.json").code, 0) << "values move no words";
  file("1 2 .5\n7 4 -2\n");
  const Outcome changed = redblue("check deep/base.json");
  EXPECT_EQ(changed.code, 3) << changed.err;
  EXPECT_NE(changed.out.find("A1 is another: its file has changed"), std::string::npos)
      << changed.out;
}

// As on the command line; and a pattern means the kernels that have the operand.
TEST_F(SparseOperands, ActivationsAndPatternsInASuite) {
  directory_.write("s.json",
                   R"({"how": "count", "points": [{"kernel": "*/sparse-*", "n": 31, "d": 13,
      "M": 900, "make": "A1=random:3", "activation": ["softmax", "relu"]}]})");
  const Outcome recorded = redblue("record s.json");
  EXPECT_EQ(recorded.code, 0) << recorded.err;
  EXPECT_NE(recorded.err.find("left out: "), std::string::npos) << recorded.err;
  const Json points = Json::parse(recorded.out)["points"];
  ASSERT_EQ(points.size(), 12U);
  for (const Json& point : points) {
    const std::string kernel = point["kernel"];
    const Json& arguments = point["arguments"];
    const std::string activation =
        arguments.contains("activation") ? arguments["activation"] : "softmax";
    EXPECT_FALSE(of_product(kernel) || kernel.starts_with("logsumexp/")) << kernel;
    if (kernel.starts_with("forward/")) {
      const Json counted = json("count " + kernel + " --n 31 --d 13 --M 900 --make A1=random:3 " +
                                "--activation " + activation);
      EXPECT_EQ(counted["total"]["reads"], point["total"]["reads"]) << kernel << activation;
    }
  }
  directory_.write("s.json", R"({"points": [{"kernel": "*/sparse-*", "n": 31, "d": 13, "M": 900,
                                             "make": ["A1=random:3", "A=random:2"]}]})");
  const Outcome all = redblue("record s.json");
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_EQ(Json::parse(all.out)["points"].size(), sparse_names().size());
  EXPECT_NE(all.err.find("matmul/sparse-stay, matmul/sparse-pass do not take make A1 as given"),
            std::string::npos)
      << all.err;
  directory_.write("s.json", R"({"points": [{"kernel": "*/sparse-*", "n": 31, "d": 13, "M": 900,
                                             "make": "Q=random:3"}]})");
  expect_line("record s.json", 1, "no kernel is left: .* do not take make Q as given");
  directory_.write("s.json", R"({"points": [{"kernel": "forward/sparse-x", "n": 31, "d": 13,
                                             "M": 900, "prefetch": 2}]})");
  expect_line("record s.json", 1, "forward/sparse-x takes no 'prefetch'");
}

TEST_F(SparseOperands, BadValuesInASuite) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("make": {"A1": "ones"})", "points 1: make A1=ones: expected a pattern"},
      {R"("make": {"A1": 3})", "points 1, make: A1: 3 is no text"},
      {R"("make": {"Q": "random:2"})", "make Q=random:2: forward/sparse-rows is given A1, X"},
      {R"("make": {"A1": "identity"})", "make A1=identity: A1 is 8 x 4"},
      {R"("make": {})", "points 1, make: \\{\\}: expected"},
      {R"("make": 7)", "points 1, make: 7: expected"},
      {R"("make": "")", "points 1, make: it is empty"},
      {R"("make": [])", "points 1, make is empty"},
      {R"("make": "A1")", "points 1, make: expected NAME=TEXT.*'A1' is not"},
      {R"("make": "A1=random:2 A1=random:2")", "make: A1 is named twice"},
      {R"("make": "A1=random:2", "in": {"A1": "a.npz"})", "A1 comes from a.npz, too"},
      {R"("in": {"A1": "none.npz"})", "none.npz"},
      {R"("in": {"A1": "a.npz"})", "n = 7"},
      {R"("seed": 0)", "points 1, seed: 0 is no size"},
      {R"("mask": "causal")", "forward/sparse-rows takes no 'mask'"}};
  directory_.write("a.npz", csr_of_rows(7, 4, {1, 2, 3, 4, 5, 6, 7}));
  for (const auto& [entry, message] : cases) {
    SCOPED_TRACE(entry);
    directory_.write("s.json", R"({"points": [{"kernel": "forward/sparse-rows", "n": 8, "d": 4,
                                   "M": 900, )" +
                                   entry + "}]}");
    expect_line("record s.json -o no.json", 1, message);
    EXPECT_FALSE(std::filesystem::exists(directory_ / "no.json"));
  }
  directory_.write("s.json", R"({"points": [{"kernel": "forward/rows", "n": 8, "d": 4, "M": 900,
                                 "make": {"A1": "random:2"}}]})");
  expect_line("record s.json", 1, "forward/rows takes no 'make'");
  expect_line("run logsumexp/auto --n 8 --d 4 --M 900 --make A1=random:2 --activation relu", 2,
              "--activation relu: logsumexp/auto knows softmax alone");
  EXPECT_EQ(json("run forward/auto --n 32 --d 32 --M 900 --make A1=random:1 --make A2=random:1 "
                 "--make X=identity --activation relu --verify")["kernel"],
            "forward/sparse-x");
}

// `plan` and `bounds` take what `count` takes of rules by which words are what they are without.
TEST_F(SparseOperands, RulesThatChangeNoWords) {
  const std::string shape = " --n 32 --d 8 --M 500";
  const auto refusal = [&](const std::string& line) {
    const Outcome outcome = redblue(line);
    EXPECT_EQ(outcome.code, 2) << line << outcome.err;
    return outcome.err.substr(0, outcome.err.find(": ", std::string("redblue: ").size()));
  };
  const std::vector<std::pair<std::string, std::string>> problems = {
      {"gradients", "Q=random:4"}, {"forward", "Y=random:4K"}, {"backward", "X=identity"}};
  for (const auto& [problem, rule] : problems) {
    const std::string of = shape + " --make " + rule;
    const Json best = json("plan --problem " + problem + of)["plan"];
    EXPECT_EQ(best, json("plan --problem " + problem + shape)["plan"]);
    EXPECT_EQ(json("bounds --problem " + problem + of),
              json("bounds --problem " + problem + shape));
    const std::string kernel = best["kernel"];
    EXPECT_EQ(data("plan --loops " + kernel + of), data("plan --loops " + kernel + shape));
  }
  for (const std::string rule : {"A1=random:4", "Z=random:4", "L=random:2", "Q=identity"}) {
    const std::string of = shape + " --make " + rule;
    const std::string says = refusal("count gradients/auto" + of);
    EXPECT_EQ(refusal("plan --problem gradients" + of), says);
    EXPECT_EQ(refusal("bounds --problem gradients" + of), says);
    EXPECT_EQ(refusal("plan --loops gradients/flash" + of), says);
  }
  expect_line("plan --problem product --make X=random:4" + shape, 2,
              "--problem product is given A");
}

TEST_F(SparseOperands, ARefusalHasTheLeastM) {
  const std::string of = " --n 64 --d 32 --make A1=random:4 --make A2=random:4";
  const Outcome refused = redblue("plan --problem logsumexp --M 5" + of);
  EXPECT_EQ(refused.code, 2);
  std::smatch found;
  ASSERT_TRUE(
      std::regex_search(refused.err, found,
                        std::regex("; (logsumexp/sparse-[a-z]+) needs the least, M of at least "
                                   "([0-9]+)\n")))
      << refused.err;
  const Index least = std::stoll(found[2]);
  const std::string with = "plan --problem logsumexp --M ";
  EXPECT_EQ(json(with + std::to_string(least) + of)["plan"]["kernel"], found[1].str());
  EXPECT_EQ(redblue(with + std::to_string(least - 1) + of).code, 2);
  for (const std::string problem :
       {"product", "forward", "backward --given nothing", "gradients"}) {
    EXPECT_TRUE(std::regex_search(redblue("plan --n 64 --d 32 --M 1 --problem " + problem).err,
                                  std::regex("needs the least, M of at least [0-9]+\n")))
        << problem;
  }
}

// A word of C is that of its row and column.
TEST_F(SparseOperands, AWordOfCIsNamedByItsPlace) {
  const std::string head = "%%MatrixMarket matrix coordinate real general\n";
  directory_.write("a.mtx", head + "3 2 3\n1 1 1e30\n2 1 1\n3 2 1e30\n");
  directory_.write("b.mtx", head + "2 5 3\n1 2 1\n2 1 1\n2 4 1e30\n");
  for (const std::string kernel : {"matmul/sparse-stay", "matmul/sparse-pass"}) {
    expect_line("run " + kernel + " --M 200 --in A=a.mtx --in B=b.mtx", 1, "is inf at \\(2, 3\\)");
  }
  // Products of ones are exact.
  directory_.write("a.mtx", head + "3 2 3\n1 1 1\n2 1 1\n3 2 0.1\n");
  directory_.write("b.mtx", head + "2 5 3\n1 2 1\n2 1 1\n2 4 0.1\n");
  const Json error =
      json("run matmul/sparse-pass --M 200 --in A=a.mtx --in B=b.mtx --verify")["error"];
  EXPECT_EQ(error["output"], "C");
  EXPECT_EQ(error["row"], 2);
  EXPECT_EQ(error["column"], 3);
}

TEST_F(SparseOperands, BadInput) {
  directory_.write("a.npz", csr_of_rows(7, 4, {1, 2, 3, 4, 5, 6, 7}));
  directory_.write("nan.npz", csr_of_rows(2, 4, {1, std::numeric_limits<float>::quiet_NaN()}));
  directory_.write("a.txt", "1 2 3");
  directory_.write("savez.npz", zip_bytes({{"arr_0.npy", npy_bytes(2, 2, {1, 2, 3, 4})}}));
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
  expect_line("run matmul/sparse-stay --M 2000 --seed 1 --in A=a.txt", 1,
              "A is sparse, and may also be in an .npz, .mtx or .smtx");
  expect_line("run matmul/sparse-stay --M 2000 --seed 1 --in A=savez.npz", 1,
              "A of savez.npz: no member format.npy: .*scipy.sparse.save_npz");
  expect_line("plan --n 8 --d 8 --M 2000 --in X=a.npy", 2, "--in: words depend on operands where");
  expect_line("count forward/sparse-rows --n 1K --m 2G --d 2G --M 2000 --make A1=random:2", 1,
              "where (X|A2) has entries would need more than 8 EiB of memory");
  expect_line(
      "run logsumexp/sparse-x --n 8 --d 8 --M 2000 --activation relu --out L=l.npy", 2,
      "--activation relu: logsumexp/sparse-x knows softmax alone: with others there is no L");
  expect_line("plan --problem logsumexp --n 8 --d 8 --M 2000 --activation silu", 2,
              "--activation silu: --problem logsumexp knows softmax alone");
  for (const std::string& kernel : sparse_names()) {
    if (kernel.starts_with("logsumexp/")) {
      expect_line("count " + kernel + " --n 8 --d 8 --M 2000 --make A3=random:2", 2,
                  "--make A3=random:2: " + kernel + " is given A1, X, A2");
    }
  }
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
