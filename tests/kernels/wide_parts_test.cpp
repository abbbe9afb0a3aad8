// Kernels that split, run in parts, with sums that weigh two words. Each part has consecutive units
// of a stage and a separate machine, which moves and holds the words of the part's formula. The
// same holds for parts that add up partial sums of g. Together the parts return the bits of the
// whole, which also matches its formulas, for any wanted results.

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "memsim/backing.hpp"
#include "memsim/sanitized.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/print.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

constexpr Index kSumWords = 2;

// Under a mask, a formula's peak is an upper bound.
void expect_cost(const std::vector<PhaseCounts>& counted, const std::vector<PhaseCost>& costs,
                 bool exact_peaks) {
  std::map<std::string, PhaseCounts> found, formulas;
  for (const PhaseCounts& phase : counted) {
    found[phase.path] = phase;
  }
  for (const PhaseCost& phase : costs) {
    PhaseCounts& formula = formulas[phase.path];
    formula.io += {phase.reads.value(), phase.writes.value()};
    formula.peak = std::max(formula.peak, phase.peak.value());
  }
  for (const auto& [path, formula] : formulas) {
    EXPECT_EQ(found[path].io, formula.io) << path;
    EXPECT_LE(found[path].peak, formula.peak) << path;
    if (exact_peaks) {
      EXPECT_EQ(found[path].peak, formula.peak) << path;
    }
  }
  for (const auto& [path, phase] : found) {
    EXPECT_TRUE(formulas.contains(path)) << path;
  }
}

class InWideParts {
 public:
  InWideParts(const TestedKernel& kernel, const Plan& plan, const TestProblem& problem,
              RandomMasks& random)
      : plan_(plan),
        random_(random),
        split_(*kernel.split()),
        returned_(fresh_results(kernel, plan.problem.shape)) {
    for (const Signature& operand : kernel.given) {
      io_.give(borrowed(operand, problem.given.at(std::string(operand.name)).data()));
    }
    for (const Signature& operand : kernel.returns) {
      io_.take(borrowed(operand, returned_.at(std::string(operand.name)).data()));
    }
  }

  void run() {
    RamWorkspace workspace;
    std::vector<SlowMatrix> left = left_matrices(split_, plan_, workspace, workspace);
    const Operands io = with(io_, left);
    const Index d = plan_.problem.shape.d;
    std::optional<SlowMatrix> partials;
    if (split_.reduce) {
      const Index units = split_.stages.back().units(plan_.problem, plan_.blocks);
      partials =
          workspace.matrix("partial g", std::max<Index>(units, 1) * d, d).holding(Holds::sums);
    }
    SlowMatrix* const sums = partials ? &*partials : nullptr;
    for (const SplitStage& stage : split_.stages) {
      for (const Range units : cut(stage.units(plan_.problem, plan_.blocks))) {
        part([&](Machine& machine) { stage.part(machine, plan_, io, units, sums); },
             stage.part_cost(plan_.problem, plan_.blocks, units, sums != nullptr));
      }
    }
    if (sums != nullptr) {
      for (const Range rows : cut(d)) {
        part([&](Machine& machine) { split_.reduce(machine, plan_, rows, *sums, io.out("g")); },
             split_.reduce_cost(plan_.problem, plan_.blocks, rows));
      }
    }
  }
  [[nodiscard]] const Buffers& returned() const { return returned_; }
  // Cuts before and after these units, instead of at random.
  void cut_at(Range units) { at_ = units; }

 private:
  template <class Words>
  SlowMatrix& borrowed(const Signature& operand, Words* words) {
    const Index cols = operand.cols_of(plan_.problem.shape);
    return matrices_.emplace_back(SlowMatrix(std::string(operand.name),
                                             operand.rows_of(plan_.problem.shape), cols,
                                             std::make_unique<BorrowedBacking>(words, cols))
                                      .holding(operand.holds));
  }
  // Cuts into at most three parts.
  std::vector<Range> cut(Index all) {
    std::vector<Range> parts;
    if (at_) {
      const Index first = std::min(at_->begin, all), second = std::min(at_->end, all);
      for (const Range part : {Range{0, first}, Range{first, second}, Range{second, all}}) {
        if (part.size() > 0) {
          parts.push_back(part);
        }
      }
      return parts;
    }
    for (Index begin = 0; begin < all;) {
      const Index end = parts.size() == 2 ? all : random_.any(begin + 1, all);
      parts.push_back({begin, end});
      begin = end;
    }
    return parts;
  }
  template <class Code>
  void part(const Code& code, const std::vector<PhaseCost>& costs) {
    Machine machine(plan_.M);
    machine.weigh(Holds::sums, kSumWords);
    code(machine);
    // Groups of row blocks have the peak of the largest group.
    const bool exact = plan_.problem.mask.full() && !plan_.blocks.contains("sum.Bc");
    expect_cost(leaves(machine.phases()), costs, exact);
    EXPECT_EQ(machine.live(), 0);
  }

  const Plan& plan_;
  RandomMasks& random_;
  std::optional<Range> at_;
  const Split& split_;
  Buffers returned_;
  std::deque<SlowMatrix> matrices_;
  Operands io_;
};

// Wants only some of the optional results, if the kernel has optional results.
void want_fewer(TestedKernel& kernel, RandomMasks& random) {
  Wanted some;
  for (const std::string_view name : kernel.kernel->optional_results) {
    if (random.any(0, 2) == 0) {
      some.add(name);
    }
  }
  Problem problem;
  problem.sharing = kernel.sharing;
  problem.wanted = some;
  if (!some.all() && kernel.kernel->can_return(problem)) {
    kernel.want(some);
  }
}

std::vector<std::string> wide_kernels() {
  std::vector<std::string> all;
  for (const TestedKernel& kernel : tested_kernels()) {
    if (kernel.split()) {
      all.push_back(kernel.name);
    }
  }
  return all;
}

class WideParts : public testing::TestWithParam<std::string> {};

TEST_P(WideParts, MoveAndHoldWhatTheirFormulasSay) {
  const std::int64_t count = cases(kSanitized ? kUsualCases / 5 : kUsualCases);
  for (std::int64_t k = 0; k < count && !HasFailure(); ++k) {
    SCOPED_TRACE(reproduced_by(k));
    RandomMasks random(seed_of_case(k));
    KernelName name = *parse_kernel_name(GetParam());
    if (name.kernel->takes(Activation::silu) && random.any(0, 4) == 0) {
      name.activation = Activation::silu;
    }
    TestedKernel kernel(name);
    kernel.sum_words = kSumWords;
    Shape shape = kernel.shape({random.any(1, 40), random.any(1, 40), random.any(1, 12)});
    if (kernel.takes_dv() && random.any(0, 2) == 0) {
      shape.dv = random.any(1, 9);
    }
    if (name.kernel->takes_masks && random.any(0, 1) == 0) {
      kernel.mask = random.expression(shape.n, shape.m).mask;
    }
    want_fewer(kernel, random);
    const Index least = kernel.least_M(shape);
    const Index M = random.any(0, 3) == 0 ? least : least + random.any(1, 40 * (shape.d + 4));
    const Objective objective = random.any(0, 2) == 0 ? Objective::time : Objective::words;
    Plan plan = kernel.plan(shape, M, objective);
    if ((kernel.groups_keys() || plan.blocks.contains(kKeyGroups)) && random.any(0, 2) > 0) {
      plan = kernel.in_groups(plan, random.any(1, shape.m), random.any(1, shape.n));
    }
    SCOPED_TRACE(to_string(plan) + " wanted=" + kernel.wanted.text());
    const TestProblem problem = make_problem(kernel, shape, seed_of_case(k), 2);
    const Result whole = run_kernel(kernel, plan, problem);
    expect_cost(whole.phases, plan.phases, plan.problem.mask.full());
    if (plan.problem.mask.full()) {  // slow words have no weight
      EXPECT_EQ(whole.workspace_peak, kernel.kernel->intermediates(plan).value());
    }
    InWideParts parts(kernel, plan, problem, random);
    parts.run();
    EXPECT_TRUE(same_bits(parts.returned(), whole.returned));
  }
}

// 17 rows are not whole row blocks, and 8 keys are not 5 equal groups.
TEST_P(WideParts, OfAnyRangeOfUnits) {
  TestedKernel kernel = tested_kernel(GetParam());
  kernel.sum_words = kSumWords;
  const Shape shape{17, 8, 3};
  RandomMasks random(1);
  Plan plan = kernel.plan(shape, kernel.least_M(shape) + 60);
  if (kernel.groups_keys()) {
    plan = kernel.in_groups(plan, 5, 3);
  }
  const TestProblem problem = make_problem(kernel, shape, 1, 2);
  const Result whole = run_kernel(kernel, plan, problem);
  const Index units =
      kernel.kernel->schedule.split->stages.front().units(plan.problem, plan.blocks);
  EXPECT_GE(units, kernel.groups_keys() ? 5 : 1);
  for (Index end = 1; end <= units && !HasFailure(); ++end) {
    for (Index begin = 0; begin < end && !HasFailure(); ++begin) {
      SCOPED_TRACE(fmt::format("units {} to {} of {}", begin, end, to_string(plan)));
      InWideParts parts(kernel, plan, problem, random);
      parts.cut_at({begin, end});
      parts.run();
      EXPECT_TRUE(same_bits(parts.returned(), whole.returned));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, WideParts, testing::ValuesIn(wide_kernels()),
                         [](const auto& tested) { return test_name(tested.param); });

}  // namespace
}  // namespace redblue
