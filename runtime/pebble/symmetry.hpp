#pragma once
// Renamings of words under which a computation stays itself, say of the rows of a matrix: of states
// that they take into each other a search keeps one.

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/pebble/terms.hpp"

namespace redblue {

struct Renaming {
  std::array<std::uint8_t, kMostWords> words, terms;
};

// All of them, the identity first; or some, where there are very many.
std::vector<Renaming> symmetries(const Terms& terms);

// What a renaming makes of a set.
inline Set renamed(Set set, const std::array<std::uint8_t, kMostWords>& names) {
  Set made = 0;
  each(set, [&](Index k) { made |= bit(names[static_cast<std::size_t>(k)]); });
  return made;
}

}  // namespace redblue
