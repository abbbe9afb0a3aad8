// Tests the partial-computing game: against optima that follow by hand, against a search of all
// states by the rules alone, and with the referee.

#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/pebble/attention_dags.hpp"
#include "runtime/pebble/dag_files.hpp"
#include "runtime/pebble/solve.hpp"
#include "runtime/pebble/terms.hpp"

namespace redblue {
namespace in_partial_test {
namespace {

// Returns the fewest words. Checks that the game found keeps the rules and moves as many.
Index least(const Dag& dag, Game game, Index M) {
  const Rules rules(dag, game);
  const Solution solution = solve(rules, M, M, {.seconds = 1000}).front();
  EXPECT_TRUE(solution.exact());
  const Rules own(solution.graph ? *solution.graph : dag, game);
  EXPECT_EQ(referee(own, M, solution.moves).words(), solution.upper);
  return solution.upper;
}

// A vertex of five operands: each is read once, in two pebbles. Computed at once, it takes six.
TEST(PartialGame, AddsOperandsOneByOne) {
  const Dag dag = parse_dag("a\nb\nc\nd\ne\ns: a b c d e\n", "file", DagFormat::text);
  EXPECT_EQ(Rules(dag, Game::partial).least_M(), 2);
  EXPECT_EQ(Rules(dag, Game::once).least_M(), 6);
  EXPECT_EQ(least(dag, Game::partial, 2), 6);
  EXPECT_EQ(least(dag, Game::once, 6), 6);
}

// A binary tree of four inputs, by hand. With three pebbles, the second of x and y takes all of
// them if it is computed at once: the first must be written and read again. Partial computations
// leave x in its place. With two pebbles they do not: either x and y, or r, must leave and come
// back.
TEST(PartialGame, OfABinaryTree) {
  const Dag dag = parse_dag("a\nb\nc\nd\nx: a b\ny: c d\nr: x y\n", "file", DagFormat::text);
  EXPECT_EQ(least(dag, Game::once, 3), 7);
  EXPECT_EQ(least(dag, Game::once, 4), 5);
  EXPECT_EQ(least(dag, Game::partial, 2), 7);
  EXPECT_EQ(least(dag, Game::partial, 3), 5);
}

// y = A x with m = 3 rows, in m + 3 pebbles. With partial computations, sums of all y stay and each
// word moves once: m^2 + 2m. Computed at once, a y takes m + 1 pebbles. The two left do not hold
// what the other rows need of each of the m words of x: m - 1 words more, one before each later
// row.
TEST(PartialGame, OfAMatrixTimesAVector) {
  const Dag dag = dag_of({Pass::product, Problem(3, 1, 3)}, Sums::any);
  EXPECT_EQ(least(dag, Game::partial, 6), 15);
  EXPECT_EQ(least(dag, Game::once, 6), 17);
}

// A game fma is a partial game with one pebble more, which takes each product.
TEST(PartialGame, MovesNoMoreThanFmaWithOnePebbleLess) {
  const Dag dag = dag_of({Pass::product, Problem(2, 2, 2)}, Sums::any);
  const Index fma[] = {17, 14, 13, 12};
  for (Index M = 3; M <= 6; ++M) {
    EXPECT_LE(least(dag, Game::partial, M + 1), fma[M - 3]);
    EXPECT_EQ(least(dag, Game::fma, M), fma[M - 3]);
  }
}

std::string verdict(const Dag& dag, Index M, const std::string& moves) {
  try {
    const Played played = referee(Rules(dag, Game::partial), M, parse_moves(moves, "moves", dag));
    return std::to_string(played.words()) + " words, " + std::to_string(played.red) + " red";
  } catch (const IllegalMove& illegal) {
    return std::to_string(illegal.at) + ": " + illegal.what();
  }
}

TEST(PartialGame, HasAReferee) {
  const Dag dag = parse_dag("a\nb\nc: a b\ne: c\n", "file", DagFormat::text);
  const std::string c = "read a\ncompute c adds a\ndelete a\nread b\ncompute c adds b\ndelete b\n";
  EXPECT_EQ(verdict(dag, 2, c + "compute e adds c\nwrite e\n"), "3 words, 2 red");
  EXPECT_EQ(verdict(dag, 2, c + "compute e adds c\n"), "7: the end: the result e is not blue");
  EXPECT_EQ(verdict(dag, 2, c + "compute c adds b\n"), "6: b is added and not red");
  EXPECT_EQ(verdict(dag, 2, c + "compute e adds a\n"), "6: e adds a, which is no operand of it");
  EXPECT_EQ(verdict(dag, 2, c + "compute e\n"), "6: e is computed, and the move names no operand");
  EXPECT_EQ(verdict(dag, 2, "read a\ncompute c adds a\ncompute c adds a\n"), "2: a is added again");
  EXPECT_EQ(verdict(dag, 3, "read a\ncompute c adds a\ncompute e adds c\n"),
            "2: c is added and not finished");
  EXPECT_EQ(verdict(dag, 2, "read a\ncompute c adds a\ndelete c\nread b\ncompute c adds b\n"),
            "4: c was begun and is not red");
  // The copy in slow memory is of an earlier value.
  EXPECT_EQ(verdict(dag, 3,
                    "read a\ncompute c adds a\nwrite c\nread b\ncompute c adds b\ndelete c\n"
                    "read c\n"),
            "6: c is not blue");
  const Dag sum = parse_dag("a\nb\nc: a b\n", "file", DagFormat::text);
  EXPECT_EQ(verdict(sum, 2, "read a\ncompute c adds a\nwrite c\n"),
            "3: the end: the result c is not finished");
  EXPECT_THROW((void)referee(Rules(dag, Game::strict), 3,
                             parse_moves("read a\nread b\ncompute c adds a\n", "moves", dag)),
               IllegalMove);
}

// Finds the fewest words over all games. A state is the sets of red vertices, of blue vertices with
// a current value, and of added operands.
Index least_of_all_states(const Dag& dag, Index M) {
  using At = std::tuple<Set, Set, Set>;
  std::vector<std::pair<Index, Index>> edges;
  std::vector<Set> into(dag.vertices.size());
  Set inputs = 0, results = 0;
  const std::vector<bool> marked = dag.results();
  for (Index v = 0; v < dag.size(); ++v) {
    inputs |= dag.input(v) ? bit(v) : 0;
    results |= marked[slot(v)] ? bit(v) : 0;
    for (const Index u : dag[v].operands) {
      into[slot(v)] |= bit(std::ssize(edges));
      edges.emplace_back(u, v);
    }
  }
  const Set all = bit(std::ssize(edges)) - 1;
  std::map<At, Index> words;
  std::deque<std::pair<At, Index>> open;
  const auto reach = [&](const At& at, Index moved, bool dearer) {
    if (count(std::get<0>(at)) > M) {
      return;
    }
    const auto [known, fresh] = words.emplace(at, moved);
    if (!fresh && known->second <= moved) {
      return;
    }
    known->second = moved;
    if (dearer) {
      open.emplace_back(at, moved);
    } else {
      open.emplace_front(at, moved);
    }
  };
  reach({0, inputs, 0}, 0, false);
  while (!open.empty()) {
    const auto [at, moved] = open.front();
    open.pop_front();
    const auto [red, blue, added] = at;
    if (moved > words[at]) {
      continue;
    }
    if (added == all && (results & ~blue) == 0) {
      return moved;
    }
    each(red, [&, red = red, blue = blue, added = added, moved = moved](Index v) {
      reach({red & ~bit(v), blue, added}, moved, false);
      reach({red, blue | bit(v), added}, moved + 1, true);
    });
    each(blue, [&, red = red, blue = blue, added = added, moved = moved](Index v) {
      reach({red | bit(v), blue, added}, moved + 1, true);
    });
    for (Index k = 0; k < std::ssize(edges); ++k) {
      const auto [u, v] = edges[slot(k)];
      const bool finished = (into[slot(u)] & ~added) == 0 && (red & bit(u)) != 0;
      const bool open_target = (into[slot(v)] & added) == 0 || (red & bit(v)) != 0;
      if ((added & bit(k)) == 0 && finished && open_target) {
        reach({red | bit(v), blue & ~bit(v), added | bit(k)}, moved, false);
      }
    }
  }
  return -1;
}

TEST(PartialGame, AgreesWithASearchOfAllStates) {
  std::mt19937_64 random(13);
  const auto below = [&](Index count) {
    return std::uniform_int_distribution<Index>(0, count - 1)(random);
  };
  Index tried = 0, saved = 0;
  while (tried < 60) {
    Dag dag;
    for (Index v = 0, size = 5 + below(3); v < size; ++v) {
      std::set<Index> operands;
      for (Index k = v < 2 ? 0 : below(4); k > 0; --k) {
        operands.insert(below(v));
      }
      dag.add("v" + std::to_string(v), {operands.begin(), operands.end()});
    }
    const std::vector<Index> uses = dag.uses();
    bool alone = dag.edges() > 8;
    for (Index v = 0; v < dag.size(); ++v) {
      alone = alone || (dag.input(v) && uses[slot(v)] == 0);
    }
    if (alone || dag.edges() == 0) {
      continue;
    }
    const Index M = 2 + below(2), found = least(dag, Game::partial, M);
    ASSERT_EQ(found, least_of_all_states(dag, M)) << "M = " << M << "\n"
                                                  << to_text(dag, DagFormat::text);
    if (const Index enough = Rules(dag, Game::once).least_M(); enough > M) {
      saved += 1;  // the game `once` cannot be played at all
    } else {
      EXPECT_LE(found, least(dag, Game::once, M));
    }
    ++tried;
  }
  EXPECT_GT(saved, 10);
}

}  // namespace
}  // namespace in_partial_test
}  // namespace redblue
