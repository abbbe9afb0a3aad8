// Tests `redblue pebble` from the outside. Graphs are written in each format and read back
// unchanged, games are checked, and faults are named.

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/cli.hpp"

namespace redblue {
namespace {

class Pebble : public Cli {};

TEST_F(Pebble, GraphsInAllFormats) {
  const std::string backward =
      "pebble dag backward --n 3 --m 2 --d 2 --mask causal --given nothing";
  const std::string text = data(backward);
  EXPECT_NE(text.find("f(2,1): e(2,1) l(2)\n"), std::string::npos) << text;
  // The mask has three live pairs. A1, dO and S have two rows each. There are 3 vertices of s and
  // of q, 1 and 1 of l, 1 and 3 of v, 6 and 2 of T, and 12 of g.
  const std::string counts = ": 101 vertices, 24 of them inputs; 153 edges\n";
  for (const std::string file : {"a.hdag", "a.dot", "a.txt"}) {
    EXPECT_EQ(data(backward + " -o " + file), file + counts);
    EXPECT_EQ(data("pebble dag " + file + " -o b.mtx"), "b.mtx" + counts);
    EXPECT_EQ(data("pebble dag b.mtx -o b.hdag"), "b.hdag" + counts);
  }
  EXPECT_EQ(data("pebble dag a.txt"), text);
  EXPECT_EQ(data("pebble dag a.dot"), text);
  EXPECT_EQ(data("pebble dag product --n 1 --d 3 --sums any"),
            "A(0,0)\nA(0,1)\nA(0,2)\nB(0,0)\nB(1,0)\nB(2,0)\nC(0,0)*0: A(0,0) B(0,0)\n"
            "C(0,0)*1: A(0,1) B(1,0)\nC(0,0)*2: A(0,2) B(2,0)\n"
            "C(0,0): C(0,0)*0 C(0,0)*1 C(0,0)*2\n");
  const std::string sparse =
      data("pebble dag forward --n 2 --d 2 --make A1=random:2 --make X=identity");
  EXPECT_NE(sparse.find("S(1,1): A1(1,1) X(1,1)\n"), std::string::npos) << sparse;
  EXPECT_EQ(sparse.find("X(0,1)"), std::string::npos) << sparse;
}

TEST_F(Pebble, GamesAreJudged) {
  directory_.write("graph", "a\nb\nc: a b\n");
  directory_.write("moves", "read a\nread b\ncompute c slides a\nwrite c\n");
  EXPECT_EQ(data("pebble check graph moves --M 2 --game sliding"),
            "legal: 3 words (2 read, 1 written) in 4 moves, at most 2 of M = 2 red, 1 vertices "
            "computed\n");
  EXPECT_EQ(json("pebble check graph moves --M 2 --game fma")["words"], 3);
  expect_refused(process("pebble check graph moves --M 3"), 1,
                 "moves: line 3: c slides: no pebble does in this game");
}

// The moves of a run are a game on its graph, with the counted words, in every kind of game. A
// strict game needs one pebble more than the peak. Products as vertices need another one.
TEST_F(Pebble, RunsAreGames) {
  const std::string kernel = "pebble run backward/rows-xg --n 6 --m 5 --d 3 --M 40 ";
  const Json run = json(kernel);
  EXPECT_EQ(run["words"], run["counted"]);
  EXPECT_EQ(run["kind"]["two_step"], false);
  const std::int64_t peak = run["peak"].get<std::int64_t>();
  for (const auto& [more, game, M] :
       std::vector<std::tuple<std::string, std::string, std::int64_t>>{
           {"", "sliding", peak},
           {"", "strict", peak + 1},
           {"--products", "sliding", peak + 1},
           {"--products", "strict", peak + 2}}) {
    const std::string of = " --game " + game;
    data(kernel + more + of + " --moves moves --dag run.hdag");
    const Json checked = json("pebble check run.hdag moves --M " + std::to_string(M) + of);
    EXPECT_EQ(checked["words"], run["words"]) << more << of;
  }
  EXPECT_EQ(data("pebble run matmul/stationary-c --n 1 --d 1 --M 3 --moves -"),
            "read B(0,0)\nread A(0,0)\ncompute C(0,0)*0\ndelete A(0,0)\ndelete B(0,0)\n"
            "write C(0,0)*0\ndelete C(0,0)*0\n");
}

// The pieces of a run are not a lower bound. On the graph of this run, a game with less memory
// moves 8 words, but the run has pieces of 24. So no text says "at least".
TEST_F(Pebble, RunsClaimNoBound) {
  const std::string run = data("pebble run backward/small --n 1 --d 1 --M 6 --dag g.txt");
  const Json solved = json("pebble solve g.txt --M 4 --game sliding");
  EXPECT_EQ(solved["solutions"][0]["upper"], 8);
  EXPECT_NE(run.find("pieces by cuts after 4 words\n"), std::string::npos) << run;
  EXPECT_EQ(run.find("at least"), std::string::npos) << run;
}

// Attention writes O and L, as its bounds assume. `--wanted O` leaves out the three words of L.
TEST_F(Pebble, ProblemsHaveTheInputsAndResultsOfTheirBounds) {
  const std::string attention = "pebble solve attention --n 3 --d 1 --M 10 ";
  const Json bounds = json("bounds --problem attention --n 3 --d 1 --M 10");
  EXPECT_EQ(json(attention + "--game fma")["solutions"][0]["upper"], 15);
  EXPECT_EQ(bounds["bounds"][0]["words"], 15);
  EXPECT_EQ(json(attention + "--game fma --wanted O")["solutions"][0]["upper"], 12);
  EXPECT_NE(data("pebble dag gradients --n 1 --d 1").find("\nO(0,0)\n"), std::string::npos);
  EXPECT_EQ(data("pebble dag gradients --n 1 --d 1 --given nothing").find("\nO(0,0)\n"),
            std::string::npos);
  EXPECT_NE(data("pebble dag backward --n 1 --d 1").find("f(0,0): s(0,0) L(0,0)\n"),
            std::string::npos);
}

TEST_F(Pebble, BoundOptimumAndKernelSideBySide) {
  for (const std::string task :
       {"product --n 2 --d 2", "attention --n 2 --m 3 --d 1", "attention --n 2 --d 1 --wanted O",
        "forward --n 2 --d 1", "gradients --n 1 --m 2 --d 1", "backward --n 1 --d 1",
        "backward --n 1 --d 1 --given nothing"}) {
    SCOPED_TRACE(task);
    const Json all = json("pebble solve " + task + " --compare")["comparison"];
    ASSERT_GT(all.size(), 2U);
    for (const Json& row : all) {
      EXPECT_LE(row["bound"]["words"], row["optimum"]["lower"]);
      EXPECT_LE(row["optimum"]["lower"], row["optimum"]["upper"]);
      if (!row["kernel"]["words"].is_null()) {
        EXPECT_LE(row["optimum"]["lower"], row["kernel"]["words"]);
      }
    }
    // With room for everything, the optimum moves each input and each result once.
    EXPECT_EQ(all.back()["bound"]["words"], all.back()["optimum"]["upper"]);
    // No kernel computes O without L.
    EXPECT_EQ(all.back()["kernel"]["words"].is_null(), task.find("--wanted") != task.npos);
  }
  const std::string large = data("pebble solve backward --n 3 --d 2 --M 20..20 --compare");
  EXPECT_NE(large.find("at least"), std::string::npos) << large;
  EXPECT_NE(large.find("at most 64 can be solved"), std::string::npos) << large;
}

// A solution is a valid game with the reported number of words.
TEST_F(Pebble, GamesAreSolved) {
  EXPECT_EQ(data("pebble solve forward-core --n 2 --d 1 --M 3..5 --game fma"),
            "M  words  states\n3     11      12\n4     10      13\n5      8       0\n");
  data("pebble dag product --n 2 --d 2 -o product.txt");
  for (const std::string game : {"strict", "sliding", "once"}) {
    const std::string of = " --M 4 --game " + game;
    const Json json = this->json("pebble solve product --n 2 --d 2 --moves moves" + of);
    const Json& solution = json["solutions"][0];
    EXPECT_EQ(json["game"], game);
    EXPECT_EQ(solution["exact"], true);
    EXPECT_EQ(this->json("pebble check product.txt moves" + of)["words"], solution["upper"]);
    EXPECT_EQ(data("pebble solve product.txt --moves -" + of),
              content_of(directory_.path() / "moves"));
  }
  const Json own = json(
      "pebble solve backward-core --n 2 --d 1 --sharing kv --M 4 --game fma --moves moves --dag "
      "own.txt");
  EXPECT_EQ(own["solutions"][0]["upper"], 11);
  EXPECT_EQ(json("pebble check own.txt moves --M 4 --game fma")["words"], 11);
  // With little memory for the search, the result is a range of words.
  const Json open = json("pebble solve g-core --n 2 --d 1 --M 4..6 --game fma --memory 64KiB");
  for (const Json& solution : open["solutions"]) {
    const std::int64_t words = solution["M"] == 4 ? 33 : solution["M"] == 5 ? 27 : 22;
    EXPECT_LE(solution["lower"].get<std::int64_t>(), words);
    EXPECT_GE(solution["upper"].get<std::int64_t>(), words);
  }
  EXPECT_EQ(open["solutions"][0]["exact"], false);
}

TEST_F(Pebble, CommentsEndLinesOfGraphsAndMoves) {
  directory_.write("graph.txt", "# a sum\na # an input\nb\nc: a b # of both\n");
  directory_.write("moves", "# in turn\nread a # first\nread b\ncompute c\nwrite c # last\n");
  EXPECT_EQ(data("pebble dag graph.txt"), "a\nb\nc: a b\n");
  EXPECT_EQ(json("pebble check graph.txt moves --M 3")["words"], 3);
}

TEST_F(Pebble, WhatIsBadIsNamed) {
  directory_.write("empty", "a\nb:\n");
  directory_.write("graph.bin", "a\n");
  for (const std::string file : {"binary", "binary.hdag", "binary.dot", "binary.mtx"}) {
    directory_.write(file, std::string("\x7f"
                                       "ELF\0\x02\n",
                                       7));
  }
  directory_.write("graph", "a\nb\nc: a b\n");
  directory_.write("moves", "read a\nread d\n");
  directory_.write("cycle", "a: b\nb: a\n");
  const std::vector<std::tuple<std::string, int, std::string>> cases = {
      {"dag backwards --n 2 --d 2", 2, "'backwards': expected product, forward"},
      {"dag ./none", 1, "./none"},
      {"dag graph --n 3", 2, "--n: the graph is in graph, and no problem's: leave it out"},
      {"dag graph --seed 3", 2, "--seed: the graph is in graph"},
      {"dag graph --sums any", 2, "--sums: the graph is in graph"},
      {"dag graph --mask causal", 2, "--mask: the graph is in graph"},
      {"solve graph --M 3 --make X=identity", 2, "--make: the graph is in graph"},
      {"dag graph.bin", 2, "graph.bin: unknown graph format: the name must end in .hdag, .dot"},
      {"dag graph -o x.svg", 2, "x.svg: unknown graph format: the name must end in"},
      {"check graph.bin moves --M 3", 2, "graph.bin: unknown graph format"},
      {"dag empty", 1, "line 2: the operands of b are missing; an input is a line of its name"},
      {"dag binary", 1, "binary: not a text file, as a graph is"},
      {"dag binary.hdag", 1, "binary.hdag: not a text file"},
      {"dag binary.dot", 1, "binary.dot: not a text file"},
      {"check binary.mtx moves --M 3", 1, "binary.mtx: not a text file"},
      {"dag forward --n 2 --d 2 --make A1=random:1 --make Z=random:1", 2,
       "Z=random:1: forward is given A1, X"},
      {"dag cycle -o x.dot", 1, "cycle: a cycle: "},
      {"dag forward --n 2", 2, "--d is missing"},
      {"dag product --n 2 --d 2 --mask causal", 2, "a product has no mask"},
      {"dag gradients --n 2 --d 2 --make A1=random:1", 2, "forward and backward take sparse"},
      {"dag forward --n 2 --d 2 --sums chains", 2, "--sums 'chains': expected chain, tree or any"},
      {"dag forward --n 2 --d 2 --to hyper", 2, "--to 'hyper': expected text, hdag, dot or mtx"},
      {"dag backward --n 4096 --d 64 -o x.dot", 2, "--n: more than 4000000 vertices"},
      {"dag product --n 4294967296 --m 1 --d 4294967296", 2, "--n: more than 4000000 vertices"},
      {"solve forward-core --n 2000000 --d 1 --sharing kv --M 3", 2, "--n: a matrix of more than"},
      {"check graph moves --M 3", 1, "moves: line 2: no vertex is called 'd'"},
      {"check graph moves", 2, "--M is missing"},
      {"check graph moves --M 2", 2, "--M 2: some vertex takes 3 red pebbles in the game strict"},
      {"check graph moves --M 3 --game loose", 2, "--game 'loose': expected strict, sliding, once"},
      {"dag g-core --n 2 --d 1 --mask causal", 2, "g-core: a core is dense"},
      {"dag backward --n 2 --d 1 --sharing kv", 2, "--sharing: backward is no core: leave it out"},
      {"solve forward-core --n 2 --d 1 --M 3 --game fma --sums tree", 2, "--sums: in this game"},
      {"solve cycle --M 3", 1, "cycle: a cycle: "},
      {"solve graph", 2, "--M is missing"},
      {"solve g-core --n 2 --d 1 --compare", 2, "--compare: bounds and kernels are of product"},
      {"solve product --n 2 --d 2 --compare --game fma", 2,
       "--game: --compare plays fma on several"},
      {"solve forward --n 2 --d 2 --compare --sums any", 2, "--sums: --compare says it of every"},
      {"solve forward --n 2 --d 2 --compare --make A1=random:1", 2,
       "--make: --compare is for dense"},
      {"solve product --n 2 --d 2 --compare --format csv", 2,
       "--format csv: expected table or json"},
      {"dag product --n 2 --d 2 --given OL", 2, "--given 'OL': only backward and gradients start"},
      {"dag gradients --n 2 --d 2 --given O", 2, "--given 'O': expected nothing or OL"},
      {"dag forward --n 2 --d 2 --wanted g", 2, "--wanted g: forward returns O, L"},
      {"dag g-core --n 2 --d 1 --wanted g", 2,
       "--wanted: g-core has inputs and results of its own"},
      {"dag graph --wanted g", 2, "--wanted: the graph is in graph"},
      {"solve graph --M 2..4", 2, "--M 2: some vertex takes 3 red pebbles in the game strict"},
      {"solve graph --M 4..3", 2, "--M '4..3': expected 3..8, from less to more"},
      {"solve graph --M 3..200", 2, "at most 64 numbers"},
      {"solve graph --M 3..", 2, "--M: \"\" is not a positive"},
      {"solve product --n 2 --d 3 --M 2 --game fma", 2, "--M 2: some vertex takes 3 red"},
      {"solve graph --M 3 --game loose", 2, "--game 'loose': expected strict, sliding, once"},
      {"solve graph --M 3 --seconds 0", 2, "--seconds"},
      {"solve graph --M 3 --memory 7", 2, "--memory"},
      {"solve graph --M 3..4 --moves x", 2, "--moves: moves are of one M: say --M 5"},
      {"solve graph --M 3 --dag x", 2, "--dag: the graph is that of --moves, which is missing"},
      {"solve product --n 2 --d 2 --M 3 --game fma --moves x", 2, "--dag writes their graph"},
      {"solve product --n 3 --d 3 --m 4 --M 5", 2, "product: 81 words, and at most 64 can be"},
      {"solve product --n 4 --d 4 --m 5 --M 5 --game fma", 2, "product: 80 terms, and at most 64"},
      {"run backward/row --n 4 --d 2 --M 40", 2, "backward/rows"},
      {"run backward/rows --n 4 --d 2", 2, "--M is missing"},
      {"run backward/rows --n 4 --d 2 --M 40 --T 0", 2, "--T"},
      {"run backward/rows --n 4 --d 2 --M 40 --game loose", 2, "--game 'loose': expected strict"},
      {"run backward/rows --n 4 --d 2 --M 40 --threads 2", 2, "--threads: a game is of one thread"},
      {"run backward/rows --n 4 --d 2 --M 40 --dag x.svg", 2, "x.svg: unknown graph format"},
      {"run backward/rows --n 4 --d 2 --M 40 --dag -", 2, "--dag -: expected a file"},
      {"run backward/rows-xg --n 9 --d 2 --M 40 --game once", 2, "once: move"},
      {"run backward/rows --n 300 --d 64 --M 4000", 1, "more than 1048576 vertices"},
      {"check graph moves --M 3 --format csv", 2, "--format csv: expected table or json"}};
  for (const auto& [line, code, message] : cases) {
    SCOPED_TRACE(line);
    expect_refused(process("pebble " + line), code, message);
  }
}

}  // namespace
}  // namespace redblue
