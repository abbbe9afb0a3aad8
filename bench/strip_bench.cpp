// Where the time of a row kernel goes. A row kernel works on strips: the scores of 48 queries and
// the keys of one block. These benchmarks run the steps of a strip on tiles in fast memory, alone
// and together, and report the percentage of multiply-adds in registers that their products reach.
// No word is copied: the difference to a whole kernel is its copies and its set-up.
//
//   redblue_bench --benchmark_filter=strip/ --benchmark_repetitions=9

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/machine.hpp"
#include "runtime/observe/fma_peak.hpp"
#include "runtime/observe/topology.hpp"

namespace redblue {
namespace {

constexpr Index kQueries = 576, kKeyBlocks = 4, kStrip = 3 * kPanel;

// The resident tiles of a row block, and some key blocks.
struct Resident {
  Resident(Index depth, Index block)
      : d(depth), Bc(block), machine(kQueries * (3 * d + 6) + block * (2 * kKeyBlocks * d + 64)) {
    for (Index b = 0; b < kKeyBlocks; ++b) {
      keys.push_back(machine.initialize("K", Bc, d, 0.01F));
      values.push_back(machine.initialize("V", Bc, d, 0.25F));
    }
  }
  Index d, Bc;
  Machine machine;
  Tile S = machine.initialize("S", d, kQueries, 0.5F);
  Tile G = machine.initialize("G", d, kQueries, 0.5F);
  Tile Z = machine.initialize("Z", kQueries, d);
  Tile L = machine.initialize("L", kQueries, 1, 1), v = machine.initialize("v", kQueries, 1, 1);
  Tile maximum = machine.initialize("max", kQueries, 1, kNoMaximum);
  Tile sum = machine.initialize("sum", kQueries);
  Tile factors = machine.initialize("factors", kStrip);
  Tile strip = machine.initialize("e", Bc, kStrip);
  Tile registers = machine.initialize("q", kRegisterCharge, 1);
  std::vector<Tile> keys, values;
};

// One strip: the queries K, one key block, and its scores.
struct Strip {
  Resident& of;
  std::size_t block;
  Range K;
  View e;

  [[nodiscard]] ConstView queries(const Tile& tile) const { return tile.part({0, of.d}, K); }
  void scores() const { multiply(of.keys[block], queries(of.S), e); }
  void maxima() const {
    const View factors = of.factors.part({0, K.size()});
    raise_maximum(transposed(e), of.maximum.part(K), factors);
    scale_rows(of.sum.part(K), factors);
    scale_rows(of.Z.part(K), factors);
  }
  void exponentials() const { exponentiate(transposed(e), of.maximum.part(K), of.sum.part(K)); }
  void weighed_values() const { multiply_add(transposed(e), of.values[block], of.Z.part(K)); }
  void weights() const { exponentiated_product(of.keys[block], queries(of.S), of.L.part(K), e); }
  void gradients() const {
    softmax_gradient_product(of.values[block], queries(of.G), of.v.part(K), e, of.registers);
  }
};

struct Steps {
  const char* name;
  int products;
  void (*run)(const Strip& strip);
};
constexpr Steps kSteps[] = {
    {"scores", 1, [](const Strip& of) { of.scores(); }},
    {"values", 1, [](const Strip& of) { of.weighed_values(); }},
    {"products of forward", 2,
     [](const Strip& of) {
       of.scores();
       of.weighed_values();
     }},
    {"forward without maxima", 2,
     [](const Strip& of) {
       of.scores();
       of.exponentials();
       of.weighed_values();
     }},
    {"forward", 2,
     [](const Strip& of) {
       of.scores();
       of.maxima();
       of.exponentials();
       of.weighed_values();
     }},
    {"scores and exp in registers", 1, [](const Strip& of) { of.weights(); }},
    {"backward", 3,
     [](const Strip& of) {
       of.weights();
       of.gradients();
       of.weighed_values();
     }},
};

// The largest peak measured so far: a neighbour on the same core makes some too small.
double peak() {
  static const Topology topology = read_topology();
  static double largest = 0;
  constexpr int kTimes = 10;
  for (int i = 0; i < kTimes; ++i) {
    largest = std::max(largest, fma_peak(1, topology));
  }
  return largest;
}

void bench(benchmark::State& state, const Steps& steps, Index d, Index Bc) {
  Resident resident(d, Bc);
  const auto pass = [&] {
    for (std::size_t block = 0; block < kKeyBlocks; ++block) {
      for (const Range K : blocks(kQueries, kStrip)) {
        steps.run({resident, block, K, resident.strip.part({0, Bc}, {0, K.size()})});
      }
    }
  };
  pass();
  peak();
  using Clock = std::chrono::steady_clock;
  double least = 0;
  for ([[maybe_unused]] auto _ : state) {
    const auto start = Clock::now();
    pass();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    least = least == 0 ? seconds : std::min(least, seconds);
  }
  const double flops = 2.0 * steps.products * static_cast<double>(kQueries * kKeyBlocks * Bc * d);
  state.counters["%peak"] = 100 * flops / least * 1e-9 / peak();
}

bool register_all() {
  for (const Steps& steps : kSteps) {
    for (const Index d : {Index{64}, Index{128}}) {
      for (const Index Bc : {Index{24}, Index{48}, Index{96}, Index{192}}) {
        const std::string name = "strip/" + std::string(steps.name) + "/d:" + std::to_string(d) +
                                 "/Bc:" + std::to_string(Bc);
        benchmark::RegisterBenchmark(name.c_str(), [=, &steps](benchmark::State& state) {
          bench(state, steps, d, Bc);
        })->Unit(benchmark::kMillisecond);
      }
    }
  }
  return true;
}

[[maybe_unused]] const bool kRegistered = register_all();

}  // namespace
}  // namespace redblue
