// Every kernel that takes masks, under thousands of masks. Some have rows or columns without a
// pair, no live pair at all, one query or one key. Some are diagonals, or have more queries than
// keys, or fewer.
//
//   - It moves the words of its formulas, phase by phase, including index words. It holds at most
//     their peak, and does at least their flops. The loop nest moves the same words. It runs at its
//     least M and is refused one below. The same holds for only some of the results.
//   - Dead queries and keys contain NaN and are not read. Every word of the results is written.
//   - The results are within the bound of the double-precision evaluation.
//
// The same holds for each activation that it takes.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "memsim/sanitized.hpp"
#include "runtime/report/nest_report.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/print.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

constexpr Activation kActivations[] = {Activation::softmax, Activation::relu, Activation::sigmoid,
                                       Activation::silu};

// Returns names such as "backward/rows" and "backward/rows+relu".
std::vector<std::string> masked_names() {
  std::vector<std::string> names;
  for (const Activation activation : kActivations) {
    for (const TestedKernel& kernel : tested_kernels_of(activation)) {
      if (kernel.kernel->takes_masks) {
        names.push_back(kernel.name + (activation == Activation::softmax
                                           ? ""
                                           : "+" + std::string(to_string(activation))));
      }
    }
  }
  return names;
}

TestedKernel named(const std::string& text) {
  const auto plus = text.find('+');
  auto name = parse_kernel_name(text.substr(0, plus));
  for (const Activation activation : kActivations) {
    if (plus != std::string::npos && text.substr(plus + 1) == to_string(activation)) {
      name->activation = activation;
    }
  }
  return *name;
}

TestedKernel with(const std::string& name, const Mask& mask) {
  TestedKernel kernel = named(name);
  kernel.mask = mask;
  return kernel;
}

// Wants all required results, and some of the optional ones.
void want_some(TestedKernel& kernel, RandomMasks& random) {
  Wanted some;
  for (const Signature& result : kernel.kernel->results(kernel.sharing)) {
    const auto& optional = kernel.kernel->optional_results;
    if (std::ranges::find(optional, result.name) == optional.end() || random.any(0, 1) == 0) {
      some.add(result.name);
    }
  }
  Problem problem;
  problem.wanted = some;
  problem.activation = kernel.activation;
  problem.sharing = kernel.sharing;
  if (kernel.kernel->can_return(problem)) {
    kernel.want(some);
  }
}

// Fills the operands' rows of dead queries and dead keys with NaN.
TestProblem poisoned(TestProblem problem, const TestedKernel& kernel) {
  if (problem.mask.full()) {
    return problem;
  }
  const Mask columns = problem.mask.transposed();
  for (const Signature& operand : kernel.given) {
    if (operand.rows != &Shape::n && operand.rows != &Shape::m) {
      continue;
    }
    const Mask& of_rows = operand.rows == &Shape::n ? problem.mask : columns;
    Buffer& words = problem.given.at(std::string(operand.name));
    const Index cols = operand.cols_of(problem.shape);
    const Ranges all{{0, operand.rows_of(problem.shape)}};
    Ranges dead = without(all, of_rows.live_queries());
    if (kernel.sharing == Sharing::self) {  // not read if it is neither a live query nor a key
      dead = common(dead, without(all, columns.live_queries()));
    }
    for (const Range rows : dead) {
      std::fill(words.begin() + rows.begin * cols, words.begin() + rows.end * cols,
                std::numeric_limits<float>::quiet_NaN());
    }
  }
  return problem;
}

void expect_formulas(const Result& result, const Plan& plan) {
  std::map<std::string, PhaseCounts> counted;
  for (const PhaseCounts& phase : result.phases) {
    counted[phase.path] = phase;
  }
  for (const PhaseCost& phase : plan.phases) {
    const PhaseCounts found = counted[phase.path];
    counted.erase(phase.path);
    EXPECT_EQ(found.io.reads, phase.reads.value()) << phase.path;
    EXPECT_EQ(found.io.writes, phase.writes.value()) << phase.path;
    EXPECT_EQ(found.indices, (IoCount{phase.index_reads.value(), 0})) << phase.path;
    EXPECT_LE(found.peak, phase.peak.value()) << phase.path;
    EXPECT_GE(found.operations.flops, phase.flops.value()) << phase.path;
  }
  EXPECT_TRUE(counted.empty()) << counted.begin()->first << " has no formula";
  EXPECT_LE(result.all.peak, plan.M);
  EXPECT_EQ(result.live, 0);
  EXPECT_EQ(result.workspace_live, 0);
}

void expect_loops(const Plan& plan) {
  std::map<std::string, std::pair<Words, Words>> moved;
  for (const NestLine& line : report_nest(plan).lines) {
    moved[line.phase].first += line.reads;
    moved[line.phase].second += line.writes;
  }
  for (const PhaseCost& phase : plan.phases) {
    EXPECT_EQ(moved[phase.path].first, phase.reads) << phase.path;
    EXPECT_EQ(moved[phase.path].second, phase.writes) << phase.path;
  }
}

void expect_exact(const TestedKernel& kernel, const Plan& plan, const TestProblem& problem,
                  const Buffers& returned) {
  for (const auto& [name, words] : returned) {
    EXPECT_TRUE(std::ranges::none_of(words, [](float word) { return std::isnan(word); })) << name;
  }
  const Verified verdict = verify(kernel, plan, problem, returned);
  EXPECT_TRUE(verdict.ok) << verdict.text;
}

class MaskedKernel : public testing::TestWithParam<std::string> {};

TEST_P(MaskedKernel, MovesAndComputesWhatItsFormulasSay) {
  const bool softmax = named(GetParam()).activation == Activation::softmax;
  const std::int64_t count =
      cases((kSanitized ? kUsualCases / 5 : kUsualCases) / (softmax ? 1 : 4));
  Index dead = 0;
  for (std::int64_t k = 0; k < count && !HasFailure(); ++k) {
    SCOPED_TRACE(reproduced_by(k));
    RandomMasks random(seed_of_case(k));
    Shape shape{random.any(1, 40), random.any(1, 40), random.any(1, 9)};
    shape = named(GetParam()).shape(shape);
    if (named(GetParam()).takes_dv() && random.any(0, 2) == 0) {
      shape.dv = random.any(1, 9);
    }
    const TabledMask tabled = random.expression(shape.n, shape.m);
    TestedKernel kernel = with(GetParam(), random.any(0, 5) == 0 ? Mask() : tabled.mask);
    if (random.any(0, 1) == 0) {
      want_some(kernel, random);
    }
    const Index prefetch = kernel.streams_keys() && random.any(0, 3) == 0 ? 2 : 1;
    const Index least = kernel.least_M(shape, prefetch);
    const Index M = random.any(0, 3) == 0 ? least : least + random.any(1, 40 * (shape.d + 4));
    const Objective objective = random.any(0, 2) == 0 ? Objective::time : Objective::words;
    SCOPED_TRACE("M = " + std::to_string(M) + (objective == Objective::time ? ", for time" : ""));
    Plan plan = kernel.plan(shape, M, objective, prefetch);
    const bool grouped = kernel.groups_keys() || plan.blocks.contains("groups");
    if (grouped && random.any(0, 2) > 0) {  // groups may meet few keys
      plan = kernel.in_groups(plan, random.any(1, shape.m), random.any(1, shape.n));
    }
    SCOPED_TRACE(to_string(plan));
    const TestProblem problem = make_problem(kernel, shape, seed_of_case(k), 2);
    const Result result = run_kernel(kernel, plan, poisoned(problem, kernel));
    expect_formulas(result, plan);
    expect_loops(plan);
    expect_exact(kernel, plan, problem, result.returned);
    if (kernel.mask.full()) {
      EXPECT_EQ(result.all.peak, total(plan.phases).peak.value());
    }
    if (least > 1) {  // without a live pair, one word may suffice
      EXPECT_THROW(static_cast<void>(kernel.plan(shape, least - 1, Objective::words, prefetch)),
                   FastMemoryTooSmall);
    }
    dead += size_of(kernel.problem(shape).live_queries()) < shape.n ? 1 : 0;
  }
  EXPECT_GE(dead, HasFailure() ? 0 : count / 20);
}

// A mask in which all pairs are live moves the same words as no mask, and returns the same bits.
TEST_P(MaskedKernel, AllPairsAreNoMask) {
  RandomMasks random(8);
  for (int k = 0; k < 50; ++k) {
    const TestedKernel plain = named(GetParam());
    const Shape shape = plain.shape({random.any(1, 60), random.any(1, 60), random.any(1, 20)});
    const TestedKernel masked = with(GetParam(), Mask::all(shape.n, shape.m));
    Plan plan = plain.plan(shape, plain.least_M(shape) + random.any(0, 2000));
    if (plain.groups_keys() && k % 2 == 0) {
      plan = plain.in_groups(plan, random.any(1, shape.m), random.any(1, shape.n));
    }
    const Plan same = masked.plan(shape, plan.M, plan.blocks);
    SCOPED_TRACE(to_string(plan));
    ASSERT_EQ(plan.phases.size(), same.phases.size());
    for (std::size_t phase = 0; phase < plan.phases.size(); ++phase) {
      const PhaseCost& without = plan.phases[phase];
      const PhaseCost& with_all = same.phases[phase];
      EXPECT_EQ(without.reads, with_all.reads) << without.path;
      EXPECT_EQ(without.writes, with_all.writes) << without.path;
      EXPECT_EQ(without.flops, with_all.flops) << without.path;
      EXPECT_LE(without.peak, with_all.peak) << without.path;
    }
    const TestProblem problem = make_problem(plain, shape, 3);
    const Result without = run_kernel(plain, plan, problem);
    const Result with_all = run_kernel(masked, same, problem);
    EXPECT_EQ(without.phases, with_all.phases);
    EXPECT_TRUE(same_bits(without.returned, with_all.returned));
  }
}

// Dead pairs may have scores, exponentials or dO h^T that are infinite or NaN. Only the last query
// meets the last key, and the words of that query are 0. So all other queries get the same results
// as with another last key.
TEST_P(MaskedKernel, DeadScoresReachNothing) {
  // There is room for blocks of some rows, and then for all rows in one block.
  for (const auto& [depth, room] :
       {std::pair<Index, Index>{2, 700}, {5, 700}, {16, 700}, {5, 30'000}}) {
    const Index d = depth;
    const Shape shape{23, 23, d};
    const TestedKernel kernel = with(GetParam(), Mask::causal(shape.n, shape.m));
    TestProblem problem = make_problem(kernel, shape, 5);
    const auto last_row = [&](std::string_view name, auto word_of) {
      if (takes(kernel, name)) {
        Buffer& words = problem.given.at(std::string(name));
        for (Index k = 0; k < d; ++k) {
          words[words.size() - static_cast<std::size_t>(d - k)] = word_of(k);
        }
      }
    };
    const bool one_source = kernel.sharing == Sharing::self;
    for (const std::string_view name : {"Q", "A1", "dO"}) {
      last_row(name, [](Index) { return 0.0F; });
    }
    if (one_source && takes(kernel, "L")) {  // the last query is the last key: its f are 0
      problem.given.at("L").back() = 3e38F;
    }
    const Plan plan = kernel.plan(shape, kernel.least_M(shape) + room);
    const auto with_last_key = [&](float huge) {
      for (const std::string_view name : {one_source ? "Q" : "K", "V", "A2", "A3"}) {
        last_row(name, [huge](Index k) { return k % 2 == 0 ? huge : -huge; });
      }
      return run_kernel(kernel, plan, problem).returned;
    };
    const Buffers usual = with_last_key(1);
    // If X or Y meets the key, that product must not overflow. exp(s - L) of dead s does overflow.
    const Numerics& numerics = kernel.kernel->numerics;
    const bool meets = inputs_of(kernel.kernel->pass) == Inputs::weighted &&
                       (numerics.X_meets_keys || !numerics.Y_meets_rows);
    // The score of the last source with itself must not overflow.
    const Buffers overflowing = with_last_key(one_source ? 1e18F : meets ? 1e37F : 3e38F);
    for (const auto& [name, words] : overflowing) {
      const Buffer& expected = usual.at(name);
      // Results of the last query or key, and of a shared weight, may differ.
      const bool of_all = name == "g" || name == "dX" || name == "dY";
      const std::size_t others = of_all ? 0 : words.size() / static_cast<std::size_t>(shape.n) * 22;
      EXPECT_TRUE(
          std::equal(words.begin(), words.begin() + static_cast<Index>(others), expected.begin()))
          << name << " with d = " << d << " and room for " << room;
      EXPECT_TRUE(std::ranges::none_of(words, [](float word) { return std::isnan(word); })) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, MaskedKernel, testing::ValuesIn(masked_names()),
                         [](const auto& tested) {
                           std::string name = test_name(tested.param);
                           std::ranges::replace(name, '+', '_');
                           return name;
                         });

// Fewer results never move more words.
TEST(MaskedKernels, FewerResultsAreNeverMoreWords) {
  RandomMasks random(10);
  for (const TestedKernel& all : tested_kernels()) {
    if (all.kernel->optional_results.empty()) {
      continue;
    }
    for (int k = 0; k < 50; ++k) {
      const Shape shape{random.any(1, 60), random.any(1, 60), random.any(1, 9)};
      TestedKernel some = all;
      want_some(some, random);
      const Index M = all.least_M(shape) + random.any(0, 900);
      const auto words = [&](const TestedKernel& kernel) {
        const PhaseCost cost = total(kernel.plan(shape, M).phases);
        return cost.reads + cost.writes;
      };
      EXPECT_LE(words(some), words(all)) << to_string(some.plan(shape, M));
    }
  }
}

// With room for all keys each key is read once, whatever the mask. More room never moves more words
// of values.
TEST(MaskedKernels, MoreKeysThatStayAreNeverMoreWords) {
  RandomMasks random(9);
  for (int k = 0; k < 200; ++k) {
    const Shape shape{random.any(1, 60), random.any(1, 60), 3};
    const TestedKernel kernel =
        with("attention/rows-resident", random.expression(shape.n, shape.m).mask);
    const Problem problem = kernel.problem(shape);
    Blocks blocks{{"Br", random.any(1, 20)}, {"Bc", 2}, {"resident", 1}};
    Words before;
    for (Index room = 1; room <= shape.m; ++room) {
      blocks.set("resident", room);
      const PhaseCost all = total(kernel.cost(shape, blocks));
      const Words reads = all.reads.value() - all.index_reads.value();
      EXPECT_TRUE(room == 1 || reads <= before) << room;
      before = reads;
    }
    EXPECT_EQ(before,
              Words(size_of(problem.live_queries()) + 2 * size_of(problem.live_keys())) * 3);
  }
}

// At the least M for which a window moves each word once, 4 n d + 3 d^2 words move. With one word
// of M less, one more column of A1 is read twice, which adds n words.
TEST(MaskedKernels, AWordLessIsAColumnMore) {
  const Index n = 150, d = 12;
  const TestedKernel kernel = with("backward/rows-resident", Mask::window(n, n, 9, 7));
  const auto moved = [&](Index M) {
    const PhaseCost all = total(kernel.plan({n, n, d}, M).phases);
    return all.reads + all.writes;
  };
  const Words once = 4 * n * d + 3 * d * d;
  Index M = kernel.least_M({n, n, d});
  while (moved(M) > once) {
    ++M;
  }
  for (Index less = 0; less < d; ++less) {
    EXPECT_EQ(moved(M - less), once + less * n) << less;
  }
}

// A tile that stays reads its live rows and its live keys, and a dead tile reads no words. A block
// of keys reads the rows that meet it. Only live scores move.
TEST(MaskedKernels, BringTheLiveRowsAndKeysOfATile) {
  RandomMasks random(10);
  for (int k = 0; k < 300; ++k) {
    const Index n = random.any(1, 40), m = random.any(1, 40), d = random.any(2, 9);
    const Mask mask = random.expression(n, m).mask.compact();
    if (mask.full() || mask.queries() == 0) {
      continue;
    }
    const Problem problem = with("attention/tiles", mask).problem({mask.queries(), mask.keys(), d});
    const auto [rows, keys, width] = problem.shape;
    const Index r = random.any(1, rows), c = random.any(1, keys), s = random.any(1, width);
    Index tiles = 0;   // live rows and keys of all tiles
    Index passes = 0;  // live rows of all blocks of keys
    Index met = 0;     // live keys of all blocks of rows
    for (const Range I : blocks(rows, r)) {
      met += size_of(mask.keys(I));
      for (const Range J : blocks(keys, c)) {
        const Index live_rows = size_of(common(mask.transposed().keys(J), {I}));
        tiles += live_rows + size_of(common(mask.keys(I), {J}));
        passes += live_rows;
      }
    }
    const Index pairs = mask.pairs({0, rows}, {0, keys}).value();
    const auto phase = [&](const std::string& kernel, const Blocks& by, std::size_t which) {
      return with(kernel, mask).cost(problem.shape, by).at(which);
    };
    Blocks by{{"s.rows", r}, {"s.cols", c}, {"s.depth", width - 1}, {"s.piece", 2},
              {"O.rows", r}, {"O.cols", s}, {"O.depth", c},         {"O.piece", 3}};
    const PhaseCost scores = phase("attention/tiles", by, 0);
    EXPECT_EQ(scores.reads, Words(tiles * width + 2 * (passes - rows)) + scores.index_reads);
    EXPECT_EQ(scores.writes, Words(pairs + 2 * passes - rows));
    const PhaseCost O = phase("attention/tiles", by, 1);
    EXPECT_EQ(O.reads, Words((pairs + rows) * ceil_div(width, s) + met * width) + O.index_reads);
    EXPECT_EQ(O.writes, Words(rows * width));
    const PhaseCost core = phase("attention/columns", {{"Br", r}, {"Bc", c}}, 2);
    EXPECT_EQ(core.reads, Words(passes * width + (passes - rows) * (width + 2)) + core.index_reads);
    EXPECT_EQ(core.writes, Words(passes * (width + 1) + passes - rows));
  }
}

// Each kernel that takes no masks refuses them.
TEST(MaskedKernels, OthersRefuseMasks) {
  for (const TestedKernel& kernel : tested_kernels()) {
    Problem problem = kernel.problem({7, 7, 3});
    for (const Mask& mask : {Mask::causal(7, 7), Mask::window(7, 7, 1, 1)}) {
      problem.mask = mask;
      if (!kernel.kernel->takes(mask)) {
        EXPECT_THROW(static_cast<void>(kernel.kernel->least_M(problem)), ShapeMismatch)
            << kernel.name;
      }
    }
    problem.mask = Mask::causal(7, 8);
    EXPECT_THROW(static_cast<void>(kernel.kernel->least_M(problem)), ShapeMismatch) << kernel.name;
  }
}

}  // namespace
}  // namespace redblue
