#pragma once
// The game of red and blue pebbles that a run plays on the graph of its operations.

#include <string>
#include <vector>

#include "runtime/pebble/game.hpp"

namespace redblue {

struct Pebbling {
  // How a vertex was made, for code that follows sums.
  struct Made {
    Index sum = -1;        // the sum that a term was added to or that was scaled; -1: no sum
    Index a = -1, b = -1;  // the factors of the term
    Index joined = -1;     // another sum that was added to this one
  };

  Dag dag;
  std::vector<Move> moves;  // of the game sliding
  std::vector<Made> made;   // by vertex
  // The vertices that slow memory holds at the end, by matrix and place, inputs included.
  struct Stored {
    std::string matrix;
    Index row, column, vertex;
  };
  std::vector<Stored> stored;
  Index beside = 0;   // words moved without a vertex: indices and plain numbers
  Index by_hand = 0;  // words that were used but set by no recorded event
  Index unused = 0;   // operations with unused results; they are not in the graph

  [[nodiscard]] Index made_twice() const;  // vertices that are computed more than once
};

// Returns the pebbling without vertices that are never moved and on which no moved vertex depends.
Pebbling pruned(Pebbling found);

// Returns the same game without slides. A slide becomes a delete after the compute.
std::vector<Move> without_slides(const std::vector<Move>& moves);
// Returns the same game without the moves of vertices that have no pebble.
std::vector<Move> without_terms(const Rules& rules, const std::vector<Move>& moves);

}  // namespace redblue
