// Compares the choice of `--objective time` with all its alternatives, interleaved. An iteration
// times each kernel that fits, the planner's choice first. All start from scratch: a kernel that
// needs a forward pass is timed with one. Rates come from the machine's calibration if it has one.
// The time of the benchmark is the time of the choice. Counters hold medians over the iterations:
// the milliseconds of the choice and of the fastest alternative. They also hold quartiles of the
// ratio of the alternative's time to the choice's in the same iteration.
//
//   redblue_bench --benchmark_filter=auto/ --benchmark_counters_tabular=true

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/problem.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/theory/planner.hpp"
#include "tools/options/machine.hpp"

namespace redblue {
namespace {

constexpr int kIterations = 9;
constexpr double kHopeless = 3;  // slower by this factor than the choice: not timed again

double quantile(std::vector<double> values, double at) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(at * static_cast<double>(values.size() - 1) + 0.5)];
}

double seconds_of(const Plan& plan, const BenchProblem& problem) {
  const auto start = std::chrono::steady_clock::now();
  Machine machine(plan.M);
  RamWorkspace workspace(Unwritten::any);
  find_kernel(plan.kernel).run(machine, plan, problem.io(), workspace);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void beside_all(benchmark::State& state, Index n, Index d, const CachePart& cache,
                Index otherwise) {
  Rates rates;
  try {
    rates = machine_rates();
  } catch (const std::exception& error) {  // the calibration is of another machine, or too old
    state.SkipWithError(error.what());
    return;
  }
  const auto found = fast_memory(machine_topology(), cache);
  const Task task{
      .problem = {n, n, d}, .memory = found ? found->words : otherwise, .known = Known::nothing};
  const std::vector<Choice> all = choices(task, {.rates = &rates});
  if (all.size() < 2) {
    state.SkipWithError("fewer than two kernels fit");
    return;
  }
  std::map<std::string, BenchProblem> problems;
  const auto run = [&](const Plan& plan) {
    const auto at =
        problems
            .try_emplace(spelled(plan), KernelName{&find_kernel(plan.kernel), plan.problem.sharing},
                         plan.problem.shape)
            .first;
    return seconds_of(plan, at->second);
  };
  std::vector<std::vector<double>> times(all.size());
  for ([[maybe_unused]] auto _ : state) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (times[k].empty() || quantile(times[k], 0) < kHopeless * quantile(times[0], 0)) {
        times[k].push_back(run(all[k].plan) + (all[k].forward ? run(*all[k].forward) : 0));
      }
    }
    state.SetIterationTime(times[0].back());
  }
  const auto other = std::min_element(
      times.begin() + 1, times.end(),
      [](const auto& a, const auto& b) { return quantile(a, 0.5) < quantile(b, 0.5); });
  std::vector<double> ratios;
  for (std::size_t k = 0; k < other->size(); ++k) {
    ratios.push_back((*other)[k] / times[0][k]);
  }
  state.SetLabel(all.front().plan.kernel + " beside " +
                 all[static_cast<std::size_t>(other - times.begin())].plan.kernel);
  state.counters["ms"] = 1e3 * quantile(times[0], 0.5);
  state.counters["other_ms"] = 1e3 * quantile(*other, 0.5);
  state.counters["ratio"] = quantile(ratios, 0.5);
  state.counters["ratio_25"] = quantile(ratios, 0.25);
  state.counters["ratio_75"] = quantile(ratios, 0.75);
  state.counters["M"] = static_cast<double>(task.memory.M);
}

bool register_all() {
  for (const auto& [level, otherwise] :
       {std::pair(CacheLevel::L1, Index{6144}), std::pair(CacheLevel::L2, Index{98304})}) {
    for (const Index d : {Index{64}, Index{128}}) {
      for (const Index n : {Index{256}, Index{4096}}) {
        const std::string name = "auto/n:" + std::to_string(n) + "/d:" + std::to_string(d) +
                                 "/cache:" + std::string(to_string(level));
        benchmark::RegisterBenchmark(
            name.c_str(), [=, cache = CachePart{level, 0.75}, words = otherwise](
                              benchmark::State& state) { beside_all(state, n, d, cache, words); })
            ->UseManualTime()
            ->Iterations(n < 1000 ? 1 : kIterations)
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  return true;
}

[[maybe_unused]] const bool kRegistered = register_all();

}  // namespace
}  // namespace redblue
