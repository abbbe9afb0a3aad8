// Kernels on grids of ranks: bits of one machine, and words of the formulas on every boundary.

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention.hpp"
#include "memsim/errors.hpp"
#include "memsim/ranks/local_transport.hpp"
#include "runtime/ranks/ping.hpp"
#include "runtime/ranks/plan_on_grid.hpp"
#include "runtime/ranks/rank_cost.hpp"
#include "runtime/ranks/rank_kinds.hpp"
#include "runtime/ranks/rank_run.hpp"
#include "runtime/ranks/ranks.hpp"
#include "tests/support/grid_words.hpp"
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

// A plan with some M, blocks and groups, on a grid of some ranks of which some may have no rows.
struct OnGrid {
  Plan plan;
  Grid grid;
};
OnGrid some_plan(const TestedKernel& kernel, RandomMasks& random, Index most_ranks) {
  const Shape shape{random.any(1, 90), random.any(1, 90), random.any(1, 9)};
  Plan plan = kernel.plan(shape, kernel.least_M(shape) + random.any(0, 40 * (shape.d + 4)));
  plan = kernel.in_groups(plan, random.any(1, std::min<Index>(shape.m, 9)));
  const Index columns = random.any(1, key_groups_of(plan));
  return {std::move(plan), {random.any(1, most_ranks / columns), columns}};
}

// Ranks that are said to be of a kind have as many words in every respect, and each kind is there.
// So the most words of any rank are those of a rank that is asked.
TEST_P(OnGrids, RanksOfAKindMoveAsManyWords) {
  const TestedKernel kernel = tested_kernel(GetParam());
  RandomMasks random(5);
  for (int k = 0; k < 60; ++k) {
    const auto [plan, grid] = some_plan(kernel, random, k % 3 == 0 ? 300 : 40);
    SCOPED_TRACE(to_string(plan) + " on " + to_string(grid));
    const std::vector<Segment> segments = segments_of(kernel, plan, grid);
    const auto words_of = [&, &plan = plan, &grid = grid](Index rank) {
      const RankCost cost = cost_of_rank(RankPart(kernel, plan, grid, rank), segments);
      const PhaseCost arena = total(cost.arena);
      return std::tuple(received(cost.links, rank), sent(cost.links, rank), arena.reads,
                        arena.writes, arena.peak, cost.home);
    };
    std::set<decltype(words_of(0))> asked, all;
    for (const Index rank : ranks_of_each_kind(kernel, plan, grid)) {
      asked.insert(words_of(rank));
    }
    for (Index rank = 0; rank < grid.ranks(); ++rank) {
      all.insert(words_of(rank));
    }
    EXPECT_EQ(asked, all);
  }
}

// The summary of a grid is that of all its ranks.
TEST_P(OnGrids, PlansSayWhatAllRanksMove) {
  const TestedKernel kernel = tested_kernel(GetParam());
  RandomMasks random(23);
  for (int k = 0; k < 20; ++k) {
    const Problem problem(random.any(1, 200), random.any(8, 200), random.any(1, 9), kernel.sharing);
    const Index M = 4 * kernel.least_M(problem.shape);
    for (const GridPlan& on : plans_on_grids(*kernel.kernel, problem, M, Objective::words, 24)) {
      SCOPED_TRACE(to_string(on.plan) + " on " + to_string(on.grid));
      const Ranks ranks(on.plan, on.grid);
      Words most_received, most_arena, most_home;
      for (Index rank = 0; rank < 24; ++rank) {
        const RankCost& cost = ranks.formula[static_cast<std::size_t>(rank)];
        const PhaseCost arena = total(cost.arena);
        most_received = std::max(most_received, received(cost.links, rank));
        most_arena = std::max(most_arena, arena.reads + arena.writes);
        most_home = std::max(most_home, cost.home);
      }
      EXPECT_EQ(on.received, most_received);
      EXPECT_EQ(on.arena, most_arena);
      EXPECT_EQ(on.home, most_home);
      EXPECT_EQ(Words(on.path.words), ranks.path());
    }
  }
}

// The links of ranks, written down a second time from docs/theory/ranks.md, phase by phase.
TEST_P(OnGrids, LinksAreThoseOfTheTheory) {
  const TestedKernel kernel = tested_kernel(GetParam());
  const auto phase_of = [](std::string_view name) -> std::string_view {
    return name == "g"                                                  ? "running sum"
           : name.find(" of groups") != std::string_view::npos          ? "rows out"
           : name == "A2" || name == "A3" || name == "K" || name == "V" ? "keys in"
                                                                        : "rows in";
  };
  RandomMasks random(31);
  for (int k = 0; k < 60; ++k) {
    const auto [plan, grid] = some_plan(kernel, random, 40);
    SCOPED_TRACE(to_string(plan) + " on " + to_string(grid));
    const GridTask task{.pass = kernel.kernel->pass,
                        .problem = plan.problem,
                        .unit_rows = plan.blocks["Br"],
                        .grid = {grid.rows, grid.columns, key_groups_of(plan)}};
    for (Index rank = 0; rank < grid.ranks(); ++rank) {
      std::map<std::string_view, std::pair<Words, Words>> moved;  // received, sent
      for (const auto& [link, count] : cost_of_rank(RankPart(kernel, plan, grid, rank)).links) {
        auto& [received, sent] = moved[phase_of(link.phase)];
        (link.to == rank ? received : sent) += count.words;
      }
      for (const PhaseLinks& phase : rank_words(task, rank).phases) {
        EXPECT_EQ(moved[phase.phase], std::pair(phase.received, phase.sent))
            << "rank " << rank << ", " << phase.phase;
      }
    }
  }
}

// Links that are known to be slow are found to be as slow, or slower.
TEST(Pings, FindWhatLinksTake) {
  PingTimes found;
  run_ranks(3,
            [&](Transport& transport) {
              const PingTimes times = ping(transport);
              if (transport.rank() == 1) {
                found = times;
              }
              EXPECT_TRUE(transport.links().empty());
            },
            {.seconds_a_message = 2e-3, .seconds_a_word = 1e-8});
  EXPECT_GE(found.seconds_a_message, 2e-3);
  EXPECT_LT(found.seconds_a_message, 0.2);
  EXPECT_GE(found.seconds_a_word, 0.9e-8);
  EXPECT_LT(found.seconds_a_word, 1e-6);
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
