#pragma once
// Words for matrices, and random numbers.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "memsim/range.hpp"
#include "memsim/store/layout.hpp"

namespace redblue {

using Random = std::mt19937_64;
using Buffer = std::vector<float>;

inline constexpr Index kWord = sizeof(float);
inline constexpr Index kSector = StoreLayout::kSector;
inline constexpr Index kSectorWords = kSector / kWord;

// Returns a random number in [least, most].
inline Index between(Random& random, Index least, Index most) {
  return least + static_cast<Index>(random() % static_cast<std::uint64_t>(most - least + 1));
}

inline Range draw_range(Random& random, Index extent) {
  const Index begin = between(random, 0, extent - 1);
  return {begin, between(random, begin + 1, extent)};
}

// Returns words of arbitrary bits.
inline Buffer draw_words(Random& random, Index count) {
  Buffer words(static_cast<std::size_t>(count));
  for (float& word : words) {
    word = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  }
  return words;
}

// Returns first, first + 1, ...
inline Buffer numbered(Index count, Index first = 0) {
  Buffer words(static_cast<std::size_t>(count));
  for (Index k = 0; k < count; ++k) {
    words[static_cast<std::size_t>(k)] = static_cast<float>(first + k);
  }
  return words;
}

}  // namespace redblue
