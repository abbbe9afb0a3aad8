#pragma once
// A search for the sizes of least cost.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// Changes the sizes from `first` on, each within [1, limit], until cost(sizes) is least nearby. It
// multiplies or divides one size after another by a step while the cost falls. The step starts at 2
// and shrinks.
template <class Cost>
void descend(std::vector<Index>& sizes, std::size_t first, Index limit, const Cost& cost) {
  double least = cost(sizes);
  for (double step = 2; step > 1.01; step = std::sqrt(step)) {
    for (std::size_t k = first; k < sizes.size(); ++k) {
      for (const double factor : {step, 1 / step}) {
        for (bool better = true; better;) {
          const Index before = sizes[k];
          const double wanted = static_cast<double>(before) * factor;
          sizes[k] = std::clamp<Index>(std::llround(wanted), 1, limit);
          const double tried = cost(sizes);
          better = sizes[k] != before && tried < least;
          least = better ? tried : least;
          sizes[k] = better ? sizes[k] : before;
        }
      }
    }
  }
}

}  // namespace redblue
