#pragma once
// Cuts a game after each T moves between fast and slow memory, and measures the pieces as in Hong
// and Kung's proof. A piece has the vertices that are red in it for the first time. D is the set of
// words that are red when the piece begins or that it reads. Every path from an input to the piece
// meets D. Min is the set of vertices in the piece that no other vertex of the piece is made of.
// Each vertex of Min is red at the end of the piece or written in it. So D and Min have at most X
// words each, where X is the number of red pebbles plus T. A game of Q moves has at most Q / T + 1
// pieces.

#include <optional>
#include <vector>

#include "runtime/pebble/pebbling.hpp"

namespace redblue {

struct Piece {
  Index vertices = 0;
  Index products = 0;   // terms of sums among the vertices
  Index dominator = 0;  // words in D
  // The fewest vertices that every path from an input to the piece meets. Nullopt if the search
  // would take more than a second or so.
  std::optional<Index> least_dominator;
  Index minimum = 0;  // words in Min
  Index reads = 0, writes = 0;
};

// Returns the pieces of a game that keeps the rules and in which no pebble slides. Requires: T >=
// 1.
std::vector<Piece> pieces_of(const Pebbling& pebbling, const std::vector<Move>& moves, Index T);

// Returns the same game without red pebbles that are neither used nor written before they are
// deleted.
std::vector<Move> without_useless(const Dag& dag, const std::vector<Move>& moves);

// Returns the fewest vertices that every path from an input to one of `targets` meets. This is the
// largest number of such paths that share no vertex (Menger).
Index least_dominator(const Dag& dag, const std::vector<Index>& targets);

}  // namespace redblue
