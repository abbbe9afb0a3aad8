#pragma once
// The report of `redblue plan KERNEL --ranks`: the grids of ranks on which a kernel fits. They are
// sorted by the words of the largest rank, or by time.

#include <optional>
#include <string>
#include <vector>

#include "runtime/observe/topology.hpp"
#include "runtime/ranks/plan_on_grid.hpp"
#include "runtime/report/rank_bounds_report.hpp"
#include "runtime/text/description.hpp"
#include "runtime/theory/rates.hpp"

namespace redblue {

struct GridChoice {
  PlannedGrid on;
  BesideRankBounds beside;
  // Time of the rank that computes longest, plus the time of all messages on the longest path. Set
  // if rates are known.
  std::optional<double> seconds;
};

struct RanksAsked {
  const Kernel* kernel;
  Problem problem;
  Index M;
  Index ranks;
  bool ring = false;                // also plan a ring
  std::optional<Index> home = {};   // largest home allowed, in words
  std::optional<Rates> rates = {};  // with links; set to sort by time
  std::string said_home = "--home";
};

struct GridPlanReport {
  RanksAsked asked;
  std::optional<FastMemoryOrigin> M_from = {};
  std::vector<GridChoice> choices = {};  // grids with homes small enough, best first
  // The best grid of all, set if its home is too large to be among `choices`.
  std::optional<GridChoice> with_more_room = {};
};

// Sorts by time if the rates are set, then by words received by a rank, then by words of an arena,
// then by home. Each plan has the default number of key groups, because more groups move and keep
// more words. Throws: ShapeMismatch if the problem does not run on ranks; FastMemoryTooSmall.
// Throws UsageError, with the smallest home, if every home is too large.
GridPlanReport report_grids(const RanksAsked& asked);

Description describe(const GridPlanReport& report);

}  // namespace redblue
