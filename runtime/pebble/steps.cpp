#include "runtime/pebble/steps.hpp"

#include <compare>

namespace redblue {

State renamed(const State& state, const Renaming& names) {
  return {renamed(state.red, names.words), renamed(state.blue, names.words),
          renamed(state.done, names.terms)};
}

State canonical(const State& state, const std::vector<Renaming>& renamings) {
  State least = state;
  for (std::size_t k = 1; k < renamings.size(); ++k) {
    const Renaming& to = renamings[k];
    const Set red = renamed(state.red, to.words);
    if (red > least.red) {
      continue;
    }
    const State other{red, renamed(state.blue, to.words), renamed(state.done, to.terms)};
    if (red < least.red || other.blue < least.blue ||
        (other.blue == least.blue && other.done < least.done)) {
      least = other;
    }
  }
  return least;
}

}  // namespace redblue
