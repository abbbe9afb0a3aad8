#pragma once
// What states of a search and its steps are made of, whichever the game.

#include <cstdint>
#include <vector>

#include "runtime/pebble/game.hpp"
#include "runtime/pebble/symmetry.hpp"
#include "runtime/pebble/terms.hpp"

namespace redblue {

// A state: words in fast memory, and what else there is.
struct State {
  Set red = 0;
  Set blue = 0;  // see each game: of red words, or of all
  Set done = 0;  // terms that were added
  friend bool operator==(const State&, const State&) = default;
};

// A term is added; `evicted` makes room for it, of which `written` go to the slow store first.
struct Step {
  Index term = 0;
  Set evicted = 0;
  Set written = 0;
};

// A move of words; of a term that is added its number, and the word whose pebble moves on, or -1.
struct WordMove {
  Act act;
  Index word;
  Index term = -1;
  Index slides = -1;
};

State renamed(const State& state, const Renaming& names);
// Of the states that renamings make of one, the first.
State canonical(const State& state, const std::vector<Renaming>& renamings);

// Calls `visit` with each set of `size` of the candidates whose prices, 1 or for `dear` ones 2,
// come to at most `most`.
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

// The words that have to go before a term is added, where `room` more would be needed.
struct Room {
  Index size = 0;
  Set candidates = 0;
  Set sliding = 0;  // operands of which one may go by moving on
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
