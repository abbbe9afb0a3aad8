// `count --symbolic`: what it prints is, as a program, the numbers that `count` prints; in LaTeX
// every brace is closed; and what has no such formula is refused.

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

class CountSymbolic : public Cli {};

TEST_F(CountSymbolic, PrintsEachPhase) {
  const std::string text = data("count backward/rows --symbolic");
  EXPECT_NE(text.find("\ncore\n  reads   2 m d ceil(n/Br) + n\n"), std::string::npos) << text;
  EXPECT_NE(text.find("for n and m large, words: 2 n m d/Br\n"
                      "  with Br about M/(3 d): 6 n m d^2/M\n"),
            std::string::npos)
      << text;
}

// Kernels without blocks have lengths alone.
TEST_F(CountSymbolic, OfKernelsWithoutBlocks) {
  const std::string text = data("count forward/naive --symbolic");
  EXPECT_EQ(text.find("dv"), std::string::npos) << text;
  EXPECT_NE(text.find("n = 8192 queries, m = 10000 keys, d = 64, M"), std::string::npos) << text;
}

TEST_F(CountSymbolic, OfADevice) {
  EXPECT_EQ(json("count forward/rows --symbolic --device a100 --word 2")["word_bytes"], 2);
}

// The case is that of the sizes: a block that takes all of a length is that length.
TEST_F(CountSymbolic, IsOfTheSizesThatAreGiven) {
  const Json json = this->json("count backward/rows --symbolic --n 300 --d 8 --M 64K");
  EXPECT_EQ(json["n"], 300);
  EXPECT_EQ(json["m"], 300);
  EXPECT_EQ(json["M"], 65536);
  const auto& where = json["where"];
  EXPECT_NE(std::ranges::find(where, "Br = n"), where.end()) << where;
  EXPECT_EQ(json["phases"][0]["reads"]["text"], "d^2 + n d");
}

// Python has the value of each expression: ceiling and Max are what SymPy calls them.
TEST_F(CountSymbolic, IsAProgram) {
  for (const char* kernel :
       {"backward/rows", "backward/tiles", "forward/small", "layer/rows-keys"}) {
    SCOPED_TRACE(kernel);
    const std::string sizes = fmt::format("{} --n 3001 --m 4007 --d 48 --M 20K", kernel);
    const std::string program = data(fmt::format("count {} --symbolic --format sympy", sizes));
    const Json numbers = json(fmt::format("count {}", sizes));
    std::string values = "n, m, d, M = 3001, 4007, 48, 20480\n";
    for (const auto& [name, size] : numbers["blocks"].items()) {
      std::string variable = name;
      std::ranges::replace(variable, '.', '_');
      values += fmt::format("{} = {}\n", variable, size.get<Index>());
    }
    // Without SymPy: names are integers, and n/B is as exact as ceiling() needs.
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
    const std::string text = data(fmt::format("count {} --symbolic --format latex", kernel));
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

TEST_F(CountSymbolic, RefusesWhatHasNoFormula) {
  const auto refused = [&](const std::string& line, const std::string& message) {
    SCOPED_TRACE(line);
    expect_refused(process("count " + line), 2, message);
  };
  refused("backward/rows --symbolic --mask causal --n 64",
          "--symbolic: words under a mask depend on which pairs live: leave --mask out");
  refused("backward/sparse-rows --symbolic --n 64 --m 64 --d 16 --make A1=random:4",
          "--symbolic: words of backward/sparse-rows depend on where entries are");
  refused("backward/rows --symbolic --heads 4", "--symbolic: formulas are of one head");
  refused("forward/rows --symbolic --ranks 4", "--symbolic: formulas are of one head");
  refused("backward/rows --symbolic --threads 2", "--symbolic: formulas are of one head");
  refused("backward/rows --symbolic --M 2K,64K", "--symbolic: formulas are of one head");
  refused("backward/rows --symbolic --format yaml",
          "--format 'yaml': expected table, json, csv, latex or sympy");
  refused("--as all --symbolic --n 64 --d 8 --M 4K", "--symbolic: --as all has tiles of a size");
  refused("backward/rows --n 64 --d 8 --M 4K --format latex", "--format 'latex': expected table");
  refused("backward/rows --n 64 --d 8", "--M is missing");
}

}  // namespace
}  // namespace redblue
