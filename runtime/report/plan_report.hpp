#pragma once
// The report of `redblue plan`: all kernels that fit, by words or by time, and the largest proven
// bound.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/observe/devices.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/report/as_rows.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {

struct PlanReport {
  Task task;
  std::optional<FastMemoryOrigin> M_from;  // set if M is a share of a cache
  std::vector<Choice> choices;
  Bound bound;                 // of every algorithm
  std::optional<Rates> rates;  // set if the kernels are ordered by time
  std::optional<LeftOut> left_out = std::nullopt;
  // Of several levels: the caches that inner ones are parts of; the largest bound of every
  // algorithm at each, and their weighted sum; the kernels that are left out, as they work in one
  // level; and the calibration that says what a word costs, if one does.
  std::vector<FastMemoryOrigin> inner_from = {};
  std::vector<Bound> level_bounds = {};
  double weighted_bound = 0;
  std::vector<std::string> of_one_level = {};
  std::string word_costs_from = {};
  std::optional<Device> device = std::nullopt;  // of which M and inner levels are
  std::vector<AsRow> as = {};  // of one level: tiles of others, where they are asked for
};

// The exception for a task that no kernel fits.
FastMemoryTooSmall no_kernel_fits(const Task& task);

// Of one kernel, as it is spelled, or of all. Throws: FastMemoryTooSmall if none fits; as choices()
// and lower_bounds().
PlanReport report_plan(const Task& task, const std::optional<Rates>& rates = std::nullopt,
                       std::string_view only = {});

// The words of a choice over those of the bound of its kind.
double over_bound(const Choice& choice);
// Milliseconds, as "1.25".
std::string to_ms(double seconds);

std::string to_table(const PlanReport& report);
std::string to_json(const PlanReport& report);
std::string to_csv(const PlanReport& report);

}  // namespace redblue
