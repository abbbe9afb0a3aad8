// One query and many keys, as in decoding. Times attention/rows with its keys in groups, on one
// thread and on several, and memcpy of its keys and values on as many threads. Both read each word
// of K and V once, and bytes_per_second counts these words.
//
//   redblue_bench --benchmark_filter=^decode/ --benchmark_repetitions=7
//       --benchmark_enable_random_interleaving=true

#include <cstring>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/problem.hpp"
#include "runtime/observe/parallel.hpp"
#include "runtime/run/workers.hpp"

namespace redblue {
namespace {

constexpr Shape kDecoding{1, 65536, 128};
constexpr Index kM = 98304;
constexpr Index kThreads[] = {1, 2, 4};
constexpr auto kBytes = kDecoding.m * (kDecoding.d + kDecoding.dv) * 4;

void decode(benchmark::State& state, Index threads) {
  const KernelName name = *parse_kernel_name("attention/rows");
  const BenchProblem problem(name, kDecoding);
  const Topology topology = read_topology();
  const Plan plan = name.kernel->plan(Problem(kDecoding), kM, Objective::time);
  for ([[maybe_unused]] auto _ : state) {
    run_on_team(*name.kernel, plan, {.workers = threads}, {problem.io()}, topology);
  }
  state.SetBytesProcessed(state.iterations() * kBytes);
}

void copy_words(benchmark::State& state, Index threads) {
  const std::vector<char> from(static_cast<std::size_t>(kBytes), 1);
  std::vector<char> to(from.size());
  const Topology topology = read_topology();
  for ([[maybe_unused]] auto _ : state) {
    in_parallel(threads, topology, [&](Index worker) {
      const Range own = share_of(kBytes, worker, threads);
      std::memcpy(to.data() + own.begin, from.data() + own.begin,
                  static_cast<std::size_t>(own.size()));
    });
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kBytes);
}

bool register_all() {
  for (const Index threads : kThreads) {
    const std::string with = "/threads:" + std::to_string(threads);
    const auto add = [&](const std::string& name, auto code) {
      benchmark::RegisterBenchmark((name + with).c_str(),
                                   [code, threads](auto& state) { code(state, threads); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    };
    add("decode/attention/rows", decode);
    add("decode/memcpy", copy_words);
  }
  return true;
}

[[maybe_unused]] const bool kRegistered = register_all();

}  // namespace
}  // namespace redblue
