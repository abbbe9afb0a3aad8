// Tests the words of a grid. A walk over owners, row by row and key by key, must receive, send and
// hold the words of the formulas. Tests the totals of the table of problems, rings, and the
// distance to the lower bounds for a rank.

#include "tests/support/grid_words.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "runtime/theory/rank_bounds.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

std::string text(const GridTask& task) {
  const auto [n, m, d] = task.problem.shape;
  return fmt::format("{} n={} m={} d={} Br={} {}x{}:{}", to_string(task.pass), n, m, d,
                     task.unit_rows, task.grid.rows, task.grid.columns, task.grid.groups);
}

class RandomTasks {
 public:
  Index below(Index most) { return std::uniform_int_distribution<Index>(0, most - 1)(random_); }
  Index up_to(Index most) { return 1 + below(most); }

  // Sizes are often small, so some rows and keys have no owner, and some ranks have no work.
  GridTask operator()(Index most_rows, Index most_d, Index most_side) {
    constexpr Pass kOfGrids[] = {Pass::forward, Pass::attention, Pass::backward, Pass::backward,
                                 Pass::gradients};
    const Index which = below(5);
    GridTask task{.pass = kOfGrids[which],
                  .problem = {up_to(most_rows), up_to(most_rows), up_to(most_d)},
                  .known = which == 3 ? Known::nothing : Known::O_and_L,
                  .unit_rows = up_to(most_rows)};
    task.problem.inputs = inputs_of(task.pass);
    task.problem.sharing = below(3) == 0 ? Sharing::kv : Sharing::none;
    const Index m = task.problem.shape.m;
    task.grid.rows = up_to(most_side);
    task.grid.columns = up_to(std::min(most_side, m));
    task.grid.groups = task.grid.columns + below(std::min(m - task.grid.columns, Index{9}) + 1);
    return task;
  }

 private:
  std::mt19937 random_{17};
};

// --- A walk --------------------------------------------------------------------------------------

struct Ends {
  Index received = 0, sent = 0;
};
// By phase and rank.
using Walked = std::map<std::string_view, std::vector<Ends>>;

// Every owner sends each row to its units and each key to its groups. Each part is sent back. The
// sum passes through key groups and units.
Walked walk(const GridTask& task) {
  const Index rows = task.grid.rows, columns = task.grid.columns, groups = task.grid.groups;
  const Index n = task.problem.shape.n, m = task.problem.shape.m;
  const PassWords words = pass_words(task);
  const Index units = ceil_div(n, task.unit_rows);
  Walked walked;
  const auto send = [&](std::string_view phase, Index from, Index to, Index count) {
    auto& ends = walked[phase];
    ends.resize(std::size_t(rows * columns));
    if (from != to) {
      ends[std::size_t(from)].sent += count;
      ends[std::size_t(to)].received += count;
    }
  };
  // Returns which of `shares` shares has number k of `total`.
  const auto share_with = [](Index k, Index total, Index shares) {
    Index share = 0;
    while (k >= total * (share + 1) / shares) {
      ++share;
    }
    return share;
  };
  const auto row_of_unit = [&](Index unit) { return share_with(unit, units, rows); };
  const auto column_of_group = [&](Index group) { return share_with(group, groups, columns); };
  std::vector<Index> row_of(static_cast<std::size_t>(n)), group_of;
  std::vector<Index> rows_of(static_cast<std::size_t>(rows));
  std::vector<Index> keys_of(static_cast<std::size_t>(columns));
  for (Index k = 0; k < n; ++k) {
    row_of[std::size_t(k)] = row_of_unit(k / task.unit_rows);
    ++rows_of[std::size_t(row_of[std::size_t(k)])];
  }
  for (Index group = 0; group < groups; ++group) {
    const Index size = m / groups + (group < m % groups ? 1 : 0);
    group_of.insert(group_of.end(), std::size_t(size), group);
    keys_of[std::size_t(column_of_group(group))] += size;
  }
  Index in_row = 0;
  for (Index k = 0; k < n; ++k) {
    const Index i = row_of[std::size_t(k)];
    in_row = k > 0 && i == row_of[std::size_t(k - 1)] ? in_row + 1 : 0;
    const Index owner = i * columns + share_with(in_row, rows_of[std::size_t(i)], columns);
    for (Index j = 0; j < columns; ++j) {
      send("rows in", owner, i * columns + j, words.row_in);
      send("rows back", owner, i * columns + j, words.row_back);
    }
    for (Index group = 0; group < groups; ++group) {
      send("rows out", i * columns + column_of_group(group), owner, words.row_out);
    }
  }
  Index in_column = 0;
  for (Index k = 0; k < m; ++k) {
    const Index j = column_of_group(group_of[std::size_t(k)]);
    in_column = k > 0 && j == column_of_group(group_of[std::size_t(k - 1)]) ? in_column + 1 : 0;
    const Index owner = share_with(in_column, keys_of[std::size_t(j)], rows) * columns + j;
    for (Index i = 0; i < rows; ++i) {
      if (rows_of[std::size_t(i)] > 0) {
        send("keys in", owner, i * columns + j, words.key_in);
        send("keys out", i * columns + j, owner, words.key_out);
      }
    }
  }
  Index has_sum = -1;
  for (Index group = 0; group < groups; ++group) {
    for (Index unit = 0; unit < units; ++unit) {
      const Index rank = row_of_unit(unit) * columns + column_of_group(group);
      send("running sum", has_sum < 0 ? rank : has_sum, rank, words.running);
      has_sum = rank;
    }
  }
  return walked;
}

TEST(GridWords, AreThoseOfAWalkOverOwners) {
  RandomTasks random;
  for (int trial = 0; trial < 1500; ++trial) {
    const GridTask task = random(40, 5, 6);
    const Walked walked = walk(task);
    Index total = 0;
    for (Index rank = 0; rank < task.grid.rows * task.grid.columns; ++rank) {
      for (const PhaseLinks& phase : rank_words(task, rank).phases) {
        const Ends& expected = walked.at(phase.phase)[std::size_t(rank)];
        ASSERT_EQ(phase.received.value(), expected.received)
            << text(task) << " " << phase.phase << " rank " << rank;
        ASSERT_EQ(phase.sent.value(), expected.sent)
            << text(task) << " " << phase.phase << " rank " << rank;
        total += expected.received;
      }
    }
    EXPECT_EQ(grid_words(task).total.value(), total) << text(task);
  }
}

TEST(GridWords, SharesAreAllRowsAndKeysOnce) {
  RandomTasks random;
  for (int trial = 0; trial < 500; ++trial) {
    const GridTask task = random(60, 3, 9);
    const auto [n, m, d] = task.problem.shape;
    std::vector<int> of_rows(static_cast<std::size_t>(n)), of_keys(static_cast<std::size_t>(m));
    Index pairs = 0;
    for (Index rank = 0; rank < task.grid.rows * task.grid.columns; ++rank) {
      const RankShare share = share_of_rank(task, rank);
      pairs += share.rows.size() * share.keys.size();
      for (Index k = share.own_rows.begin; k < share.own_rows.end; ++k) {
        ++of_rows[std::size_t(k)];
      }
      for (Index k = share.own_keys.begin; k < share.own_keys.end; ++k) {
        ++of_keys[std::size_t(k)];
      }
      EXPECT_EQ(common(share.own_rows, share.rows), share.own_rows);
      EXPECT_EQ(common(share.own_keys, share.keys), share.own_keys);
    }
    EXPECT_EQ(pairs, n * m) << text(task);
    EXPECT_TRUE(std::ranges::all_of(of_rows, [](int times) { return times == 1; })) << text(task);
    EXPECT_TRUE(std::ranges::all_of(of_keys, [](int times) { return times == 1; })) << text(task);
  }
}

// --- Closed forms --------------------------------------------------------------------------------

// The words of all ranks together, if each rank works and each column has one key group:
//   (row in + out + back) n (columns - 1) + (key in + out) m (rows - 1) + d^2 (P - 1)
TEST(GridWords, TotalsAreTheTableOfProblems) {
  struct Line {
    Pass pass;
    Known known;
    Sharing sharing;
    Index row, key, running;  // for d = 7
  };
  const Line table[] = {
      {Pass::backward, Known::O_and_L, Sharing::none, 2 * 7 + 2, 2 * 7, 49},
      {Pass::backward, Known::O_and_L, Sharing::kv, 2 * 7 + 2, 7, 49},
      {Pass::backward, Known::nothing, Sharing::none, 2 * 7 + 2 + 3, 2 * 7, 49},
      {Pass::forward, Known::O_and_L, Sharing::none, 7 + 8, 2 * 7, 0},
      {Pass::attention, Known::O_and_L, Sharing::kv, 7 + 8, 7, 0},
      {Pass::gradients, Known::O_and_L, Sharing::none, 2 * 7 + 2 + 7, 4 * 7, 0},
      {Pass::gradients, Known::O_and_L, Sharing::kv, 2 * 7 + 2 + 7, 2 * 7, 0},
  };
  for (const auto& [pass, known, sharing, row, key, running] : table) {
    for (const GroupedGrid grid :
         {GroupedGrid{1, 1, 1}, {4, 1, 1}, {1, 5, 5}, {3, 4, 4}, {6, 2, 2}}) {
      const GridTask task{pass, {50, 31, 7, sharing}, known, 8, grid};
      EXPECT_EQ(grid_words(task).total.value(), row * 50 * (grid.columns - 1) +
                                                    key * 31 * (grid.rows - 1) +
                                                    running * (grid.rows * grid.columns - 1))
          << text(task);
    }
  }
}

TEST(GridWords, RingsAreGridsOfOneRowOrColumn) {
  const Index n = 4096, m = 2048, d = 64, P = 8;
  GridTask task{.problem = {n, m, d}, .unit_rows = 32, .grid = {P, 1, 1}};
  const RankWords ring = rank_words(task, 3);
  EXPECT_EQ(ring.received().value(), 2 * d * (m - m / P) + d * d);
  EXPECT_EQ(ring.sent().value(), 2 * d * m / P * (P - 1) + d * d);
  // 3d + 2 own rows (A1, dO, O, L, v), own keys, X and Y, the other keys, and a g for each unit.
  EXPECT_EQ(ring.home.value(), (3 * d + 2) * n / P + 2 * d * m + 2 * d * d + n / P / 32 * d * d);
  EXPECT_EQ(rank_words(task, 0).received().value(), 2 * d * (m - m / P));  // starts the sum
  EXPECT_EQ(rank_words(task, P - 1).sent().value(), 2 * d * m / P * (P - 1));
  task.grid = {1, P, P};
  const RankWords reverse = rank_words(task, 3);
  EXPECT_EQ(reverse.received().value(), (2 * d + 2) * (n - n / P) + d * d);
  // A rank has several key groups. With one row of ranks, the sum stays on it. With more rows, it
  // goes around. With two groups in work, the home need not hold all other keys of the column.
  task.grid = {1, P, 4 * P};
  EXPECT_EQ(rank_words(task, 3).received(), reverse.received());
  task.grid = {P, 1, 16};
  const RankWords staged = rank_words(task, 3);
  EXPECT_EQ(staged.received().value(), 2 * d * (m - m / P) + 16 * d * d);
  EXPECT_EQ(staged.home.value() - staged.staged_home.value(), 2 * d * (m - m / P - 2 * m / 16));
}

// d = 2. Each rank of 2 x 2 owns 2 rows and 2 keys, and works on 4 of each.
TEST(GridWords, HomesHoldWhatIsOwnedCopiedAndMade) {
  const auto home = [](Pass pass, Known known) {
    return rank_words({pass, {8, 8, 2}, known, 4, {2, 2, 2}}, 2).home.value();
  };
  const Index rows = 2, keys = 2;
  const Index parts = 2 + 2 * 2;  // for others' rows (keys), and for all own ones
  // Rows A1, O, L. Keys A2, A3. X and Y. Copies of A1, A2 and A3. Parts of O and L.
  EXPECT_EQ(home(Pass::forward, Known::nothing),
            5 * rows + 4 * keys + 8 + 2 * rows + 4 * keys + 3 * parts);
  // A1, dO, O, L, v. A copy of all except O. One g.
  EXPECT_EQ(home(Pass::backward, Known::O_and_L),
            8 * rows + 4 * keys + 8 + 6 * rows + 4 * keys + 4);
  // A1, dO, L, the mean of q, and copies of them. One g. Maxima and sums. Sums that become W.
  EXPECT_EQ(home(Pass::backward, Known::nothing),
            6 * rows + 4 * keys + 8 + 6 * rows + 4 * keys + 4 + 3 * parts + 4 * 4);
  // Rows Q, dO, O, L, v, dQ. Keys K, V, dK, dV. Copies. Parts of dQ, dK and dV.
  EXPECT_EQ(home(Pass::gradients, Known::O_and_L),
            10 * rows + 8 * keys + 6 * rows + 4 * keys + 2 * parts + 4 * parts);
}

TEST(GridWords, RefuseWhatIsNoGrid) {
  const auto message = [](GroupedGrid grid, Pass pass = Pass::backward) {
    return thrown<ShapeMismatch>([&] {
      grid_words({.pass = pass, .problem = {9, 5, 2}, .grid = grid});
    });
  };
  EXPECT_TRUE(contains(message({2, 3, 2}), "no more columns than key groups"));
  EXPECT_TRUE(contains(message({2, 3, 6}), "no more of these than keys"));
  EXPECT_TRUE(contains(message({0, 3, 3}), "at least one row"));
  EXPECT_TRUE(contains(message({2, 2, 2}, Pass::layer), "no grid for layer"));
}

// --- Next to the lower bounds --------------------------------------------------------------------

// Returns the words that the bound counts: sources, statistics and pairs that are received, and
// partial sums that are sent.
Index charged(const RankWords& words) {
  Words all;
  for (const PhaseLinks& phase : words.phases) {
    if (phase.phase == "running sum") {
      continue;  // g is not a sum of a row or a key
    }
    all += phase.phase == "rows out" || phase.phase == "keys out" ? phase.sent : phase.received;
  }
  return all.value();
}

struct Busiest {
  Index charged = 0;
  Held held;
  Index home = 0;
};
Busiest busiest(const GridTask& task) {
  const Index d = task.problem.shape.d;
  const Index keys = task.problem.sharing == Sharing::kv ? d : 2 * d;
  const bool gradients = task.pass == Pass::gradients;
  const bool forward = task.pass == Pass::forward || task.pass == Pass::attention;
  Busiest most;
  for (Index rank = 0; rank < task.grid.rows * task.grid.columns; ++rank) {
    const RankShare share = share_of_rank(task, rank);
    const RankWords words = rank_words(task, rank);
    const Index n_r = share.own_rows.size(), k_r = share.own_keys.size();
    most.charged = std::max(most.charged, charged(words));
    most.held.sources = std::max(most.held.sources, (forward ? d : 2 * d) * n_r + keys * k_r);
    most.held.results = std::max(
        most.held.results, (forward || gradients ? d : 0) * n_r + (gradients ? keys : 0) * k_r);
    most.home = std::max(most.home, words.staged_home.value());
  }
  return most;
}

TEST(GridWords, AreAboveTheBoundsForARank) {
  RandomTasks random;
  Index near = 0, near_home = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const Index scale = trial % 3;
    const GridTask task = scale == 0   ? random(20, 3, 5)
                          : scale == 1 ? random(500, 8, 12)
                                       : random(20000, 32, 32);
    const Busiest most = busiest(task);
    const RankTask of_rank{task.pass, task.problem, task.grid.rows * task.grid.columns};
    const Index bound = link_bound(of_rank, most.held);
    const Index of_home = small_home_bound(of_rank, most.held,
                                           most.home + 16 * task.problem.shape.d);  // and an arena
    EXPECT_LE(bound, most.charged) << text(task);
    EXPECT_LE(of_home, most.charged) << text(task);
    near += 2 * bound > most.charged ? 1 : 0;
    near_home += 8 * of_home > most.charged ? 1 : 0;
  }
  EXPECT_GT(near, 50);
  EXPECT_GT(near_home, 0);
}

// docs/theory/ranks.md: n = m = 2^20, d = 128, square grids, equal shares held.
TEST(GridWords, ASquareGridIsWithinAFewPercentOfTheBound) {
  struct Line {
    Index ranks;
    double g_ring, g_grid, g_bound, forward_grid, gradients_grid, gradients_ring;  // millions
  };
  const Line table[] = {
      {4, 201.3, 134.7, 134.2, 134.5, 235.4, 303.6},
      {64, 264.2, 58.9, 58.7, 58.8, 103.0, 398.4},
      {1024, 268.2, 16.3, 16.3, 16.3, 28.5, 404.4},
      {4096, 268.4, 8.29, 8.26, 8.27, 14.5, 404.7},
  };
  const Index n = Index{1} << 20, d = 128;
  for (const Line& line : table) {
    const auto near = [](Index words, double millions) {
      EXPECT_NEAR(double(words) / 1e6, millions, millions < 10 ? 0.005 : 0.05);
    };
    const Index side = std::llround(std::sqrt(line.ranks));
    const auto words = [&](Pass pass, GroupedGrid grid) {
      return charged(
          rank_words({.pass = pass, .problem = {n, n, d}, .unit_rows = 64, .grid = grid}, 0));
    };
    const auto bound = [&](Pass pass) {
      const RankTask task{pass, {n, n, d}, line.ranks};
      return link_bound(task, equal_shares(task));
    };
    const GroupedGrid square{side, side, side}, ring{line.ranks, 1, 1},
        reverse{1, line.ranks, line.ranks};
    const auto over = [&](Pass pass) { return double(words(pass, square)) / double(bound(pass)); };
    near(words(Pass::backward, ring), line.g_ring);
    near(words(Pass::backward, square), line.g_grid);
    near(bound(Pass::backward), line.g_bound);
    near(words(Pass::forward, square), line.forward_grid);
    near(words(Pass::gradients, square), line.gradients_grid);
    near(words(Pass::gradients, reverse), line.gradients_ring);
    for (const auto& [pass, most] :
         {std::pair{Pass::backward, 1.005}, {Pass::forward, 1.003}, {Pass::gradients, 1.03}}) {
      EXPECT_GE(over(pass), 1) << line.ranks << " " << to_string(pass);
      EXPECT_LE(over(pass), most) << line.ranks << " " << to_string(pass);
    }
  }
}

// The same for homes with a multiple of 4nd / P words. They hold the rows of the rank, its own keys
// and stages of keys, but no parts of g. The grid of 1024 ranks has the fewest rows that such homes
// allow.
TEST(GridWords, InSmallHomesAreNearTheBound) {
  const Index n = Index{1} << 20, d = 128, P = 1024;
  struct Line {
    Index shares, rows;
    double over;
  };
  for (const auto& [shares, rows, over] :
       {Line{2, 512, 2.02}, {8, 128, 2.16}, {16, 64, 1.26}, {32, 32, 1.004}}) {
    const Index home = shares * 4 * n * d / P;
    const auto fits = [&](Index of_rows) {
      return (2 * d + 2) * (n / of_rows) + 2 * d * (n / P) + 2 * 2 * d <= home;
    };
    EXPECT_TRUE(fits(rows)) << shares;
    EXPECT_TRUE(rows == 32 || !fits(rows / 2)) << shares;
    const Index columns = P / rows;
    const Index words = charged(
        rank_words({.problem = {n, n, d}, .unit_rows = 64, .grid = {rows, columns, columns}}, 0));
    const RankTask task{Pass::backward, {n, n, d}, P};
    const Held held = equal_shares(task);
    const Index bound = std::max(link_bound(task, held), small_home_bound(task, held, home));
    EXPECT_LE(bound, words);
    EXPECT_NEAR(double(words) / double(bound), over, 0.005) << shares;
  }
}

}  // namespace
}  // namespace redblue
