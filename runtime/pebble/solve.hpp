#pragma once
// Finds the fewest words with which a game on a graph can be played, for each M, and such a game.
// If the seconds or bytes are not enough, it finds a lower and an upper bound.

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/pebble/dag.hpp"
#include "runtime/pebble/game.hpp"

namespace redblue {

struct SolveLimits {
  double seconds = 10;                        // for each M
  std::size_t bytes = std::size_t{1} << 30U;  // for states and lists of states
  std::function<void()> stop = nullptr;       // called now and then; if it throws, the search ends
  // Games of at least enough(M) words are not searched for.
  std::function<Index(Index M)> enough = nullptr;
};

struct Solution {
  Index M = 0;
  Index lower = 0, upper = 0;  // words
  Index states = 0;            // the number of states that the search met
  // A game of `upper` words. In the game fma, sums of any order are made term by term, and the game
  // is on `graph`. Otherwise `graph` is empty and the game is on the graph that was asked for.
  std::vector<Move> moves;
  std::optional<Dag> graph;
  [[nodiscard]] bool exact() const { return lower == upper; }
};

// Returns a solution for each M from first_M to last_M, in that order. Requires: first_M is at
// least Terms::least_M(). Throws: TooManyWords.
std::vector<Solution> solve(const Rules& rules, Index first_M, Index last_M,
                            const SolveLimits& limits);

}  // namespace redblue
