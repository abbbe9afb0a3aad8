// Tests `count --symbolic`. Its output, run as a program, has the numbers that `count` prints. Its
// LaTeX closes every brace. A kernel without such a formula is refused.

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

class CountSymbolic : public Cli {};

TEST_F(CountSymbolic, PrintsEachPhase) {
  const std::string text = data("count backward/rows --symbolic --regime large");
  EXPECT_NE(text.find("\ncore\n  reads   2 m d ceil(n/Br) + n\n"), std::string::npos) << text;
  EXPECT_NE(text.find("for n and m large, words: 2 n m d/Br\n"
                      "  with Br about M/(3 d): 6 n m d^2/M\n"),
            std::string::npos)
      << text;
}

// The formulas of kernels without blocks contain only lengths.
TEST_F(CountSymbolic, OfKernelsWithoutBlocks) {
  const std::string text = data("count forward/naive --symbolic");
  EXPECT_EQ(text.find("dv"), std::string::npos) << text;
  EXPECT_NE(text.find("n = 8192 queries, m = 10000 keys, d = 64, M"), std::string::npos) << text;
  EXPECT_EQ(text.find("where"), std::string::npos) << text;
}

TEST_F(CountSymbolic, OfADevice) {
  EXPECT_EQ(
      json("count forward/rows --symbolic --n 4K --d 64 --device a100 --word 2")["word_bytes"], 2);
}

// The formulas are for the given sizes: a block that covers a whole length is that length.
TEST_F(CountSymbolic, IsOfTheSizesThatAreGiven) {
  const Json json = this->json("count backward/rows --symbolic --n 300 --d 8 --M 64K");
  EXPECT_EQ(json["n"], 300);
  EXPECT_EQ(json["m"], 300);
  EXPECT_EQ(json["M"], 65536);
  const auto& where = json["where"];
  EXPECT_NE(std::ranges::find(where, "Br = n"), where.end()) << where;
  EXPECT_EQ(json["phases"][0]["reads"]["text"], "n d + d^2");
}

// Runs each expression in Python. SymPy's names are ceiling and Max.
TEST_F(CountSymbolic, IsAProgram) {
  for (const char* kernel :
       {"backward/rows", "backward/tiles", "forward/small", "layer/rows-keys"}) {
    SCOPED_TRACE(kernel);
    const std::string sizes = fmt::format("{} --n 3001 --m 4007 --d 48 --M 20K", kernel);
    const std::string program = data(fmt::format("count {} --symbolic --format sympy", sizes));
    const Json numbers = json(fmt::format("count {} --objective words", sizes));
    std::string values = "n, m, d, M = 3001, 4007, 48, 20480\n";
    for (const auto& [name, size] : numbers["blocks"].items()) {
      std::string variable = name;
      std::ranges::replace(variable, '.', '_');
      values += fmt::format("{} = {}\n", variable, size.get<Index>());
    }
    // Runs without SymPy: names are integers, and n/B is a fraction, exact enough for ceiling().
    const std::size_t begin = program.find("phases = {");
    ASSERT_NE(begin, std::string::npos);
    const std::string code =
        "from fractions import Fraction\nfrom math import ceil, sqrt\nclass Size(int):\n"
        "  def __truediv__(self, other): return Fraction(int(self), int(other))\n"
        "ceiling, Max = ceil, max\n" +
        values + "n, m, d = Size(n), Size(m), Size(d)\n" + program.substr(begin) +
        "print(total['reads'], total['writes'], total['peak'])\n"
        "print(sum(p['reads'] for p in phases.values()))\n";
    const Process python{.words = {"/usr/bin/env", "python3", "-c", code},
                         .environment = {"PATH=/usr/bin:/bin"}};
    const Outcome outcome = python.run();
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json& all = numbers["formula"];
    EXPECT_EQ(outcome.out,
              fmt::format("{} {} {}\n{}\n", all["reads"].get<Index>(), all["writes"].get<Index>(),
                          all["peak"].get<Index>(), all["reads"].get<Index>()));
  }
}

TEST_F(CountSymbolic, ClosesEveryBrace) {
  for (const char* kernel : {"backward/tiles", "layer/tiles", "linear/products"}) {
    const std::string text =
        data(fmt::format("count {} --symbolic --regime large --format latex", kernel));
    EXPECT_EQ(std::ranges::count(text, '{'), std::ranges::count(text, '}'));
    EXPECT_EQ(std::ranges::count(text, '$') % 2, 0);
    const auto times = [&](std::string_view what) {
      int found = 0;
      for (std::size_t at = text.find(what); at != std::string::npos;
           at = text.find(what, at + 1)) {
        ++found;
      }
      return found;
    };
    EXPECT_EQ(times("\\left"), times("\\right"));
    EXPECT_EQ(times("\\begin{align*}"), times("\\end{align*}"));
  }
}

// The paper's small-cache algorithm has two laws. With M < d^2, blocks are smaller than d, and five
// of its six products have n m scores. It moves 6 n m d / B + 9 n m words, where B^2 is M / 4. In a
// large cache, d is one block and S = A1 X is read once, so fewer words remain.
TEST_F(CountSymbolic, ARegimeIsChosen) {
  const Json small = json("count backward/small --symbolic --regime small");
  EXPECT_EQ(small["regime"], "small");
  EXPECT_EQ(small["sizes"], "example");
  EXPECT_EQ(small["leading"]["text"], "6 n m d/B + 9 n m");
  EXPECT_EQ(small["leading_in_M"]["text"], "12 n m d/sqrt(M) + 9 n m");
  EXPECT_EQ(small["leading_in_M_with"]["text"], "B about sqrt(M/4)");
  EXPECT_NE(std::ranges::find(small["where"], "M < d^2"), small["where"].end()) << small["where"];
  EXPECT_NE(std::ranges::find(small["where"], "B < d"), small["where"].end()) << small["where"];
  EXPECT_LT(small["M"].get<Index>(), small["d"].get<Index>() * small["d"].get<Index>());

  const Json large = json("count backward/small --symbolic --regime large");
  EXPECT_EQ(large["regime"], "large");
  EXPECT_EQ(large["leading_in_M"]["text"], "10 n m d/sqrt(M) + 10 n m");
  EXPECT_NE(std::ranges::find(large["where"], "d <= B"), large["where"].end()) << large["where"];

  const auto refused = [&](const std::string& line, const std::string& message) {
    SCOPED_TRACE(line);
    expect_refused(process("count " + line), 2, message);
  };
  refused("backward/small --symbolic",
          "--symbolic: formulas of backward/small are others for small caches .M < d\\^2. than for "
          "large ones: give --regime small, --regime large, or --n, --d and --M");
  refused("backward/small --symbolic --n 64 --d 8", "--M is missing");
  refused("backward/small --symbolic --M 4K", "missing");
  refused("backward/small --symbolic --regime small --M 4K", "--regime small: sizes have a regime");
  refused("backward/small --symbolic --regime medium",
          "--regime 'medium': expected small or large");
  refused("backward/small --regime small --n 64 --d 8 --M 4K",
          "--regime 'small': only with --symbolic");
  refused("linear/rows --symbolic --regime small",
          "--regime small, with example sizes: linear/rows");
}

// A formula needs its assumptions, so every format has them.
TEST_F(CountSymbolic, AssumptionsAreInEveryFormat) {
  const std::string line = "count backward/rows-xg --symbolic --regime large --format ";
  const Json json = this->json("count backward/rows-xg --symbolic --regime large");
  ASSERT_GE(json["where"].size(), 4U);
  const std::string table = data(line + "table"), csv = data(line + "csv");
  const std::string sympy = data(line + "sympy"), latex = data(line + "latex");
  for (const Json& assumption : json["where"]) {
    const auto text = assumption.get<std::string>();
    EXPECT_NE(table.find(text), std::string::npos) << text;
    EXPECT_NE(csv.find(text), std::string::npos) << text;
  }
  for (const char* text : {"Br < n", "Bc <= 3", "d**2 <= M", "M <= n*d"}) {
    EXPECT_NE(sympy.find(text), std::string::npos) << text << sympy;
  }
  for (const char* text : {"B_{r} < n", "B_{c} \\le 3", "{d}^{2} \\le M", "M \\le n\\,d"}) {
    EXPECT_NE(latex.find(text), std::string::npos) << text << latex;
  }
  for (const std::string& text : {table, sympy, latex}) {
    EXPECT_NE(text.find("plans with exactly these blocks"), std::string::npos) << text;
    EXPECT_NE(text.find("example sizes: n = 8192 queries, m = 10000 keys, d = 64, M = 65536"),
              std::string::npos)
        << text;
  }
}

// Queries and keys are two lengths, even if a plan has equally many: q = dO h^T has n m words.
TEST_F(CountSymbolic, QueriesAndKeysAreTwoLengths) {
  const Json json = this->json("count backward/rows-q --symbolic --n 8192 --d 64 --M 64K");
  EXPECT_EQ(json["sizes"], "given");
  EXPECT_EQ(json["leading"]["text"], "n m d/q.rows + n m d/W.Br + 2 n m");
  for (const Json& phase : json["phases"]) {
    for (const char* metric : {"reads", "writes"}) {
      EXPECT_EQ(phase[metric]["text"].get<std::string>().find("m^2"), std::string::npos) << phase;
    }
  }
}

// A phase that only reads writes 0 words.
TEST_F(CountSymbolic, NoWordsAreZeroWords) {
  const Json json = this->json("count attention/rows --symbolic --regime large");
  EXPECT_EQ(json["phases"][0]["path"], "Q");
  EXPECT_EQ(json["phases"][0]["writes"]["text"], "0");
  EXPECT_EQ(json["phases"][2]["path"], "O");
  EXPECT_EQ(json["phases"][2]["reads"]["text"], "0");
  for (const Json& phase : json["phases"]) {
    EXPECT_FALSE(phase["reads"].is_null() || phase["writes"].is_null()) << phase;
  }
}

TEST_F(CountSymbolic, RefusesWhatHasNoFormula) {
  const auto refused = [&](const std::string& line, const std::string& message) {
    SCOPED_TRACE(line);
    expect_refused(process("count " + line), 2, message);
  };
  refused("backward/rows --symbolic --mask causal --n 64 --d 8 --M 4K",
          "--symbolic: words under a mask depend on which pairs live: leave --mask out");
  refused("backward/sparse-rows --symbolic --n 64 --m 64 --d 16 --M 4K --make A1=random:4",
          "--symbolic: words of backward/sparse-rows depend on where entries are");
  refused("attention/rows --symbolic --regime large --blocks groups=4",
          "--symbolic: formulas follow from nests, and no nest describes this plan of "
          "attention/rows");
  refused("backward/rows --symbolic --regime large --heads 4",
          "--symbolic: formulas are of one head");
  refused("forward/rows --symbolic --regime large --ranks 4",
          "--symbolic: formulas are of one head");
  refused("backward/rows --symbolic --regime large --threads 2",
          "--symbolic: formulas are of one head");
  refused("backward/rows --symbolic --n 4K --d 64 --M 2K,64K",
          "--symbolic: formulas are of one head");
  refused("backward/rows --symbolic --regime large --format yaml",
          "--format 'yaml': expected table, json, csv, latex or sympy");
  refused("--as all --symbolic --n 64 --d 8 --M 4K",
          "--symbolic: --as all counts numbers: give one of its nests as the kernel");
  refused("backward/rows --n 64 --d 8 --M 4K --format latex", "--format 'latex': expected table");
  refused("backward/rows --n 64 --d 8", "--M is missing");
}

}  // namespace
}  // namespace redblue
