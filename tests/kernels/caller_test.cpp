// A caller's view: a dozen lines lead from the caller's buffers to g. Wrong requests are refused
// before a word moves.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernel.hpp"
#include "memsim/errors.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"
#include "tests/support/print.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

TEST(Caller, NeedsADozenLinesFromOwnBuffersToG) {
  const Index n = 20;
  const Index m = 15;
  const Index d = 4;
  const TestProblem problem = make_problem(tested_kernel("backward/small"), {n, m, d}, 1);
  const Buffer a1 = problem.given.at("A1");
  const Buffer a2 = problem.given.at("A2");
  const Buffer a3 = problem.given.at("A3");
  const Buffer x = problem.given.at("X");
  const Buffer y = problem.given.at("Y");
  const Buffer d_o = problem.given.at("dO");
  Buffer gradient(static_cast<std::size_t>(d * d));
  // ---- the dozen lines
  const SlowMatrix A1 = borrow("A1", a1.data(), n, d);
  const SlowMatrix A2 = borrow("A2", a2.data(), m, d);
  const SlowMatrix A3 = borrow("A3", a3.data(), m, d);
  const SlowMatrix X = borrow("X", x.data(), d, d);
  const SlowMatrix Y = borrow("Y", y.data(), d, d);
  const SlowMatrix dO = borrow("dO", d_o.data(), n, d);
  SlowMatrix g = borrow("g", gradient.data(), d, d);
  const TestedKernel kernel = tested_kernel("backward/small");
  Machine machine(64);
  RamWorkspace workspace;
  const Plan plan = kernel.plan({n, m, d}, machine.capacity());
  kernel.kernel->run(machine, plan, {{&A1, &A2, &A3, &X, &Y, &dO}, {&g}}, workspace);
  // ----
  const Verified verdict = verify(kernel, plan, problem, {{"g", gradient}});
  EXPECT_TRUE(verdict.ok) << verdict.text;
  EXPECT_EQ(total(machine.phases()).io.reads, total(plan.phases).reads.value());
  EXPECT_LE(total(machine.phases()).peak, 64);
}

// Each operand in turn is missing, too long, too wide or too short. The run is refused before a
// word moves.
TEST(Caller, IsRefusedBeforeAnyWordMoves) {
  const Shape shape{5, 7, 3};
  for (const TestedKernel& kernel : tested_kernels()) {
    const Plan plan = kernel.plan(shape, 10000);
    std::vector<Signature> all = kernel.given;
    all.insert(all.end(), kernel.returns.begin(), kernel.returns.end());
    for (std::size_t wrong = 0; wrong < all.size(); ++wrong) {
      for (const auto& [rows, cols, present] :
           {std::tuple(Index{0}, Index{0}, false), std::tuple(Index{1}, Index{0}, true),
            std::tuple(Index{0}, Index{1}, true), std::tuple(Index{-1}, Index{0}, true)}) {
        std::vector<SlowMatrix> matrices;
        for (std::size_t k = 0; k < all.size(); ++k) {
          matrices.emplace_back(std::string(all[k].name),
                                all[k].rows_of(shape) + (k == wrong ? rows : 0),
                                all[k].cols_of(shape) + (k == wrong ? cols : 0));
        }
        Operands io;
        for (std::size_t k = 0; k < all.size(); ++k) {
          if (k == wrong && !present) {
            continue;
          }
          if (k < kernel.given.size()) {
            io.give(matrices[k]);
          } else {
            io.take(matrices[k]);
          }
        }
        Machine machine(10000);
        RamWorkspace workspace;
        const std::string operand(all[wrong].name);
        try {
          kernel.kernel->run(machine, plan, io, workspace);
          ADD_FAILURE() << kernel.name << " ran with a wrong " << operand;
        } catch (const ShapeMismatch& error) {
          EXPECT_NE(std::string(error.what()).find("operand " + operand), std::string::npos)
              << error.what();
        }
        EXPECT_EQ(total(machine.phases()), PhaseCounts{}) << kernel.name << ' ' << operand;
        EXPECT_EQ(workspace.peak(), 0);
      }
    }
  }
}

TEST(Caller, CannotRunAPlanOfAnotherKernel) {
  const TestedKernel kernel = tested_kernel("forward/small");
  const Plan plan = tested_kernel("forward/flash").plan({4, 4, 4}, 1000);
  Machine machine(1000);
  RamWorkspace workspace;
  EXPECT_THROW(kernel.kernel->run(machine, plan, {}, workspace), ShapeMismatch);
  EXPECT_EQ(total(machine.phases()), PhaseCounts{});
}

// A plan that needs more than the machine's M fails in the machine. The machine reports the missing
// words, and no tile stays live.
TEST(Caller, WithAPlanTooLargeForTheMachineGetsAnOverflow) {
  const TestedKernel kernel = tested_kernel("matmul/blocked");
  const SlowMatrix A("A", 9, 9);
  const SlowMatrix B("B", 9, 9);
  SlowMatrix C("C", 9, 9);
  Machine machine(242);
  RamWorkspace workspace;
  EXPECT_THROW(
      kernel.kernel->run(machine, kernel.plan({9, 9, 9}, 243), {{&A, &B}, {&C}}, workspace),
      FastMemoryOverflow);
  EXPECT_EQ(machine.live(), 0);
}

TEST(Caller, CannotPlanForNothing) {
  for (const TestedKernel& kernel : tested_kernels()) {
    EXPECT_THROW(static_cast<void>(kernel.plan({4, 4, 4}, 0)), ShapeMismatch) << kernel.name;
    EXPECT_THROW(static_cast<void>(kernel.plan({4, 4, 4}, -7)), ShapeMismatch) << kernel.name;
    for (const Shape& shape : {Shape{0, 4, 4}, Shape{4, 0, 4}, Shape{4, 4, 0}, Shape{-1, 4, 4}}) {
      Problem problem = kernel.problem(shape);
      problem.shape = shape;
      EXPECT_THROW(static_cast<void>(kernel.kernel->plan(problem, 1000)), ShapeMismatch)
          << kernel.name;
    }
  }
}

// A kernel of one source takes no other problems, and no other kernel takes its problems.
TEST(Registry, KernelsOfOneSourceAreApart) {
  for (const TestedKernel& kernel : tested_kernels()) {
    for (const Sharing sharing : {Sharing::none, Sharing::kv, Sharing::self}) {
      const bool takes =
          kernel.kernel->of_one_source
              ? sharing == Sharing::self
              : sharing == Sharing::none || (sharing == Sharing::kv && kernel.kernel->shares_keys);
      const Problem problem(4, 4, 4, sharing);
      if (takes) {
        EXPECT_NO_THROW(static_cast<void>(kernel.kernel->plan(problem, 10'000))) << kernel.name;
      } else {
        EXPECT_THROW(static_cast<void>(kernel.kernel->plan(problem, 10'000)), ShapeMismatch)
            << kernel.name;
      }
    }
  }
  const Kernel& kernel = find_kernel("gradients/sources");
  Problem problem(4, 5, 4, Sharing::self);
  EXPECT_THROW(static_cast<void>(kernel.plan(problem, 10'000)), ShapeMismatch);
  problem = Problem(4, 4, 4, Sharing::self);
  problem.wanted.add("dQ");
  EXPECT_FALSE(kernel.can_return(problem)) << "dQ alone is not the sum";
  problem = Problem(4, 4, 4, Sharing::self).with_mask(Mask::causal(4, 4).called("causal"));
  EXPECT_THROW(static_cast<void>(
                   kernel.plan(problem, 10'000, Blocks{{"Br", 2}, {"Bc", 1}, {"clustered", 2}})),
               ShapeMismatch);
}

TEST(Registry, FindsKernelsByTheirNames) {
  for (const TestedKernel& kernel : tested_kernels()) {
    EXPECT_EQ(tested_kernel(kernel.name).kernel, kernel.kernel);
    EXPECT_EQ(tested_kernel(kernel.name).sharing, kernel.sharing);
    EXPECT_FALSE(kernel.summary.empty());
  }
  EXPECT_THROW(static_cast<void>(tested_kernel("backward/smal")), std::out_of_range);
  const char* const names[] = {
      "matmul/blocked",        "matmul/stationary-a",   "matmul/stationary-b",
      "matmul/stationary-c",   "forward/naive",         "forward/small",
      "forward/flash",         "forward/rows",          "forward/columns",
      "forward/tiles",         "backward/naive",        "backward/small",
      "backward/large",        "backward/flash",        "backward/rows",
      "backward/rows-w",       "backward/rows-onepass", "backward/score-rows",
      "backward/rows-xg",      "backward/rows-q",       "backward/rows-q-onepass",
      "backward/columns",      "backward/tiles",        "backward/tiles-sq",
      "backward/tiles-sqp",    "backward/tiles-shared", "forward/rows-resident",
      "backward/rows-resident"};
  EXPECT_GE(tested_kernels().size(), std::size(names));
  for (const char* name : names) {
    EXPECT_NO_THROW(static_cast<void>(tested_kernel(name))) << name;
  }
}

TEST(Blocks, AreFoundAndSetByName) {
  Blocks blocks{{"Br", 3}, {"Bc", 5}};
  EXPECT_EQ(blocks["Bc"], 5);
  blocks.set("Bc", 6);
  EXPECT_EQ(blocks, (Blocks{{"Br", 3}, {"Bc", 6}}));
  EXPECT_THROW(static_cast<void>(blocks["B"]), std::out_of_range);
  EXPECT_THROW(blocks.set("B", 1), std::out_of_range);
}

TEST(Plan, PrintsOnOneLine) {
  const Plan plan = tested_kernel("backward/small").plan({20, 15, 4}, 64);
  EXPECT_EQ(to_string(plan), "backward/small n=20 m=15 d=4 M=64: B=4");
}

}  // namespace
}  // namespace redblue
