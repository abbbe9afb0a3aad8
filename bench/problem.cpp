#include "bench/problem.hpp"

#include <algorithm>
#include <string>

#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"
#include "runtime/run/inputs.hpp"

namespace redblue {

Problem::Problem(const Kernel& kernel, const Shape& shape) : shape_(shape) {
  for (const Signature& operand : kernel.given) {
    const std::span<float> words = add(operand);
    if (operand.name != "O" && operand.name != "L") {
      fill_input(operand.name, shape, 1, 1, 0, operand.rows_of(shape), words);
    }
    io_.give(matrices_.at(operand.name));
  }
  if (buffers_.contains("O")) {
    make_forward(buffers_.contains("A3") ? "forward/rows" : "forward/rows-shared");
  }
  for (const Signature& operand : kernel.returns) {
    add(operand);
    io_.take(matrices_.at(operand.name));
  }
}

std::span<float> Problem::add(const Signature& operand) {
  const Index rows = operand.rows_of(shape_);
  const Index cols = operand.cols_of(shape_);
  std::vector<float>& words = buffers_[operand.name];
  words.resize(static_cast<std::size_t>(rows * cols));
  matrices_.emplace(operand.name, borrow(std::string(operand.name), words.data(), rows, cols));
  return words;
}

void Problem::make_forward(std::string_view kernel) {
  const Kernel& forward = find_kernel(kernel);
  const Plan plan =
      forward.plan(shape_, std::max(Index{1} << 16, forward.least_M(shape_)), Objective::time);
  Operands io;
  for (const Signature& operand : forward.given) {
    io.give(matrices_.at(operand.name));
  }
  for (const Signature& operand : forward.returns) {
    io.take(matrices_.at(operand.name));
  }
  Machine machine(plan.M);
  RamWorkspace workspace;
  forward.run(machine, plan, io, workspace);
}

}  // namespace redblue
