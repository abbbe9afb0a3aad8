#pragma once
// redblue pebble solve --compare: compares bounds, games and kernels. For each M it shows the
// largest proven lower bound, the fewest words of any game, and the best kernel that plays such a
// game.

#include <optional>
#include <utility>

#include "runtime/pebble/solve.hpp"
#include "runtime/text/description.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {

// Returns the comparison for each M in the range. Without a range, starts at the least M and ends
// where more memory no longer saves words. Requires: as optima(). Throws: as lower_bounds().
Description comparison_of(const Task& task, std::optional<std::pair<Index, Index>> range,
                          const SolveLimits& limits);

}  // namespace redblue
