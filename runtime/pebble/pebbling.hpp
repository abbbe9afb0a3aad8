#pragma once
// A game of red and blue pebbles that a run plays on the graph of its own operations.

#include <string>
#include <vector>

#include "runtime/pebble/game.hpp"

namespace redblue {

struct Pebbling {
  // How each vertex came about, for those who follow sums.
  struct Made {
    Index sum = -1;        // that a term was added to, or that was scaled, if any
    Index a = -1, b = -1;  // the factors of the term
    Index joined = -1;     // another sum that was added, word to word
  };

  Dag dag;
  std::vector<Move> moves;  // of the game sliding
  std::vector<Made> made;   // by vertex
  // The vertices that are read and written at the end, by matrix and place; of inputs their own.
  struct Stored {
    std::string matrix;
    Index row, column, vertex;
  };
  std::vector<Stored> stored;
  Index beside = 0;   // words moved that are no vertices: of indices, and numbers
  Index by_hand = 0;  // words that were used, and nobody told of
  Index unused = 0;   // operations whose words nobody used: they are not in the graph

  [[nodiscard]] Index made_twice() const;  // vertices that are computed more than once
};

// Without the vertices that nobody uses and nobody keeps, and what they alone are made of.
Pebbling pruned(Pebbling found);

// The same game without a move that slides.
std::vector<Move> without_slides(const std::vector<Move>& moves);
// The same game without moves of vertices that have no pebble.
std::vector<Move> without_terms(const Rules& rules, const std::vector<Move>& moves);

}  // namespace redblue
