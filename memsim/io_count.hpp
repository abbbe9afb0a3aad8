#pragma once
// Counts of words moved and of operations, as plain values.

#include "memsim/words.hpp"

namespace redblue {

// Words moved between fast and slow memory.
struct IoCount {
  Index reads = 0;
  Index writes = 0;

  [[nodiscard]] constexpr Index io() const { return reads + writes; }
  constexpr IoCount& operator+=(const IoCount& other) {
    reads += other.reads;
    writes += other.writes;
    return *this;
  }
  constexpr IoCount& operator-=(const IoCount& other) {
    reads -= other.reads;
    writes -= other.writes;
    return *this;
  }
  friend constexpr IoCount operator+(IoCount a, const IoCount& b) { return a += b; }
  friend constexpr IoCount operator-(IoCount a, const IoCount& b) { return a -= b; }
  friend constexpr bool operator==(const IoCount&, const IoCount&) = default;
};

// Counts of arithmetic. `flops` counts matrix products, two for each multiply-add. `elementwise`
// counts every other operation (a sum, a maximum, a division, an exponential), one each.
struct Operations {
  Index flops = 0;
  Index elementwise = 0;

  constexpr Operations& operator+=(const Operations& other) {
    flops += other.flops;
    elementwise += other.elementwise;
    return *this;
  }
  friend constexpr Operations operator+(Operations a, const Operations& b) { return a += b; }
  friend constexpr bool operator==(const Operations&, const Operations&) = default;
};

}  // namespace redblue
