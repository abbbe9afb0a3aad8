// Queries that meet the most keys can stay in fast memory through all row blocks of the others.
//
//   - Staying queries come after all others, in whatever order the others are. No other query meets
//     more keys.
//   - A kernel moves the words of its formulas and returns the same results with any number of
//   them.
//     It moves the words of the other queries alone. It also moves each word of staying queries,
//     and of keys that only they meet, once. Index words are those of the others in their groups,
//     and those of one group.
//   - By default, the queries before the largest step in the numbers of keys stay.

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/masked.hpp"
#include "kernels/registry.hpp"
#include "memsim/errors.hpp"
#include "runtime/report/nest_report.hpp"
#include "tests/support/print.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

std::vector<Index> numbers(const std::vector<Range>& ranges) {
  std::vector<Index> all;
  for (const Range range : ranges) {
    for (Index k = range.begin; k < range.end; ++k) {
      all.push_back(k);
    }
  }
  return all;
}

// Returns the `count` queries that meet the most keys, in order. If queries are equal, it takes the
// first.
std::vector<Index> meeting_most(const Mask& mask, const std::vector<Index>& queries, Index count) {
  std::vector<Index> all = queries;
  std::ranges::stable_sort(all, std::ranges::greater(), [&](Index i) {
    return mask.pairs({i, i + 1}, {0, mask.keys()}).value();
  });
  all.resize(static_cast<std::size_t>(count));
  std::ranges::sort(all);
  return all;
}

TEST(StayingRows, ComeLast) {
  RandomMasks random(41);
  for (int k = 0; k < 500 && !testing::Test::HasFailure(); ++k) {
    const Index n = random.any(1, 60);
    const Mask mask = random.expression(n, random.any(1, 40)).mask;
    const Index last = random.any(0, n);
    const Index size = random.any(0, n);
    const auto made = mask.clustered(size, last);
    std::vector<Index> order = numbers(made->order);
    ASSERT_EQ(order.size(), static_cast<std::size_t>(n));
    for (Index at = 0; at < n; ++at) {
      const Index i = order[static_cast<std::size_t>(at)];
      EXPECT_EQ(made->mask.keys({at, at + 1}), mask.keys({i, i + 1}));
    }
    std::vector<Index> all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), Index{0});
    EXPECT_EQ(std::vector<Index>(order.end() - last, order.end()), meeting_most(mask, all, last));
    EXPECT_TRUE(size > 0 || std::is_sorted(order.begin(), order.end() - last));
    std::ranges::sort(order);
    EXPECT_EQ(order, all);
    EXPECT_EQ(mask.clustered(size, last), made) << "made once";
  }
}

TEST(StayingRows, AreThoseBeforeTheLargestStep) {
  const Index n = 1000;
  const auto found = [](const Mask& mask) { return mask.staying_queries(); };
  EXPECT_EQ(found(Mask::window(n, n, 9, 9) | Mask::global(n, n, {3, 7})), 4);
  EXPECT_EQ(found(Mask::layout({12, 20, 2, 5, {0, 1, 2, 6, 7, 8, 9}, {0, 1, 0, 1, 2, 3, 2, 3, 0}})),
            2);
  // Masks with few steps, or with small ones.
  EXPECT_EQ(found(Mask::all(n, n)), 0);
  EXPECT_EQ(found(Mask::causal(n, n)), 0);
  EXPECT_EQ(found(Mask::window(n, n, 9, 0)), 0);
  EXPECT_EQ(found(Mask::documents({0, 10, 30}, {0, 10, 25})), 0);
}

// All queries are sorted by their numbers of keys, the largest first. The queries before the
// largest step stay. Such a step must go down to a half or less, and cut no run.
TEST(StayingRows, AreThoseOfAPlainSort) {
  RandomMasks random(45);
  int found = 0;
  for (int k = 0; k < 300; ++k) {
    const Index n = random.any(1, 60);
    const Mask mask = random.expression(n, random.any(1, 40)).mask;
    struct Meets {
      Index keys, query;
    };
    std::vector<Meets> sorted;
    for (Index i = 0; i < n; ++i) {
      sorted.push_back({size_of(mask.keys({i, i + 1})), i});
    }
    std::ranges::stable_sort(sorted, std::ranges::greater(), &Meets::keys);
    const auto cuts_no_run = [&](std::vector<Meets>::iterator at) {
      return std::ranges::all_of(mask.runs(), [&](const MaskRun& run) {
        const auto before = std::count_if(sorted.begin(), at, [&](const Meets& meets) {
          return run.queries.begin <= meets.query && meets.query < run.queries.end;
        });
        return before == 0 || before == run.queries.size();
      });
    };
    Index expected = 0;
    Index largest = 0;
    for (auto next = sorted.begin() + 1; next < sorted.end(); ++next) {
      const Index most = (next - 1)->keys;
      if (2 * next->keys <= most && most - next->keys > largest && cuts_no_run(next)) {
        expected = next - sorted.begin();
        largest = most - next->keys;
      }
    }
    EXPECT_EQ(mask.staying_queries(), expected) << "case " << k;
    found += expected > 0 ? 1 : 0;
  }
  EXPECT_GT(found, 50);
}

std::vector<std::string> staying_names() {
  std::vector<std::string> names;
  for (const TestedKernel& kernel : tested_kernels()) {
    if (kernel.kernel->fitting.rows_stay) {
      names.push_back(kernel.name);
    }
  }
  return names;
}

// Returns a plan with staying rows, clustered or in their original order, with the least M that it
// takes.
Plan staying_plan(const TestedKernel& kernel, const Shape& shape, RandomMasks& random) {
  Blocks blocks{{"Br", random.any(1, shape.n + 2)},
                {"Bc", random.any(1, 9)},
                {"resident", random.any(1, shape.m)}};
  for (const OptionalBlock& optional : kernel.kernel->fitting.optional_blocks) {
    if (random.any(0, 1) == 1) {
      blocks.add(std::string(optional.name), random.any(1, shape.d));
    }
  }
  blocks.add(std::string(kStaying), random.any(1, shape.n + 2));
  if (random.any(0, 1) == 1) {
    blocks.add(std::string(kClustered), random.any(1, shape.n));
  }
  return kernel.plan(shape, total(kernel.cost(shape, blocks)).peak.value(), blocks);
}

class StayingKernel : public testing::TestWithParam<std::string> {};

TEST_P(StayingKernel, MovesAndReturnsWhatItSays) {
  RandomMasks random(42);
  for (int k = 0; k < 400 && !HasFailure(); ++k) {
    const Shape shape{random.any(1, 40), random.any(1, 40), random.any(1, 9)};
    TestedKernel kernel = tested_kernel(GetParam());
    kernel.mask = random.expression(shape.n, shape.m).mask;
    if (kernel.mask.full()) {
      continue;
    }
    const Plan plan = staying_plan(kernel, shape, random);
    SCOPED_TRACE(to_string(plan) + " case " + std::to_string(k));
    const TestProblem problem = make_problem(kernel, shape, 1 + static_cast<std::uint64_t>(k), 2);
    const Result result = run_kernel(kernel, plan, problem);
    std::map<std::string, Words> of_nest;
    for (const NestLine& line : report_nest(plan).lines) {
      of_nest[line.phase] += line.reads + line.writes;
    }
    for (const PhaseCost& phase : plan.phases) {
      EXPECT_EQ(of_nest[phase.path], phase.reads + phase.writes) << phase.path;
      const auto found = std::ranges::find(result.phases, phase.path, &PhaseCounts::path);
      ASSERT_NE(found, result.phases.end()) << phase.path;
      EXPECT_EQ(found->io.reads, phase.reads.value()) << phase.path;
      EXPECT_EQ(found->io.writes, phase.writes.value()) << phase.path;
      EXPECT_EQ(found->indices.reads, phase.index_reads.value()) << phase.path;
      EXPECT_GE(found->operations.flops, phase.flops.value()) << phase.path;
      EXPECT_LE(found->peak, phase.peak.value()) << phase.path;
    }
    const Verified verdict = verify(kernel, plan, problem, result.returned);
    EXPECT_TRUE(verdict.ok) << verdict.text;
    EXPECT_TRUE(same_bits(result.returned, run_kernel(kernel, plan, problem).returned));
  }
}

// Returns the mask with some of its queries dead.
Mask without_queries(const Mask& mask, const std::vector<Index>& dead) {
  std::vector<MaskRun> runs;
  for (Index i = 0; i < mask.queries(); ++i) {
    MaskRun& run = runs.emplace_back(MaskRun{{i, i + 1}, {}});
    if (!std::ranges::binary_search(dead, i)) {
      for (const Range keys : mask.keys({i, i + 1})) {
        run.live.push_back({{keys.begin}, {keys.end}});
      }
    }
  }
  return {mask.queries(), mask.keys(), std::move(runs)};
}

TEST_P(StayingKernel, PassesKeysForTheOthersAlone) {
  RandomMasks random(43);
  for (int k = 0; k < 300 && !HasFailure(); ++k) {
    const Shape shape{random.any(2, 40), random.any(1, 40), random.any(1, 6)};
    TestedKernel kernel = tested_kernel(GetParam());
    const Mask mask = Mask(shape.n, shape.m, random.expression(shape.n, shape.m).mask.runs());
    kernel.mask = mask;
    const std::vector<Index> live = numbers(mask.live_queries());
    if (kernel.problem(shape).live_part().mask.full() || live.size() < 2) {
      continue;
    }
    const Index stay = random.any(1, std::ssize(live) - 1);
    const Blocks others{{"Br", random.any(1, 9)}, {"Bc", 3}, {"resident", random.any(1, 30)}};
    Blocks blocks = others;
    blocks.add(std::string(kStaying), stay);
    const auto values_read = [&](const Blocks& of) {
      return total(kernel.cost(shape, of)).reads.value();
    };
    const Index found = values_read(blocks);
    const Index keys = size_of(mask.live_keys());
    kernel.mask = without_queries(mask, meeting_most(mask, live, stay));
    const Index operands = std::ranges::count(kernel.given, &Shape::n, &Signature::rows);
    EXPECT_EQ(found, values_read(others) + stay * shape.d * operands +
                         kernel.problem(shape).key_words().value() *
                             (keys - size_of(kernel.mask.live_keys())));
  }
}

TEST_P(StayingKernel, ReadsTheirIndicesOnce) {
  RandomMasks random(44);
  int data = 0;
  for (int k = 0; k < 300 && !HasFailure(); ++k) {
    const Shape shape{random.any(2, 60), random.any(1, 40), 2};
    TestedKernel kernel = tested_kernel(GetParam());
    const TabledMask of_head = random.expression(shape.n, shape.m);
    kernel.mask = of_head.mask.called("some");
    if (kernel.problem(shape).live_part().mask.full()) {
      continue;
    }
    const Index heads = random.any(1, 3);
    const TabledMask tabled = of_head.stacked(heads);
    const Problem problem = kernel.problem(shape).with_stacked(heads);
    const std::vector<Index> live = numbers(tabled.mask.live_queries());
    if (live.size() < 2) {
      continue;
    }
    const Index size = random.any(1, 20);
    const Index stay = random.any(1, std::ssize(live) - 1);
    const Index clustered = random.any(0, 1) * random.any(2, 20);
    const std::vector<Index> staying = meeting_most(tabled.mask, live, stay);
    std::vector<Index> others;
    for (const Index i : numbers(problem.live_part().mask.clustered(clustered, stay)->order)) {
      others.push_back(live[static_cast<std::size_t>(i)]);
    }
    others.resize(live.size() - staying.size());
    const Index of_staying = tabled.index_words(staying);
    Index of_others = 0;
    Index of_first = 0;
    for (Index begin = 0; begin < std::ssize(others); begin += size) {
      const Index end = std::min(begin + size, std::ssize(others));
      const Index of_group = tabled.index_words({others.begin() + begin, others.begin() + end});
      of_others += of_group;
      of_first = begin == 0 ? of_group : of_first;
    }
    Blocks blocks{{"Br", size}, {"Bc", 1}, {"resident", 1}, {std::string(kStaying), stay}};
    blocks.add(std::string(kClustered), std::max<Index>(clustered, 1));
    const Plan plan = kernel.kernel->plan(problem, 1 << 20, blocks);
    // The keys of the first group are read before its pass.
    EXPECT_EQ(total(plan.phases).index_reads, Words(of_staying + of_others + of_first));
    const std::optional<Regrouping> prepare = regrouping(plan);
    ASSERT_EQ(prepare.has_value(), tabled.kept.pattern);
    if (prepare) {
      EXPECT_EQ(prepare->reads, (problem.one_head().pairs() + shape.n + 1) * 2);
      EXPECT_EQ(prepare->writes, Words(of_staying + of_others));
    }
    data += of_staying > 0 ? 1 : 0;
  }
  EXPECT_GT(data, 50);
}

INSTANTIATE_TEST_SUITE_P(Registry, StayingKernel, testing::ValuesIn(staying_names()),
                         [](const auto& tested) { return test_name(tested.param); });

Words words_of(const Plan& plan) {
  const PhaseCost all = total(plan.phases);
  return all.reads + all.writes;
}

// A window with some queries that meet all keys. With room for the rolling keys and for these
// queries, each word moves once.
TEST(StayingRows, ThroughAWindow) {
  TestedKernel kernel = tested_kernel("forward/rows-resident");
  const Index n = 512, d = 16, near = 12, stay = 10;
  kernel.mask = Mask::window(n, n, near, near) | Mask::global(n, n, {0, stay});
  const Shape shape{n, n, d};
  const Words once = Words(4) * n * d + Words(2) * d * d + n;
  const Index room = 2 * d * d + 2 * d * (2 * near + stay + 40) + stay * (2 * d + 3);
  const Plan plan = kernel.plan(shape, room);
  EXPECT_EQ(words_of(plan), once) << to_string(plan);
  EXPECT_EQ(plan.blocks[kStaying], stay) << to_string(plan);
}

// Returns BigBird's mask. The first two of 64 block rows meet all keys. The others meet the first
// two block columns, a window and three more blocks.
Mask big_bird(Index side) {
  constexpr Index kBlocks = 64;
  std::mt19937 random(1);
  BlockPattern blocks{kBlocks * side, kBlocks * side, side, side, {0}, {}};
  for (Index row = 0; row < kBlocks; ++row) {
    std::vector<bool> there(kBlocks, row < 2);
    there[0] = there[1] = true;
    for (Index col = std::max<Index>(row - 1, 0); col <= std::min(row + 1, kBlocks - 1); ++col) {
      there[static_cast<std::size_t>(col)] = true;
    }
    for (int more = 0; more < 3 && row >= 2;) {
      const auto col = random() % kBlocks;
      more += there[col] ? 0 : 1;
      there[col] = true;
    }
    for (Index col = 0; col < kBlocks; ++col) {
      if (there[static_cast<std::size_t>(col)]) {
        blocks.columns.push_back(col);
      }
    }
    blocks.offsets.push_back(std::ssize(blocks.columns));
  }
  return Mask::layout(blocks);
}

// Compared with plans of the same kernels without staying rows, forward moves 1.47 million words
// instead of 1.72, and backward 1.87 instead of 2.02.
TEST(StayingRows, OfBigBird) {
  const Shape shape{4096, 4096, 64};
  const Mask mask = big_bird(64);
  for (const Kernel& of : {forward_rows_resident(), backward_rows_resident()}) {
    TestedKernel kernel = tested_kernel(std::string(of.name));
    kernel.mask = mask;
    Kernel none_stay = of;
    none_stay.fitting.rows_stay = false;
    none_stay = with_masks(none_stay);
    const Plan plan = kernel.plan(shape, Index{1} << 18);
    const Plan without = none_stay.plan(kernel.problem(shape), plan.M);
    EXPECT_FALSE(without.blocks.contains(kStaying)) << to_string(without);
    ASSERT_TRUE(plan.blocks.contains(kStaying)) << to_string(plan);
    EXPECT_EQ(plan.blocks[kStaying], 128) << to_string(plan);
    EXPECT_LT(static_cast<double>(words_of(plan).value()),
              0.93 * static_cast<double>(words_of(without).value()))
        << to_string(plan) << '\n'
        << to_string(without);
  }
}

TEST(StayingRows, NeedAMaskAndAKernelThatLetsThem) {
  const Blocks blocks{{"Br", 4}, {"Bc", 2}, {"resident", 2}, {"Bw", 2}, {"staying", 2}};
  TestedKernel resident = tested_kernel("attention/rows-resident");
  EXPECT_THROW(static_cast<void>(resident.plan({8, 8, 2}, 4096, blocks)), ShapeMismatch);
  for (const std::string name : {"attention/rows-resident", "attention/rows"}) {
    TestedKernel kernel = tested_kernel(name);
    kernel.mask = Mask::causal(8, 8);
    if (kernel.kernel->fitting.rows_stay) {
      EXPECT_NO_THROW(static_cast<void>(kernel.plan({8, 8, 2}, 4096, blocks)));
    } else {
      EXPECT_THROW(static_cast<void>(kernel.plan({8, 8, 2}, 4096, blocks)), ShapeMismatch);
    }
  }
}

}  // namespace
}  // namespace redblue
