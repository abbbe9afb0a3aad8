// Tests ranks in a ring. They have the bits of one machine with the same plan, and the words of the
// formulas, which the test writes again. Messages go only from each rank to the next.

#include "runtime/ranks/ring.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/masked.hpp"
#include "memsim/errors.hpp"
#include "memsim/share.hpp"
#include "runtime/ranks/plan_on_grid.hpp"
#include "runtime/ranks/rank_kinds.hpp"
#include "runtime/ranks/ranks.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/run_on_ranks.hpp"

namespace redblue {
namespace {

Grid ring_of(Index ranks) {
  return {.rows = ranks, .columns = 1, .ring = true};
}

Blocks without_groups(Blocks blocks) {
  for (const std::string_view name : {kKeyGroups, kQueryGroups, kClustered, kStaying}) {
    blocks.drop(name);
  }
  return blocks;
}

// Returns blocks fitted for a ring, for one machine, or for the least M. They need one lap or
// several.
Plan some_plan(const TestedKernel& kernel, const Shape& shape, Index ranks, RandomMasks& random) {
  const Index least = kernel.least_M(shape);
  const Index M = least + random.any(0, 60 * (shape.d + 4));
  const Problem problem = kernel.problem(shape);
  const Kernel& of = kernel;
  Blocks blocks = random.any(0, 1) == 0
                      ? blocks_on_grid(of, problem, M, Objective::words, ring_of(ranks), 1)
                      : kernel.plan(shape, M).blocks;
  Plan plan = of.plan(problem, M, without_groups(std::move(blocks)));
  plan.M = std::max(plan.M, total(plan.phases).peak.value());
  return plan;
}

class OnRings : public testing::TestWithParam<std::string> {
 protected:
  // Runs ragged problems on rings of one to seven ranks, even with more ranks than rows.
  template <class Masked>
  static void expect_random_problems(unsigned seed, int problems, const Masked& masked) {
    const TestedKernel kernel = tested_kernel(GetParam());
    RandomMasks random(seed);
    for (int k = 0; k < problems && !HasFailure(); ++k) {
      const Shape shape{random.any(1, 47), random.any(1, 47), random.any(1, 7)};
      const TestedKernel of = masked(kernel, shape, random);
      const TestProblem problem = make_problem(of, shape, 1 + static_cast<std::uint64_t>(k), 2);
      for (Index ranks = 1; ranks <= 7; ++ranks) {
        const Plan plan = some_plan(of, shape, ranks, random);
        if (plan.problem.live_queries().empty()) {
          continue;
        }
        const Buffers alone = run_kernel(of, plan, problem).returned;
        const RunOfRanks ran = expect_one_machine(of, plan, ring_of(ranks), problem, alone);
        for (const Links& links : ran.links) {
          for (const auto& [link, _] : links) {
            EXPECT_EQ(link.to, (link.from + 1) % ranks) << link.phase;
          }
        }
      }
    }
  }
};

TEST_P(OnRings, ComputeAndMoveWhatOneMachineAndTheFormulasSayAndSendToTheNextRankAlone) {
  expect_random_problems(
      3, 12, [](const TestedKernel& kernel, const Shape&, RandomMasks&) { return kernel; });
}

// Masks under which the keys of a row block are contiguous: causal, causal with a prefix, and
// windows. Kernels that also stream queries get only the first two, because one machine takes the
// queries in this order only under these.
TEST_P(OnRings, DoTheSameUnderMasksOfRuns) {
  expect_random_problems(
      4, 12, [](const TestedKernel& kernel, const Shape& shape, RandomMasks& random) {
        TestedKernel masked = kernel;
        const Index kind = random.any(0, takes_query_groups(kernel) ? 1 : 2);
        const Mask causal = Mask::causal(shape.n, shape.m);
        masked.mask = kind == 0 ? causal.called("causal")
                      : kind == 1
                          ? (causal | Mask::prefix(shape.n, shape.m, random.any(0, shape.m)))
                                .called("causal|prefix")
                          : Mask::window(shape.n, shape.m, random.any(0, 9), random.any(0, 9))
                                .called("window");
        return masked;
      });
}

// With equal shares, a rank receives all rows except its own, in each lap. The pass over keys
// receives K and V. The pass over queries receives Q, dO, L and v.
TEST_P(OnRings, LinksAreThoseOfTheTheory) {
  const TestedKernel kernel = tested_kernel(GetParam());
  constexpr Index n = 240, m = 360, d = 4;
  const Pass pass = kernel.kernel->pass;
  for (const Index ranks : {2, 3, 4, 6, 12}) {
    for (const Index laps : {1, 2, 5}) {
      const Index rows = n / ranks / laps, keys = m / ranks / laps;
      const Blocks blocks =
          pass == Pass::gradients
              ? Blocks{{"dQ.Br", rows}, {"dQ.Bc", 2}, {"dKV.Br", 3}, {"dKV.Bc", keys}}
          : inputs_of(pass) == Inputs::weighted ? Blocks{{"Br", rows}, {"Bc", 2}, {"Bw", 2}}
                                                : Blocks{{"Br", rows}, {"Bc", 2}};
      const Plan plan = kernel.plan({n, m, d}, 100000, blocks);
      const GridPlan of(kernel, plan, ring_of(ranks));
      const Index of_keys = kernel.sharing == Sharing::kv ? d : 2 * d;
      const Index passes = pass == Pass::gradients ? m * of_keys + n * (2 * d + 2) : m * of_keys;
      for (Index rank = 0; rank < ranks; ++rank) {
        Links links = cost_of_rank(RankPart(of, rank)).links;
        std::erase_if(links, [](const auto& link) { return link.first.phase == kg.name; });
        EXPECT_EQ(received(links, rank), Words(laps * passes / ranks * (ranks - 1)))
            << ranks << " ranks, " << laps << " laps, rank " << rank;
        EXPECT_EQ(sent(links, rank), received(links, rank));
      }
    }
  }
}

// The home of a rank is O(n d / P). Its own rows have at most 9 d + 2 words for a row and a key
// together (Q, dO, O, dQ, L, v; K, V, dK, dV). The rows that pass through need less. In addition,
// every home has X, Y, g and a partial sum of g for its one row block.
TEST_P(OnRings, HomesAreSmall) {
  const TestedKernel kernel = tested_kernel(GetParam());
  constexpr Index n = 1 << 14, d = 16, M = 1 << 22;
  const Problem problem = kernel.problem({n, n, d});
  const auto home_of_ring = [&](Index ranks) {
    return plan_on_grid(*kernel.kernel, problem, M, Objective::words, ring_of(ranks)).home.value();
  };
  const Index everywhere = 8 * d * d;
  for (const Index ranks : {4, 16, 64}) {
    EXPECT_LE(home_of_ring(ranks), 16 * n / ranks * (d + 1) + everywhere) << ranks;
  }
}

TEST_P(OnRings, RanksOfAKindMoveAsManyWords) {
  const TestedKernel kernel = tested_kernel(GetParam());
  RandomMasks random(5);
  for (int k = 0; k < 40; ++k) {
    const Shape shape{random.any(1, 90), random.any(1, 90), random.any(1, 9)};
    const Index ranks = random.any(1, 30);
    const Plan plan = some_plan(kernel, shape, ranks, random);
    const GridPlan of(kernel, plan, ring_of(ranks));
    const auto words_of = [&](Index rank) {
      const RankCost cost = cost_of_rank(RankPart(of, rank));
      const PhaseCost arena = total(cost.arena);
      return std::tuple(received(cost.links, rank), sent(cost.links, rank), arena.reads,
                        arena.writes, arena.peak, cost.home);
    };
    std::set<decltype(words_of(0))> asked, all;
    for (const Index rank : ranks_of_each_kind(of)) {
      asked.insert(words_of(rank));
    }
    for (Index rank = 0; rank < ranks; ++rank) {
      all.insert(words_of(rank));
    }
    EXPECT_EQ(asked, all) << to_string(plan) << ", " << ranks;
  }
}

// A lost or changed message ends all ranks with a line that names both ends of the link.
TEST_P(OnRings, EndWhereAMessageDoesNotCome) {
  const TestedKernel kernel = tested_kernel(GetParam());
  RandomMasks random(1);
  const Shape shape{30, 31, 3};
  const Plan plan = some_plan(kernel, shape, 3, random);
  const TestProblem problem = make_problem(kernel, shape, 1, 2);
  const GridPlan of(kernel, plan, ring_of(3));
  for (const auto fate : {LocalOptions::Fate::is_lost, LocalOptions::Fate::is_changed}) {
    LocalOptions options;
    options.fate = [fate](Index from, Index, std::uint64_t number) {
      return from == 1 && number == 1 ? fate : LocalOptions::Fate::arrives;
    };
    try {
      run_on_ranks(of, kernel, problem, options);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const TransportError& error) {
      EXPECT_NE(std::string(error.what()).find("rank 2 received from rank 1"), std::string::npos)
          << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, OnRings, testing::ValuesIn(names_on_grids()),
                         [](const auto& of) { return test_name(of.param); });

std::string why_not(const TestedKernel& kernel, const Plan& plan, const Grid& grid) {
  try {
    check_grid(kernel, plan, grid);
  } catch (const ShapeMismatch& error) {
    return error.what();
  }
  return "";
}

TEST(Rings, RefuseWhatDoesNotPassInOrder) {
  const TestedKernel rows = tested_kernel("attention/rows");
  const Shape shape{20, 20, 4};
  const Plan plan = rows.plan(shape, 500);
  EXPECT_EQ(why_not(rows, plan, ring_of(4)), "");
  EXPECT_EQ(why_not(rows, plan, {.rows = 2, .columns = 2, .ring = true}),
            "attention/rows on a ring: it has one column, and this grid has 2");
  EXPECT_EQ(why_not(rows, rows.in_groups(plan, 2), ring_of(4)),
            "attention/rows on a ring: rows pass one after the other: leave groups out");
  TestedKernel masked = rows;
  masked.mask = (Mask::window(20, 20, 0, 0) | Mask::prefix(20, 20, 2)).called("gaps");
  EXPECT_EQ(why_not(masked, masked.plan(shape, 100, Blocks{{"Br", 4}, {"Bc", 1}}), ring_of(4)),
            "attention/rows on a ring: keys pass in one run, and under this mask some row block "
            "meets keys with others between");
  TestedKernel window = tested_kernel("gradients/rows-keys");
  window.mask = Mask::window(20, 20, 1, 1).called("window");
  const Blocks ones{{"dQ.Br", 1}, {"dQ.Bc", 1}, {"dKV.Br", 1}, {"dKV.Bc", 1}};
  EXPECT_EQ(why_not(window, window.plan(shape, 200, ones), ring_of(4)),
            "gradients/rows-keys on a ring: queries pass in their order, and under this mask some "
            "block of keys meets them in another");
}

// Three ranks and one lap, with one key of one word in K and V on each rank. The last key, of rank
// 2, reaches rank 1 after two hops, and on each hop it waits for one earlier key.
TEST(Rings, HaveAPathOfChains) {
  const TestedKernel kernel = tested_kernel("attention/rows");
  const Plan plan = kernel.plan({3, 3, 1}, 100, Blocks{{"Br", 1}, {"Bc", 1}});
  // Arrival times at ranks 0, 1, 2. Key 0 arrives at 1 at time 2 and at 2 at time 4. Key 1 arrives
  // at 2 at time 6 and at 0 at time 8. Key 2 arrives at 0 at time 10 and at 1 at time 12.
  EXPECT_EQ(ring_path(GridPlan(kernel, plan, ring_of(3))), Words(12));
}

}  // namespace
}  // namespace redblue
