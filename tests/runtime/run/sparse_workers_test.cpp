// Tests sparse kernels with several workers, and in steps. No bit of a result depends on the number
// of workers or on where a run was ended. The counts equal the formulas.

#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention.hpp"
#include "runtime/run/workers.hpp"
#include "tests/kernels/sparse_cases.hpp"
#include "tests/support/print.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

// Operands of a kernel, and its results, which start as NaN.
class SparseStore {
 public:
  SparseStore(const Kernel& kernel, const Problem& problem, std::uint64_t seed) {
    SparseCases random(seed);
    matrices_.reserve(kernel.operands.size() + kernel.returns.size());
    for (const Signature& operand : kernel.given(problem)) {
      const Index rows = operand.rows_of(problem.shape), cols = operand.cols_of(problem.shape);
      const auto& words = words_[operand.name] = random.words(rows * cols);
      io_.give(matrices_.emplace_back(std::string(operand.name), rows, cols,
                                      std::make_unique<BorrowedBacking>(words.data(), cols)));
    }
    for (const Signature& result : kernel.returned(problem)) {
      const Index rows = result.rows_of(problem.shape), cols = result.cols_of(problem.shape);
      auto& words = results_[result.name];
      words.assign(static_cast<std::size_t>(rows * cols), std::numeric_limits<float>::quiet_NaN());
      io_.take(matrices_.emplace_back(borrow(std::string(result.name), words.data(), rows, cols)));
    }
  }
  [[nodiscard]] const Operands& io() const { return io_; }
  // Checks that every result is written and has the bits of the other store.
  void expect_same(const SparseStore& other) const {
    for (const auto& [name, words] : results_) {
      const DenseWords& its = other.results_.at(name);
      EXPECT_EQ(std::memcmp(words.data(), its.data(), words.size() * sizeof(float)), 0) << name;
    }
  }

 private:
  std::map<std::string_view, DenseWords> words_, results_;
  std::vector<SlowMatrix> matrices_;
  Operands io_;
};

// Returns the formulas as a run counts them, with index words.
std::vector<PhaseCounts> counts_of(const std::vector<PhaseCost>& costs) {
  std::vector<PhaseCounts> all = as_counted(costs);
  for (std::size_t k = 0; k < costs.size(); ++k) {
    all[k].indices = {costs[k].index_reads.value(), costs[k].index_writes.value()};
  }
  return all;
}

// Returns a plan with small chunks, sometimes with several keys in a block.
Plan some_plan(const Kernel& kernel, const Problem& problem, SparseCases& random) {
  constexpr Index kM = 100000;
  Blocks blocks = kernel.blocks(problem, kM, Objective::words);
  blocks.set("chunk", random.any(1, 400));
  if (random.any(0, 1) == 1) {
    blocks.add("keys", random.any(1, 20));
  }
  return kernel.plan(problem, kM, blocks);
}

const char* const kNames[] = {"logsumexp/sparse-rows", "forward/sparse-rows",
                              "backward/sparse-rows",  "logsumexp/sparse-x",
                              "forward/sparse-x",      "backward/sparse-x"};

TEST(SparseWorkers, ComputeTheSameBitsAndCountWhatTheFormulasSay) {
  SparseCases random(11);
  Index units = 0;
  for (std::uint64_t trial = 0; trial < 30 && !testing::Test::HasFailure(); ++trial) {
    const Problem problem = random.problem(40);
    for (const char* const name : kNames) {
      const Kernel& kernel = find_kernel(name);
      const Plan plan = some_plan(kernel, problem, random);
      units = std::max(units, kernel.units(plan));
      const SparseStore alone(kernel, problem, trial);
      Machine machine(plan.M);
      RamWorkspace workspace;
      kernel.run(machine, plan, alone.io(), workspace);
      for (const Index workers : {1, 2, 3, 7}) {
        SCOPED_TRACE(to_string(plan) + " workers=" + std::to_string(workers));
        const Team team{.workers = workers, .heads = 1, .unwritten = Unwritten::nan};
        const SparseStore store(kernel, problem, trial);
        const RunCounts counted = run_on_team(kernel, plan, team, {store.io()}, Topology()).counts;
        EXPECT_EQ(without_elementwise(counted.phases), counts_of(cost_of_team(kernel, plan, team)));
        EXPECT_EQ(counted.largest, largest_io(kernel, plan, team).value());
        store.expect_same(alone);
      }
    }
  }
  EXPECT_GT(units, 7);
}

// A run that is ended after each of its steps continues from the state that the step left.
TEST(SparseWorkers, GoOnAfterEachStep) {
  SparseCases random(12);
  Index steps = 0;
  for (std::uint64_t trial = 0; trial < 30 && !testing::Test::HasFailure(); ++trial) {
    const Problem problem = random.problem(30);
    for (const char* const name : kNames) {
      const Kernel& kernel = find_kernel(name);
      const Plan plan = some_plan(kernel, problem, random);
      SCOPED_TRACE(to_string(plan));
      const SparseStore alone(kernel, problem, trial);
      Machine machine(plan.M);
      RamWorkspace workspace;
      kernel.run(machine, plan, alone.io(), workspace);
      struct Ended {};
      Steps next;
      for (bool done = false; !done;) {
        // Each step gets fresh results, so it cannot depend on a result that it writes from the
        // start.
        const SparseStore store(kernel, problem, trial);
        RamWorkspace own(Unwritten::nan);
        Steps now = next;
        const Index before = now.first;
        now.after = [&](Index first, const RunCounts& counts, std::vector<float> left) {
          next = {.first = first, .before = counts, .left = std::move(left)};
          ++steps;
          if (before < first && first < kernel.units(plan)) {
            throw Ended();
          }
        };
        try {
          const RunCounts counts = run_alone(kernel, plan, store.io(), own, nullptr, now);
          EXPECT_EQ(without_elementwise(counts.phases), counts_of(plan.phases));
          store.expect_same(alone);
          done = true;
        } catch (const Ended&) {
        }
      }
    }
  }
  EXPECT_EQ(steps, 30 * (3 * 2 + 3));
}

}  // namespace
}  // namespace redblue
