// Tests the words of ranks next to their lower bounds. The words are never below a bound, on any
// grid, and near it on a square grid. Where the proof does not apply, the report has a reason
// instead of a bound.

#include "runtime/report/rank_bounds_report.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/report/grid_plan_report.hpp"
#include "runtime/run/run.hpp"
#include "runtime/text/table.hpp"
#include "tests/support/run_kernel.hpp"
#include "tests/support/tested_kernel.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

class Beside : public testing::TestWithParam<std::string> {};

TEST_P(Beside, NoGridIsBelowTheBounds) {
  const TestedKernel kernel = tested_kernel(GetParam());
  std::mt19937 random(7);
  const auto any = [&](Index least, Index most) {
    return std::uniform_int_distribution<Index>(least, most)(random);
  };
  std::map<std::string_view, int> near;
  for (int k = 0; k < 300; ++k) {
    const Index scale = k % 3 == 0 ? 40 : k % 3 == 1 ? 400 : 6000;
    const Shape shape{any(1, scale), any(1, scale), any(1, k % 3 == 2 ? 40 : 9)};
    Plan plan = kernel.plan(shape, kernel.least_M(shape) + any(0, 40 * (shape.d + 4)));
    plan = kernel.in_groups(plan, any(1, std::min<Index>(shape.m, 9)));
    const Index columns = any(1, key_groups_of(plan));
    const Grid grid{any(1, std::max<Index>(60 / columns, 1)), columns};
    SCOPED_TRACE(to_string(plan) + " on " + to_string(grid));
    const BesideRankBounds beside = beside_rank_bounds(Part(plan, grid, nullptr, 1, 1));
    EXPECT_TRUE(beside.links.bound.has_value());
    for (const BesideBound* of : {&beside.links, &beside.small_homes, &beside.arena}) {
      if (of->bound) {
        EXPECT_LE(of->bound->words, of->words) << of->bound->name;
        near[of->bound->name] += 3 * of->bound->words > of->words && of->words > 0 ? 1 : 0;
      } else {
        EXPECT_NE(of->no_bound, "");
      }
    }
    // The result is the same for all ranks and for one rank of each kind.
    const PlannedGrid on = plan_on_grid(*kernel.kernel, Problem(shape, kernel.sharing),
                                        kernel.least_M(shape) + 999, Objective::words, grid);
    const BesideRankBounds by_kinds = beside_rank_bounds(on);
    const BesideRankBounds of_all = beside_rank_bounds(Part(on.plan, grid, nullptr, 1, 1));
    EXPECT_EQ(by_kinds.links.words, of_all.links.words);
    EXPECT_EQ(by_kinds.arena.words, of_all.arena.words);
    EXPECT_EQ(by_kinds.links.ratio(), of_all.links.ratio());
    EXPECT_EQ(by_kinds.small_homes.ratio(), of_all.small_homes.ratio());
  }
  EXPECT_GT(near["links"], 20);
  EXPECT_GT(near["arena"], 10);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Beside,
                         testing::Values("forward/rows", "forward/rows-shared", "attention/rows",
                                         "attention/rows-shared", "backward/rows",
                                         "backward/rows-shared"),
                         [](const auto& of) { return test_name(of.param); });

// A rank with two groups of keys starts the sum Z of a row twice. The proofs for small homes and
// arenas assume a single sum. The proofs for links, and for a pass without weights, do not.
TEST(RankBoundsReport, HasNoBoundWhereTheProofAsksForMore) {
  const auto beside = [](const char* name, Index groups) {
    const TestedKernel kernel = tested_kernel(name);
    return beside_rank_bounds(
        Part(kernel.in_groups(kernel.plan({60, 60, 4}, 900), groups), {2, 2}, nullptr, 1, 1));
  };
  EXPECT_TRUE(beside("forward/rows", 2).arena.bound);
  EXPECT_TRUE(beside("forward/rows", 4).links.bound);
  EXPECT_FALSE(beside("forward/rows", 4).small_homes.bound);
  EXPECT_TRUE(contains(beside("forward/rows", 4).arena.no_bound, "anew for each of its groups"));
  EXPECT_TRUE(contains(to_words(beside("forward/rows", 4)), "no bound on the arena of a rank: "));
  EXPECT_TRUE(beside("attention/rows", 4).arena.bound);
  EXPECT_TRUE(beside("backward/rows", 4).arena.bound);
}

// One machine receives no words, and a bound of 0 has no ratio.
TEST(RankBoundsReport, OneRankReceivesNothing) {
  const TestedKernel kernel = tested_kernel("backward/rows");
  const BesideRankBounds beside =
      beside_rank_bounds(Part(kernel.plan({60, 60, 4}, 900), {1, 1}, nullptr, 1, 1));
  EXPECT_EQ(beside.links.words, 0);
  EXPECT_EQ(beside.links.bound->words, 0);
  EXPECT_FALSE(beside.links.ratio());
  EXPECT_GE(*beside.arena.ratio(), 1);
}

// Ranks exchange whole rows. A bound below one row has no ratio, and a bound of one row has one.
TEST(RankBoundsReport, LessThanARowHasNoRatio) {
  BesideBound beside{.words = 60, .rank = 0, .bound = {}, .no_bound = {}, .row = 5};
  EXPECT_FALSE(beside.ratio());
  beside.bound = Bound{.name = "links", .words = 4};
  EXPECT_FALSE(beside.ratio());
  beside.bound->words = 5;
  EXPECT_EQ(beside.ratio(), 12);
  const TestedKernel kernel = tested_kernel("attention/rows");
  const BesideRankBounds of_plan =
      beside_rank_bounds(Part(kernel.plan({60, 60, 4}, 900), {2, 1}, nullptr, 1, 1));
  for (const BesideBound* of : {&of_plan.links, &of_plan.small_homes, &of_plan.arena}) {
    EXPECT_EQ(of->row, 4);
  }
}

// The text says which words the ratio counts if they are not all received words.
TEST(RankBoundsReport, SaysWhatTheBoundCounts) {
  const auto words = [](const char* name, const Grid& grid) {
    const TestedKernel kernel = tested_kernel(name);
    return to_words(beside_rank_bounds(
        Part(kernel.in_groups(kernel.plan({60, 60, 4}, 900), grid.columns), grid, nullptr, 1, 1)));
  };
  const char* const said = ", without the running sum of g; ";
  EXPECT_TRUE(contains(words("backward/rows", {2, 2}), said));
  EXPECT_FALSE(contains(words("backward/rows", {1, 1}), said));
  EXPECT_FALSE(contains(words("forward/rows", {2, 2}), said));
  EXPECT_TRUE(contains(words("forward/rows", {2, 2}), ", parts of results where they are sent; "));
  EXPECT_FALSE(contains(words("forward/rows", {4, 1}), "parts of results"));
}

// --- plans ---------------------------------------------------------------------------------------

GridPlanReport planned(Index ranks, std::optional<Index> home = {},
                       std::optional<LinkCosts> links = {}) {
  RanksAsked asked{.kernel = &find_kernel("backward/rows"),
                   .problem = {4096, 2048, 32},
                   .M = 16384,
                   .ranks = ranks,
                   .home = home};
  if (links) {
    asked.rates = default_rates();
    asked.rates->links = links;
  }
  return report_grids(asked);
}

// Among the grids that fit in a given home, the first has the fewest words. Grids that do not fit
// are left out. The test tries the home of every grid.
TEST(GridPlans, AreTheBestThatHaveRoom) {
  for (const Index ranks : {1, 7, 12, 64}) {
    const GridPlanReport all = planned(ranks);
    for (const GridChoice& of : all.choices) {
      const Index home = of.on.home.value();
      const GridPlanReport some = planned(ranks, home);
      Words fewest = of.on.received;
      std::size_t fit = 0;
      for (const GridChoice& other : all.choices) {
        if (other.on.home <= Words(home)) {
          ++fit;
          fewest = std::min(fewest, other.on.received);
        }
      }
      EXPECT_EQ(some.choices.size(), fit);
      EXPECT_EQ(some.choices.front().on.received, fewest);
      EXPECT_EQ(some.with_more_room.has_value(), all.choices.front().on.home > Words(home));
    }
    const auto least =
        std::ranges::min_element(all.choices, {}, [](const GridChoice& of) { return of.on.home; });
    const Index home = least->on.home.value();
    EXPECT_EQ(thrown<UsageError>([&] { planned(ranks, home - 1); }),
              fmt::format("--home {}: no grid of {} has so small a home: the least is {}, of {}",
                          home - 1, counted(ranks, "rank"), home, to_string(least->on.grid)));
  }
}

// Slow words favour the fewest words. Slow messages favour few messages. Free links favour the
// least arithmetic. Each choice is the least over all grids.
TEST(GridPlans, TakeTheLeastTime) {
  const auto first = [](const LinkCosts& links) { return planned(12, {}, links).choices.front(); };
  const auto all = planned(12, {}, LinkCosts{"", 0, 0}).choices;
  const auto least = [&](const auto& of) { return of(*std::ranges::min_element(all, {}, of)); };
  const auto words = [](const GridChoice& of) { return of.on.path.words; };
  const auto messages = [](const GridChoice& of) { return of.on.path.messages; };
  EXPECT_EQ(words(first({"", 0, 1})), least(words));
  EXPECT_EQ(messages(first({"", 1e6, 0})), least(messages));
  for (std::size_t k = 1; k < all.size(); ++k) {
    EXPECT_LE(*all[k - 1].seconds, *all[k].seconds);
  }
  const GridChoice one = first({"", 2e-3, 3e-7});
  const GridChoice same =
      *std::ranges::find(all, one.on.grid, [](const GridChoice& of) { return of.on.grid; });
  EXPECT_NEAR(*one.seconds,
              *same.seconds + 2e-3 * double(messages(one)) + 3e-7 * double(words(one)), 1e-9);
}

}  // namespace
}  // namespace redblue
