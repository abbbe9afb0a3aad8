#pragma once
// The report of `redblue plan`: all kernels that fit, sorted by words or by time, and the largest
// proven bound.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/observe/devices.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/report/as_rows.hpp"
#include "runtime/text/description.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {

struct PlanReport {
  Task task;
  std::optional<FastMemoryOrigin> M_from = {};  // set if M is a share of a cache
  std::vector<Choice> choices = {};
  Bound bound;  // for every algorithm
  Objective objective = Objective::words;
  std::optional<Rates> rates;  // set if times are known
  std::optional<LeftOut> left_out = std::nullopt;
  // For several levels.
  std::vector<FastMemoryOrigin> inner_from = {};  // the cache that gave each inner M
  std::vector<Bound> level_bounds = {};  // at each level: the largest bound for every algorithm
  double weighted_bound = 0;             // their weighted sum
  // Kernels left out because they work in one level only.
  std::vector<std::string> of_one_level = {};
  std::vector<std::string> nests_left_out = {};  // each with the reason
  std::string word_costs_from = {};              // the calibration with the costs of words, if any
  std::optional<Device> device = std::nullopt;   // gave M and the inner levels
  Index threads = 1;                             // share each kernel
  std::optional<Rates> calibration = std::nullopt;  // of this machine, if there is one
  std::vector<AsRow> as = {};  // other kernels' tiles, if requested; for one level only
};

// Returns the exception for a task that no kernel fits.
FastMemoryTooSmall no_kernel_fits(const Task& task, const Goal& goal = {});

// Plans a task. `only` is the name of one kernel, or empty for all. Several threads divide the time
// of a kernel, and only kernels that they can share are choices. The words are counted for a run on
// one thread.
// Throws: FastMemoryTooSmall if none fits, and the errors of choices() and lower_bounds().
PlanReport report_plan(const Task& task, Objective objective, const std::optional<Rates>& rates,
                       std::string_view only = {}, Index threads = 1);

// Returns the words of a choice divided by the bound of its class.
double over_bound(const Choice& choice);
// Returns milliseconds: "1.25".
std::string to_ms(double seconds);

Description describe(const PlanReport& report);

}  // namespace redblue
