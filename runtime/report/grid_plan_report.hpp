#pragma once
// The report of `redblue plan KERNEL --ranks`: the grids of so many ranks on which a kernel fits,
// by the words of the largest rank, or by time.

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
  // Of the rank that computes longest, and of all messages on the longest path; with rates.
  std::optional<double> seconds;
};

struct RanksAsked {
  const Kernel* kernel;
  Problem problem;
  Index M;
  Index ranks;
  bool ring = false;                // as a ring, too
  std::optional<Index> home = {};   // the words that a rank has room for
  std::optional<Rates> rates = {};  // with links: least time first
  std::string said_home = "--home";
};

struct GridPlanReport {
  RanksAsked asked;
  std::optional<FastMemoryOrigin> M_from = {};
  std::vector<GridChoice> choices = {};  // those with room for the home, best first
  // The best one of all, where it is none of these.
  std::optional<GridChoice> with_more_room = {};
};

// By words: fewest words received by a rank, then fewest in an arena, then the smallest home. All
// with as many groups of keys as columns: more groups move and keep more. Throws: ShapeMismatch for
// what does not run on ranks; FastMemoryTooSmall; UsageError where no home is small enough, with
// the least.
GridPlanReport report_grids(const RanksAsked& asked);

Description describe(const GridPlanReport& report);

}  // namespace redblue
