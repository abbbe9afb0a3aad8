#include "runtime/pebble/canonical.hpp"

namespace redblue {

State renamed(const State& state, const Renaming& names) {
  return {renamed(state.red, names.words), renamed(state.blue, names.words),
          renamed(state.done, names.terms)};
}

Canonical::Canonical(const Terms& terms)
    : renamings_(symmetries(terms)), to_first_(terms.vertex.size()) {
  Set left = terms.words() == kMostWords ? ~Set{0} : bit(terms.words()) - 1;
  while (left != 0) {
    const auto to = static_cast<std::uint8_t>(first(left));
    Set orbit = 0;
    each(left, [&](Index word) {
      const auto at = static_cast<std::size_t>(word);
      for (const Renaming& renaming : renamings_) {
        if (renaming.words[at] == to) {
          to_first_[at].push_back(&renaming);
          orbit |= bit(word);
        }
      }
    });
    left &= ~orbit;
    orbits_.push_back(orbit);
  }
}

// Returns the orbit with the smallest share of red words. Empty if no word is red.
Set Canonical::fewest_red(const State& state) const {
  Set best = 0;
  Index red_of_best = 0;
  for (const Set orbit : orbits_) {
    const Index red = count(orbit & state.red);
    if (red > 0 && (best == 0 || red * count(best) < red_of_best * count(orbit))) {
      best = orbit;
      red_of_best = red;
    }
  }
  return best;
}

// Returns the least of the states in which a red word of that orbit is renamed to the first word of
// the orbit. Far fewer renamings do that than there are renamings in all.
State Canonical::of(const State& state) const {
  const Set orbit = fewest_red(state);
  if (orbit == 0 || renamings_.size() == 1) {
    return state;
  }
  State least{~Set{0}, 0, 0};
  each(orbit & state.red, [&](Index word) {
    for (const Renaming* to : to_first_[static_cast<std::size_t>(word)]) {
      const Set red = renamed(state.red, to->words);
      if (red > least.red) {
        continue;
      }
      const State other{red, renamed(state.blue, to->words), renamed(state.done, to->terms)};
      if (red < least.red || other.blue < least.blue ||
          (other.blue == least.blue && other.done < least.done)) {
        least = other;
      }
    }
  });
  return least;
}

}  // namespace redblue
