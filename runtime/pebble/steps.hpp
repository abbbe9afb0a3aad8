#pragma once
// The parts of states and steps that searches of all games share.

#include "runtime/pebble/game.hpp"
#include "runtime/pebble/terms.hpp"

namespace redblue {

// A state of a game: the red words, the blue words and the terms done.
struct State {
  Set red = 0;
  Set blue = 0;  // red words that are blue (OnceSpace), or all blue words (AgainSpace)
  Set done = 0;  // terms that were added
  friend bool operator==(const State&, const State&) = default;
};

// A step: adds a term (OnceSpace), or computes a word (AgainSpace: then `term` is the word).
// Evicting `evicted` makes room. Its subset `written` is written first.
struct Step {
  Index term = 0;
  Set evicted = 0;
  Set written = 0;
};

// A move of a word. A compute has the term that is added (AgainSpace: the word), and the word that
// loses its pebble by sliding, or -1.
struct WordMove {
  Act act;
  Index word;
  Index term = -1;
  Index slides = -1;
};

// Calls `visit` with each set of `size` candidates that costs at most `most`. A word costs 1, or 2
// if it is in `dear`.
template <class Visit>
void each_choice(Set candidates, Set dear, Index size, Index most, const Visit& visit,
                 Set chosen = 0, Index price = 0) {
  if (size == 0) {
    visit(chosen, price);
    return;
  }
  for (; count(candidates) >= size; candidates = without_first(candidates)) {
    const Index word = first(candidates);
    const Index with = price + ((dear & bit(word)) != 0 ? 2 : 1);
    if (with + size - 1 <= most) {
      each_choice(without_first(candidates), dear, size - 1, most, visit, chosen | bit(word), with);
    }
  }
}

// The words that can leave before a term is added: `size` of them must.
struct Room {
  Index size = 0;
  Set candidates = 0;
  Set sliding = 0;  // operands; one of them may leave by sliding
};
template <class Visit>
void each_eviction(const Room& room, Set dear, Index most, const Visit& visit) {
  if (room.size <= 0) {
    visit(Set{0}, Index{0});
    return;
  }
  each_choice(room.candidates, dear, room.size, most, visit);
  each(room.sliding, [&](Index operand) {
    const Index price = (dear & bit(operand)) != 0 ? 2 : 1;
    each_choice(room.candidates, dear, room.size - 1, most - price,
                [&](Set chosen, Index of) { visit(chosen | bit(operand), of + price); });
  });
}

}  // namespace redblue
