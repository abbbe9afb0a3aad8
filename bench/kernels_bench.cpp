// How fast each kernel runs, and what it moves: one benchmark a kernel, shape and M. An
// iteration is a whole run on a fresh machine. Counters: the words as counted and as the
// formula says, the peak, the flops, and flops per second.
//
//   redblue_bench --benchmark_filter=backward/ --benchmark_counters_tabular=true

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/kernel.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"
#include "runtime/inputs.hpp"

namespace redblue {
namespace {

struct Problem {
  Shape shape;
  Index M;
};
// M around d^2, well above it, and with room for everything; then nothing that divides.
constexpr Problem kProblems[] = {
    {{512, 512, 64}, 4096},
    {{512, 512, 64}, 32768},
    {{512, 512, 64}, Index{1} << 21},
    {{509, 257, 61}, 9973},
};

// All matrices that a kernel is given and returns, in buffers of their own.
class Store {
 public:
  Store(const Kernel& kernel, const Problem& problem) {
    for (const Signature& operand : kernel.given) {
      const std::span<float> words = add(operand, problem.shape);
      if (operand.name != "O" && operand.name != "L") {
        fill_input(operand.name, problem.shape, 1, 1, 0, operand.rows_of(problem.shape), words);
      }
      io_.give(matrices_.at(operand.name));
    }
    if (buffers_.contains("O")) {
      make_forward(problem);
    }
    for (const Signature& operand : kernel.returns) {
      add(operand, problem.shape);
      io_.take(matrices_.at(operand.name));
    }
  }

  [[nodiscard]] const Operands& io() const { return io_; }

 private:
  std::span<float> add(const Signature& operand, const Shape& shape) {
    const Index rows = operand.rows_of(shape);
    const Index cols = operand.cols_of(shape);
    std::vector<float>& words = buffers_[operand.name];
    words.resize(static_cast<std::size_t>(rows * cols));
    matrices_.emplace(operand.name, borrow(std::string(operand.name), words.data(), rows, cols));
    return words;
  }

  // O and L, where they are inputs.
  void make_forward(const Problem& problem) {
    const Kernel& forward = find_kernel("forward/flash");
    const Plan plan =
        forward.plan(problem.shape, std::max(problem.M, forward.least_M(problem.shape)));
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

  std::map<std::string_view, std::vector<float>> buffers_;
  std::map<std::string_view, SlowMatrix> matrices_;
  Operands io_;
};

double number(Index count) {
  return static_cast<double>(count);
}

void bench(benchmark::State& state, const Kernel& kernel, const Problem& problem) {
  const Store store(kernel, problem);
  const Plan plan = kernel.plan(problem.shape, problem.M);
  PhaseTotal counted;
  for ([[maybe_unused]] auto _ : state) {
    Machine machine(plan.M);
    RamWorkspace workspace;
    kernel.run(machine, plan, store.io(), workspace);
    counted = total(machine.phases());
  }
  const PhaseCost formula = total(plan.phases);
  using benchmark::Counter;
  state.counters["reads"] = number(counted.io.reads);
  state.counters["writes"] = number(counted.io.writes);
  state.counters["io"] = number(counted.io.io());
  state.counters["io_formula"] = number((formula.reads + formula.writes).value());
  state.counters["peak"] = number(counted.peak);
  state.counters["flops"] = number(counted.operations.flops);
  state.counters["flop/s"] =
      Counter(number(counted.operations.flops), Counter::kIsIterationInvariantRate);
  if (counted.io.io() != (formula.reads + formula.writes).value()) {
    state.SkipWithError("the words counted are not those of the formula");
  }
}

// Each kernel on each problem that it fits in.
bool register_all() {
  for (const Kernel& kernel : kernels()) {
    for (const Problem& problem : kProblems) {
      const auto& [n, m, d] = problem.shape;
      if (problem.M < kernel.least_M(problem.shape)) {
        continue;
      }
      std::string name = std::string(kernel.name) + "/n:" + std::to_string(n);
      if (m != n) {
        name += "/m:" + std::to_string(m);
      }
      name += "/d:" + std::to_string(d) + "/M:" + std::to_string(problem.M);
      benchmark::RegisterBenchmark(name.c_str(), [&](benchmark::State& state) {
        bench(state, kernel, problem);
      })->Unit(benchmark::kMillisecond);
    }
  }
  return true;
}

[[maybe_unused]] const bool kRegistered = register_all();

}  // namespace
}  // namespace redblue
