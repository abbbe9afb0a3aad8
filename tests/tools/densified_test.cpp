// Tests dense kernels on problems with sparse operands. `plan` lists them with the sparse kernels.
// Their words are the words that they move under the mask of live pairs. `auto` takes the choice
// with the fewest words.

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/system/npy.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

using Json = nlohmann::json;

using Stored = std::vector<std::vector<bool>>;

Stored random_entries(Index rows, Index cols, double density, std::mt19937& random) {
  std::bernoulli_distribution there(density);
  Stored stored(static_cast<std::size_t>(rows), std::vector<bool>(static_cast<std::size_t>(cols)));
  for (auto& row : stored) {
    for (auto entry : row) {
      entry = there(random);
    }
  }
  return stored;
}

// Returns the product's entries. Entry (i, j) is stored if some k is stored in row i of A, and in
// row j of B (`rows_of_B`) or in column j of B.
Stored meet(const Stored& A, const Stored& B, bool rows_of_B) {
  const std::size_t cols = rows_of_B ? B.size() : B.front().size();
  Stored met(A.size(), std::vector<bool>(cols));
  for (std::size_t i = 0; i < A.size(); ++i) {
    for (std::size_t j = 0; j < cols; ++j) {
      for (std::size_t k = 0; k < A.front().size(); ++k) {
        met[i][j] = met[i][j] || (A[i][k] && (rows_of_B ? B[j][k] : B[k][j]));
      }
    }
  }
  return met;
}

std::string mtx(const Stored& stored) {
  std::string lines;
  Index number = 0;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    for (std::size_t j = 0; j < stored.front().size(); ++j) {
      if (stored[i][j]) {
        lines += fmt::format("{} {} {}\n", i + 1, j + 1, 0.125 * static_cast<double>(++number % 9));
      }
    }
  }
  return fmt::format("%%MatrixMarket matrix coordinate real general\n{} {} {}\n", stored.size(),
                     stored.front().size(), number) +
         lines;
}

std::vector<Json> all_choices(const Json& plan) {
  std::vector<Json> all(plan["runners_up"].begin(), plan["runners_up"].end());
  all.insert(all.begin(), plan["plan"]);
  return all;
}

std::size_t densified_ones(const std::vector<Json>& all) {
  return static_cast<std::size_t>(
      std::ranges::count_if(all, [](const Json& choice) { return choice["densified"] == true; }));
}

class Densified : public Cli {
 protected:
  // Checks that each densified choice moves the words that `count` reports for its kernel, and that
  // the first choice moves the fewest.
  void expect_words_of_count(const Json& plan, const std::string& dense) {
    const std::vector<Json> all = all_choices(plan);
    EXPECT_GE(densified_ones(all), 3U) << plan;
    EXPECT_LT(densified_ones(all), all.size()) << plan;
    for (const Json& choice : all) {
      SCOPED_TRACE(choice);
      EXPECT_LE(plan["plan"]["words"], choice["words"]);
      EXPECT_LE(choice["lower_bound"]["words"], choice["words"]);
      EXPECT_LE(plan["lower_bound"]["words"], choice["words"]);
      if (choice["densified"] == true) {
        const Json counted =
            json("count " + choice["kernel"].get<std::string>() + dense + " --objective words");
        EXPECT_EQ(counted["total"]["io"], choice["words"]);
        EXPECT_EQ(counted["lower_bound"], choice["lower_bound"]);
      }
    }
  }
};

TEST_F(Densified, ChoicesMoveTheWordsOfTheMask) {
  std::mt19937 random(7);
  for (const double density : {0.1, 0.4, 1.0}) {
    const Stored A1 = random_entries(23, 9, density, random);
    const Stored X = random_entries(9, 9, density, random);
    const Stored A2 = random_entries(31, 9, density, random);
    const Stored pairs = meet(meet(A1, X, false), A2, true);
    directory_.write("A1.mtx", mtx(A1));
    directory_.write("X.mtx", mtx(X));
    directory_.write("A2.mtx", mtx(A2));
    directory_.write("pairs.mtx", mtx(pairs));
    const bool all = std::ranges::all_of(
        pairs, [](const auto& row) { return std::ranges::find(row, false) == row.end(); });
    EXPECT_EQ(all, density == 1);
    for (const std::string pass : {"forward", "backward"}) {
      for (const Index M : {400, 2000}) {
        const std::string sparse =
            fmt::format(" --in A1=A1.mtx --in X=X.mtx --in A2=A2.mtx --M {}", M);
        SCOPED_TRACE(fmt::format("{} of {}, M {}", pass, density, M));
        const std::string dense =
            fmt::format(" --n 23 --m 31 --d 9 --M {}{}", M, all ? "" : " --mask pattern:pairs.mtx");
        expect_words_of_count(json("plan --problem " + pass + sparse), dense);
        // From scratch, as `auto` counts.
        const Json plan = json("plan --problem " + pass + sparse +
                               (pass == "backward" ? " --given nothing" : ""));
        const Json counted = json("count " + pass + "/auto --seed 1 --objective words" + sparse);
        EXPECT_EQ(counted["kernel"], plan["plan"]["kernel"]);
        EXPECT_EQ(counted["total_from_nothing"], plan["plan"]["words"]);
        EXPECT_EQ(counted.value("densified", false), plan["plan"]["densified"]);
        EXPECT_EQ(counted["lower_bound"], plan["plan"]["lower_bound"]);
      }
    }
    directory_.write("B.mtx", mtx(random_entries(9, 31, density, random)));
    expect_words_of_count(json("plan --problem product --in A=A1.mtx --in B=B.mtx --M 500"),
                          " --n 23 --m 31 --d 9 --M 500");
  }
}

// A dense kernel uses the same values as a sparse kernel. Results differ only by rounding.
TEST_F(Densified, RunsHaveTheResultsOfSparseKernels) {
  directory_.write("a.mtx", mtx(meet(Stored(47, std::vector<bool>(13, true)),
                                     Stored(13, std::vector<bool>(13, true)), false)));
  const std::string rules =
      " --m 37 --make A2=density:3/4 --make X=identity --seed 3 --verify --M 2500";
  for (const std::string of_A1 : {" --n 47 --d 13 --make A1=density:3/4", " --in A1=a.mtx"}) {
    for (const auto& [pass, result] : {std::pair<std::string, std::string>("forward", "O"),
                                       {"forward", "L"},
                                       {"backward", "g"}}) {
      for (const std::string heads : {"", " --heads 2", " --heads 1 --threads 2"}) {
        if (!heads.empty() && of_A1.find("mtx") != std::string::npos && result == "L") {
          continue;
        }
        const std::string problem = of_A1 + rules + heads;
        SCOPED_TRACE(pass + problem);
        const Json ran =
            json("run " + pass + "/auto" + problem + " --out " + result + "=dense.npy");
        const Json sparse =
            json("run " + pass + "/sparse-rows" + problem + " --out " + result + "=sparse.npy");
        EXPECT_EQ(ran["densified"], true);
        EXPECT_FALSE(sparse.contains("densified"));
        EXPECT_EQ(ran["kernel"].get<std::string>().find("sparse"), std::string::npos);
        EXPECT_EQ(ran["error"]["ok"], true);
        EXPECT_EQ(ran["total"]["io"], ran["formula"]["io"]);
        EXPECT_EQ(ran["sparse"], sparse["sparse"]);
        EXPECT_EQ(ran["pairs"], sparse["pairs"]);
        EXPECT_EQ(ran["operands"]["A2"], "made");
        EXPECT_LT(ran["total_from_nothing"], sparse["total_from_nothing"]);

        const NpyReader a(directory_ / "dense.npy"), b(directory_ / "sparse.npy");
        ASSERT_EQ(a.shape(), b.shape());
        std::vector<float> of_dense(static_cast<std::size_t>(a.rows() * a.cols()));
        std::vector<float> of_sparse(of_dense.size());
        a.read_rows({0, a.rows()}, of_dense);
        b.read_rows({0, b.rows()}, of_sparse);
        // Both runs report their error relative to the largest exact result. The results must agree
        // within the sum of both errors.
        double largest = 0, off = 0;
        for (std::size_t k = 0; k < of_dense.size(); ++k) {
          largest = std::max<double>(largest, std::abs(of_sparse[k]));
          off = std::max<double>(off, std::abs(of_dense[k] - of_sparse[k]));
        }
        EXPECT_LE(off, 1.01 * largest *
                           (ran["error"]["relative"].get<double>() +
                            sparse["error"]["relative"].get<double>()));
        EXPECT_GT(largest, 0);
      }
    }
  }
  const std::string text = data("run backward/auto --n 47 --d 13 --make A1=density:3/4" + rules);
  EXPECT_NE(text.find("\noperands densified: "), std::string::npos) << text;
  EXPECT_NE(text.find("; 1,739 live pairs"), std::string::npos) << text;
}

TEST_F(Densified, OtherActivationsAndDeadPairs) {
  const std::string problem =
      " --n 19 --m 29 --d 7 --make A1=density:1/3 --make A2=density:2/3 --make X=random:2 --M 900 "
      "--seed 4 --verify";
  for (const std::string activation : {"softmax", "relu", "silu"}) {
    for (const std::string pass : {"forward", "backward"}) {
      const Json ran = json("run " + pass + "/auto --activation " + activation + problem);
      EXPECT_EQ(ran["error"]["ok"], true);
      EXPECT_EQ(ran["densified"], true);
      EXPECT_LT(ran["pairs"], 19 * 29);
    }
  }
}

// Dense kernels lose where few entries are stored. They are not used for operands in a store, nor
// for L alone.
TEST_F(Densified, SparseKernelsWinWhereEntriesAreFew) {
  const std::string few =
      " --n 64 --d 64 --M 3000 --make A1=random:1 --make A2=random:1 --make "
      "X=identity";
  for (const std::string pass : {"forward", "backward"}) {
    const Json counted = json("count " + pass + "/auto" + few);
    EXPECT_NE(counted["kernel"].get<std::string>().find("/sparse-"), std::string::npos);
    EXPECT_FALSE(counted.contains("densified"));
    EXPECT_GT(densified_ones(all_choices(json("plan --problem " + pass + few))), 0U);
  }
  const Json alone = json("plan --problem logsumexp" + few);
  EXPECT_EQ(densified_ones(all_choices(alone)), 0U);
  EXPECT_FALSE(alone.contains("densified_left_out"));
  const std::string many =
      "run backward/auto --n 47 --m 37 --d 13 --make A1=density:3/4 --seed 1 "
      "--M 2500 --verify";
  EXPECT_EQ(json(many)["densified"], true);
  const Json stored = json(many + " --store file:s");
  EXPECT_FALSE(stored.contains("densified"));
  EXPECT_EQ(stored["error"]["ok"], true);
}

// A point of a suite runs the kernel that it counted, on the same operands. It may start from an O
// and L that the run computes first, from scratch, or from a store.
TEST_F(Densified, InASuite) {
  directory_.write("a.mtx", mtx(Stored(31, std::vector<bool>(13, true))));
  const auto suite = [](const std::string& how) {
    return R"({"how": ")" + how + R"(", "points": [
        {"kernel": "backward/auto", "n": 31, "m": 23, "d": 13, "M": [900, 2500], "given":
         ["OL", "nothing"], "store": ["memory", "disk"],
         "make": "A1=density:3/4 A2=density:2/3 X=identity"},
        {"kernel": "backward/auto", "n": 31, "m": 23, "d": 13, "M": 900, "in": {"A1": "a.mtx"}},
        {"kernel": "forward/auto", "n": 31, "d": 13, "M": 2500, "threads": [1, 2],
         "make": "A1=density:3/4 A2=density:2/3 X=identity"}]})";
  };
  for (const std::string how : {"run", "count"}) {
    directory_.write(how + ".json", suite(how));
    EXPECT_EQ(redblue("record " + how + ".json -o " + how + ".base").code, 0);
    const Outcome swept = redblue("sweep " + how + ".json -o " + how);
    EXPECT_EQ(swept.code, 0) << swept.err;
  }
  const Outcome checked = redblue("check run.base");
  EXPECT_EQ(checked.code, 0) << checked.out;
  const Json ran = Json::parse(content_of(directory_ / "run.base"))["points"];
  const Json counted = Json::parse(content_of(directory_ / "count.base"))["points"];
  ASSERT_EQ(ran.size(), 11U);
  ASSERT_EQ(counted.size(), ran.size());
  const Json swept = Json::parse(content_of(directory_ / "run/sweep.json"))["points"];
  const Json formulas = Json::parse(content_of(directory_ / "count/sweep.json"))["points"];
  for (std::size_t k = 0; k < ran.size(); ++k) {
    SCOPED_TRACE(ran[k]["arguments"]);
    EXPECT_EQ(ran[k]["total"], counted[k]["total"]);
    EXPECT_EQ(swept[k]["kernel"], formulas[k]["kernel"]);
    const bool sparse = swept[k]["kernel"].get<std::string>().find("/sparse-") != std::string::npos;
    EXPECT_EQ(sparse, ran[k]["arguments"].value("store", "memory") == "disk");
  }
}

TEST_F(Densified, TablesMarkThem) {
  const std::string line =
      "plan --problem forward --n 31 --d 9 --M 700 --make A1=density:3/4 --make X=identity";
  const std::string text = data(line);
  const std::vector<Json> all = all_choices(json(line));
  std::size_t marked = 0;
  for (const Json& choice : all) {
    const bool densified = choice["densified"];
    const std::string name = "\n" + choice["kernel"].get<std::string>();
    EXPECT_EQ(text.find(name + " (densified) ") != std::string::npos, densified) << text;
    marked += densified ? 1 : 0;
  }
  EXPECT_GT(marked, 0U);
  const std::string csv = data(line + " --format csv");
  EXPECT_NE(csv.find(",kernel,densified,"), std::string::npos) << csv;
  EXPECT_NE(csv.find(all.front()["kernel"].get<std::string>() +
                     (all.front()["densified"] == true ? ",yes," : ",no,")),
            std::string::npos)
      << csv;
  EXPECT_EQ(data("plan --problem forward --n 31 --d 9 --M 700 --format csv").find("densified"),
            std::string::npos);
}

// A plan says why dense kernels are left out: the mask has too many pairs, or their bound is above
// the words of the first choice.
TEST_F(Densified, LeftOut) {
  const auto expect = [&](const std::string& task, const std::string& why) {
    const std::string line = "plan --problem forward --make X=identity " + task;
    SCOPED_TRACE(line);
    const Json plan = json(line);
    EXPECT_EQ(densified_ones(all_choices(plan)), 0U);
    const std::string said = plan["densified_left_out"];
    EXPECT_NE(said.find(why), std::string::npos) << said;
    EXPECT_NE(data(line).find("\n" + said + "\n"), std::string::npos);
  };
  expect("--make A1=random:1 --make A2=random:1 --n 8192 --d 2 --M 64K",
         "33,542,574 live pairs are left out: a mask has at most 16,777,216");
  expect("--make A1=random:1 --make A2=random:1 --n 4608 --d 16 --M 1M",
         "move at least 300,032 words (bound: compulsory), more than the first choice");
  // If all pairs are live, no mask is needed.
  const Json full = json("plan --problem forward --make A1=random:1 --n 8192 --d 2 --M 64K");
  EXPECT_GT(densified_ones(all_choices(full)), 0U);
  EXPECT_FALSE(full.contains("densified_left_out"));
}

}  // namespace
}  // namespace redblue
