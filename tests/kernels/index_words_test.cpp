// Index words say which keys meet which queries, for masks that are data. The test compares them
// with a walk over pairs. It covers groups of any size of thousands of expressions, their
// transposes, their live queries and keys alone, and stacked heads. In each phase of each kernel, a
// pass over the keys of a group reads its index words once. Words of values do not depend on how a
// mask is kept.

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/masked.hpp"
#include "kernels/parts/stationary.hpp"
#include "kernels/units.hpp"
#include "memsim/machine.hpp"
#include "tests/support/print.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

std::vector<Index> members(const Ranges& ranges) {
  std::vector<Index> all;
  for (const Range range : ranges) {
    for (Index k = range.begin; k < range.end; ++k) {
      all.push_back(k);
    }
  }
  return all;
}

// Returns whether all live queries meet all live keys. Such a mask needs no index words.
bool all_meet(const TabledMask& tabled) {
  const Mask& mask = tabled.mask;
  return mask.pairs({0, mask.queries()}, {0, mask.keys()}) ==
         Words(size_of(mask.live_queries())) * size_of(mask.live_keys());
}

// Returns the index words that groups of `size` queries read.
Index walked(const TabledMask& tabled, const std::vector<Index>& queries, Index size) {
  Index sum = 0;
  for (Index begin = 0; begin < std::ssize(queries); begin += size) {
    const auto end = std::min(begin + size, std::ssize(queries));
    sum += tabled.index_words({queries.begin() + begin, queries.begin() + end});
  }
  return sum;
}

void expect_walked(const Mask& mask, const TabledMask& tabled, const std::vector<Index>& queries,
                   RandomMasks& random) {
  ASSERT_EQ(mask.index().live(), tabled.kept.live());
  EXPECT_EQ(mask.index().is_pattern(), tabled.kept.pattern);
  for (int k = 0; k < 4; ++k) {
    const Range I = random.range(std::ssize(queries));
    const Index size = random.any(1, I.size() + 1);
    const std::vector<Index> some(queries.begin() + I.begin, queries.begin() + I.end);
    EXPECT_EQ(mask.index_words(I), Words(walked(tabled, some, I.size())));
    EXPECT_EQ(mask.met_by_groups(I, size).index, Words(walked(tabled, some, size)))
        << "groups of " << size;
  }
}

TEST(IndexWords, AreThoseOfAWalk) {
  RandomMasks random(21);
  int data = 0;
  for (int k = 0; k < 3000 && !testing::Test::HasFailure(); ++k) {
    const Index n = random.any(1, 70);
    const Index m = random.any(1, 24);
    const TabledMask tabled = random.expression(n, m);
    data += tabled.kept.formula() ? 0 : 1;
    expect_walked(tabled.mask, tabled, members({{0, n}}), random);
    const TabledMask columns = tabled.transposed();
    expect_walked(columns.mask, columns, members({{0, m}}), random);
    const std::vector<Index> queries = members(tabled.mask.live_queries());
    const Mask live = tabled.mask.compact();
    if (all_meet(tabled)) {
      EXPECT_TRUE(queries.empty() || live.full());
    } else {
      expect_walked(live, tabled, queries, random);
      expect_walked(live.transposed(), columns, members(tabled.mask.live_keys()), random);
    }
  }
  EXPECT_GT(data, 1000);
}

// Heads share a layout: a group that touches a block row in two heads reads it once. In a pattern,
// each head has separate rows.
TEST(IndexWords, OfStackedHeads) {
  RandomMasks random(22);
  for (int k = 0; k < 1000 && !testing::Test::HasFailure(); ++k) {
    const Index n = random.any(1, 12);
    const Index m = random.any(1, 12);
    const Index heads = random.any(1, 4);
    const TabledMask one = random.expression(n, m);
    Problem problem(n, m, 1);
    problem.mask = one.mask.called("some");
    if (problem.mask.full()) {
      continue;
    }
    const TabledMask all = one.stacked(heads);
    const Problem stacked = problem.with_stacked(heads);
    expect_walked(stacked.mask, all, members({{0, n * heads}}), random);
    expect_walked(stacked.mask.transposed(), all.transposed(), members({{0, m}}), random);
    expect_walked(stacked.one_head().mask, one, members({{0, n}}), random);
    if (!all_meet(one)) {
      expect_walked(stacked.mask.compact(), all, members(stacked.live_queries()), random);
    }
  }
}

// A group reads the index words that it touches once, whatever the order of its queries. Some of
// them may be dead and left out.
TEST(IndexWords, OfQueriesInAnotherOrder) {
  RandomMasks random(27);
  int data = 0;
  for (int k = 0; k < 1000 && !testing::Test::HasFailure(); ++k) {
    const TabledMask one = random.expression(random.any(1, 24), random.any(1, 12));
    if (one.mask.called("some").full()) {
      continue;
    }
    const TabledMask all = one.stacked(random.any(1, 4));
    const Index n = all.mask.queries();
    const auto made = all.mask.clustered(random.any(0, n), random.any(0, n));
    std::vector<Index> queries = members(made->order);
    expect_walked(made->mask, all, queries, random);
    if (!all_meet(all)) {
      const std::vector<Index> live = members(all.mask.live_queries());
      std::erase_if(queries, [&](Index i) { return !std::ranges::binary_search(live, i); });
      expect_walked(made->mask.compact(), all, queries, random);
    }
    data += one.kept.lists.empty() ? 0 : 1;
  }
  EXPECT_GT(data, 200);
}

TEST(IndexWords, OfFormulasAreNone) {
  const Mask formula = Mask::causal(9, 9) | Mask::global(9, 9, {0, 2});
  EXPECT_EQ(formula.index_words({0, 9}), Words(0));
  EXPECT_EQ(formula.met_by_groups({0, 9}, 2).index, Words(0));
  EXPECT_EQ(Mask().index().live(), 0);
}

// 3 x 2 blocks of 4 x 5. The block rows have 2, 0 and 1 blocks.
TEST(IndexWords, OfALayoutAndDocuments) {
  const Mask layout = Mask::layout({12, 10, 4, 5, {0, 2, 2, 3}, {0, 1, 1}});
  EXPECT_EQ(layout.index_words({0, 4}), Words(4));
  EXPECT_EQ(layout.index_words({3, 9}), Words(4 + 2 + 3));
  EXPECT_EQ((layout | layout).index_words({3, 9}), Words(4 + 2 + 3));
  EXPECT_EQ((layout & Mask::causal(12, 10)).index_words({3, 9}), Words(4 + 2 + 3));
  const Mask documents = Mask::documents({0, 6, 6, 12}, {0, 3, 5, 10});
  EXPECT_EQ(documents.index_words({5, 7}), Words(4));
  EXPECT_EQ((layout & documents).index_words({5, 7}), Words(2 + 4));
  EXPECT_EQ((layout & documents).index().live(), 2);
}

// If an index takes several words, all lists are longer by that factor, and so are the words that
// stay live. The test covers groups of any size, the transpose, live queries alone, another order,
// stacked heads and joined masks. Pairs and the name do not change.
TEST(IndexWords, OfIndicesOfSeveralWords) {
  RandomMasks random(35);
  int data = 0;
  const auto expect_twice = [&](const Mask& wide, const Mask& mask) {
    ASSERT_EQ(wide.full(), mask.full());
    EXPECT_EQ(wide.index().live(), 2 * mask.index().live());
    for (int k = 0; k < 3 && !mask.full() && mask.queries() > 0; ++k) {
      const Range I = random.range(mask.queries());
      const Index size = random.any(1, I.size() + 1);
      EXPECT_EQ(wide.index_words(I), 2 * mask.index_words(I));
      EXPECT_EQ(wide.met_by_groups(I, size).index, 2 * mask.met_by_groups(I, size).index);
    }
  };
  for (int k = 0; k < 500 && !testing::Test::HasFailure(); ++k) {
    const Mask mask = random.expression(random.any(1, 24), random.any(1, 12)).mask.called("some");
    if (mask.full()) {
      continue;
    }
    const Mask wide = mask.with_index_words(2);
    EXPECT_EQ(wide, mask);
    EXPECT_EQ(wide.spec(), "some");
    expect_twice(wide, mask);
    expect_twice(wide.transposed(), mask.transposed());
    expect_twice(wide.compact(), mask.compact());
    const Mask formula = Mask::causal(mask.queries(), mask.keys());
    expect_twice(formula & wide, formula & mask);
    const Index size = random.any(0, mask.queries());
    expect_twice(wide.clustered(size, 0)->mask, mask.clustered(size, 0)->mask);
    Problem problem(mask.queries(), mask.keys(), 1), wide_problem = problem;
    problem.mask = mask;
    wide_problem.mask = wide;
    expect_twice(wide_problem.with_stacked(3).mask, problem.with_stacked(3).mask);
    data += mask.index().live() > 0 ? 1 : 0;
  }
  EXPECT_GT(data, 150);
}

// Counts a billion queries in a few steps, for two documents and for a window of two keys.
TEST(IndexWords, CountByFormula) {
  constexpr Index n = 1'000'000'000;
  const Mask documents = Mask::documents({0, n / 2, n}, {0, n / 2, n});
  EXPECT_EQ(documents.met_by_groups({0, n}, 3).index, Words(2) * (n / 3 + 1 + 1));
  const Mask pattern =
      Mask::window(n, n, 1, 0) & Mask(n, n, Mask::all(n, n).runs(), MaskIndex::pattern());
  // Each group of 10 except the first meets 11 keys in 20 pairs.
  EXPECT_EQ(pattern.met_by_groups({0, n}, 10).index, Words(n / 10 * (1 + 11 * 2) - 2));
}

TEST(IndexWords, LiveAsLongAsTheirTile) {
  Machine machine(5);
  {
    const Phase phase(machine, "p");
    const Tile index = machine.read_indices(100, 2);
    EXPECT_EQ(machine.live(), 2);
    EXPECT_EQ(machine.contents(), "index 2");
    EXPECT_EQ(machine.read_indices(0).words(), 0);
    EXPECT_THROW(static_cast<void>(machine.read_indices(7, 4)), FastMemoryOverflow);
  }
  EXPECT_EQ(machine.live(), 0);
  const PhaseCounts counts = leaves(machine.phases()).front();
  EXPECT_EQ(counts.io, (IoCount{100, 0}));
  EXPECT_EQ(counts.indices, (IoCount{100, 0}));
  EXPECT_EQ(counts.peak, 2);
}

// The groups that pass in a phase of a kernel, and how often.
struct Passes {
  const char* phase;
  const char* block;
  bool of_keys = false;
  Index times = 1;
};
const std::map<std::string, std::vector<Passes>>& passes() {
  static const std::map<std::string, std::vector<Passes>> all = {
      {"forward/rows", {{"core", "Br"}}},
      {"attention/rows", {{"core", "Br"}}},
      {"forward/flash", {{"core", "core.Br"}}},
      {"forward/columns", {{"core", "Bc", true}}},
      {"attention/columns", {{"core", "Bc", true}}},
      {"backward/large", {{"phase2", "phase2.Br"}}},
      {"backward/columns", {{"core", "Bc", true}}},
      {"backward/score-rows", {{"core", "Br", false, 3}}},
      {"backward/rows", {{"core", "Br"}}},
      {"backward/rows-w", {{"core", "Br"}}},
      {"backward/rows-onepass", {{"core", "Br"}}},
      {"backward/rows-onepass-w", {{"core", "Br"}}},
      {"backward/rows-xg", {{"core", "Br"}}},
      {"backward/rows-q", {{"q", "q.rows"}, {"W", "W.Br"}}},
      {"backward/rows-q-onepass", {{"q", "q.rows"}, {"W", "W.Br"}}},
      {"gradients/flash", {{"core", "core.Bc", true}}},
      {"gradients/rows-keys", {{"dQ", "dQ.Br"}, {"dKV", "dKV.Bc", true}}},
      {"gradients/rows-keys-onepass", {{"dQ", "dQ.Br"}, {"dKV", "dKV.Bc", true}}},
      {"gradients/score-rows", {{"core", "Br", false, 3}}},
      {"gradients/resident", {{"core", "Br"}}},
      {"gradients/resident-queries", {{"core", "Bc", true}}},
      {"gradients/flash-shared", {{"core", "core.Bc", true}}},
      {"gradients/rows-keys-shared", {{"dQ", "dQ.Br"}, {"dKV", "dKV.Bc", true}}},
      {"gradients/rows-keys-onepass-shared", {{"dQ", "dQ.Br"}, {"dKV", "dKV.Bc", true}}},
      {"gradients/score-rows-shared", {{"core", "Br", false, 2}}},
      {"gradients/resident-shared", {{"core", "Br"}}},
      {"gradients/resident-queries-shared", {{"core", "Bc", true}}},
      {"gradients/sources", {{"core", "Br"}, {"core", "Br", true}}},
      {"layer/flash", {{"core", "core.Bc", true}}},
      {"layer/rows-keys", {{"dQ", "dQ.Br"}, {"dKV", "dKV.Bc", true}}},
      {"layer/score-rows", {{"core", "Br", false, 3}}}};
  return all;
}

// Checks plans of a kernel under random masks, with their live queries. Plans with clustered or
// staying rows have other groups and are skipped. Enough plans remain, and some of them read
// indices.
template <class Check>
void for_plans(TestedKernel& kernel, RandomMasks& random, const Check& check) {
  int plans = 0, data = 0;
  for (int k = 0; k < 80 && !testing::Test::HasFailure(); ++k) {
    const Shape shape = kernel.shape({random.any(1, 60), random.any(1, 40), random.any(1, 6)});
    const TabledMask tabled = random.expression(shape.n, shape.m);
    if (all_meet(tabled)) {
      continue;
    }
    kernel.mask = tabled.mask;
    const Plan plan = kernel.plan(shape, kernel.least_M(shape) + random.any(0, 500));
    if (is_in_order(plan.blocks)) {
      check(shape, tabled, members(plan.problem.live_queries()), plan);
      ++plans;
      data += total(plan.phases).index_reads > Words(0) ? 1 : 0;
    }
  }
  EXPECT_GT(plans, 20) << kernel.name;
  EXPECT_GT(data, 10) << kernel.name;
}

TEST(IndexWords, OfKernelsAreThoseOfTheirPasses) {
  RandomMasks random(23);
  for (const auto& entry : passes()) {
    TestedKernel kernel = tested_kernel(entry.first);
    for_plans(kernel, random,
              [&](const Shape& shape, const TabledMask& tabled, const std::vector<Index>& queries,
                  const Plan& plan) {
                SCOPED_TRACE(to_string(plan));
                std::map<std::string, Words> expected;
                Words written;
                std::set<std::pair<bool, Index>> groupings;
                for (const auto& [phase, block, of_keys, times] : entry.second) {
                  const Index size = plan.blocks[block];
                  const Index words =
                      of_keys ? walked(tabled.transposed(), members(plan.problem.live_keys()), size)
                              : walked(tabled, queries, size);
                  expected[phase] += Words(words) * times;
                  const Index rows =
                      of_keys ? size_of(plan.problem.live_keys()) : std::ssize(queries);
                  if (groupings.emplace(of_keys, std::min(size, rows)).second) {
                    written += words;
                  }
                }
                for (const PhaseCost& phase : plan.phases) {
                  EXPECT_EQ(phase.index_reads, expected[phase.path]) << phase.path;
                }
                const std::optional<Regrouping> prepare = regrouping(plan);
                ASSERT_EQ(prepare.has_value(), tabled.kept.pattern);
                if (prepare) {
                  EXPECT_EQ(prepare->writes, written);
                  EXPECT_EQ(prepare->reads,
                            (tabled.mask.pairs({0, shape.n}, {0, shape.m}) + shape.n + 1) *
                                std::ssize(groupings));
                }
              });
  }
}

// In kernels with resident keys the first group passes twice, because its keys are read first. Both
// passes have the same groups, so a pattern is regrouped once.
TEST(IndexWords, OfResidentKernels) {
  RandomMasks random(24);
  for (const char* name :
       {"forward/rows-resident", "attention/rows-resident", "backward/rows-resident"}) {
    TestedKernel kernel = tested_kernel(name);
    for_plans(kernel, random,
              [&](const Shape& shape, const TabledMask& tabled, const std::vector<Index>& queries,
                  const Plan& plan) {
                SCOPED_TRACE(to_string(plan));
                const Index size = std::min(plan.blocks["Br"], std::ssize(queries));
                const Index first = tabled.index_words({queries.begin(), queries.begin() + size});
                const Index all = walked(tabled, queries, size);
                EXPECT_EQ(total(plan.phases).index_reads, Words(all + first));
                const std::optional<Regrouping> prepare = regrouping(plan);
                ASSERT_EQ(prepare.has_value(), tabled.kept.pattern);
                if (prepare) {
                  EXPECT_EQ(prepare->writes, Words(all));
                  EXPECT_EQ(prepare->reads, plan.problem.pairs() + shape.n + 1);
                }
              });
  }
}

// The index words that groups of queries, or of keys, read in each phase, under the mask of a plan.
class PassesOfTiles {
 public:
  PassesOfTiles(const TabledMask& tabled, const Plan& plan)
      : tabled_(tabled),
        columns_(tabled.transposed()),
        queries_(members(tabled.mask.live_queries())),
        keys_(members(tabled.mask.live_keys())),
        blocks_(plan.blocks) {}
  [[nodiscard]] Index n() const { return std::ssize(queries_); }
  [[nodiscard]] Index m() const { return std::ssize(keys_); }
  [[nodiscard]] Index block(const std::string& name) const { return blocks_[name]; }
  void add(const std::string& phase, Index size, Index times = 1, bool of_keys = false) {
    const Index words = of_keys ? walked(columns_, keys_, size) : walked(tabled_, queries_, size);
    expected_[phase] += Words(words) * times;
  }
  void add_rows(const std::string& phase) { add(phase, block(phase + ".rows")); }
  void add_generated(const std::string& phase, Index cols) {
    add(phase, block(phase + ".rows"), ceil_div(cols, block(phase + ".cols")));
  }
  // A product of scores, or of their transpose. If the result stays, each of its blocks reads
  // indices. If a block of scores stays, it reads them once. If the other factor stays, its rows
  // read them.
  void add_product(const std::string& phase, const ProductShape& of, bool of_keys) {
    const auto by = StationaryBlocks::get(phase, blocks_);
    const Stays what = stays(of, by);
    const bool other = what == Stays::B;
    add(phase, other ? by.depth : by.rows, what == Stays::A ? 1 : ceil_div(of.cols, by.cols),
        of_keys != other);
  }
  [[nodiscard]] const std::map<std::string, Words>& expected() const { return expected_; }

 private:
  const TabledMask& tabled_;
  TabledMask columns_;
  std::vector<Index> queries_, keys_;
  const Blocks& blocks_;
  std::map<std::string, Words> expected_;
};

// Kernels with tiles of scores: each loop over the tiles of some rows is a pass.
TEST(IndexWords, OfTilesOfScores) {
  using Add = std::function<void(PassesOfTiles&, const Shape&)>;
  const Add small_softmax = [](PassesOfTiles& to, const Shape&) {
    to.add("s", to.block("B"));
    to.add("f", to.block("B"));
  };
  const std::map<std::string, Add> kernels = {
      {"forward/naive", [](PassesOfTiles& to, const Shape&) { to.add("f", to.n()); }},
      {"backward/naive",
       [](PassesOfTiles& to, const Shape&) {
         to.add("f", to.n());
         to.add("q", to.n());
       }},
      {"forward/small",
       [&](PassesOfTiles& to, const Shape& of) {
         small_softmax(to, of);
         to.add("O", to.block("B"), ceil_div(of.d, to.block("B")));
       }},
      {"backward/small",
       [](PassesOfTiles& to, const Shape& of) {
         const Index B = to.block("B");
         for (const char* phase : {"phase1/A", "phase1/f", "phase2/q", "phase3/v", "phase3/p"}) {
           to.add(phase, B);
         }
         to.add("phase4/T", B, ceil_div(of.d, B), true);
       }},
      {"forward/tiles",
       [](PassesOfTiles& to, const Shape& of) {
         to.add_rows("s");
         to.add_generated("O", of.d);
       }},
      {"attention/tiles",
       [](PassesOfTiles& to, const Shape& of) {
         to.add_rows("s");
         to.add_generated("O", of.d);
       }},
      {"backward/tiles",
       [](PassesOfTiles& to, const Shape& of) {
         to.add_rows("f");
         to.add_rows("p");
         to.add_product("W", {to.n(), of.d, to.m()}, false);
       }},
      {"backward/tiles-shared",
       [](PassesOfTiles& to, const Shape& of) {
         to.add_rows("p");
         to.add_product("W", {to.n(), of.d, to.m()}, false);
       }},
      {"backward/tiles-sqp",
       [](PassesOfTiles& to, const Shape& of) {
         to.add_rows("s");
         to.add_rows("q");
         to.add_rows("p");
         to.add_product("W", {to.n(), of.d, to.m()}, false);
       }},
      {"backward/tiles-sq",
       [](PassesOfTiles& to, const Shape& of) {
         to.add_rows("s");
         to.add_rows("q");
         to.add_generated("W", of.d);
       }},
      {"gradients/tiles-shared",
       [](PassesOfTiles& to, const Shape& of) {
         to.add_rows("f");
         to.add_rows("p");
         to.add_product("dQ", {to.n(), of.d, to.m()}, false);
         to.add("dK", to.block("dK.rows"), ceil_div(of.d, to.block("dK.cols")), true);
       }},
      {"gradients/tiles", [](PassesOfTiles& to, const Shape& of) {
         to.add_rows("f");
         to.add_rows("p");
         to.add_product("dV", {to.m(), of.d, to.n()}, true);
         to.add_product("dQ", {to.n(), of.d, to.m()}, false);
         to.add_product("dK", {to.m(), of.d, to.n()}, true);
       }}};
  RandomMasks random(26);
  for (const auto& [name, add] : kernels) {
    TestedKernel kernel = tested_kernel(name);
    const Add& add_all = add;
    for_plans(kernel, random,
              [&](const Shape& shape, const TabledMask& tabled, const std::vector<Index>&,
                  const Plan& plan) {
                SCOPED_TRACE(to_string(plan));
                PassesOfTiles passes(tabled, plan);
                add_all(passes, shape);
                for (const PhaseCost& phase : plan.phases) {
                  const auto found = passes.expected().find(phase.path);
                  EXPECT_EQ(phase.index_reads,
                            found == passes.expected().end() ? Words(0) : found->second)
                      << phase.path;
                }
              });
  }
}

// Groups of queries and groups of keys of one size are two groupings, even for a pattern that is
// its own transpose. In 8 pairs of 4 queries and 4 keys, a group of all queries reads its size. For
// each key it also reads the key's number and the bits of its queries.
TEST(IndexWords, PrepareKnowsQueriesFromKeys) {
  BlockPattern pairs{4, 4, 1, 1, {0, 2, 4, 6, 8}, {0, 1, 0, 1, 2, 3, 2, 3}};
  TestedKernel kernel = tested_kernel("gradients/tiles");
  kernel.mask = Mask::pattern(pairs);
  const Plan plan = kernel.plan({4, 4, 2}, 4096);
  const std::optional<Regrouping> prepare = regrouping(plan);
  ASSERT_TRUE(prepare);
  EXPECT_EQ(prepare->reads, Words(2 * (8 + 4 + 1))) << to_string(plan);
  EXPECT_EQ(prepare->writes, Words(2 * (1 + 4 * 2))) << to_string(plan);
  const Mask formula = Mask::causal(4, 4);
  EXPECT_TRUE((formula & kernel.mask.transposed()).index().of_keys());
  EXPECT_TRUE((kernel.mask.transposed() & formula).index().of_keys());
  EXPECT_FALSE((kernel.mask & formula).index().of_keys());
}

// A mask of blocks of one query and one key is a pattern. It moves the same words, except index
// words. So does a formula with the same pairs.
TEST(IndexWords, ValuesDoNotDependOnHowAMaskIsKept) {
  RandomMasks random(25);
  for (const auto& [name, of_kernel] : passes()) {
    for (int k = 0; k < 20; ++k) {
      TestedKernel kernel = tested_kernel(name);
      const Shape shape = kernel.shape({random.any(1, 40), random.any(1, 40), random.any(1, 6)});
      const Mask mask = random.expression(shape.n, shape.m).mask;
      BlockPattern pairs{shape.n, shape.m, 1, 1, {0}, {}};
      for (Index i = 0; i < shape.n; ++i) {
        const std::vector<Index> keys = members(mask.keys({i, i + 1}));
        pairs.columns.insert(pairs.columns.end(), keys.begin(), keys.end());
        pairs.offsets.push_back(std::ssize(pairs.columns));
      }
      const auto values = [&](const Mask& as, const Blocks& blocks) {
        kernel.mask = as;
        std::vector<Words> words;
        for (const PhaseCost& phase : kernel.cost(shape, blocks)) {
          words.emplace_back(phase.reads.value() - phase.index_reads.value());
          words.push_back(phase.writes);
        }
        return words;
      };
      const Mask formula(shape.n, shape.m, mask.runs());
      kernel.mask = formula;
      const Blocks blocks = kernel.plan(shape, kernel.least_M(shape) + random.any(0, 500)).blocks;
      EXPECT_EQ(total(kernel.cost(shape, blocks)).index_reads, Words(0));
      const std::vector<Words> expected = values(formula, blocks);
      EXPECT_EQ(values(Mask::pattern(pairs), blocks), expected) << name;
      EXPECT_EQ(values(Mask::layout(pairs), blocks), expected) << name;
      EXPECT_EQ(values(mask | mask, blocks), expected) << name;
    }
  }
}

}  // namespace
}  // namespace redblue
