#pragma once
// Finds renamings of words that leave a computation unchanged, for example of the rows of a matrix.
// A search keeps one of the states that a renaming turns into each other.

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/pebble/terms.hpp"

namespace redblue {

struct Renaming {
  std::array<std::uint8_t, kMostWords> words, terms;
};

// Returns all renamings, the identity first; or only some if there are very many.
std::vector<Renaming> symmetries(const Terms& terms);

// Returns the set with renamed elements.
inline Set renamed(Set set, const std::array<std::uint8_t, kMostWords>& names) {
  Set made = 0;
  each(set, [&](Index k) { made |= bit(names[static_cast<std::size_t>(k)]); });
  return made;
}

}  // namespace redblue
