// gradients/resident keeps the keys that the next block of queries also meets.
// gradients/resident-queries keeps the queries that the next block of keys also meets.
//
//   - What comes into fast memory is read each time, and its sums are written each time. From the
//     second time on the sums are read, too. A walk over sets of keys or queries counts the times.
//   - Under a window, each word moves once as soon as one query and all its keys fit in fast
//   memory,
//     or one key and all its queries. With one word of M less, more words move.
//   - With room for all keys, or all queries, each word moves once under every mask.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/masked.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

const std::string kKeysStay = "gradients/resident", kQueriesStay = "gradients/resident-queries";

TestedKernel kernel_under(const std::string& name, const Mask& mask) {
  TestedKernel kernel = tested_kernel(name);
  kernel.mask = mask;
  return kernel;
}

Index words_moved(const PhaseCost& cost) {
  return (cost.reads + cost.writes).value();
}
Index words_moved(const TestedKernel& kernel, const Shape& shape, Index M) {
  return words_moved(total(kernel.plan(shape, M).phases));
}

std::vector<Index> numbers_in(const Ranges& ranges) {
  std::vector<Index> all;
  for (const Range range : ranges) {
    for (Index k = range.begin; k < range.end; ++k) {
      all.push_back(k);
    }
  }
  return all;
}

// Returns how often others come into fast memory, with room for `room` of them from one block of
// `step` rows to the next. Others that were there before stay first. Then the smallest stay.
template <class Meets>
Index arrivals_of(const std::vector<Index>& rows, const std::vector<Index>& others, Index step,
                  Index room, const Meets& meets) {
  const Index n = std::ssize(rows);
  const auto met = [&](Index first) {
    std::set<Index> some;
    for (Index k = first; k < std::min(first + step, n); ++k) {
      std::ranges::copy_if(others, std::inserter(some, some.end()), [&](Index other) {
        return meets(rows[static_cast<std::size_t>(k)], other);
      });
    }
    return some;
  };
  Index count = 0;
  std::set<Index> held;
  for (Index first = 0; first < n; first += step) {
    const std::set<Index> here = met(first), next = met(first + step);
    std::set<Index> stay;
    for (const bool old : {true, false}) {
      for (const Index other : here) {
        if (held.contains(other) == old && next.contains(other) && std::ssize(stay) < room) {
          stay.insert(other);
        }
      }
    }
    count += std::ranges::count_if(here, [&](Index other) { return !held.contains(other); });
    held = stay;
  }
  return count;
}

TEST(ResidentGradients, ReadOperandsEachTimeThatTheyCome) {
  RandomMasks random(61);
  int partly_keys = 0, partly_queries = 0;
  for (int k = 0; k < 300; ++k) {
    const Shape shape{random.any(1, 50), random.any(1, 50), random.any(1, 5), random.any(1, 5)};
    const auto [mask, table, kept] = random.expression(shape.n, shape.m);
    const TestedKernel of_keys = kernel_under(kKeysStay, mask),
                       of_queries = kernel_under(kQueriesStay, mask);
    const Problem problem = of_keys.problem(shape);
    const std::vector<Index> queries = numbers_in(problem.live_queries()),
                             keys = numbers_in(problem.live_keys());
    const Index n = std::ssize(queries), m = std::ssize(keys), d = shape.d, dv = shape.dv;
    if (n == 0) {
      continue;
    }
    const Index rows = random.any(1, n), columns = random.any(1, m);
    const Index room = random.any(1, m), room_of_queries = random.any(1, n);
    {
      const auto meets = [&, &pairs = table](Index i, Index j) { return pairs.at(i, j); };
      const Index P = room == m ? m : arrivals_of(queries, keys, rows, room, meets);
      const PhaseCost core =
          of_keys.cost(shape, {{"Br", rows}, {"Bc", 3}, {"resident", room}}).at(0);
      EXPECT_EQ(core.reads.value() - core.index_reads.value(),
                n * (d + 2 * dv + 1) + (2 * P - m) * (d + dv));
      EXPECT_EQ(core.writes, Words(n * d + P * (d + dv)));
      partly_keys += m < P && room > 1 ? 1 : 0;
    }
    const auto meets = [&, &pairs = table](Index j, Index i) { return pairs.at(i, j); };
    const Index P =
        room_of_queries == n ? n : arrivals_of(keys, queries, columns, room_of_queries, meets);
    const PhaseCost core =
        of_queries.cost(shape, {{"Br", 3}, {"Bc", columns}, {"resident", room_of_queries}}).at(0);
    EXPECT_EQ(core.reads.value() - core.index_reads.value(),
              P * (d + dv + 1) + n * dv + (P - n) * (d + 1) + m * (d + dv));
    EXPECT_EQ(core.writes, Words(P * d + (P > n ? n : 0) + m * (d + dv)));
    partly_queries += n < P && room_of_queries > 1 ? 1 : 0;
  }
  EXPECT_GT(partly_keys, 50);
  EXPECT_GT(partly_queries, 50);
}

TEST(ResidentGradients, MoveEachWordOnceAsSoonAsAWindowFits) {
  for (const auto& [left, right] : {std::pair<Index, Index>{9, 0}, {4, 4}, {0, 6}, {17, 2}}) {
    const Index n = 120, d = 8, all = left + right + 1;
    const Index of_key = 4 * d, of_query = 3 * d + 2, strips = 2 + 2 * d;
    const Mask window = Mask::window(n, n, left, right);
    for (const auto& [name, M] : {std::pair(kKeysStay, all * of_key + of_query),
                                  std::pair(kQueriesStay, of_key + all * of_query)}) {
      const TestedKernel kernel = kernel_under(name, window);
      EXPECT_EQ(words_moved(kernel, {n, n, d}, M + strips), 8 * n * d + n) << name;
      EXPECT_GT(words_moved(kernel, {n, n, d}, M + strips - 1), 8 * n * d + n) << name;
    }
  }
}

TEST(ResidentGradients, MoveTheWordsOfTheirPage) {
  const Shape shape{2048, 2048, 64};
  const Index n = shape.n, d = shape.d, M = 131072, once = 8 * n * d + n;
  for (const std::string& name : {kKeysStay, kQueriesStay}) {
    EXPECT_EQ(words_moved(kernel_under(name, Mask::window(n, n, 200, 200)), shape, M), once)
        << name;
    EXPECT_EQ(words_moved(kernel_under(name, Mask::window(n, n, 300, 0)), shape, M), once) << name;
    const Index causal = words_moved(kernel_under(name, Mask::causal(n, n)), shape, M);
    EXPECT_GT(causal, once) << name;
    EXPECT_LE(causal, 2'100'000) << name;
  }
}

// Four heads of queries share the keys of a window. Sums have two words.
TEST(ResidentGradients, OfHeadsThatShareKeysMoveEachWordOnce) {
  const Index n = 2048, heads = 4, d = 16, left = 127;
  Problem one = tested_kernel(kKeysStay).problem({n, n, d});
  one.mask = Mask::window(n, n, left, 0);
  one.sum_words = 2;
  const Problem all = one.with_stacked(heads);
  const Plan plan = find_kernel(kKeysStay).plan(all, left * 6 * d + 4096);
  EXPECT_TRUE(is_clustered(plan.blocks));
  EXPECT_EQ(words_moved(total(plan.phases)), heads * n * (4 * d + 2) + 4 * n * d);
}

TEST(ResidentGradients, WithRoomForAllMoveEachWordOnce) {
  RandomMasks random(62);
  for (int k = 0; k < 100; ++k) {
    const Shape shape{random.any(1, 60), random.any(1, 60), random.any(1, 6)};
    const Mask mask = random.expression(shape.n, shape.m).mask;
    const Problem problem = kernel_under(kKeysStay, mask).problem(shape);
    const Index queries = size_of(problem.live_queries()), keys = size_of(problem.live_keys());
    if (queries == 0) {
      continue;
    }
    for (const auto& [name, room] :
         {std::pair(kKeysStay, keys), std::pair(kQueriesStay, queries)}) {
      const PhaseCost core =
          kernel_under(name, mask)
              .cost(shape, {{"Br", random.any(1, 20)}, {"Bc", 2}, {"resident", room}})
              .at(0);
      EXPECT_EQ(core.reads.value() - core.index_reads.value(),
                (3 * queries + 2 * keys) * shape.d + queries);
      EXPECT_EQ(core.writes, Words((queries + 2 * keys) * shape.d));
    }
  }
}

}  // namespace
}  // namespace redblue
