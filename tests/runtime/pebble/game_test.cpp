// Tests the referee of the red-blue pebble game. It judges games that are played by hand, and
// mutants of played games. A second referee, written only from the rules, must agree.

#include "runtime/pebble/game.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/pebble/attention_dags.hpp"
#include "runtime/pebble/dag_files.hpp"
#include "runtime/system/input_error.hpp"

namespace redblue {
namespace {

constexpr Game kGames[] = {Game::strict, Game::sliding, Game::once, Game::fma};

// c = a b; e = c d.
const Dag& chain() {
  static const Dag dag = parse_dag("a\nb\nd\nc: a b\ne: c d\n", "file", DagFormat::text);
  return dag;
}

std::string verdict(const Dag& dag, Game game, Index M, const std::string& moves) {
  try {
    const Played played = referee(Rules(dag, game), M, parse_moves(moves, "moves", dag));
    return std::to_string(played.words()) + " words, " + std::to_string(played.red) + " red";
  } catch (const IllegalMove& illegal) {
    return std::to_string(illegal.at) + ": " + illegal.what();
  }
}

TEST(Referee, KnowsTheRules) {
  const std::string c = "read a\nread b\ncompute c\ndelete a\ndelete b\nread d\ncompute e\n";
  EXPECT_EQ(verdict(chain(), Game::strict, 3, c + "write e\n"), "4 words, 3 red");
  EXPECT_EQ(verdict(chain(), Game::strict, 2, c + "write e\n"),
            "2: c is one red pebble more than M = 2");
  EXPECT_EQ(verdict(chain(), Game::sliding, 2,
                    "read a\nread b\ncompute c slides a\ndelete b\nread d\ncompute e slides c\n"
                    "write e\n"),
            "4 words, 2 red");
  EXPECT_EQ(verdict(chain(), Game::strict, 3, "read a\nread b\ncompute c slides a\n"),
            "2: c slides: no pebble does in this game");
  EXPECT_EQ(verdict(chain(), Game::strict, 3, c), "7: the end: the result e is not blue");
  EXPECT_EQ(verdict(chain(), Game::strict, 3, "read c\n"), "0: c is not blue");
  EXPECT_EQ(verdict(chain(), Game::strict, 3, "write a\n"), "0: a is not red");
  EXPECT_EQ(verdict(chain(), Game::strict, 3, "delete a\n"), "0: a is not red");
  EXPECT_EQ(verdict(chain(), Game::strict, 3, "read a\ncompute c\n"),
            "1: c is computed of b, which is not red");
  EXPECT_EQ(verdict(chain(), Game::strict, 3, "compute a\n"),
            "0: a is an input: it is read, not computed");
  EXPECT_EQ(verdict(chain(), Game::sliding, 3, "read a\nread b\nread d\ncompute c slides d\n"),
            "3: c slides from d, which is no operand of it");
  // Computing again is legal, except in `once`. Here it serves no purpose.
  const std::string twice =
      "read a\nread b\ncompute c\ncompute c\ndelete a\ndelete b\nread d\n"
      "compute e\nwrite e\n";
  EXPECT_EQ(verdict(chain(), Game::strict, 3, twice), "4 words, 3 red");
  EXPECT_EQ(verdict(chain(), Game::once, 3, twice), "3: c is computed again");
}

// A term is added where it is computed. In a product of depth 2 the sum replaces it and fits in M =
// 3. With a pebble for each term, the game needs M = 4, or 5 without sliding.
TEST(Referee, AddsTermsInPlace) {
  const Dag dag = dag_of({Pass::product, Problem(1, 1, 2)}, Sums::chain);
  EXPECT_EQ(Rules(dag, Game::fma).least_M(), 3);
  EXPECT_EQ(Rules(dag, Game::sliding).least_M(), 2);  // for one vertex; a whole game needs more
  EXPECT_EQ(Rules(dag, Game::strict).least_M(), 3);
  EXPECT_EQ(verdict(dag, Game::fma, 3,
                    "read A(0,0)\nread B(0,0)\ncompute C(0,0)*0 slides A(0,0)\ndelete B(0,0)\n"
                    "read A(0,1)\nread B(1,0)\ncompute C(0,0) slides C(0,0)*0\nwrite C(0,0)\n"),
            "5 words, 3 red");
  EXPECT_EQ(verdict(dag, Game::fma, 3, "read A(0,1)\nread B(1,0)\ncompute C(0,0)*1\n"),
            "2: C(0,0)*1 is a term that is added where it is made: it has no pebble");
}

// A vertex that a file names like a term, but that is not one, has a pebble. So has a term of a
// term.
TEST(Referee, OfTermsInFiles) {
  const auto graph = [](const char* text) { return parse_dag(text, "file", DagFormat::text); };
  const std::string moves = "read a\ncompute c slides a\nwrite c\n";
  EXPECT_EQ(verdict(graph("w*1\na\nc: a w*1\n"), Game::fma, 3, moves),
            "1: c is computed of w*1, which is not red");
  EXPECT_EQ(verdict(graph("c*1\na\nc: a c*1\n"), Game::fma, 3, moves),
            "1: c is computed of c*1, which is not red");
  const std::string inner = "read d\nread e\ncompute y*1*0 slides d\ndelete e\nread a\nread c\n";
  const Dag nested = graph("a\nc\nd\ne\ny*1*0: d e\ny*1: c y*1*0\ny: a y*1\n");
  EXPECT_EQ(verdict(nested, Game::fma, 3, inner + "compute y slides a\nwrite y\n"),
            "5 words, 3 red");
  EXPECT_EQ(verdict(nested, Game::fma, 3, inner + "compute y*1\n"),
            "6: y*1 is a term that is added where it is made: it has no pebble");
}

// ---- mutants ---------------------------------------------------------------------------------

// Returns a legal game. It computes the vertices in their order and reads operands that are not
// red. It writes a vertex before removal if a later vertex needs it.
std::vector<Move> played(const Rules& rules, Index M) {
  const Dag& dag = rules.dag();
  const bool slides = rules.game() == Game::sliding || rules.game() == Game::fma;
  std::vector<Index> left(static_cast<std::size_t>(dag.size()));  // uses that remain
  for (Index v = 0; v < dag.size(); ++v) {
    if (!dag.input(v) && !rules.without_pebble(v)) {
      for (const Index operand : rules.needed(v)) {
        ++left[static_cast<std::size_t>(operand)];
      }
    }
  }
  std::vector<Move> moves;
  std::vector<Index> red;  // oldest first
  std::set<Index> blue;
  const auto free_one = [&](const std::vector<Index>& keep) {
    const auto victim = std::ranges::find_if(
        red, [&](Index v) { return std::ranges::find(keep, v) == keep.end(); });
    if (left[static_cast<std::size_t>(*victim)] > 0 && !dag.input(*victim) &&
        blue.insert(*victim).second) {
      moves.push_back({Act::write, *victim});
    }
    moves.push_back({Act::remove, *victim});
    red.erase(victim);
  };
  for (Index v = 0; v < dag.size(); ++v) {
    if (dag.input(v) || rules.without_pebble(v)) {
      continue;
    }
    const std::vector<Index> needed = rules.needed(v);
    for (const Index operand : needed) {
      if (std::ranges::find(red, operand) == red.end()) {
        if (std::ssize(red) == M) {
          free_one(needed);
        }
        moves.push_back({Act::read, operand});
        red.push_back(operand);
      }
      --left[static_cast<std::size_t>(operand)];
    }
    std::optional<Index> from;
    if (slides) {
      const auto last = std::ranges::find_if(dag[v].operands, [&](Index operand) {
        return !rules.without_pebble(operand) && left[static_cast<std::size_t>(operand)] == 0;
      });
      if (last != dag[v].operands.end()) {
        from = *last;
        red.erase(std::ranges::find(red, *last));
      }
    }
    if (!from && std::ssize(red) == M) {
      free_one(needed);
    }
    moves.push_back({Act::compute, v, from});
    red.push_back(v);
    if (left[static_cast<std::size_t>(v)] == 0) {
      moves.push_back({Act::write, v});
      moves.push_back({Act::remove, v});
      red.pop_back();
    }
  }
  return moves;
}

// Judges by the rules again, with names and sets. Returns the words, or -1 for an illegal game.
Index second_opinion(const Rules& rules, Index M, const std::vector<Move>& moves) {
  const Dag& dag = rules.dag();
  std::set<Index> red, blue, made, results;
  for (Index v = 0; v < dag.size(); ++v) {
    results.insert(v);
    if (dag.input(v)) {
      blue.insert(v);
    }
  }
  for (const Vertex& vertex : dag.vertices) {
    for (const Index operand : vertex.operands) {
      results.erase(operand);
    }
  }
  const bool fma = rules.game() == Game::fma;
  const auto no_pebble = [&](Index v) {
    // The later terms of a sum: s*1, s*2, ... that no other vertex uses.
    return fma && dag[v].term && !dag[v].name.ends_with("*0");
  };
  Index words = 0;
  for (const auto& [act, v, slides, adds] : moves) {
    if (no_pebble(v)) {
      return -1;
    }
    if (act == Act::read) {
      if (!blue.contains(v)) {
        return -1;
      }
      red.insert(v);
      ++words;
    } else if (act == Act::write) {
      if (!red.contains(v)) {
        return -1;
      }
      blue.insert(v);
      ++words;
    } else if (act == Act::remove) {
      if (red.erase(v) == 0) {
        return -1;
      }
    } else {
      const bool again = rules.game() == Game::once || fma;
      if (dag.input(v) || (!made.insert(v).second && again)) {
        return -1;
      }
      for (const Index operand : dag[v].operands) {
        if (no_pebble(operand)) {
          for (const Index factor : dag[operand].operands) {
            if (!red.contains(factor)) {
              return -1;
            }
          }
        } else if (!red.contains(operand)) {
          return -1;
        }
      }
      if (slides) {
        const auto& operands = dag[v].operands;
        if ((rules.game() != Game::sliding && !fma) || no_pebble(*slides) ||
            std::find(operands.begin(), operands.end(), *slides) == operands.end()) {
          return -1;
        }
        red.erase(*slides);
      }
      red.insert(v);
    }
    if (std::ssize(red) > M) {
      return -1;
    }
  }
  return std::ranges::includes(blue, results) ? words : -1;
}

Index first_opinion(const Rules& rules, Index M, const std::vector<Move>& moves) {
  try {
    return referee(rules, M, moves).words();
  } catch (const IllegalMove&) {
    return -1;
  }
}

TEST(Referee, JudgesMutantsAsASecondOneDoes) {
  std::mt19937_64 random(7);
  const auto below = [&](std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
  };
  Index refused = 0, legal = 0;
  for (const Game game : kGames) {
    for (const Pass pass : {Pass::product, Pass::forward, Pass::backward, Pass::gradients}) {
      Problem problem(2, 3, 2);
      problem.inputs = inputs_of(pass);
      const Dag dag = dag_of({pass, problem}, Sums::chain);
      const Rules rules(dag, game);
      const Index M = rules.least_M() + 2;
      const std::vector<Move> moves = played(rules, M);
      const Index words = referee(rules, M, moves).words();
      EXPECT_EQ(second_opinion(rules, M, moves), words);
      for (int k = 0; k < 100; ++k) {
        std::vector<Move> mutant = moves;
        const std::size_t at = below(mutant.size()), other = below(mutant.size());
        switch (below(4)) {
          case 0:
            mutant.erase(mutant.begin() + static_cast<std::ptrdiff_t>(at));
            break;
          case 1:
            mutant.insert(mutant.begin() + static_cast<std::ptrdiff_t>(at), mutant[at]);
            break;
          case 2:
            std::swap(mutant[at], mutant[other]);
            break;
          default:
            mutant[at].vertex = static_cast<Index>(below(static_cast<std::size_t>(dag.size())));
        }
        const Index first = first_opinion(rules, M, mutant);
        EXPECT_EQ(first, second_opinion(rules, M, mutant)) << to_text(dag, mutant);
        ++(first < 0 ? refused : legal);
      }
    }
  }
  EXPECT_GT(refused, 800);
  EXPECT_GT(legal, 20);  // such as a repeated write
}

TEST(Moves, RoundTripAndBadOnes) {
  const std::string text = "read a\nread b\ncompute c slides a\nwrite c\ndelete c\n";
  EXPECT_EQ(to_text(chain(), parse_moves("# by hand\n" + text + "\n", "moves", chain())), text);
  Dag spaced;
  spaced.add("a b");
  spaced.add("c", {0});
  EXPECT_EQ(to_text(spaced, parse_moves("read 0\ncompute 1 slides 0\n", "moves", spaced)),
            "read 0\ncompute 1 slides 0\n");
  const std::pair<const char*, const char*> cases[] = {
      {"load a\n", "moves: line 1: 'load': expected read, write, compute or delete"},
      {"read a\nread\n", "moves: line 2: the vertex is missing"},
      {"read z\n", "moves: line 1: no vertex is called 'z'"},
      {"read a b\n", "moves: line 1: 'b' is too much"},
      {"compute c slide a\n", "moves: line 1: 'slide': expected slides or adds"},
      {"compute c slides\n", "moves: line 1: the vertex is missing"}};
  for (const auto& [moves, message] : cases) {
    try {
      (void)parse_moves(moves, "moves", chain());
      ADD_FAILURE() << moves;
    } catch (const InputError& error) {
      EXPECT_STREQ(error.what(), message);
    }
  }
}

}  // namespace
}  // namespace redblue
