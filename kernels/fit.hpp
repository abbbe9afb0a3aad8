#pragma once
// Finding the blocks that fit. Peaks never fall when a block grows, so the largest fitting
// block is found by bisection.

#include <vector>

#include "kernels/plan.hpp"
#include "memsim/range.hpp"

namespace redblue {

// A kernel's formulas: what each phase moves and holds with these blocks.
using CostOfBlocks = std::vector<PhaseCost> (*)(const Shape& shape, const Blocks& blocks);

// The largest size in [1, limit] that fits, or 1 where none does (the caller finds out when
// it compares the plan's peak with M). Requires: what fits, fits in all smaller sizes too.
template <class Fits>
Index largest(Index limit, Fits fits) {
  Index low = 1;
  Index high = limit;
  while (low < high) {
    const Index middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// The side of the largest square whose `share`-fold is at most M; at least 1.
inline Index square_side(Index M, Index share) {
  return largest(M, [&](Index side) { return Words(side) * side * share <= Words(M); });
}

}  // namespace redblue
