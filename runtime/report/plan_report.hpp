#pragma once
// What `redblue plan` has to say: every kernel that fits, fewest words or least time first, beside
// the largest proven bound.

#include <optional>
#include <string>
#include <vector>

#include "runtime/observe/topology.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {

struct PlanReport {
  Task task;
  std::optional<FastMemoryOrigin> M_from;  // where M is a part of a cache
  std::vector<Choice> choices;
  Bound bound;                 // of every algorithm
  std::optional<Rates> rates;  // where the order is that of time
};

// What to throw where no kernel fits.
FastMemoryTooSmall no_kernel_fits(const Task& task);

// Throws: FastMemoryTooSmall where no kernel fits; what choices() and lower_bounds() do.
PlanReport report_plan(const Task& task, const std::optional<Rates>& rates = std::nullopt);

// Words over those of the bound of its kind.
double over_bound(const Choice& choice);

std::string to_table(const PlanReport& report);
std::string to_json(const PlanReport& report);
std::string to_csv(const PlanReport& report);

}  // namespace redblue
