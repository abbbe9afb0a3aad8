#include "bench/problem.hpp"

#include <algorithm>
#include <string>

#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"
#include "runtime/run/inputs.hpp"

namespace redblue {

BenchProblem::BenchProblem(const KernelName& kernel, const Shape& shape)
    : kernel_(*kernel.kernel),
      problem_(kernel.kernel->with_inputs(Problem(shape, kernel.sharing))) {
  for (const Signature& operand : kernel.given()) {
    const std::span<float> words = add(operand);
    if (operand.name != "O" && operand.name != "L") {
      fill_input(operand.name, problem_, 1, 1, 0, operand.rows_of(shape), words);
    }
    io_.give(matrices_.at(operand.name));
  }
  if (buffers_.contains("O")) {
    make_forward();
  }
  for (const Signature& operand : kernel.kernel->returns) {
    add(operand);
    io_.take(matrices_.at(operand.name));
  }
}

std::span<float> BenchProblem::add(const Signature& operand) {
  const Index rows = operand.rows_of(problem_.shape);
  const Index cols = operand.cols_of(problem_.shape);
  std::vector<float>& words = buffers_[operand.name];
  words.resize(static_cast<std::size_t>(rows * cols));
  matrices_.emplace(operand.name, borrow(std::string(operand.name), words.data(), rows, cols));
  return words;
}

void BenchProblem::make_forward() {
  const Kernel& forward = find_kernel(std::string(to_string(forward_of(kernel_.pass))) + "/rows");
  const Plan plan =
      forward.plan(problem_, std::max(Index{1} << 16, forward.least_M(problem_)), Objective::time);
  Operands io;
  for (const Signature& operand : forward.given(problem_)) {
    io.give(matrices_.at(operand.name));
  }
  for (const Signature& operand : forward.returns) {
    io.take(matrices_.at(operand.name));
  }
  Machine machine(plan.M);
  RamWorkspace workspace(Unwritten::any);
  forward.run(machine, plan, io, workspace);
}

}  // namespace redblue
