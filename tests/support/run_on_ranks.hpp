#pragma once
// Runs kernels on ranks that are threads. Checks that the results have the bits of one machine, and
// that the words moved match the formulas.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention.hpp"
#include "memsim/ranks/local_transport.hpp"
#include "runtime/ranks/rank_cost.hpp"
#include "runtime/ranks/rank_run.hpp"
#include "runtime/ranks/transfers.hpp"
#include "tests/support/phase_counts.hpp"
#include "tests/support/print.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {

inline std::vector<std::string> names_on_grids() {
  std::vector<std::string> names;
  for (const TestedKernel& kernel : tested_kernels()) {
    if (runs_on_grid(kernel)) {
      names.push_back(kernel.name);
    }
  }
  return names;
}

struct RunOfRanks {
  Buffers returned;
  std::vector<RankRun> ran;
  std::vector<Links> links;
  std::vector<Words> homes;
};

// Calls visit(words of the whole matrix, their first word in the rank's home) for each range of
// rows. The home stores the ranges in order, from row `first` on.
template <class Visit>
void each_range(Buffer& whole, const Ranges& rows, Index cols, Index first, const Visit& visit) {
  for (const Range range : rows) {
    visit(std::span(whole).subspan(static_cast<std::size_t>(range.begin * cols),
                                   static_cast<std::size_t>(range.size() * cols)),
          first * cols);
    first += range.size();
  }
}

inline RunOfRanks run_on_ranks(const GridPlan& of, const TestedKernel& kernel,
                               const TestProblem& problem, const LocalOptions& options = {}) {
  const auto ranks = static_cast<std::size_t>(of.grid().ranks());
  RunOfRanks all{fresh_results(kernel, problem.shape), std::vector<RankRun>(ranks),
                 std::vector<Links>(ranks), std::vector<Words>(ranks)};
  run_ranks(
      of.grid().ranks(),
      [&](Transport& transport) {
        const Index rank = transport.rank();
        const RankPart part(of, rank);
        RankHome home(part);
        for (const Signature& operand : kernel.given) {
          Buffer whole = problem.given.at(std::string(operand.name));
          each_range(whole, of.own_rows(operand, rank), operand.cols_of(problem.shape),
                     home.own(operand.name).begin,
                     [&](auto from, Index to) { home.put(operand.name, to, from); });
        }
        const auto at = static_cast<std::size_t>(rank);
        all.ran[at] = run_rank(part, home, transport);
        all.links[at] = transport.links();
        all.homes[at] = home.words();
        for (const Signature& result : kernel.returns) {
          if (!of_queries(result) && !of_keys(result) && of.segments().back().rank != rank) {
            continue;
          }
          Buffer& whole = all.returned.at(std::string(result.name));
          const auto fetch = [&](const std::string& name, const Ranges& rows) {
            if (home.has(name)) {
              each_range(whole, rows, result.cols_of(problem.shape), home.own(name).begin,
                         [&](auto to, Index from) { home.get(name, from, to); });
            }
          };
          fetch(std::string(result.name), of.own_rows(result, rank));
          fetch(dead_name(result.name), of.dead_rows(result, rank));
        }
      },
      options);
  return all;
}

// Expects the formula's words for each phase, and without a mask its peaks and flops too. Under a
// mask, tiles with a live pair may be larger than their live part, and the peak may be lower.
inline void expect_formulas(const RunCounts& counts, const std::vector<PhaseCost>& formula,
                            bool all_live) {
  std::vector<PhaseCounts> counted = without_elementwise(counts.phases);
  const std::vector<PhaseCounts> expected = as_counted(formula);
  ASSERT_EQ(counted.size(), expected.size());
  for (std::size_t k = 0; k < counted.size(); ++k) {
    counted[k].indices = expected[k].indices;
    EXPECT_EQ(counts.phases[k].indices, (IoCount{formula[k].index_reads.value(), 0}));
    if (!all_live) {
      EXPECT_LE(counted[k].peak, expected[k].peak) << counted[k].path;
      EXPECT_GE(counted[k].operations.flops, expected[k].operations.flops) << counted[k].path;
      counted[k].peak = expected[k].peak;
      counted[k].operations = expected[k].operations;
    }
    EXPECT_EQ(counted[k], expected[k]);
  }
}

inline RunOfRanks expect_one_machine(const TestedKernel& kernel, const Plan& plan, const Grid& grid,
                                     const TestProblem& problem, const Buffers& alone) {
  SCOPED_TRACE(to_string(plan) + " on " + to_string(grid));
  const GridPlan of(kernel, plan, grid);
  RunOfRanks ran = run_on_ranks(of, kernel, problem);
  EXPECT_TRUE(same_bits(ran.returned, alone));
  Words pairs;
  for (Index rank = 0; rank < grid.ranks(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    SCOPED_TRACE("rank " + std::to_string(rank));
    const RankPart part(of, rank);
    const RankCost cost = cost_of_rank(part);
    const RunCounts& counts = ran.ran[at].arena;
    expect_formulas(counts, cost.arena, plan.problem.mask.full());
    EXPECT_LE(counts.total.peak, plan.M);
    EXPECT_EQ(ran.links[at], cost.links);
    EXPECT_EQ(ran.homes[at], cost.home);
    pairs += of.pairs(part.row(), part.column());
  }
  EXPECT_EQ(pairs, plan.problem.pairs());
  return ran;
}

}  // namespace redblue
