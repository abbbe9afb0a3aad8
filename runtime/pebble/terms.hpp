#pragma once
// A graph of at most 64 words, in the form that a game computes: terms, each added to a word. In
// the game fma, a sum of any order (Vertex::sum) is one word, and its terms are added one by one.
// In the game partial, each operand of a vertex is a term of it. Every other vertex with a pebble
// is a word of one term.

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "runtime/pebble/dag.hpp"
#include "runtime/pebble/game.hpp"

namespace redblue {

using Set = std::uint64_t;  // a set of words, or of terms

constexpr Set bit(Index k) {
  return Set{1} << k;
}
inline Index count(Set set) {
  return __builtin_popcountll(set);
}
inline Index first(Set set) {
  return __builtin_ctzll(set);
}
inline Set without_first(Set set) {
  return set & (set - 1);
}

template <class Visit>
void each(Set set, const Visit& visit) {
  for (; set != 0; set = without_first(set)) {
    visit(first(set));
  }
}

inline constexpr Index kMostWords = 64;

// Thrown if there are more words, or terms, than a set holds.
struct TooManyWords : std::length_error {
  using std::length_error::length_error;
};

struct PebbleTerm {
  Set operands = 0;
  Set sliding = 0;  // operands from which a pebble may slide to a word that begins with this term
  Index target = 0;
};

struct Terms {
  bool slide = false;         // a pebble may slide
  std::vector<Index> vertex;  // by word
  std::vector<PebbleTerm> terms;
  std::vector<Set> adding;    // by word: the terms added to it; an input has no terms
  std::vector<Set> using_it;  // by word: the terms that use it
  Set inputs = 0, results = 0;
  Set all = 0;  // all terms

  [[nodiscard]] Index words() const { return std::ssize(vertex); }
  [[nodiscard]] const PebbleTerm& operator[](Index t) const {
    return terms[static_cast<std::size_t>(t)];
  }
  [[nodiscard]] Set added_to(Index word) const { return adding[static_cast<std::size_t>(word)]; }
  [[nodiscard]] Set users(Index word) const { return using_it[static_cast<std::size_t>(word)]; }
  // Returns the fewest red pebbles with which each term can be added.
  [[nodiscard]] Index least_M() const;
};

// Throws: TooManyWords.
Terms terms_of(const Rules& rules);

}  // namespace redblue
