// Tests lower bounds for a rank. The fewest words over rectangles are computed in other arithmetic.
// No assignment of products to ranks is below the bounds: all assignments of a few pairs, and the
// assignments that a search finds. No words make more pairs than the proof says. A rank's kernel is
// above the bound for its arena.

#include "runtime/theory/rank_bounds.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "tests/support/tested_kernel.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

constexpr Pass kRankPasses[] = {Pass::forward, Pass::attention, Pass::backward, Pass::gradients};

std::string text(const RankTask& task) {
  const auto [n, m, d] = task.problem.shape;
  return fmt::format("{} {} n={} m={} d={} P={}", to_string(task.pass),
                     task.problem.sharing == Sharing::kv ? "kv" : "", n, m, d, task.ranks);
}

// The words of a row and of a column, over d, written again.
std::pair<Index, Index> sides(const RankTask& task) {
  const bool kv = task.problem.sharing == Sharing::kv;
  return task.pass == Pass::gradients ? std::pair<Index, Index>{3, kv ? 2 : 4}
                                      : std::pair<Index, Index>{2, kv ? 1 : 2};
}

// --- The minimisation --------------------------------------------------------------------------

// Minimises max(a R d + b C d - held, 0) for the rows and columns, plus 1 for each pair outside R
// C. R <= n and C <= m are real. It tries many R, and for each R the values of C where a piece
// ends.
double least_over_rectangles(const RankTask& task, double held) {
  const auto [n, m, d] = task.problem.shape;
  const auto [a, b] = sides(task);
  const double F = double(n) * double(m) / double(task.ranks);
  const double of_row = double(a * d), of_column = double(b * d);
  double least = F;
  constexpr int kSteps = 20000;
  for (int step = 1; step <= kSteps; ++step) {
    const double R = double(n) * step / kSteps;
    // The function is linear in C between these values.
    for (const double C : {0.0, (held - of_row * R) / of_column, F / R}) {
      const double columns = std::clamp(C, 0.0, double(m));
      least = std::min(least, std::max(of_row * R + of_column * columns - held, 0.0) +
                                  std::max(F - R * columns, 0.0));
    }
  }
  return least;
}

TEST(RankBounds, AreTheFewestWordsOverAllRectangles) {
  std::mt19937 random(3);
  const auto size = [&](double most) {
    return std::max<Index>(
        1, std::llround(std::exp2(std::uniform_real_distribution<>(0, std::log2(most))(random))));
  };
  for (int trial = 0; trial < 400; ++trial) {
    RankTask task{.pass = kRankPasses[trial % 4],
                  .problem = {size(3000), size(3000), size(30)},
                  .ranks = size(100)};
    task.problem.sharing = trial % 3 == 0 ? Sharing::kv : Sharing::none;
    const Held equal = equal_shares(task);
    for (const Index held : {Index{0}, equal.sources + equal.results, size(1e5)}) {
      const double least = least_over_rectangles(task, double(held));
      const Index bound = link_bound(task, {held, 0});
      EXPECT_LE(double(bound) - 1, least * (1 + 1e-9)) << text(task) << " held " << held;
      EXPECT_GE(double(bound), least - 0.001 * (least + double(held)))
          << text(task) << " held " << held;
    }
  }
}

TEST(RankBounds, HaveTheirClosedForms) {
  // F = 2^34 pairs: 4 d sqrt(F) words, minus the held 4 n d / P.
  const Index n = 1 << 20, d = 128;
  const RankTask g{Pass::backward, {n, n, d}, 64};
  EXPECT_EQ(equal_shares(g).sources, 4 * n * d / 64);
  EXPECT_EQ(link_bound(g, equal_shares(g)), 4 * d * (Index{1} << 17) - 4 * n * d / 64);
  // Few queries: the rectangle has all of them, and F / n columns.
  const RankTask few{Pass::backward, {1024, n, d}, 64};
  EXPECT_EQ(link_bound(few, {}), 2 * d * (1024 + n / 64));
  // d^2 is far above F, so each pair crosses a link.
  const RankTask crossing{Pass::gradients, {64, 64, d}, 64};
  EXPECT_EQ(link_bound(crossing, {}), 64);
  // A rank that holds everything can compute everything.
  EXPECT_EQ(link_bound(g, {.sources = 4 * n * d}), 0);
  EXPECT_EQ(link_bound({Pass::backward, {n, n, d}, 1}, {.sources = 4 * n * d}), 0);
  // Only live pairs count.
  RankTask causal = g;
  causal.problem = causal.problem.with_mask(Mask::causal(n, n));
  const double F = double(n) * double(n + 1) / 2 / 64;
  EXPECT_NEAR(double(link_bound(causal, {})), 4 * double(d) * std::sqrt(F), 2);
}

TEST(RankBounds, FallWithRanksAndWithWhatTheyHold) {
  std::mt19937 random(5);
  const auto size = [&](Index most) {
    return std::uniform_int_distribution<Index>(1, most)(random);
  };
  for (int trial = 0; trial < 300; ++trial) {
    RankTask task{kRankPasses[trial % 4], {size(4000), size(4000), size(64)}, size(50)};
    const Held held{size(20000), size(1000)};
    const Index words = held.sources + size(100000);
    RankTask more = task;
    more.ranks += size(9);
    EXPECT_GE(link_bound(task, held), link_bound(more, held));
    EXPECT_GE(link_bound(task, held), link_bound(task, {held.sources + 1, held.results}));
    EXPECT_GE(small_home_bound(task, held, words), small_home_bound(more, held, words));
    EXPECT_GE(small_home_bound(task, held, words), small_home_bound(task, held, 2 * words));
    EXPECT_GE(arena_bound(task, words), arena_bound(more, words));
    EXPECT_GE(arena_bound(task, words), arena_bound(task, words + 1));
  }
}

// --- All assignments of a few pairs ------------------------------------------------------------

// A part of a pair is its product with one word of a result. For backward it is p_ij itself. For
// forward it is e_ij with h_jk. For gradients it is f_ij with dO_ik, and p_ij with Q_ik and K_jk. A
// rank computes it from all words that it needs, or from a received word of the pair. A received
// word serves all parts of the pair on that rank.
struct Part {
  std::uint64_t needs;  // words of rows and columns, as bits
  int pair;
  double share;  // share of the pair, in the proof
};

struct Parts {
  explicit Parts(const RankTask& task) {
    const Index n = task.problem.shape.n, m = task.problem.shape.m, d = task.problem.shape.d;
    const bool kv = task.problem.sharing == Sharing::kv;
    const auto bits = [&] {  // d new words
      const std::uint64_t made = ((std::uint64_t{1} << d) - 1) << words;
      words += static_cast<int>(d);
      return made;
    };
    struct Side {
      std::uint64_t first, second, sum, other_sum;
    };
    std::vector<Side> rows, columns;
    for (Index i = 0; i < n; ++i) {
      rows.push_back({bits(), task.pass == Pass::forward ? 0 : bits(),
                      task.pass == Pass::backward ? 0 : bits(), 0});
    }
    for (Index j = 0; j < m; ++j) {
      const bool sums = task.pass == Pass::gradients;
      Side column{bits(), 0, sums ? bits() : 0, 0};
      column.second = kv ? column.first : bits();
      column.other_sum = kv || !sums ? column.sum : bits();
      columns.push_back(column);
    }
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < m; ++j) {
        if (task.problem.pairs({i, i + 1}, {j, j + 1}) == Words(0)) {
          continue;
        }
        const auto& [A1, dO, row_sum, none] = rows[std::size_t(i)];
        const auto& [A2, A3, dK, dV] = columns[std::size_t(j)];
        const int pair = pairs++;
        if (task.pass == Pass::backward) {
          all.push_back({A1 | dO | A2 | A3, pair, 1.0});
          continue;
        }
        for (Index k = 0; k < d; ++k) {
          const auto word = [&](std::uint64_t of) {  // word k of d
            return of & (std::uint64_t{1} << (std::countr_zero(of) + k));
          };
          if (task.pass == Pass::forward) {
            all.push_back({A1 | A2 | word(A3) | word(row_sum), pair, 1.0 / double(d)});
            continue;
          }
          all.push_back({A1 | dO | A2 | A3 | word(row_sum), pair, 0.5 / double(d)});
          all.push_back({A1 | dO | A2 | A3 | word(dK), pair, 0.25 / double(d)});
          all.push_back({A1 | A2 | word(dO) | word(dV), pair, 0.25 / double(d)});
        }
      }
    }
  }

  std::vector<Part> all;
  int words = 0;
  int pairs = 0;
};

// The words of rows and columns, and the pairs, that a rank has.
struct OnRank {
  std::uint64_t words = 0, pairs = 0;

  // The held words are the best possible ones for the rank. So this is no more than the words that
  // it moves, wherever words start and results stay.
  [[nodiscard]] Index moved(Index held) const {
    return std::max<Index>(std::popcount(words) - held, 0) + std::popcount(pairs);
  }
};
using Ranks = std::vector<OnRank>;

Index largest(const Ranks& ranks, Index held) {
  Index most = 0;
  for (const OnRank& rank : ranks) {
    most = std::max(most, rank.moved(held));
  }
  return most;
}

// least[held] is the fewest words of the largest rank, over all ways to compute the parts from
// `next` on. A way is abandoned if it is no better for any number of held words.
void assign(const Parts& parts, std::size_t next, Ranks& ranks, std::vector<Index>& least) {
  bool better = false;
  for (Index held = 0; held < std::ssize(least); ++held) {
    Index& fewest = least[std::size_t(held)];
    const Index now = largest(ranks, held);
    better = better || now < fewest;
    if (next == parts.all.size()) {
      fewest = std::min(fewest, now);
    }
  }
  if (!better || next == parts.all.size()) {
    return;
  }
  const Part& part = parts.all[next];
  for (OnRank& rank : ranks) {
    const OnRank before = rank;
    rank.pairs |= std::uint64_t{1} << part.pair;
    assign(parts, next + 1, ranks, least);
    rank = before;
    rank.words |= part.needs;
    assign(parts, next + 1, ranks, least);
    rank = before;
    if (before.words == 0 && before.pairs == 0) {
      break;  // empty ranks are alike
    }
  }
}

TEST(RankBounds, AreBelowEveryAssignmentOfAFewPairs) {
  struct Case {
    Pass pass;
    Index n, m, d, ranks;
    bool causal = false;
  };
  const Case cases[] = {
      {Pass::backward, 2, 2, 1, 2},        {Pass::backward, 3, 2, 1, 2},
      {Pass::backward, 3, 3, 1, 2},        {Pass::backward, 3, 3, 1, 3},
      {Pass::backward, 1, 3, 1, 3},        {Pass::backward, 3, 3, 2, 2},
      {Pass::forward, 2, 2, 1, 2},         {Pass::forward, 2, 3, 1, 3},
      {Pass::forward, 3, 3, 1, 2},         {Pass::forward, 2, 2, 2, 2},
      {Pass::forward, 2, 3, 2, 2},         {Pass::forward, 2, 2, 3, 2},
      {Pass::gradients, 2, 2, 1, 2},       {Pass::gradients, 1, 3, 1, 3},
      {Pass::gradients, 2, 2, 1, 3},       {Pass::gradients, 1, 2, 2, 2},
      {Pass::gradients, 2, 3, 1, 2},       {Pass::gradients, 3, 2, 1, 2},
      {Pass::backward, 3, 3, 1, 2, true},  {Pass::forward, 3, 3, 1, 3, true},
      {Pass::gradients, 2, 2, 1, 2, true},
  };
  Index met = 0;
  for (const auto& [pass, n, m, d, ranks, causal] : cases) {
    for (const Sharing sharing : {Sharing::none, Sharing::kv}) {
      RankTask task{pass, {n, m, d, sharing}, ranks};
      task.problem.mask = causal ? Mask::causal(n, m) : Mask();
      const Parts parts(task);
      std::vector<Index> least(std::size_t(parts.words) + 1, std::numeric_limits<Index>::max());
      Ranks none(static_cast<std::size_t>(ranks));
      assign(parts, 0, none, least);
      for (Index held = 0; held <= parts.words; ++held) {
        const Index bound = link_bound(task, {held, 0});
        const Index fewest = least[std::size_t(held)];
        EXPECT_LE(bound, fewest) << text(task) << " held " << held;
        met += bound > 0 && bound == fewest ? 1 : 0;
      }
    }
  }
  EXPECT_GT(met, 150);  // the bound is often exact
}

// --- What words make ---------------------------------------------------------------------------

// The lemma on rectangles: B words of rows and columns, whichever they are, make at most (B / d)^2
// / (4 a b) shares of whole pairs. If one side has ended, the other side limits them.
double most_shares(const RankTask& task, double words) {
  const auto [n, m, d] = task.problem.shape;
  const auto [a, b] = sides(task);
  const double of_row = double(a * d), of_column = double(b * d);
  const bool rows_end = of_row * double(n) <= of_column * double(m);
  const double each = rows_end ? of_row : of_column, other = rows_end ? of_column : of_row;
  const double end = double(rows_end ? n : m);
  return words <= 2 * each * end ? words * words / (4 * each * other)
                                 : end * (words - each * end) / other;
}

TEST(RankBounds, NoWordsMakeMorePairsThanARectangle) {
  std::mt19937 random(13);
  const auto below = [&](int most) { return std::uniform_int_distribution<>(0, most - 1)(random); };
  double nearest = 1e9;
  for (int trial = 0; trial < 600; ++trial) {
    const Pass pass =
        std::array{Pass::backward, Pass::forward, Pass::gradients}[std::size_t(trial) % 3];
    RankTask task{pass, {1 + below(4), 1 + below(4), 1 + below(2)}, 1};
    task.problem.sharing = below(2) == 0 ? Sharing::kv : Sharing::none;
    const Parts parts(task);
    const auto excess = [&](std::uint64_t words) {
      double shares = 0;
      for (const Part& part : parts.all) {
        shares += (part.needs & ~words) == 0 ? part.share : 0;
      }
      return shares - most_shares(task, std::popcount(words));
    };
    std::uint64_t words = (std::uint64_t{1} << parts.words) - 1;
    double most = excess(words);
    for (int step = 0; step < 1000; ++step) {
      std::uint64_t other = words;
      for (int bits = 1 + below(4); bits > 0; --bits) {
        other ^= std::uint64_t{1} << below(parts.words);
      }
      const double of_other = excess(other);
      ASSERT_LE(of_other, 1e-9) << text(task);
      if (of_other >= most || below(20) == 0) {
        words = other;
        most = of_other;
      }
      nearest = std::min(nearest, -of_other);
    }
  }
  EXPECT_LT(nearest, 1e-9);  // rectangles reach the limit
}

// --- A search where pairs are made whole ---------------------------------------------------------

TEST(RankBounds, AreBelowWhatASearchFinds) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t size) {
    return std::uniform_int_distribution<std::size_t>(0, size - 1)(random);
  };
  for (int trial = 0; trial < 60; ++trial) {
    const Pass pass = std::array{Pass::backward, Pass::forward, Pass::gradients}[below(3)];
    const Index n = pass == Pass::gradients ? 6 : 8, d = 1;
    const auto rows = Index(1 + below(2)), columns = Index(1 + below(2));
    const RankTask task{pass, {n, n, d}, rows * columns};
    const Parts parts(task);
    const Index held = Index(below(std::size_t(parts.words)));
    const Index bound = link_bound(task, {held, 0});
    // Starts with a grid. Then moves part after part to another rank if that does not increase the
    // words.
    struct Choice {
      std::size_t rank;
      bool made;
    };
    std::vector<Choice> choices;
    for (const Part& part : parts.all) {
      const Index i = part.pair / n, j = part.pair % n;
      choices.push_back({std::size_t(i * rows / n * columns + j * columns / n), below(8) != 0});
    }
    const auto moved = [&] {
      Ranks ranks(std::size_t(task.ranks));
      for (std::size_t k = 0; k < choices.size(); ++k) {
        OnRank& rank = ranks[choices[k].rank];
        (choices[k].made ? rank.words : rank.pairs) |=
            choices[k].made ? parts.all[k].needs : std::uint64_t{1} << parts.all[k].pair;
      }
      return largest(ranks, held);
    };
    Index fewest = moved();
    for (int step = 0; step < 4000; ++step) {
      Choice& choice = choices[below(choices.size())];
      const Choice before = choice;
      choice = {below(std::size_t(task.ranks)), below(3) != 0};
      const Index now = moved();
      if (now > fewest) {
        choice = before;
      } else {
        fewest = now;
      }
    }
    EXPECT_LE(bound, fewest) << text(task) << " held " << held;
  }
}

// --- Arenas --------------------------------------------------------------------------------------

// In a grid with equal n_i and equal m_j, each rank runs a kernel on n_i rows and m_j keys.
TEST(RankBounds, AreBelowTheKernelsOfARank) {
  std::mt19937 random(11);
  const auto size = [&](Index most) {
    return std::uniform_int_distribution<Index>(1, most)(random);
  };
  Index near = 0;
  for (const TestedKernel& kernel : tested_kernels()) {
    const Pass pass = kernel.kernel->pass;
    if (std::ranges::find(kRankPasses, pass) == std::end(kRankPasses) ||
        kernel.kernel->takes_sparse || kernel.sharing == Sharing::self) {
      continue;
    }
    for (int trial = 0; trial < 20; ++trial) {
      const Shape of_rank{size(300), size(300), size(24)};
      const Index rows = size(5), columns = size(5);
      const Index M = kernel.least_M(of_rank) + size(3000);
      const PhaseCost all = total(kernel.plan(of_rank, M).phases);
      const Index moved = (all.reads + all.writes).value();
      const RankTask task{
          pass, {of_rank.n * rows, of_rank.m * columns, of_rank.d, kernel.sharing}, rows * columns};
      const Index bound = arena_bound(task, M);
      EXPECT_LE(bound, moved) << kernel.name << " " << text(task) << " M=" << M;
      near += 4 * bound > moved ? 1 : 0;
    }
  }
  EXPECT_GT(near, 0);
}

// --- Errors --------------------------------------------------------------------------------------

TEST(RankBounds, RefuseWhatHasNone) {
  const auto message = [](const RankTask& task) {
    return thrown<ShapeMismatch>([&] { link_bound(task, {}); });
  };
  EXPECT_TRUE(contains(message({Pass::layer, {4, 4, 4}, 2}), "no bound for ranks of layer"));
  EXPECT_TRUE(contains(message({Pass::backward, {4, 4, 4}, 0}), "at least one rank"));
  EXPECT_TRUE(contains(message({Pass::backward, {0, 4, 4}, 2}), "at least 1"));
  EXPECT_TRUE(contains(message({Pass::backward, {4, 4, 4, Sharing::self}, 2}), "A1 = A2"));
  Problem some(4, 4, 4);
  some.wanted = {"dQ"};
  EXPECT_TRUE(contains(message({Pass::gradients, some, 2}), "some results"));
  EXPECT_TRUE(contains(thrown<ShapeMismatch>([] {
                         arena_bound({Pass::backward, {4, 4, 4}, 2}, 0);
                       }),
                       "M is"));
}

}  // namespace
}  // namespace redblue
