#pragma once
// What the words of a tile, of a slow matrix or of a block are. Machines count kinds apart. A word
// of every kind weighs one word in M and on its way, where Machine::weigh() says nothing else.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "memsim/io_count.hpp"

namespace redblue {

enum class Holds : std::uint8_t {
  operands,  // factors of products: given, or made where they are used
  scores,    // a word for each pair of a query and a key
  sums,      // what is added up to be written, partial results, and of rows maxima, sums, L and v
  indices
};
inline constexpr std::array kHolds = {Holds::operands, Holds::scores, Holds::sums, Holds::indices};
std::string_view to_string(Holds holds);

struct KindCounts {
  IoCount io;
  Index peak = 0;  // the most words of this kind live at a time

  friend bool operator==(const KindCounts&, const KindCounts&) = default;
};

// A value for each kind.
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
