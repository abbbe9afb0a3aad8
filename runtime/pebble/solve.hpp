#pragma once
// The fewest words with which a game on a graph can be played, for each M, and a game of so many.
// What is not found in the seconds and bytes that there are is bracketed.

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/pebble/dag.hpp"
#include "runtime/pebble/game.hpp"

namespace redblue {

struct SolveLimits {
  double seconds = 10;                        // for each M
  std::size_t bytes = std::size_t{1} << 30U;  // of states and of lists of them
  std::function<void()> stop = nullptr;       // called now and then; what it throws ends the search
  // Games of at least so many words, in M, are not looked for.
  std::function<Index(Index M)> enough = nullptr;
};

struct Solution {
  Index M = 0;
  Index lower = 0, upper = 0;  // words
  Index states = 0;            // that the search met
  // A game of `upper` words. In the game fma sums of any order are made term by term: on a graph of
  // its own; else on the graph that was asked for.
  std::vector<Move> moves;
  std::optional<Dag> graph;
  [[nodiscard]] bool exact() const { return lower == upper; }
};

// For each M from the first to the last, in that order. Requires: the first is Terms::least_M() at
// least. Throws: TooManyWords.
std::vector<Solution> solve(const Rules& rules, Index first_M, Index last_M,
                            const SolveLimits& limits);

}  // namespace redblue
