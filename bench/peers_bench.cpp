// Compares redblue with an implementation without it, interleaved. An iteration times three
// programs one after the other: the kernel, the same problem with OpenBLAS and materialised
// matrices, and multiply-adds in registers. Before each of the first two there is a rest and an
// untimed run. The time of the benchmark is the kernel's. Counters hold medians over the
// iterations, and quartiles of the ratio of the peer's time to the kernel's in the same iteration.
//
//   redblue_bench --benchmark_filter=peer/ --benchmark_counters_tabular=true

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/materialised.hpp"
#include "bench/problem.hpp"
#include "runtime/observe/fma_peak.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/run/workers.hpp"

namespace redblue {
namespace {

constexpr int kIterations = 15;
// The fast memory of a kernel, and its words if the cache size is unknown.
struct Peer {
  const char* kernel;
  CachePart cache;
  Index otherwise;
};
constexpr CachePart kMostOfL2{.level = CacheLevel::L2, .share = 0.75};
constexpr Peer kPeers[] = {
    {"forward/rows", kMostOfL2, 98304},
    {"backward/rows-onepass", kMostOfL2, 98304},
    {"backward/score-rows", {.level = CacheLevel::L3, .share = 0.125}, 1048576},
    {"backward/rows", kMostOfL2, 98304},
    {"gradients/score-rows", {.level = CacheLevel::L3, .share = 0.75}, 4194304},
};

double quantile(std::vector<double> values, double at) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(at * static_cast<double>(values.size() - 1) + 0.5)];
}

// Waits until idle threads sleep. Threads that have finished one side's work spin before they
// sleep, and would slow down the next timing.
void rest() {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

// Returns the time of a second run. Before the first run, the caches hold the other side's words.
template <class Work>
double seconds(const Work& work) {
  rest();
  work();
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Returns the largest difference divided by the largest value.
double difference(const float* a, const std::vector<float>& b) {
  double off = 0;
  double largest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double here = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (std::isnan(here)) {
      return here;
    }
    off = std::max(off, here);
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return off / largest;
}

void beside(benchmark::State& state, const Peer& by, const Shape& shape, Index threads) {
  static const Topology topology = read_topology();
  const auto found = fast_memory(topology, by.cache, static_cast<std::size_t>(threads));
  const Index M = found ? found->words : by.otherwise;
  const Kernel& kernel = find_kernel(by.kernel);
  const BenchProblem problem({&kernel}, shape);
  const Problem asked = kernel.with_inputs(Problem(shape));
  const Plan plan = kernel.plan(asked, M, Objective::time);
  const Team team{.workers = threads, .heads = 1};
  Materialised peer(shape);
  const bool forward = kernel.pass == Pass::forward;
  const bool plain = kernel.pass == Pass::gradients;
  const auto by_peer = [&] {
    const auto in = [&](const char* operand) { return problem.words(operand); };
    if (plain) {
      peer.gradients(in("Q"), in("K"), in("V"), in("dO"), asked.scale(), static_cast<int>(threads));
    } else if (forward) {
      peer.forward(in("A1"), in("A2"), in("A3"), in("X"), in("Y"), static_cast<int>(threads));
    } else {
      peer.gradient(in("A1"), in("A2"), in("A3"), in("X"), in("Y"), in("dO"),
                    static_cast<int>(threads));
    }
  };
  RunCounts counts;
  const auto by_us = [&] {
    counts = run_on_team(kernel, plan, team, {problem.io()}, topology).counts;
  };

  // A kernel that starts after a forward pass has less work than the peer. Then only its percentage
  // of the peak is reported.
  const bool like = !kernel.needs_forward();
  by_us();
  if (like) {
    by_peer();
  }
  const auto agree = [&](const char* result, const std::vector<float>& of_peer) {
    return difference(problem.words(result), of_peer) < 1e-4;
  };
  if (like && !(plain     ? agree("dQ", peer.dQ) && agree("dK", peer.dK) && agree("dV", peer.dV)
                : forward ? agree("O", peer.O)
                          : agree("g", peer.g))) {
    state.SkipWithError("the two do not agree");
    return;
  }
  std::vector<double> ours, theirs, ratios, shares;
  for ([[maybe_unused]] auto _ : state) {
    ours.push_back(seconds(by_us));
    if (like) {
      theirs.push_back(seconds(by_peer));
      ratios.push_back(theirs.back() / ours.back());
    }
    const auto flops = static_cast<double>(counts.total.operations.flops);
    rest();
    shares.push_back(100 * flops / ours.back() / fma_peak(threads, topology) * 1e-9);
    state.SetIterationTime(ours.back());
  }
  state.counters["ms"] = 1e3 * quantile(ours, 0.5);
  if (like) {
    state.counters["peer_ms"] = 1e3 * quantile(theirs, 0.5);
    state.counters["ratio"] = quantile(ratios, 0.5);
    state.counters["ratio_25"] = quantile(ratios, 0.25);
    state.counters["ratio_75"] = quantile(ratios, 0.75);
  }
  state.counters["%peak"] = quantile(shares, 0.5);
  state.counters["words"] = static_cast<double>(counts.total.io.io());
  state.counters["M"] = static_cast<double>(M);
}

bool register_all() {
  for (const Peer& by : kPeers) {
    for (const Index d : {Index{64}, Index{128}}) {
      for (const Index threads : {Index{1}, Index{2}})
        for (const Index n : {Index{256}, Index{4096}}) {
          const std::string name = "peer/" + std::string(by.kernel) + "/n:" + std::to_string(n) +
                                   "/d:" + std::to_string(d) +
                                   "/threads:" + std::to_string(threads);
          benchmark::RegisterBenchmark(name.c_str(),
                                       [=, &by](benchmark::State& state) {
                                         beside(state, by, {n, n, d}, threads);
                                       })
              ->UseManualTime()
              ->Iterations(n < 1000 ? 3 : kIterations)
              ->Unit(benchmark::kMillisecond);
        }
    }
  }
  return true;
}

[[maybe_unused]] const bool kRegistered = register_all();

}  // namespace
}  // namespace redblue
