// Tests the exact solver against published optima, against a search of all states by the rules
// alone, and with the referee. A search that is cut short must give a correct range.

#include "runtime/pebble/solve.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/pebble/core_dags.hpp"
#include "runtime/pebble/dag_files.hpp"
#include "runtime/pebble/terms.hpp"

namespace redblue {
namespace {

Dag product(Index n, Index k, Index m, Sums sums) {
  return dag_of({Pass::product, Problem(n, m, k)}, sums);
}
Dag core(Core which, Index n, Index d, bool shared = false) {
  return core_dag(which, {n, n, d, d}, shared, Sums::any);
}
Dag chained(Core which, Index n, Index d, bool shared = false) {
  return core_dag(which, {n, n, d, d}, shared, Sums::chain);
}

// The fewest words with M, M + 1, ...
struct Optima {
  const char* name;
  Dag dag;
  Index M;
  std::vector<Index> words;
};

TEST(Solve, FindsTheKnownOptima) {
  const Optima all[] = {
      {"2x2x2", product(2, 2, 2, Sums::any), 3, {17, 14, 13, 12}},
      {"2x3x2", product(2, 3, 2, Sums::any), 3, {25, 20, 19, 17, 16}},
      {"3x2x3", product(3, 2, 3, Sums::any), 4, {29, 27, 25, 23, 22, 21}},
      {"forward n2 d1", core(Core::forward, 2, 1), 3, {11, 10, 8}},
      {"forward n2 d2", core(Core::forward, 2, 2), 3, {32, 24, 20, 18, 16}},
      {"forward n3 d1", core(Core::forward, 3, 1), 3, {25, 20, 17, 15, 14, 13, 12}},
      {"forward n4 d1", core(Core::forward, 4, 1), 9, {19}},
      {"forward n2 d1 kv", core(Core::forward, 2, 1, true), 3, {7, 6}},
      {"forward n2 d2 kv", core(Core::forward, 2, 2, true), 3, {28, 20, 16, 14, 12}},
      {"forward n3 d1 kv", core(Core::forward, 3, 1, true), 3, {16, 11, 10, 9}},
      {"forward n4 d1 kv", core(Core::forward, 4, 1, true), 4, {18, 15, 13, 12}},
      {"forward n3 d2 kv", core(Core::forward, 3, 2, true), 9, {20, 18}},
      {"backward n2 d1", core(Core::backward, 2, 1), 3, {20, 15, 12, 11, 10}},
      {"backward n3 d1", core(Core::backward, 3, 1), 9, {17, 16, 15}},
      {"backward n2 d2", core(Core::backward, 2, 2), 8, {23, 21, 20}},
      {"backward n2 d1 kv", core(Core::backward, 2, 1, true), 3, {16, 11, 9, 8}},
      {"backward n3 d1 kv", core(Core::backward, 3, 1, true), 6, {14, 13, 12}},
      {"backward n2 d2 kv", core(Core::backward, 2, 2, true), 8, {18, 16}},
      {"g n2 d1", core(Core::g, 2, 1), 6, {22, 18, 16, 15}},
      {"g n2 d2", core(Core::g, 2, 2), 11, {30, 28}},
      {"g n2 d1 kv", core(Core::g, 2, 1, true), 4, {29, 23, 18, 15, 14, 13}},
      {"gradients n2 d1", core(Core::gradients, 2, 1), 7, {18, 16, 15, 14}}};
  for (const Optima& known : all) {
    const Rules rules(known.dag, Game::fma);
    std::vector<Index> words;
    // Solves each M alone, because the result for a larger M would help.
    for (Index M = known.M; M < known.M + std::ssize(known.words); ++M) {
      const Solution solution = solve(rules, M, M, {}).front();
      EXPECT_TRUE(solution.exact()) << known.name << " M = " << M;
      words.push_back(solution.upper);
    }
    EXPECT_EQ(words, known.words) << known.name;
  }
}

// ---- every state, by the rules alone -----------------------------------------------------------

// Finds the fewest words over all games. A state is the sets of red, blue and computed vertices.
class Everywhere {
 public:
  // Requires: at most 8 vertices.
  Everywhere(const Dag& dag, Game game, Index M)
      : dag_(dag),
        game_(game),
        M_(M),
        words_(std::size_t{1} << (8 * (game == Game::once ? 3U : 2U)), kFar) {
    const std::vector<bool> results = dag.results();
    for (Index v = 0; v < dag.size(); ++v) {
      inputs_ |= dag.input(v) ? bit(v) : 0;
      results_ |= results[slot(v)] ? bit(v) : 0;
    }
  }
  Index words() {
    reach({0, inputs_, 0}, 0);
    while (true) {
      const auto [at, words] = open_.front();
      open_.pop_front();
      if (words > words_[place(at)]) {
        continue;
      }
      if ((results_ & ~at.blue) == 0) {
        return words;
      }
      for (Index v = 0; v < dag_.size(); ++v) {
        moves(at, words, v);
      }
    }
  }

 private:
  struct At {
    Set red, blue, computed;
  };
  static constexpr std::uint8_t kFar = 255;
  static std::size_t place(const At& at) { return at.red | at.blue << 8U | at.computed << 16U; }

  void moves(const At& at, Index words, Index v) {
    if ((at.red & bit(v)) != 0) {
      reach({at.red & ~bit(v), at.blue, at.computed}, words);
      reach({at.red, at.blue | bit(v), at.computed}, words + 1);
    }
    if ((at.blue & bit(v)) != 0) {
      reach({at.red | bit(v), at.blue, at.computed}, words + 1);
    }
    Set operands = 0;
    for (const Index operand : dag_[v].operands) {
      operands |= bit(operand);
    }
    const bool once = game_ == Game::once;
    if (operands == 0 || (operands & ~at.red) != 0 || (once && (at.computed & bit(v)) != 0)) {
      return;
    }
    const Set now = once ? at.computed | bit(v) : 0;
    reach({at.red | bit(v), at.blue, now}, words);
    if (game_ == Game::sliding) {
      for (const Index operand : dag_[v].operands) {
        reach({(at.red & ~bit(operand)) | bit(v), at.blue, now}, words);
      }
    }
  }
  void reach(const At& at, Index words) {
    if (count(at.red) > M_ || words_[place(at)] <= words) {
      return;
    }
    words_[place(at)] = static_cast<std::uint8_t>(words);
    if (!open_.empty() && words > open_.front().second) {
      open_.emplace_back(at, words);
    } else {
      open_.emplace_front(at, words);
    }
  }

  const Dag& dag_;
  Game game_;
  Index M_;
  Set inputs_ = 0, results_ = 0;
  std::vector<std::uint8_t> words_;        // for each state
  std::deque<std::pair<At, Index>> open_;  // states with some number of words, then with one more
};

// Returns a graph with up to three operands for each vertex and no isolated vertex.
Dag random_dag(std::mt19937_64& random, Index size) {
  const auto below = [&](Index count) {
    return std::uniform_int_distribution<Index>(0, count - 1)(random);
  };
  while (true) {
    Dag dag;
    for (Index v = 0; v < size; ++v) {
      std::set<Index> operands;
      for (Index k = v < 2 ? 0 : below(4); k > 0; --k) {
        operands.insert(below(v));
      }
      dag.add("v" + std::to_string(v), {operands.begin(), operands.end()});
    }
    const std::vector<Index> uses = dag.uses();
    bool alone = false;
    for (Index v = 0; v < size; ++v) {
      alone = alone || (dag.input(v) && uses[static_cast<std::size_t>(v)] == 0);
    }
    if (!alone) {
      return dag;
    }
  }
}

TEST(Solve, AgreesWithASearchOfAllStates) {
  std::mt19937_64 random(11);
  Index helped = 0;  // graphs where computing again saves words
  for (int k = 0; k < 200; ++k) {
    const Dag dag = random_dag(random, 5 + k % 4);
    std::map<Game, Index> words;
    for (const Game game : {Game::strict, Game::sliding, Game::once}) {
      const Rules rules(dag, game);
      const Index M = Rules(dag, Game::strict).least_M() + k % 2;
      const Solution solution = solve(rules, M, M, {}).front();
      ASSERT_TRUE(solution.exact());
      ASSERT_EQ(solution.upper, Everywhere(dag, game, M).words())
          << to_string(game) << " M = " << M << " of graph " << k << "\n"
          << to_text(dag, DagFormat::text);
      ASSERT_EQ(referee(rules, M, solution.moves).words(), solution.upper);
      words[game] = solution.upper;
    }
    EXPECT_LE(words[Game::strict], words[Game::once]);
    EXPECT_LE(words[Game::sliding], words[Game::strict]);
    helped += words[Game::strict] < words[Game::once] ? 1 : 0;
  }
  EXPECT_GT(helped, 0);
}

// A result that is also an operand must be written all the same.
TEST(Solve, AgreesWithASearchOfAllStatesWhereResultsAreOperands) {
  std::mt19937_64 random(12);
  Index dearer = 0;  // graphs that need more words than without marked results
  for (int k = 0; k < 200; ++k) {
    const Dag plain = random_dag(random, 5 + k % 4);
    Dag dag = plain;
    for (Vertex& vertex : dag.vertices) {
      vertex.result = !vertex.operands.empty() && random() % 3 == 0;
    }
    for (const Game game : {Game::strict, Game::sliding, Game::once}) {
      const Rules rules(dag, game);
      const Index M = Rules(dag, Game::strict).least_M() + k % 2;
      const Solution solution = solve(rules, M, M, {}).front();
      ASSERT_TRUE(solution.exact());
      ASSERT_EQ(solution.upper, Everywhere(dag, game, M).words())
          << to_string(game) << " M = " << M << " of graph " << k;
      ASSERT_EQ(referee(rules, M, solution.moves).words(), solution.upper);
      dearer += solution.upper > Everywhere(plain, game, M).words() ? 1 : 0;
    }
  }
  EXPECT_GT(dearer, 100);
}

// ---- games -------------------------------------------------------------------------------------

// A strict game with M + 2 pebbles can play the machine's game with M and the same order of sums.
// The two pebbles hold the term and the new sum next to the old one. With M + 1, it moves the same
// words on most graphs in the search. It needs more if all of M is used again after a term. It
// needs fewer if a term waits for its sum, which the machine adds at once.
TEST(Solve, AStrictGameTakesTwoPebblesMoreThanTheMachineAtMost) {
  const struct {
    const char* name;
    Dag dag;  // sums in the order of a chain
    Index M;
    std::vector<Index> machine, strict;  // with M, M + 1, ...; with one pebble more
  } all[] = {{"2x2x2", product(2, 2, 2, Sums::chain), 3, {17, 14, 13, 12}, {17, 14, 13, 12}},
             {"1x2x3", product(1, 2, 3, Sums::chain), 3, {13, 11, 11}, {13, 11, 11}},
             {"2x2x3", product(2, 2, 3, Sums::chain), 5, {18, 17, 16, 16}, {19, 18, 17, 16}},
             {"2x3x2", product(2, 3, 2, Sums::chain), 4, {22, 19, 17, 16}, {22, 19, 18, 16}},
             {"forward n2 d1", chained(Core::forward, 2, 1), 3, {12, 10, 8}, {11, 10, 8}},
             {"forward n2 d1 kv", chained(Core::forward, 2, 1, true), 3, {8, 6}, {7, 6}},
             {"forward n3 d1 kv", chained(Core::forward, 3, 1, true), 4, {13, 10, 9}, {12, 10, 9}},
             {"backward n2 d1", chained(Core::backward, 2, 1), 5, {12, 11, 10}, {12, 11, 10}},
             {"backward n2 d1 kv",
              chained(Core::backward, 2, 1, true),
              3,
              {16, 11, 9, 8},
              {16, 11, 9, 8}}};
  for (const auto& of : all) {
    const auto words = [&](Game game, Index M) {
      const Solution solution = solve(Rules(of.dag, game), M, M, {}).front();
      EXPECT_TRUE(solution.exact()) << of.name << " M = " << M;
      return solution.upper;
    };
    for (std::size_t k = 0; k < of.machine.size(); ++k) {
      const Index M = of.M + static_cast<Index>(k);
      EXPECT_EQ(words(Game::fma, M), of.machine[k]) << of.name << " M = " << M;
      EXPECT_EQ(words(Game::strict, M + 1), of.strict[k]) << of.name << " M = " << M;
      EXPECT_LE(words(Game::strict, M + 2), of.machine[k]) << of.name << " M = " << M;
    }
  }
}

// Collects the operands of all terms of a word, by name.
using Sum = std::multiset<std::set<std::string>>;
void gather(const Dag& dag, Index v, const std::string& of, Sum& sum) {
  const Vertex& vertex = dag[v];
  const bool part = vertex.name != of && vertex.name.starts_with(of + "+");
  if (vertex.name.starts_with(of + "*")) {
    std::set<std::string> names;
    for (const Index operand : vertex.operands) {
      names.insert(dag[operand].name);
    }
    sum.insert(names);
  } else if (vertex.name == of || part) {
    for (const Index operand : vertex.operands) {
      gather(dag, operand, of, sum);
    }
  } else {
    sum.insert({vertex.name});
  }
}
std::map<std::string, Sum> sums(const Dag& dag) {
  std::map<std::string, Sum> all;
  for (Index v = 0; v < dag.size(); ++v) {
    if (dag[v].name.find_first_of("*+") == std::string::npos && !dag.input(v)) {
      gather(dag, v, dag[v].name, all[dag[v].name]);
    }
  }
  return all;
}

// The graph of the solution has another order of sums, but the same sums.
TEST(Solve, AGameOfTheMachineHasAGraphOfItsOwn) {
  const Dag dags[] = {product(2, 3, 2, Sums::any), core(Core::forward, 2, 2, true),
                      core(Core::backward, 2, 2), core(Core::g, 2, 1),
                      dag_of({Pass::attention, Problem(2, 3, 1)}, Sums::any)};
  for (const Dag& dag : dags) {
    for (const Index M : {4, 7}) {
      const Solution solution =
          solve(Rules(dag, Game::fma), M, M, {.seconds = 100, .bytes = 1 << 20}).front();
      ASSERT_TRUE(solution.graph.has_value());
      EXPECT_EQ(sums(*solution.graph), sums(dag));
      const Played played = referee(Rules(*solution.graph, Game::fma), M, solution.moves);
      EXPECT_EQ(played.words(), solution.upper);
    }
  }
}

// A chain fixes the order of its sums, and costs no less.
TEST(Solve, TheOrderOfAGraphIsKept) {
  const Dag any = product(2, 3, 2, Sums::any), chain = product(2, 3, 2, Sums::chain);
  for (const Index M : {3, 4, 5}) {
    const Solution free = solve(Rules(any, Game::fma), M, M, {}).front();
    const Solution kept = solve(Rules(chain, Game::fma), M, M, {}).front();
    EXPECT_FALSE(kept.graph.has_value());
    EXPECT_EQ(referee(Rules(chain, Game::fma), M, kept.moves).words(), kept.upper);
    EXPECT_TRUE(kept.exact());
    EXPECT_GE(kept.lower, free.upper);
  }
}

TEST(Solve, WordsFallWithM) {
  std::mt19937_64 random(5);
  for (const Game game : {Game::strict, Game::sliding, Game::once}) {
    const Dag dag = random_dag(random, 12);
    const Rules rules(dag, game);
    const Index least = rules.least_M();
    const std::vector<Solution> solutions = solve(rules, least, least + 6, {});
    for (std::size_t k = 0; k < solutions.size(); ++k) {
      const Solution& solution = solutions[k];
      EXPECT_TRUE(solution.exact());
      EXPECT_EQ(solution.M, least + static_cast<Index>(k));
      EXPECT_EQ(referee(rules, solution.M, solution.moves).words(), solution.upper);
      EXPECT_TRUE(k == 0 || solution.upper <= solutions[k - 1].upper);
    }
  }
}

// Without memory, or with little, the answer is a range. More memory never makes it wider.
TEST(Solve, WhatIsInterruptedIsBracketed) {
  const Dag dag = core(Core::backward, 2, 1), graph = product(2, 2, 2, Sums::chain);
  const struct {
    const Dag& dag;
    Game game;
    Index M, words;
  } cases[] = {{dag, Game::fma, 3, 20}, {graph, Game::strict, 4, 17}};
  for (const auto& of : cases) {
    Index lower = 0;
    bool open = false;
    for (const std::size_t bytes : {1U, 50'000U, 100'000U, 1U << 30U}) {
      const Rules rules(of.dag, of.game);
      const Solution solution = solve(rules, of.M, of.M, {.seconds = 100, .bytes = bytes}).front();
      EXPECT_LE(solution.lower, of.words);
      EXPECT_GE(solution.upper, of.words);
      EXPECT_GE(solution.lower, lower);
      EXPECT_LE(solution.states * 40, static_cast<Index>(bytes));
      lower = solution.lower;
      open = open || !solution.exact();
    }
    EXPECT_TRUE(open);
    EXPECT_EQ(lower, of.words);
  }
}

TEST(Solve, RefusesWhatIsTooLarge) {
  const Dag chain = product(3, 3, 4, Sums::chain);
  EXPECT_THROW((void)solve(Rules(chain, Game::strict), 9, 9, {}), TooManyWords);
  const Dag any = product(4, 4, 5, Sums::any);
  EXPECT_THROW((void)solve(Rules(any, Game::fma), 9, 9, {}), TooManyWords);
}

}  // namespace
}  // namespace redblue
