#pragma once
// Sums over queries of what grows evenly, for the sources of Mask.

#include <limits>

#include "kernels/mask_index.hpp"
#include "memsim/words.hpp"

namespace redblue {

inline Words words(Wide count) {
  constexpr Wide kMost = std::numeric_limits<Index>::max();
  return count <= kMost ? Words(static_cast<Index>(count)) : Words(kMost) * 2;  // overflowed
}

// first + step t, for t from 0 on.
struct Line {
  Wide first, step;

  [[nodiscard]] Wide of(Wide t) const { return first + step * t; }
  [[nodiscard]] Wide sum(Wide begin, Wide end) const {
    return (end - begin) * first + step * ((end - begin) * (begin + end - 1) / 2);
  }
};

}  // namespace redblue
