// Every kernel of dense operands with sums of two words, on thousands of random problems, under
// masks, with activations and in groups of keys:
//
//   - It moves and holds the words of its formulas, phase by phase, and never more than M. It runs
//     at its least M and is refused one below.
//   - Compared with sums of one word and the same blocks, the extra words moved equal the words of
//     sums moved there. It returns the same bits, because the arithmetic is the same.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "memsim/sanitized.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/print.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const TestedKernel& kernel : tested_kernels()) {
    all.push_back(kernel.name);
  }
  return all;
}

void expect_formulas(const Result& result, const Plan& plan) {
  if (plan.problem.mask.full()) {
    EXPECT_EQ(without_elementwise(result.phases), as_counted(plan.phases));
    EXPECT_EQ(result.all.peak, total(plan.phases).peak.value());
  }
  std::map<std::string, PhaseCounts> counted;
  for (const PhaseCounts& phase : result.phases) {
    counted[phase.path] = phase;
  }
  for (const PhaseCost& phase : plan.phases) {
    const PhaseCounts found = counted[phase.path];
    EXPECT_EQ(found.io.reads, phase.reads.value()) << phase.path;
    EXPECT_EQ(found.io.writes, phase.writes.value()) << phase.path;
    EXPECT_LE(found.peak, phase.peak.value()) << phase.path;
  }
  EXPECT_LE(result.all.peak, plan.M);
  EXPECT_EQ(result.live, 0);
  EXPECT_EQ(result.workspace_live, 0);
}

// Compares with the same blocks and sums of one word.
void expect_only_sums_are_wider(TestedKernel kernel, const Plan& plan, const TestProblem& problem,
                                const Result& wide) {
  kernel.sum_words = 1;
  const Plan narrow_plan = kernel.plan(plan.problem.shape, plan.M, plan.blocks);
  const Result narrow = run_kernel(kernel, narrow_plan, problem);
  const IoCount sums = narrow.kinds[Holds::sums].io;
  EXPECT_EQ(wide.all.io, narrow.all.io + sums);
  EXPECT_EQ(wide.kinds[Holds::sums].io, sums + sums);
  EXPECT_TRUE(same_bits(wide.returned, narrow.returned));
}

class WideSums : public testing::TestWithParam<std::string> {};

TEST_P(WideSums, WeighInFormulasWhatTheyDoInCounts) {
  const std::int64_t count = cases(kSanitized ? kUsualCases / 5 : kUsualCases);
  for (std::int64_t k = 0; k < count && !HasFailure(); ++k) {
    SCOPED_TRACE(reproduced_by(k));
    RandomMasks random(seed_of_case(k));
    TestedKernel kernel = tested_kernel(GetParam());
    Shape shape = kernel.shape({random.any(1, 40), random.any(1, 40), random.any(1, 12)});
    if (kernel.takes_dv() && random.any(0, 2) == 0) {
      shape.dv = random.any(1, 9);
    }
    if (kernel.kernel->takes_masks && random.any(0, 1) == 0) {
      kernel.mask = random.expression(shape.n, shape.m).mask.with_index_words(random.any(1, 2));
    }
    if (kernel.kernel->takes_causal && random.any(0, 1) == 0) {
      kernel.mask = Mask::causal(shape.n, shape.m).called("causal");
    }
    if (kernel.kernel->takes(Activation::silu) && random.any(0, 4) == 0) {
      kernel = [&] {
        KernelName name = *parse_kernel_name(GetParam());
        name.activation = Activation::silu;
        TestedKernel other(name);
        other.mask = kernel.mask;
        return other;
      }();
    }
    kernel.sum_words = 2;
    const Index prefetch = kernel.streams_keys() && random.any(0, 3) == 0 ? 2 : 1;
    const Index least = kernel.least_M(shape, prefetch);
    const Index M = random.any(0, 3) == 0 ? least : least + random.any(1, 40 * (shape.d + 4));
    const Objective objective = random.any(0, 2) == 0 ? Objective::time : Objective::words;
    Plan plan = kernel.plan(shape, M, objective, prefetch);
    if ((kernel.groups_keys() || plan.blocks.contains(kKeyGroups)) && random.any(0, 2) > 0) {
      plan = kernel.in_groups(plan, random.any(1, shape.m), random.any(1, shape.n));
    }
    SCOPED_TRACE(to_string(plan));
    const TestProblem problem = make_problem(kernel, shape, seed_of_case(k), 2);
    const Result result = run_kernel(kernel, plan, problem);
    expect_formulas(result, plan);
    expect_only_sums_are_wider(kernel, plan, problem, result);
    if (least > 1) {
      EXPECT_THROW(static_cast<void>(kernel.plan(shape, least - 1, Objective::words, prefetch)),
                   FastMemoryTooSmall);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, WideSums, testing::ValuesIn(names()),
                         [](const auto& tested) { return test_name(tested.param); });

}  // namespace
}  // namespace redblue
