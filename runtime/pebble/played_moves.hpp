#pragma once
// Translates moves of words into moves on a graph.

#include <optional>
#include <vector>

#include "runtime/pebble/steps.hpp"

namespace redblue {

struct PlayedMoves {
  std::vector<Move> moves;
  std::optional<Dag> graph;  // set if sums are made in the order of these moves
};

PlayedMoves played_moves(const Rules& rules, const Terms& terms,
                         const std::vector<WordMove>& moves);

}  // namespace redblue
