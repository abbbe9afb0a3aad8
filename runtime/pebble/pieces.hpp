#pragma once
// A game cut after each T moves between fast and slow memory, and what Hong and Kung's proof says
// of the pieces. A piece has the vertices that are red in it for the first time. What was red when
// it began and what it reads, D, is met by every path from an input to them; those of them that no
// other of them is made of, Min, are red at its end or written in it. So each piece is a part of at
// most red + T, and a game of Q moves has at most Q / T + 1 pieces.

#include <optional>
#include <vector>

#include "runtime/pebble/pebbling.hpp"

namespace redblue {

struct Piece {
  Index vertices = 0;
  Index products = 0;   // terms of sums among them
  Index dominator = 0;  // the words of D
  // The fewest vertices that every path from an input to these meets; none where the search would
  // take more than a second or so.
  std::optional<Index> least_dominator;
  Index minimum = 0;  // the words of Min
  Index reads = 0, writes = 0;
};

// Of a game that keeps the rules, in which no pebble slides. Requires: T >= 1.
std::vector<Piece> pieces_of(const Pebbling& pebbling, const std::vector<Move>& moves, Index T);

// Without red pebbles that are neither used nor written before they go, of the same game.
std::vector<Move> without_useless(const Dag& dag, const std::vector<Move>& moves);

// The fewest vertices that every path from an input to one of `targets` meets. Each is such a path
// of its own, so that many paths apart from each other show that there are no fewer (Menger).
Index least_dominator(const Dag& dag, const std::vector<Index>& targets);

}  // namespace redblue
