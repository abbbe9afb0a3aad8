#pragma once
// The kinds of words that a tile, a slow matrix or a block can hold. Machines count each kind
// separately. A word of any kind weighs one word, in M and when moved, unless Machine::weigh()
// changes that.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "memsim/io_count.hpp"

namespace redblue {

enum class Holds : std::uint8_t {
  operands,  // factors of products: inputs, or computed where they are used
  scores,    // one word for each pair of a query and a key
  sums,      // accumulators, partial results, and row statistics (maxima, sums, L and v)
  indices
};
inline constexpr std::array kHolds = {Holds::operands, Holds::scores, Holds::sums, Holds::indices};
std::string_view to_string(Holds holds);

struct KindCounts {
  IoCount io;
  Index peak = 0;  // the most words of this kind that were live at once

  friend bool operator==(const KindCounts&, const KindCounts&) = default;
};

// One value for each kind.
template <class T>
struct ByKind {
  std::array<T, kHolds.size()> values{};

  [[nodiscard]] T& operator[](Holds holds) { return values[static_cast<std::size_t>(holds)]; }
  [[nodiscard]] const T& operator[](Holds holds) const {
    return values[static_cast<std::size_t>(holds)];
  }
  friend bool operator==(const ByKind&, const ByKind&) = default;
};

}  // namespace redblue
