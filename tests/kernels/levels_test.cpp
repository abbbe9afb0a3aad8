// Kernels with inner levels of fast memory, on random problems, masks and blocks:
//
//   - Each level moves the words of its formulas, phase by phase, and holds at most their peak and
//     its M. Without a mask the peak is the formula's. The machine moves the same words as without
//     levels.
//   - All arithmetic is on words in the innermost level, and no words are left in any level.
//   - The results are within the bound of the double-precision evaluation.

#include "kernels/parts/levels.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/parts/rows.hpp"
#include "memsim/errors.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/print.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

std::vector<std::string> kernels_with_levels() {
  std::vector<std::string> names;
  for (const TestedKernel& kernel : tested_kernels()) {
    if (kernel.kernel->has_levels()) {
      names.push_back(kernel.name);
    }
  }
  return names;
}

void expect_level(const RunCounts::Level& counted, const LevelPlan& plan, bool full) {
  for (const PhaseCounts& phase : counted.phases) {
    const auto cost = std::ranges::find(plan.phases, phase.path, &PhaseCost::path);
    ASSERT_NE(cost, plan.phases.end()) << phase.path << " has no formula";
    EXPECT_EQ(phase.io.reads, cost->reads.value()) << phase.path;
    EXPECT_EQ(phase.io.writes, cost->writes.value()) << phase.path;
    EXPECT_LE(phase.peak, cost->peak.value()) << phase.path;
    if (full) {
      EXPECT_EQ(phase.peak, cost->peak.value()) << phase.path;
    }
  }
  const PhaseCost all = total(plan.phases);
  EXPECT_EQ(counted.total.io, (IoCount{all.reads.value(), all.writes.value()}));
  EXPECT_LE(counted.total.peak, plan.M);
}

void expect_levels(const TestedKernel& kernel, const Plan& plan, std::uint64_t seed) {
  SCOPED_TRACE(to_string(plan));
  const TestProblem problem = make_problem(kernel, plan.problem.shape, seed, 2);
  const Result result = run_kernel(kernel, plan, problem);
  ASSERT_EQ(result.inner.size(), plan.inner.size());
  for (std::size_t level = 0; level < plan.inner.size(); ++level) {
    SCOPED_TRACE("level " + std::to_string(level + 1));
    expect_level(result.inner[level], plan.inner[level], kernel.mask.full());
  }
  expect_level({result.phases, result.all}, {plan.M, plan.phases}, kernel.mask.full());
  EXPECT_EQ(result.far, "");
  EXPECT_EQ(result.live, 0);
  const Verified verdict = verify(kernel, plan, problem, result.returned);
  EXPECT_TRUE(verdict.ok) << verdict.text;
}

// Returns levels in which the smallest blocks fit, with more or less room.
Memory random_memory(const TestedKernel& kernel, const Shape& shape, RandomMasks& random) {
  Memory memory(std::numeric_limits<Index>::max() / 4);
  memory.inner.assign(static_cast<std::size_t>(random.any(1, 2)), 0);
  for (std::size_t level = 0; level < memory.inner.size(); ++level) {
    memory.inner[level] = memory.M / 4 + static_cast<Index>(level);
  }
  Blocks smallest =
      kernel.kernel->blocks(kernel.problem(shape), kernel.least_M(shape), Objective::words);
  for (std::size_t level = 0; level < memory.inner.size(); ++level) {
    for (const InnerBlock& block : kernel.kernel->fitting.inner_blocks) {
      smallest.add(level_block(level, block.name), 1);
    }
  }
  const Plan plan = kernel.kernel->plan(kernel.problem(shape), memory, smallest);
  Index least = 0;
  for (std::size_t level = 0; level < memory.inner.size(); ++level) {
    least = std::max(least + 1, total(plan.inner[level].phases).peak.value());
    least += random.any(0, 3) == 0 ? 0 : random.any(0, 12 * (shape.d + 4));
    memory.inner[level] = least;
  }
  memory.M = std::max(least + 1, total(plan.phases).peak.value()) +
             (random.any(0, 3) == 0 ? 0 : random.any(0, 40 * (shape.d + 4)));
  return memory;
}

// Returns a plan with blocks for no particular M: ragged, and smaller or larger than the problem.
Plan random_plan(const TestedKernel& kernel, const Shape& shape, Memory memory,
                 RandomMasks& random) {
  Blocks blocks =
      kernel.kernel->blocks(kernel.problem(shape), kernel.least_M(shape), Objective::words);
  blocks.drop(kKept);
  for (auto& [name, size] : Blocks(blocks)) {
    blocks.set(name, random.any(1, 50));
  }
  for (const auto& [name, cuts] : kernel.kernel->fitting.inner_blocks) {
    if (!blocks.contains(name)) {
      continue;
    }
    Index size = random.any(1, 20);
    for (std::size_t level = 0; level < memory.inner.size(); ++level) {
      blocks.add(level_block(level, name), size);
      size = cuts ? size * random.any(1, 3) : random.any(1, 30);
    }
  }
  for (const std::string_view apart : kernel.kernel->fitting.apart_blocks) {
    if (random.any(0, 1) == 1) {
      blocks.add(std::string(apart), 1);
    }
  }
  Plan plan = kernel.kernel->plan(kernel.problem(shape), memory, blocks);
  Index least = 0;
  for (LevelPlan& level : plan.inner) {
    level.M = least = std::max(least + 1, total(level.phases).peak.value());
  }
  plan.M = std::max(least + 1, total(plan.phases).peak.value());
  return plan;
}

// Returns the kernel with softmax, or sometimes with another activation.
TestedKernel random_kernel(std::string_view name, RandomMasks& random) {
  constexpr Activation kAll[] = {Activation::softmax, Activation::softmax, Activation::relu,
                                 Activation::sigmoid, Activation::silu};
  KernelName kernel = parse_kernel_name(name).value();
  if (kernel.kernel->takes_activations) {
    kernel.activation = kAll[random.any(0, 4)];
  }
  return kernel;
}

// Returns some results of a kernel that has only optional results.
Wanted random_wanted(const TestedKernel& kernel, RandomMasks& random) {
  Wanted some;
  const auto which = random.any(1, (1 << std::ssize(kernel.returns)) - 1);
  for (std::size_t k = 0; k < kernel.returns.size(); ++k) {
    if ((which >> k) % 2 == 1) {
      some.add(kernel.returns[k].name);
    }
  }
  return some;
}

class LeveledKernel : public testing::TestWithParam<std::string> {};

TEST_P(LeveledKernel, MovesAndComputesWhatItsFormulasSayAtEachLevel) {
  RandomMasks random(static_cast<unsigned>(31 + seed_of_case(0)));
  for (std::int64_t k = 0; k < cases(60) && !HasFailure(); ++k) {
    SCOPED_TRACE("case " + std::to_string(k));
    TestedKernel kernel = random_kernel(GetParam(), random);
    Shape shape{random.any(1, 70), random.any(1, 70), random.any(1, 20)};
    if (kernel.takes_dv() && random.any(0, 2) == 0) {
      shape.dv = random.any(1, 20);
    }
    if (kernel.kernel->takes_masks && random.any(0, 1) == 0) {
      kernel.mask = random.expression(shape.n, shape.m).mask;
    }
    if (const auto& optional = kernel.kernel->optional_results;
        !optional.empty() && random.any(0, 1) == 0) {
      kernel.want(random_wanted(kernel, random));
    }
    const Memory memory = random_memory(kernel, shape, random);
    const Objective objective = random.any(0, 3) == 0 ? Objective::time : Objective::words;
    const auto seed = static_cast<std::uint64_t>(k + 1);
    expect_levels(kernel, kernel.kernel->plan(kernel.problem(shape), memory, objective), seed);
    expect_levels(kernel, random_plan(kernel, shape, memory, random), seed);
  }
}

// Two inner levels with room for everything.
const Memory kRoomy = [] {
  Memory memory(Index{1} << 36);  // the thread sanitizer maps no larger arena
  memory.inner = {Index{1} << 34, Index{1} << 35};
  return memory;
}();

class LeveledRows : public testing::TestWithParam<std::string> {};

// Sums are made in the order of one level with the same blocks. If maxima rise on the way, they are
// in the order of the innermost key blocks, provided that these cut the blocks around them evenly.
TEST_P(LeveledRows, HaveTheBitsOfOneLevel) {
  TestedKernel kernel = tested_kernel(GetParam());
  const bool online = kernel.kernel->pass != Pass::backward || !kernel.kernel->needs_forward();
  RandomMasks random(static_cast<unsigned>(37 + seed_of_case(0)));
  for (std::int64_t k = 0; k < cases(60) && !HasFailure(); ++k) {
    const Shape shape{random.any(1, 90), random.any(1, 90), random.any(1, 20)};
    kernel.mask = online || k % 2 == 0 ? Mask() : random.expression(shape.n, shape.m).mask;
    Plan flat = kernel.plan(shape, kernel.least_M(shape) + random.any(0, 4000));
    flat.blocks.drop("clustered");
    flat.blocks.drop(kKept);
    const Index near = random.any(1, 20), more = random.any(1, 3);
    if (online) {
      flat.blocks.set("Bc", near);
    }
    flat = kernel.kernel->plan(flat.problem, Index{1} << 36, flat.blocks);
    Blocks blocks = flat.blocks;
    blocks.set("Bc", near * more * random.any(1, 3));
    const Index rows = random.any(1, 20);
    for (std::size_t level = 0; level < 2; ++level) {
      const Index times = level == 0 ? 1 : more;
      blocks.add(level_block(level, "Br"), rows * times);
      blocks.add(level_block(level, "Bc"), near * times);
      if (blocks.contains("Bw")) {
        blocks.add(level_block(level, "Bw"), times);
      }
    }
    if (random.any(0, 1) == 1) {
      blocks.add(std::string(kRowsApart), 1);
    }
    const Plan nested = kernel.kernel->plan(flat.problem, kRoomy, blocks);
    SCOPED_TRACE(to_string(nested));
    const TestProblem problem = make_problem(kernel, shape, static_cast<std::uint64_t>(k + 1), 2);
    EXPECT_TRUE(same_bits(run_kernel(kernel, nested, problem).returned,
                          run_kernel(kernel, flat, problem).returned));
  }
}

// Without a mask, dQ_i has its terms in the order of keys, and dK_j and dV_j in the order of
// queries, whatever the blocks.
TEST(LeveledGradients, HaveTheBitsOfOneLevel) {
  RandomMasks random(static_cast<unsigned>(41 + seed_of_case(0)));
  const TestedKernel kernel = tested_kernel("gradients/rows-keys");
  for (std::int64_t k = 0; k < cases(60) && !HasFailure(); ++k) {
    const Shape shape{random.any(1, 90), random.any(1, 90), random.any(1, 20)};
    const Plan flat = kernel.plan(shape, kernel.least_M(shape) + random.any(0, 4000));
    const Plan nested = random_plan(kernel, shape, kRoomy, random);
    SCOPED_TRACE(to_string(nested) + ", and " + to_string(flat));
    const TestProblem problem = make_problem(kernel, shape, static_cast<std::uint64_t>(k + 1), 2);
    EXPECT_TRUE(same_bits(run_kernel(kernel, nested, problem).returned,
                          run_kernel(kernel, flat, problem).returned));
  }
}

// Returns the kernels in which rows stay, in one pass.
std::vector<std::string> rows_with_levels() {
  std::vector<std::string> names;
  for (const std::string& name : kernels_with_levels()) {
    const TestedKernel kernel = tested_kernel(name);
    if (kernel.blocks({8, 8, 4}, 1000, Objective::words).contains("Br")) {
      names.push_back(name);
    }
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Kernels, LeveledRows, testing::ValuesIn(rows_with_levels()),
                         [](const auto& tested) { return test_name(tested.param); });
INSTANTIATE_TEST_SUITE_P(Kernels, LeveledKernel, testing::ValuesIn(kernels_with_levels()),
                         [](const auto& tested) { return test_name(tested.param); });

}  // namespace
}  // namespace redblue
