// Tests the output of `redblue bounds`. Its JSON is checked key by key, the table and the CSV must
// agree with it, and the best kernel must have the words that `redblue count` reports.

#include "runtime/theory/bounds.hpp"

#include <algorithm>

#include "runtime/text/table.hpp"
#include "runtime/theory/partition.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"

namespace redblue {
namespace {

class BoundsCommand : public Cli {};

TEST_F(BoundsCommand, EveryKey) {
  const Json json = this->json("bounds --n 300 --m 200 --d 16 --M 512");
  EXPECT_EQ(keys(json), (Keys{"schema", "context", "problem", "n", "m", "d", "M", "sharing",
                              "given", "bounds", "heads", "lower_bound", "best", "dividing_point",
                              "statements", "mask", "wanted"}));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["problem"], "backward");
  EXPECT_EQ(json["sharing"], "none");
  EXPECT_EQ(json["given"], "OL");
  EXPECT_EQ(json["dividing_point"], 256);
  const std::vector<Bound> bounds = lower_bounds({Pass::backward, {300, 200, 16}, 512});
  ASSERT_EQ(json["bounds"].size(), bounds.size());
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const Json& entry = json["bounds"][i];
    const bool asymptotic = bounds[i].status == Status::asymptotic;
    EXPECT_EQ(keys(entry).size(), asymptotic ? 8U : 5U);
    EXPECT_EQ(entry["name"], bounds[i].name);
    EXPECT_EQ(entry["words"], bounds[i].words);
    EXPECT_EQ(entry["status"], to_string(bounds[i].status));
    EXPECT_EQ(entry["order"], to_string(bounds[i].order));
    EXPECT_EQ(entry["recomputation"], bounds[i].recomputation);
  }
  EXPECT_EQ(json["lower_bound"], (Json{{"words", largest(bounds).words},
                                       {"term", largest(bounds).name},
                                       {"status", "proven"}}));
  EXPECT_EQ(keys(json["best"]), (Keys{"kernel", "words", "ratio"}));
  for (const Json& statement : json["statements"]) {
    EXPECT_EQ(keys(statement), (Keys{"name", "says", "range", "says_words", "says_words_at_4M",
                                     "about", "words", "words_at_4M", "verdict", "refuted"}));
  }

  const Json forward = this->json("bounds --problem forward --n 300 --d 16 --M 512");
  EXPECT_FALSE(forward.contains("given"));
  EXPECT_FALSE(forward.contains("statements"));
  const Json product = this->json("bounds --problem product --n 300 --d 16 --M 512");
  EXPECT_FALSE(product.contains("sharing"));
  EXPECT_FALSE(product.contains("dividing_point"));
  EXPECT_EQ(product["best"]["kernel"].get<std::string>().substr(0, 7), "matmul/");
}

// The best kernel moves the words that `count` reports for it, and no other kernel moves fewer.
TEST_F(BoundsCommand, TheBestKernelAsCountHasIt) {
  const std::string problem = " --n 300 --m 200 --d 16 --M 2048";
  const Json given = json("bounds" + problem)["best"];
  const Json nothing = json("bounds --given nothing" + problem)["best"];
  const auto count = [&](const Json& best) {
    return json("count " + best["kernel"].get<std::string>() + problem);
  };
  EXPECT_EQ(given["words"], count(given)["total"]["io"]);
  EXPECT_EQ(nothing["words"], count(nothing)["total_from_nothing"]);
  EXPECT_EQ(nothing.contains("forward"), count(nothing).contains("forward"));
  for (const char* kernel : {"backward/small", "backward/large", "backward/flash", "backward/rows",
                             "backward/rows-onepass"}) {
    const Json other = json(std::string("count ") + kernel + problem);
    EXPECT_LE(given["words"], other["total"]["io"]) << kernel;
    EXPECT_LE(nothing["words"], other["total_from_nothing"]) << kernel;
  }
  EXPECT_TRUE(json("bounds --n 300 --d 16 --M 2")["best"].is_null());
  EXPECT_NE(data("bounds --n 300 --d 16 --M 2").find("none of our kernels fits"),
            std::string::npos);
}

TEST_F(BoundsCommand, TableAndCsvSayTheSame) {
  for (const std::string command :
       {"bounds --n 4096 --d 64 --M 16K --given nothing",
        "bounds --n 99 --d 8 --M 64 --sharing self",
        "bounds --n 99 --m 5 --d 8 --M 99 --sharing kv --problem forward",
        "bounds --n 99 --m 5 --d 8 --M 99 --problem product"}) {
    SCOPED_TRACE(command);
    const Json document = json(command);
    const std::string table = data(command);
    const std::vector<CsvRow> rows = parse_csv(data(command + " --format csv"));
    ASSERT_EQ(rows.size(), document["bounds"].size() + 1);
    for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
      const Json& entry = document["bounds"][i];
      EXPECT_EQ(rows[i].at("name"), entry["name"]);
      EXPECT_EQ(rows[i].at("words"), entry["words"].dump());
      EXPECT_EQ(rows[i].at("status"), entry["status"]);
      EXPECT_EQ(rows[i].at("recomputation"), entry["recomputation"] == true ? "yes" : "no");
      EXPECT_NE(table.find(grouped(entry["words"].get<Index>())), std::string::npos);
    }
    EXPECT_EQ(rows.back().at("name"), document["best"]["kernel"]);
    EXPECT_EQ(rows.back().at("words"), document["best"]["words"].dump());
  }
}

// Partitions are reported on request only, and are the same in the table, JSON and CSV.
TEST_F(BoundsCommand, Partitions) {
  const std::string command = "bounds --n 4096 --d 64 --M 64K";
  EXPECT_FALSE(json(command).contains("partitions"));
  EXPECT_EQ(data(command).find("partitions"), std::string::npos);
  const Json all = json(command + " --partition")["partitions"];
  const std::string table = data(command + " --partition");
  const std::vector<CsvRow> rows = parse_csv(data(command + " --partition --format csv"));
  const std::vector<Partition> expected = partitions({Pass::backward, {4096, 4096, 64}, 65536});
  ASSERT_EQ(all.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Partition& of = expected[i];
    EXPECT_EQ(all[i], (Json{{"products", of.products},
                            {"all", of.all},
                            {"in_a_part", of.in_a_part},
                            {"parts", of.parts},
                            {"words", of.words},
                            {"best_length", of.best_length},
                            {"best_words", of.best_words},
                            {"below_compulsory", of.words < 1060864},
                            {"best_below_compulsory", of.best_words < 1060864}}));
    EXPECT_NE(table.find(grouped(of.best_words)), std::string::npos) << table;
    const std::string name = "Lemma E.6, " + std::string(of.products);
    const auto moved = [&](const std::string& row) {
      const auto found =
          std::ranges::find_if(rows, [&](const CsvRow& other) { return other.at("name") == row; });
      return found == rows.end() ? "" : found->at("words");
    };
    EXPECT_EQ(moved(name), std::to_string(of.words));
    EXPECT_EQ(moved(name + ", best T"), std::to_string(of.best_words));
  }
  EXPECT_NE(table.find("no: below compulsory"), std::string::npos) << table;
  EXPECT_NE(table.find("  yes\n"), std::string::npos) << table;
}

// The table says where the paper's statements do not hold.
TEST_F(BoundsCommand, StatementsOfThePaper) {
  const Json large = json("bounds --n 4096 --d 64 --M 64K");
  for (const Json& statement : large["statements"]) {
    EXPECT_EQ(statement["refuted"], statement["name"] != "Theorem 1.1") << statement.dump();
  }
  const std::string table = data("bounds --n 4096 --d 64 --M 64K");
  for (const char* expected : {"M >= d^2, as here", "  M < d^2\n", "no: refuted", "Lemma C.9",
                               "d^2 = 4,096: this cache is large"}) {
    EXPECT_NE(table.find(expected), std::string::npos) << expected << "\n" << table;
  }
  EXPECT_NE(data("bounds --n 4096 --d 64 --M 4095").find("this cache is small"), std::string::npos);
}

// A theorem is not refuted outside its stated range. Theorem D.5 is stated for n d >= M >= d^2,
// Theorem 4.3 for M < d^2, and all of them for a single length n. Inside its range, with n >= d,
// Theorem 1.1 states at least n d + d^2. Four times that covers the compulsory 4 n d + 3 d^2.
TEST_F(BoundsCommand, StatementsOutsideTheirRange) {
  const auto verdict = [&](const std::string& sizes, const std::string& name) {
    const Json all = json("bounds " + sizes);
    for (const Json& statement : all["statements"]) {
      if (statement["name"] == name) {
        return statement["verdict"].get<std::string>();
      }
    }
    return std::string("none");
  };
  const std::string next = "4 M is outside the stated range", outside = "outside the stated range";
  EXPECT_EQ(verdict("--n 4096 --d 64 --M 256K", "Theorem 1.1"), next) << "M = n d";
  EXPECT_EQ(verdict("--n 4096 --d 64 --M 256K", "Theorem D.5"), next);
  EXPECT_EQ(verdict("--n 4096 --d 64 --M 262145", "Theorem 1.1"), outside);
  EXPECT_EQ(verdict("--n 1 --d 1 --M 3", "Theorem 1.1"), outside);
  EXPECT_EQ(verdict("--n 64 --d 128 --M 4K", "Theorem 1.1"), next) << "from small into n d < M";
  EXPECT_EQ(verdict("--n 4096 --m 100 --d 64 --M 1K", "Theorem 1.1"), outside);
  EXPECT_EQ(verdict("--n 4096 --m 100 --d 64 --M 1K", "Lemma C.9"), outside);
  // Inside the range, the bound is the compulsory words, and a constant covers the difference:
  // 448 against 256.
  EXPECT_EQ(verdict("--n 8 --d 8 --M 16", "Theorem 1.1"), "no: within a constant");
  // The matrix X alone has d^2 words, which is more than n^2 d / sqrt(M) + n d^2 / sqrt(M) by a
  // factor of d / n.
  EXPECT_EQ(verdict("--n 64 --d 4096 --M 1M", "Theorem 1.1"), "no: refuted");
  EXPECT_EQ(verdict("--n 4096 --d 64 --M 64K", "Theorem 1.1"), "yes");
  EXPECT_EQ(verdict("--n 4096 --d 64 --M 64K", "Theorem D.5"), "no: refuted");
  EXPECT_EQ(verdict("--n 4096 --d 64 --M 1K", "Lemma C.9"), "no: refuted");
  const std::string table = data("bounds --n 4096 --d 64 --M 256K");
  EXPECT_NE(table.find(next), std::string::npos) << table;
  EXPECT_NE(table.find("for m = n, d^2 <= M <= n d"), std::string::npos) << table;
}

// This also holds if M is so large that the paper's statement is less than one word.
TEST_F(BoundsCommand, StatementsThatFallToZero) {
  for (const std::string problem :
       {"bounds --n 4096 --d 64 --M 1024G", "bounds --n 4096 --d 64 --M 2000000000G",
        "bounds --n 4 --d 4 --M 600"}) {
    const Json statements = json(problem)["statements"];
    ASSERT_FALSE(statements.empty()) << problem;
    EXPECT_EQ(statements[0]["name"], "Theorem 1.1");
    EXPECT_EQ(statements[0]["says_words"], 0) << problem;
    EXPECT_EQ(statements[0]["verdict"], "outside the stated range") << problem;
    for (const Json& statement : statements) {
      EXPECT_EQ(statement["refuted"], statement["name"] == "Lemma C.9") << statement.dump();
    }
  }
}

TEST_F(BoundsCommand, KernelsWhoseWordsPass63Bits) {
  const std::string problem = "bounds --n 2500000000 --d 64 --M 12K";
  EXPECT_TRUE(json(problem)["best"].is_null());
  EXPECT_NE(data(problem).find("\nthe words of every kernel that fits pass 63 bits"),
            std::string::npos);
}

TEST_F(BoundsCommand, SizesInUnits) {
  EXPECT_EQ(data("bounds --n 4K --d 64 --M 64KiB"), data("bounds --n 4096 --d 64 --M 16384"));
}

using PerfOfBounds = Cli;

TEST_F(PerfOfBounds, AnswersAtOnce) {
  const double most = 0.050;
  EXPECT_LT(seconds_after_start("bounds --n 10000000 --d 128 --M 64K", most), most);
}

}  // namespace
}  // namespace redblue
