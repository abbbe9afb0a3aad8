// Tests kernels on grids of ranks: the bits of one machine, and the words of the formulas on every
// boundary.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention.hpp"
#include "kernels/masked.hpp"
#include "memsim/errors.hpp"
#include "memsim/ranks/local_transport.hpp"
#include "runtime/ranks/ping.hpp"
#include "runtime/ranks/plan_on_grid.hpp"
#include "runtime/ranks/rank_cost.hpp"
#include "runtime/ranks/rank_kinds.hpp"
#include "runtime/ranks/rank_run.hpp"
#include "runtime/ranks/ranks.hpp"
#include "runtime/ranks/transfers.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/grid_words.hpp"
#include "tests/support/print.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/run_kernel.hpp"
#include "tests/support/run_on_ranks.hpp"

namespace redblue {
namespace {

// Returns the plan with this number of groups of keys, and of queries if the kernel has such
// groups.
Plan in_groups(const TestedKernel& kernel, const Plan& plan, Index keys, Index queries) {
  Blocks blocks = plan.blocks;
  blocks.drop(kKeyGroups);
  blocks.add(std::string(kKeyGroups), keys);
  if (takes_query_groups(kernel)) {
    blocks.drop(kQueryGroups);
    blocks.add(std::string(kQueryGroups), queries);
  }
  const Kernel& of = kernel;
  Plan grouped = of.plan(plan.problem, plan.M, blocks);
  grouped.M = std::max(plan.M, total(grouped.phases).peak.value());
  return grouped;
}

class OnGrids : public testing::TestWithParam<std::string> {
 protected:
  // Runs random problems, each with a plan in groups, on every grid of up to 16 ranks.
  template <class Masked>
  void expect_random_problems(unsigned seed, const Masked& masked) {
    const TestedKernel kernel = tested_kernel(GetParam());
    RandomMasks random(seed + static_cast<unsigned>(seed_of_case(0)));
    for (std::int64_t k = 0; k < cases(kSanitized ? 2 : 6) && !HasFailure(); ++k) {
      Shape shape{random.any(1, 40), random.any(1, 40), random.any(1, 9)};
      if (kernel.takes_dv() && random.any(0, 2) == 0) {
        shape.dv = random.any(1, 9);
      }
      const TestedKernel of = masked(kernel, shape, random);
      const Index M = of.least_M(shape) + (k % 3 == 0 ? 0 : random.any(0, 40 * (shape.d + 4)));
      Plan plan = of.plan(shape, M, k % 2 == 0 ? Objective::words : Objective::time);
      for (const std::string_view ordered : {kClustered, kStaying}) {
        plan.blocks.drop(ordered);
      }
      plan = in_groups(of, plan, k % 4 == 0 ? 1 : random.any(1, std::min<Index>(shape.m, 9)),
                       random.any(1, 9));
      if (plan.problem.live_queries().empty()) {
        continue;
      }
      const TestProblem problem = make_problem(of, shape, 1 + static_cast<std::uint64_t>(k), 2);
      const Buffers alone = run_kernel(of, plan, problem).returned;
      const Plan live = live_plan(plan);
      const Index most_rows = takes_query_groups(of) ? query_groups_of(of, live) : 16;
      for (Index rows = 1; rows <= std::min<Index>(16, most_rows); ++rows) {
        for (Index columns = 1; rows * columns <= 16 && columns <= key_groups_of(live); ++columns) {
          expect_one_machine(of, plan, {rows, columns}, problem, alone);
        }
      }
    }
  }
};

// On every grid of up to 16 ranks, even with more ranks than row blocks, the results have the bits
// of one machine with the same plan. Links, arena and home have the words of the formulas.
TEST_P(OnGrids, ComputeAndMoveWhatOneMachineAndTheFormulasSay) {
  expect_random_problems(
      11, [](const TestedKernel& kernel, const Shape&, RandomMasks&) { return kernel; });
}

// The same under masks of all kinds. Row blocks and groups are dealt by their number of live pairs,
// and a rank fetches the keys that its queries meet.
TEST_P(OnGrids, DoTheSameUnderMasks) {
  expect_random_problems(12,
                         [](const TestedKernel& kernel, const Shape& shape, RandomMasks& random) {
                           TestedKernel masked = kernel;
                           masked.mask = random.expression(shape.n, shape.m).mask.called("some");
                           return masked;
                         });
}

// Each query meets one key, so most ranks of a square grid have queries and keys but no pair.
TEST_P(OnGrids, MayHaveRanksWithoutPairs) {
  TestedKernel kernel = tested_kernel(GetParam());
  const Shape shape{12, 12, 2};
  kernel.mask = Mask::window(shape.n, shape.m, 0, 0).called("diagonal");
  const Plan plan = in_groups(kernel, kernel.plan(shape, kernel.least_M(shape)), 4, 4);
  const TestProblem problem = make_problem(kernel, shape, 3, 2);
  const Buffers alone = run_kernel(kernel, plan, problem).returned;
  for (const Grid grid : {Grid{1, 4}, Grid{4, 1}, Grid{2, 2}, Grid{4, 4}}) {
    expect_one_machine(kernel, plan, grid, problem, alone);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, OnGrids, testing::ValuesIn(names_on_grids()),
                         [](const auto& of) { return test_name(of.param); });

// The words on all links for g, given O and L. A row has 2 d + 2 words and a key 2 d words, for
// each other rank that needs it. Each hop of the sum has d^2 words.
TEST(Grids, SendWhatTheTableSays) {
  const TestedKernel kernel = tested_kernel("backward/rows");
  const Shape shape{48, 36, 5};
  const auto [n, m, d] = shape;
  for (const Grid grid : {Grid{1, 1}, Grid{4, 1}, Grid{1, 3}, Grid{2, 3}, Grid{4, 4}}) {
    Plan plan = kernel.plan(shape, 400, Blocks{{"Br", 6}, {"Bc", 2}, {"Bw", 1}});
    if (grid.columns > 1) {
      plan = kernel.in_groups(plan, grid.columns);
    }
    const GridPlan of(kernel, plan, grid);
    Words all;
    for (Index rank = 0; rank < grid.ranks(); ++rank) {
      all += received(cost_of_rank(RankPart(of, rank)).links, rank);
    }
    EXPECT_EQ(all, Words((2 * d + 2) * n * (grid.columns - 1) + 2 * d * m * (grid.rows - 1) +
                         d * d * (grid.ranks() - 1)))
        << to_string(grid);
  }
}

// A plan with some M, blocks and groups, on a grid with some ranks. Some ranks may have no rows.
struct OnGrid {
  Plan plan;
  Grid grid;
};
OnGrid some_plan(const TestedKernel& kernel, RandomMasks& random, Index most_ranks) {
  const Shape shape{random.any(1, 90), random.any(1, 90), random.any(1, 9)};
  Plan plan = kernel.plan(shape, kernel.least_M(shape) + random.any(0, 40 * (shape.d + 4)));
  plan = in_groups(kernel, plan, random.any(1, std::min<Index>(shape.m, 9)), random.any(1, 9));
  const Index columns = random.any(1, key_groups_of(plan));
  const Index most_rows = takes_query_groups(kernel) ? query_groups_of(kernel, plan) : most_ranks;
  return {std::move(plan), {random.any(1, std::min(most_ranks / columns, most_rows)), columns}};
}

// Ranks of one kind have the same words in every respect, and each kind is represented. So the
// representatives include a rank with the most words.
TEST_P(OnGrids, RanksOfAKindMoveAsManyWords) {
  const TestedKernel kernel = tested_kernel(GetParam());
  RandomMasks random(5);
  for (int k = 0; k < 60; ++k) {
    const auto [plan, grid] = some_plan(kernel, random, k % 3 == 0 ? 300 : 40);
    SCOPED_TRACE(to_string(plan) + " on " + to_string(grid));
    const GridPlan of(kernel, plan, grid);
    const auto words_of = [&of = of](Index rank) {
      const RankCost cost = cost_of_rank(RankPart(of, rank));
      const PhaseCost arena = total(cost.arena);
      return std::tuple(received(cost.links, rank), sent(cost.links, rank), arena.reads,
                        arena.writes, arena.peak, cost.home);
    };
    std::set<decltype(words_of(0))> asked, all;
    for (const Index rank : ranks_of_each_kind(of)) {
      asked.insert(words_of(rank));
    }
    for (Index rank = 0; rank < grid.ranks(); ++rank) {
      all.insert(words_of(rank));
    }
    EXPECT_EQ(asked, all);
  }
}

// The summary of a grid covers all its ranks.
TEST_P(OnGrids, PlansSayWhatAllRanksMove) {
  const TestedKernel kernel = tested_kernel(GetParam());
  RandomMasks random(23);
  for (int k = 0; k < 20; ++k) {
    const Problem problem(random.any(1, 200), random.any(8, 200), random.any(1, 9), kernel.sharing);
    const Index M = 4 * kernel.least_M(problem.shape);
    for (const PlannedGrid& on : plans_on_grids(*kernel.kernel, problem, M, Objective::words, 24)) {
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

// The links of ranks, written again from docs/theory/ranks.md, phase by phase.
TEST_P(OnGrids, LinksAreThoseOfTheTheory) {
  const TestedKernel kernel = tested_kernel(GetParam());
  const bool from_nothing = is_backward(kernel.kernel->pass) && !kernel.kernel->needs_forward();
  if (from_nothing && kernel.kernel->pass == Pass::gradients) {
    return;  // docs/theory/ranks.md does not cover it
  }
  const auto phase_of = [&](std::string_view name) -> std::string_view {
    const bool of_groups = name.find(" of groups") != std::string_view::npos;
    return name == "g"                                                  ? "running sum"
           : of_groups && (name[1] == 'K' || name[1] == 'V')            ? "keys out"
           : of_groups                                                  ? "rows out"
           : from_nothing && (name == "L" || name == "v")               ? "rows back"
           : name == "A2" || name == "A3" || name == "K" || name == "V" ? "keys in"
                                                                        : "rows in";
  };
  RandomMasks random(31);
  for (int k = 0; k < 60; ++k) {
    auto [plan, grid] = some_plan(kernel, random, 40);
    const Index rows = plan.blocks[row_block_of(plan.blocks)];
    if (takes_query_groups(kernel)) {  // each row of ranks adds one sum for a key
      grid.rows = std::gcd(ceil_div(plan.problem.shape.n, rows), 12);
      plan = in_groups(kernel, plan, key_groups_of(plan), grid.rows);
    }
    SCOPED_TRACE(to_string(plan) + " on " + to_string(grid));
    const GridPlan of(kernel, plan, grid);
    const GridTask task{.pass = kernel.kernel->pass,
                        .problem = plan.problem,
                        .known = from_nothing ? Known::nothing : Known::O_and_L,
                        .unit_rows = rows,
                        .grid = {grid.rows, grid.columns, key_groups_of(plan)}};
    for (Index rank = 0; rank < grid.ranks(); ++rank) {
      std::map<std::string_view, std::pair<Words, Words>> moved;  // received, sent
      for (const auto& [link, count] : cost_of_rank(RankPart(of, rank)).links) {
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

// Links that are made slow are measured as at least as slow.
PingTimes times_of_slow_links() {
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
  return found;
}
TEST(Pings, FindWhatLinksTake) {
  const PingTimes found = times_of_slow_links();
  EXPECT_GE(found.seconds_a_message, 2e-3);
  EXPECT_GE(found.seconds_a_word, 0.9e-8);
}
TEST(PerfOfPings, FindNotMuchMoreThanLinksTake) {
  const PingTimes found = times_of_slow_links();
  EXPECT_LT(found.seconds_a_message, 0.2);
  EXPECT_LT(found.seconds_a_word, 1e-6);
}

// L moves over a link for two reasons: one rank computed a row and another starts with it, and the
// ranks of a row exchange rows. The words of both add up.
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
  const GridPlan of(backward, plan, grid), forward_of(forward, makes, grid);
  bool both = false;
  for (Index rank = 0; rank < grid.ranks(); ++rank) {
    const Links brought = cost_of_rank(RankPart(of, rank)).links;
    const Links dealt = cost_of_dealing(of, forward_of, rank).links;
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

// Row blocks under a causal mask are dealt so that no rank has more than 2% more pairs than the
// mean.
TEST(Grids, DealOutPairsEvenly) {
  constexpr Index n = Index{1} << 16, d = 64;
  for (const std::string_view name : {"forward/rows", "backward/rows", "attention/rows"}) {
    TestedKernel kernel = tested_kernel(name);
    kernel.mask = Mask::causal(n, n).called("causal");
    const Problem problem = kernel.problem({n, n, d});
    for (const Index M : {Index{1} << 16, Index{1} << 18}) {
      for (const Grid grid : {Grid{7, 1}, Grid{3, 2}, Grid{2, 4}}) {
        const Plan plan = kernel.kernel->plan(problem, M,
                                              blocks_on_grid(kernel, problem, M, Objective::words,
                                                             grid, usual_groups(problem, grid)));
        EXPECT_LE(total(plan.phases).peak, Words(M));
        const Ranks ranks(plan, grid);
        EXPECT_LE(ranks.imbalance(), 1.02) << to_string(plan) << " on " << to_string(grid);
      }
    }
  }
}

// Under a window, each rank fetches the keys next to both ends of its range, and no others. With n
// = m, contiguous row blocks and a window of w keys to each side, it receives 2 d words for each of
// 2 w keys.
TEST(Grids, BringTheEdgesOfAWindow) {
  constexpr Index n = 4096, d = 8, w = 10, P = 8;
  TestedKernel kernel = tested_kernel("backward/rows");
  kernel.mask = Mask::window(n, n, w, w).called("window");
  const Plan plan = kernel.plan({n, n, d}, 8192, Blocks{{"Br", 128}, {"Bc", 16}, {"Bw", 8}});
  const GridPlan of(kernel, plan, {P, 1});
  for (Index rank = 0; rank < P; ++rank) {
    Links links = cost_of_rank(RankPart(of, rank)).links;
    std::erase_if(links, [](const auto& link) { return link.first.phase == kg.name; });
    const Index sides = rank == 0 || rank == P - 1 ? 1 : 2;
    EXPECT_EQ(received(links, rank), Words(2 * d * w * sides)) << rank;
    EXPECT_EQ(sent(links, rank), Words(2 * d * w * sides)) << rank;
  }
}

using Clock = std::chrono::steady_clock;

double seconds_of(const GridPlan& of, const TestedKernel& kernel, const TestProblem& problem,
                  const LocalOptions& options) {
  const auto start = Clock::now();
  static_cast<void>(run_on_ranks(of, kernel, problem, options));
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Four ranks with links that take most of the time. The time is the time of the work, plus alpha
// for each message and beta for each word on the longest path, within 20%.
TEST(Grids, TakeAsLongAsTheirLinks) {
  const TestedKernel kernel = tested_kernel("backward/rows");
  const Shape shape{512, 512, 32};
  const PlannedGrid planned =
      plan_on_grid(kernel, kernel.problem(shape), 1 << 14, Objective::words, {2, 2});
  const GridPlan of(kernel, planned.plan, planned.grid);
  const TestProblem problem = make_problem(kernel, shape, 1, 2);
  const LocalOptions slow{.seconds_a_message = 2e-3, .seconds_a_word = 5e-5};
  const double links = slow.seconds_a_message * static_cast<double>(planned.path.messages) +
                       slow.seconds_a_word * static_cast<double>(planned.path.words);
  double least = 1e9;
  for (int k = 0; k < 3; ++k) {
    const double works = seconds_of(of, kernel, problem, {});
    const double ratio = seconds_of(of, kernel, problem, slow) / (works + links);
    least = std::abs(ratio - 1) < std::abs(least - 1) ? ratio : least;
    if (std::abs(least - 1) < 0.2) {
      break;
    }
  }
  EXPECT_GT(least, 0.8);
  EXPECT_LT(least, 1.2);
}

// Keys of the next groups arrive during the work on a group. With links that take half as long as
// the work, a rank waits for the first of eight groups, and little more.
TEST(Grids, HideLinksBehindWork) {
  const TestedKernel kernel = tested_kernel("backward/rows");
  const Shape shape{3072, 3072, 32};
  Plan plan = kernel.plan(shape, 1 << 14);
  plan = kernel.in_groups(plan, 8);
  const GridPlan of(kernel, plan, {2, 1});
  const TestProblem problem = make_problem(kernel, shape, 1, 2);
  double most = 0;
  for (int k = 0; k < 5 && most < 0.5; ++k) {
    const double works = seconds_of(of, kernel, problem, {});
    const Words keys = 2 * Words(shape.d) * (shape.m / 2);
    const double a_word = 0.5 * works / static_cast<double>(keys.value());
    const RunOfRanks ran = run_on_ranks(of, kernel, problem, {.seconds_a_word = a_word});
    // For the rank that works longer, because the other one waits for it at the sum of g.
    const double waits = std::min(ran.ran[0].seconds_in_links, ran.ran[1].seconds_in_links);
    // The hops of g are not hidden by any work.
    const double sum = a_word * static_cast<double>(shape.d * shape.d) *
                       static_cast<double>(of.segments().size() - 1);
    most = std::max(most, 1 - (waits - sum) / (0.5 * works));
  }
  EXPECT_GT(most, 0.5);
}

TEST(Grids, RefuseWhatDoesNotRunOnThem) {
  const TestedKernel rows = tested_kernel("backward/rows");
  const Plan plan = rows.in_groups(rows.plan({20, 20, 4}, 500), 2);
  EXPECT_NO_THROW(check_grid(rows, plan, {5, 2}));
  EXPECT_THROW(check_grid(rows, plan, {1, 3}), ShapeMismatch);
  EXPECT_THROW(check_grid(rows, plan, {0, 1}), ShapeMismatch);
  const TestedKernel small = tested_kernel("backward/small");
  EXPECT_THROW(check_grid(small, small.plan({20, 20, 4}, 500), {1, 1}), ShapeMismatch);
  TestedKernel masked = rows;
  masked.mask = Mask::window(20, 60, 0, 0) & Mask::prefix(20, 60, 5);
  EXPECT_THROW(check_grid(masked, masked.plan({20, 60, 4}, 500), {1, 1}), ShapeMismatch);
}

}  // namespace
}  // namespace redblue
