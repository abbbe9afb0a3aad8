#pragma once
// What redblue pebble solve --compare prints: for each M the largest proven bound of a task, the
// fewest words of its games, and the kernel of the fewest words that plays such a game.

#include <optional>
#include <utility>

#include "runtime/pebble/solve.hpp"
#include "runtime/text/description.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {

// For M from the first to the last; where they are left out, from the least M to the one from which
// on nothing moves fewer words. Requires: as optima(). Throws: as lower_bounds().
Description comparison_of(const Task& task, std::optional<std::pair<Index, Index>> range,
                          const SolveLimits& limits);

}  // namespace redblue
