// The paper's algorithms under a mask, without the tiles of scores that have no live pair. Their
// words are the closed sums over the other tiles, which this test finds one by one. n and m are
// live rows and columns. rho, gamma and z are the rows, columns and words of live tiles. N, N_m and
// D are the blocks of n, m and d.
//
//   Algorithm 6, tiles B x B
//     reads   n d D + m d D + d^2 (N + N_m) + 2 d (rho + gamma) + 5 z + d rho + D z + 2 m d D
//     writes  n d + 2 m d + d^2 + 4 z
//   Algorithm 9, tiles Br x Bc
//     reads   n d + m d + d^2 (N + N_m) + 4 n d + n + 2 d gamma,   N, N_m of Algorithm 7
//     writes  n d + m d + d^2
//   The forward half of Algorithm 6
//     reads   n d D + m d D + d^2 (N + N_m) + d (rho + gamma) + z + D z + d gamma
//     writes  n d + m d + 2 z + n + n d, and the dead rows of O and L
//
// The index words of the tiles come in addition. index_words_test.cpp checks them.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/print.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

// Returns the table of the live rows and columns alone.
PairTable compact(const PairTable& table) {
  std::vector<Index> rows, cols;
  for (Index i = 0; i < table.n; ++i) {
    if (table.pairs({i, i + 1}, {0, table.m}) > 0) {
      rows.push_back(i);
    }
  }
  for (Index j = 0; j < table.m; ++j) {
    if (table.meets({0, table.n}, j)) {
      cols.push_back(j);
    }
  }
  return {std::ssize(rows), std::ssize(cols), [&](Index i, Index j) {
            return table.at(rows[static_cast<std::size_t>(i)], cols[static_cast<std::size_t>(j)]);
          }};
}

struct Tiles {
  Index rows = 0, columns = 0, words = 0;
};
Tiles walk(const PairTable& live, Index Br, Index Bc) {
  Tiles sum;
  for (const Range I : blocks(live.n, Br)) {
    for (const Range J : blocks(live.m, Bc)) {
      if (live.pairs(I, J) > 0) {
        sum.rows += I.size();
        sum.columns += J.size();
        sum.words += I.size() * J.size();
      }
    }
  }
  return sum;
}

// Calls check(plan, live, d, dead rows) for random masks with a live pair.
template <class Check>
void for_random_masks(const std::string& name, const Check& check) {
  RandomMasks random(11);
  for (int k = 0; k < 400; ++k) {
    const Shape shape{random.any(1, 40), random.any(1, 40), random.any(1, 9)};
    const TabledMask tabled = random.expression(shape.n, shape.m);
    const PairTable live = compact(tabled.table);
    if (live.n == 0) {
      continue;
    }
    TestedKernel kernel = tested_kernel(name);
    kernel.mask = tabled.mask;
    const Plan plan = kernel.plan(shape, kernel.least_M(shape) + random.any(0, 300));
    SCOPED_TRACE(to_string(plan));
    check(plan, live, shape.d, shape.n - live.n);
  }
}

TEST(SkippedTiles, Algorithm6) {
  for_random_masks("backward/small", [](const Plan& plan, const PairTable& live, Index d, Index) {
    const Index n = live.n, m = live.m, B = plan.blocks["B"];
    const Index N = ceil_div(n, B), N_m = ceil_div(m, B), D = ceil_div(d, B);
    const auto [rho, gamma, z] = walk(live, B, B);
    const PhaseCost all = total(plan.phases);
    EXPECT_EQ(all.reads, Words(n * d * D + m * d * D + d * d * (N + N_m) + 2 * d * (rho + gamma) +
                               5 * z + d * rho + D * z + 2 * m * d * D) +
                             all.index_reads);
    EXPECT_EQ(all.writes, Words(n * d + 2 * m * d + d * d + 4 * z));
  });
}

TEST(SkippedTiles, Algorithm9) {
  for_random_masks("backward/large", [](const Plan& plan, const PairTable& live, Index d, Index) {
    const Index n = live.n, m = live.m;
    const Index projected = plan.blocks["phase1.Br"];
    const Tiles tiles = walk(live, plan.blocks["phase2.Br"], plan.blocks["phase2.Bc"]);
    const PhaseCost all = total(plan.phases);
    EXPECT_EQ(all.reads,
              Words(n * d + m * d + d * d * (ceil_div(n, projected) + ceil_div(m, projected)) +
                    4 * n * d + n + 2 * d * tiles.columns) +
                  all.index_reads);
    EXPECT_EQ(all.writes, Words(n * d + m * d + d * d));
  });
}

// Larger column blocks never move fewer words.
TEST(SkippedTiles, Algorithm9TakesTheColumnBlocksOfFewestWords) {
  for_random_masks("backward/large", [](const Plan& plan, const PairTable& live, Index, Index) {
    const Index Br = plan.blocks["phase2.Br"];
    EXPECT_EQ(walk(live, Br, plan.blocks["phase2.Bc"]).columns, walk(live, Br, 1).columns);
  });
}

TEST(SkippedTiles, ForwardHalfOfAlgorithm6) {
  for_random_masks(
      "forward/small", [](const Plan& plan, const PairTable& live, Index d, Index dead) {
        const Index n = live.n, m = live.m, B = plan.blocks["B"];
        const Index N = ceil_div(n, B), N_m = ceil_div(m, B), D = ceil_div(d, B);
        const auto [rho, gamma, z] = walk(live, B, B);
        const PhaseCost all = total(plan.phases);
        EXPECT_EQ(all.reads, Words(n * d * D + m * d * D + d * d * (N + N_m) + d * (rho + gamma) +
                                   z + D * z + d * gamma) +
                                 all.index_reads);
        EXPECT_EQ(all.writes, Words(n * d + m * d + 2 * z + n + n * d + dead * (d + 1)));
      });
}

}  // namespace
}  // namespace redblue
