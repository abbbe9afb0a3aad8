#pragma once
// Sizes and counts of words. A word is one float32.
//
// Index is a size or a coordinate. Words is an exact count. Its sums and products saturate instead
// of wrapping, so a formula can be written directly and checked once, by value().

#include <compare>
#include <cstdint>
#include <limits>

#include "memsim/cxx20.hpp"

namespace redblue {

using Index = std::int64_t;

inline constexpr Index kFloatBytes = 4;

class Words {
 public:
  constexpr Words() = default;
  // Implicit, so that `Words(n) * d + m` reads like the formula. Throws: ShapeMismatch if n < 0. In
  // a constant expression, n < 0 does not compile.
  constexpr Words(Index n) : count_(static_cast<std::uint64_t>(n)) {
    if (n < 0) [[unlikely]] {
      refuse_negative(n);
    }
  }

  [[nodiscard]] constexpr bool overflowed() const { return count_ == kOverflow; }
  // Throws: CountOverflow if the exact count does not fit 63 bits.
  [[nodiscard]] Index value() const;

  constexpr Words& operator+=(Words other) {
    if (__builtin_add_overflow(count_, other.count_, &count_) || count_ > kLargest) {
      count_ = kOverflow;
    }
    return *this;
  }
  constexpr Words& operator*=(Words other) {
    if (count_ == 0 || other.count_ == 0) {
      count_ = 0;
    } else if (__builtin_mul_overflow(count_, other.count_, &count_) || count_ > kLargest) {
      count_ = kOverflow;
    }
    return *this;
  }
  friend constexpr Words operator+(Words a, Words b) { return a += b; }
  friend constexpr Words operator*(Words a, Words b) { return a *= b; }
  friend constexpr auto operator<=>(Words, Words) = default;

 private:
  [[noreturn]] static void refuse_negative(Index n);
  static constexpr std::uint64_t kLargest =
      static_cast<std::uint64_t>(std::numeric_limits<Index>::max());
  static constexpr std::uint64_t kOverflow = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t count_ = 0;
};

// Requires: a >= 0, b > 0.
constexpr Index ceil_div(Index a, Index b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace redblue
