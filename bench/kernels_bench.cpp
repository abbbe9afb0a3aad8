// The speed of each kernel and the words it moves: one benchmark for each kernel, shape and M. An
// iteration is a whole run on a fresh machine. Counters: words counted, words by the formula, peak,
// flops, GF/s, and GF/s as a percentage of multiply-adds in registers.
//
//   redblue_bench --benchmark_filter=backward/ --benchmark_counters_tabular=true

#include <string>

#include <benchmark/benchmark.h>

#include "bench/problem.hpp"
#include "kernels/kernel.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"
#include "runtime/observe/fma_peak.hpp"

namespace redblue {
namespace {

struct Size {
  Shape shape;
  Index M;
};
// M around d^2, well above it, and with room for everything. The last shape is divisible by no
// block.
constexpr Size kSizes[] = {
    {{512, 512, 64}, 4096},
    {{512, 512, 64}, 32768},
    {{512, 512, 64}, Index{1} << 21},
    {{509, 257, 61}, 9973},
};
// For speed: various widths and lengths, with M about three quarters of an L2 of 512 KiB.
constexpr Index kL2 = 98304;
constexpr Size kFast[] = {
    {{4096, 4096, 64}, kL2},  {{4096, 4096, 128}, kL2}, {{4096, 4096, 32}, kL2},
    {{4096, 4096, 80}, kL2},  {{4096, 4096, 96}, kL2},  {{4096, 4096, 256}, kL2},
    {{4096, 4096, 512}, kL2}, {{1000, 1000, 64}, kL2},  {{4097, 4097, 64}, kL2},
    {{1000, 1000, 128}, kL2}, {{4097, 4097, 128}, kL2},
};

double number(Index count) {
  return static_cast<double>(count);
}

void bench(benchmark::State& state, const KernelName& name, const Size& size) {
  const Kernel& kernel = *name.kernel;
  const BenchProblem problem(name, size.shape);
  const Plan plan = kernel.plan(Problem(size.shape, name.sharing), size.M, Objective::time);
  PhaseCounts counted;
  for ([[maybe_unused]] auto _ : state) {
    Machine machine(plan.M);
    RamWorkspace workspace(Unwritten::any);
    kernel.run(machine, plan, problem.io(), workspace);
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
  const double flops = number(counted.operations.flops);
  state.counters["GF/s"] = Counter(1e-9 * flops, Counter::kIsIterationInvariantRate);
  state.counters["%peak"] =
      Counter(1e-7 * flops / fma_peak(1, {}), Counter::kIsIterationInvariantRate);
  if (counted.io.io() != (formula.reads + formula.writes).value()) {
    state.SkipWithError("the words counted are not those of the formula");
  }
}

void add(const KernelName& kernel, const Size& size) {
  const auto& [n, m, d] = size.shape;
  if (size.M < kernel.kernel->least_M(Problem(size.shape, kernel.sharing))) {
    return;
  }
  std::string name = kernel.text() + "/n:" + std::to_string(n);
  if (m != n) {
    name += "/m:" + std::to_string(m);
  }
  name += "/d:" + std::to_string(d) + "/M:" + std::to_string(size.M);
  benchmark::RegisterBenchmark(name.c_str(), [&](benchmark::State& state) {
    bench(state, kernel, size);
  })->Unit(benchmark::kMillisecond);
}

// Registers each kernel for each problem that it fits. The sizes for speed are only for kernels
// that can be split.
bool register_all() {
  for (const KernelName& kernel : kernel_names()) {
    if (kernel.kernel->of_one_source) {
      continue;  // sizes have more queries than keys, and a forward pass reads keys apart
    }
    for (const Size& size : kSizes) {
      add(kernel, size);
    }
    if (kernel.kernel->schedule.split) {
      for (const Size& size : kFast) {
        add(kernel, size);
      }
    }
  }
  return true;
}

[[maybe_unused]] const bool kRegistered = register_all();

}  // namespace
}  // namespace redblue
