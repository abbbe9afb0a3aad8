#pragma once
// Moves of words as moves on a graph.

#include <optional>
#include <vector>

#include "runtime/pebble/steps.hpp"

namespace redblue {

struct PlayedMoves {
  std::vector<Move> moves;
  std::optional<Dag> graph;  // its own, where sums are made in the order of these moves
};

PlayedMoves played_moves(const Rules& rules, const Terms& terms,
                         const std::vector<WordMove>& moves);

}  // namespace redblue
