#include "runtime/run/outcome.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace redblue {

Part::Part(Plan of, Team by)
    : plan(std::move(of)),
      team(by),
      formula(cost_of_team(find_kernel(plan.kernel), plan, team)),
      levels(levels_of_team(find_kernel(plan.kernel), plan, team)),
      largest(largest_io(find_kernel(plan.kernel), plan, team)) {}

Part::Part(Plan of, const Grid& grid, const Plan* forward, Index heads, Index sets)
    : plan(std::move(of)),
      team{.workers = 1, .heads = heads},
      ranks(Ranks(plan, grid, forward, heads, sets)),
      formula(sum_of(ranks->formula)) {
  for (const RankCost& rank : ranks->formula) {
    const PhaseCost all = redblue::total(rank.arena);
    largest = std::max(largest, all.reads + all.writes);
  }
}

double Verdict::part() const {
  return std::isinf(allowed) ? allowed : error == 0 ? 0 : error / allowed;
}

Index Part::io() const {
  if (counted) {
    return counted->total.io.io();
  }
  const PhaseCost all = redblue::total(formula);
  return (all.reads + all.writes).value();
}

std::string_view to_string(Origin origin) {
  switch (origin) {
    case Origin::file:
      return "file";
    case Origin::array:
      return "array";
    case Origin::store:
      return "store";
    case Origin::seed:
      return "seed";
    case Origin::made:
      return "made";
  }
  return "";
}

Origin parse_origin(std::string_view text) {
  const auto found =
      std::ranges::find_if(kOrigins, [&](Origin origin) { return to_string(origin) == text; });
  return found == kOrigins.end() ? throw std::invalid_argument(fmt::format("no origin: {}", text))
                                 : *found;
}

}  // namespace redblue
