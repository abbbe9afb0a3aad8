// Kernels on grids of ranks: bits of one machine, and words of the formulas on every boundary.

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention.hpp"
#include "memsim/errors.hpp"
#include "memsim/ranks/local_transport.hpp"
#include "runtime/ranks/rank_cost.hpp"
#include "runtime/ranks/rank_run.hpp"
#include "runtime/ranks/ranks.hpp"
#include "tests/support/print.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

std::vector<std::string> names_on_grids() {
  std::vector<std::string> names;
  for (const TestedKernel& kernel : tested_kernels()) {
    if (runs_on_grid(kernel)) {
      names.push_back(kernel.name);
    }
  }
  return names;
}

std::span<const float> rows_of(const Buffer& words, Range rows, Index cols) {
  return std::span(words).subspan(static_cast<std::size_t>(rows.begin * cols),
                                  static_cast<std::size_t>(rows.size() * cols));
}

struct RunOfRanks {
  Buffers returned;
  std::vector<RankRun> ran;
  std::vector<Links> links;
  std::vector<Words> homes;
};

RunOfRanks run_on_ranks(const TestedKernel& kernel, const Plan& plan, const Grid& grid,
                        const TestProblem& problem, const LocalOptions& options = {}) {
  const auto ranks = static_cast<std::size_t>(grid.ranks());
  RunOfRanks all{fresh_results(kernel, problem.shape), std::vector<RankRun>(ranks),
                 std::vector<Links>(ranks), std::vector<Words>(ranks)};
  const std::vector<Segment> segments = segments_of(kernel, plan, grid);
  run_ranks(
      grid.ranks(),
      [&](Transport& transport) {
        const RankPart part(kernel, plan, grid, transport.rank());
        RankHome home(part);
        for (const Signature& operand : kernel.given) {
          std::ranges::copy(rows_of(problem.given.at(std::string(operand.name)),
                                    part.own_rows(operand), operand.cols_of(problem.shape)),
                            home.own(operand.name).begin());
        }
        const auto rank = static_cast<std::size_t>(transport.rank());
        all.ran[rank] = run_rank(part, home, transport);
        all.links[rank] = transport.links();
        all.homes[rank] = home.words();
        for (const Signature& result : kernel.returns) {
          const Index cols = result.cols_of(problem.shape);
          Range rows = part.own_rows(result);
          if (result.name == kg.name && segments.back().rank != transport.rank()) {
            continue;
          }
          const std::span<const float> words =
              result.name == kg.name ? home.rows(kg.name, rows) : home.own(result.name);
          std::ranges::copy(words,
                            all.returned.at(std::string(result.name)).begin() + rows.begin * cols);
        }
      },
      options);
  return all;
}

void expect_one_machine(const TestedKernel& kernel, const Plan& plan, const Grid& grid,
                        const TestProblem& problem, const Buffers& alone) {
  SCOPED_TRACE(to_string(plan) + " on " + to_string(grid));
  const RunOfRanks ran = run_on_ranks(kernel, plan, grid, problem);
  EXPECT_TRUE(same_bits(ran.returned, alone));
  for (Index rank = 0; rank < grid.ranks(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    SCOPED_TRACE("rank " + std::to_string(rank));
    const RankCost cost = cost_of_rank(RankPart(kernel, plan, grid, rank));
    const RunCounts& counts = ran.ran[at].arena;
    EXPECT_EQ(without_elementwise(counts.phases), as_counted(cost.arena));
    EXPECT_EQ(counts.total.peak, total(cost.arena).peak.value());
    EXPECT_LE(counts.total.peak, plan.M);
    EXPECT_EQ(ran.links[at], cost.links);
    EXPECT_EQ(ran.homes[at], cost.home);
  }
}

class OnGrids : public testing::TestWithParam<std::string> {};

// On every grid of up to 16 ranks, of more rows than there are row blocks, too: the bits of one
// machine with the same plan; the words of links, arena and home that the formulas say.
TEST_P(OnGrids, ComputeAndMoveWhatOneMachineAndTheFormulasSay) {
  constexpr int kProblems = kSanitized ? 6 : 60;
  const TestedKernel kernel = tested_kernel(GetParam());
  RandomMasks random(11);
  for (int k = 0; k < kProblems && !HasFailure(); ++k) {
    Shape shape{random.any(1, 40), random.any(1, 40), random.any(1, 9)};
    if (kernel.takes_dv() && random.any(0, 2) == 0) {
      shape.dv = random.any(1, 9);
    }
    const Index M = kernel.least_M(shape) + (k % 3 == 0 ? 0 : random.any(0, 40 * (shape.d + 4)));
    Plan plan = kernel.plan(shape, M, k % 2 == 0 ? Objective::words : Objective::time);
    if (k % 4 != 0) {
      plan = kernel.in_groups(plan, random.any(1, std::min<Index>(shape.m, 9)));
    }
    const TestProblem problem = make_problem(kernel, shape, 1 + static_cast<std::uint64_t>(k), 2);
    const Buffers alone = run_kernel(kernel, plan, problem).returned;
    for (Index rows = 1; rows <= 16; ++rows) {
      for (Index columns = 1; rows * columns <= 16 && columns <= key_groups_of(plan); ++columns) {
        expect_one_machine(kernel, plan, {rows, columns}, problem, alone);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, OnGrids, testing::ValuesIn(names_on_grids()),
                         [](const auto& of) { return test_name(of.param); });

// The words on all links together, as they are written down for g given O and L: (2 d + 2) a row
// and 2 d a key for each other rank that needs it, and d^2 for each hop of the sum.
TEST(Grids, SendWhatTheTableSays) {
  const TestedKernel kernel = tested_kernel("backward/rows");
  const Shape shape{48, 36, 5};
  const auto [n, m, d] = shape;
  for (const Grid grid : {Grid{1, 1}, Grid{4, 1}, Grid{1, 3}, Grid{2, 3}, Grid{4, 4}}) {
    Plan plan = kernel.plan(shape, 400, Blocks{{"Br", 6}, {"Bc", 2}, {"Bw", 1}});
    if (grid.columns > 1) {
      plan = kernel.in_groups(plan, grid.columns);
    }
    Words all;
    for (Index rank = 0; rank < grid.ranks(); ++rank) {
      all += received(cost_of_rank(RankPart(kernel, plan, grid, rank)).links, rank);
    }
    EXPECT_EQ(all, Words((2 * d + 2) * n * (grid.columns - 1) + 2 * d * m * (grid.rows - 1) +
                         d * d * (grid.ranks() - 1)))
        << to_string(grid);
  }
}

// L goes over a link for two reasons: the rank that made a row is not the one that begins with it,
// and ranks of a row bring each other's rows. The words of both add up.
TEST(Grids, AddWhatIsDealtOutToWhatIsBrought) {
  const TestedKernel backward = tested_kernel("backward/rows");
  const TestedKernel forward = tested_kernel("forward/rows");
  const Shape shape{60, 20, 4};
  const Grid grid{2, 2};
  const auto plan_of = [&](const TestedKernel& kernel, Index rows) {
    return kernel.in_groups(kernel.plan(shape, 2000, Blocks{{"Br", rows}, {"Bc", 2}, {"Bw", 2}}),
                            2);
  };
  const Plan plan = plan_of(backward, 30), makes = plan_of(forward, 17);
  const Ranks ranks(plan, grid, &makes);
  bool both = false;
  for (Index rank = 0; rank < grid.ranks(); ++rank) {
    const RankPart part(backward, plan, grid, rank);
    const Links brought = cost_of_rank(part).links;
    const Links dealt = cost_of_dealing(part, makes, grid).links;
    Links sum = brought;
    for (const auto& [link, count] : dealt) {
      both |= brought.contains(link);
      sum[link].words += count.words;
      sum[link].messages += count.messages;
    }
    EXPECT_EQ(ranks.links(rank), sum);
  }
  EXPECT_TRUE(both);
}

TEST(Grids, RefuseWhatDoesNotRunOnThem) {
  const TestedKernel rows = tested_kernel("backward/rows");
  const Plan plan = rows.in_groups(rows.plan({20, 20, 4}, 500), 2);
  EXPECT_NO_THROW(check_grid(rows, plan, {5, 2}));
  EXPECT_THROW(check_grid(rows, plan, {1, 3}), ShapeMismatch);
  EXPECT_THROW(check_grid(rows, plan, {0, 1}), ShapeMismatch);
  const TestedKernel small = tested_kernel("backward/small");
  EXPECT_THROW(check_grid(small, small.plan({20, 20, 4}, 500), {1, 1}), ShapeMismatch);
}

}  // namespace
}  // namespace redblue
