#pragma once
// Sums of linear sequences, for the source files of Mask.

#include <limits>

#include "kernels/mask_index.hpp"
#include "memsim/words.hpp"

namespace redblue {

inline Words words(Wide count) {
  constexpr Wide kMost = std::numeric_limits<Index>::max();
  return count <= kMost ? Words(static_cast<Index>(count)) : Words(kMost) * 2;  // overflowed
}

// The sequence first + step t, for t = 0, 1, ...
struct Line {
  Wide first, step;

  [[nodiscard]] Wide of(Wide t) const { return first + step * t; }
  [[nodiscard]] Wide sum(Wide begin, Wide end) const {
    return (end - begin) * first + step * ((end - begin) * (begin + end - 1) / 2);
  }
};

}  // namespace redblue
