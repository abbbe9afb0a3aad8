#include "runtime/observe/fma_peak.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "kernels/arithmetic/simd_targets.hpp"
#include "runtime/observe/parallel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/observe/fma_peak.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before this header.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace redblue::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Has enough independent chains for two units with a latency of four cycles, and few enough for 16
// registers. Returns the number of flops.
double multiply_adds(Index rounds, float* sink) {
  constexpr hn::CappedTag<float, 16> kLanes;
  const auto factor = hn::Set(kLanes, 0.999F);
  const auto term = hn::Set(kLanes, 0.001F);
  // The starts differ, because the compiler would merge equal chains.
  const auto start = [&](float x) HWY_ATTR { return hn::Set(kLanes, x); };
  auto a = start(1), b = start(2), c = start(3), d = start(4), e = start(5), f = start(6);
  auto g = start(7), h = start(8), i = start(9), j = start(10), k = start(11), l = start(12);
  for (Index round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, factor, term);
    b = hn::MulAdd(b, factor, term);
    c = hn::MulAdd(c, factor, term);
    d = hn::MulAdd(d, factor, term);
    e = hn::MulAdd(e, factor, term);
    f = hn::MulAdd(f, factor, term);
    g = hn::MulAdd(g, factor, term);
    h = hn::MulAdd(h, factor, term);
    i = hn::MulAdd(i, factor, term);
    j = hn::MulAdd(j, factor, term);
    k = hn::MulAdd(k, factor, term);
    l = hn::MulAdd(l, factor, term);
  }
  const auto sum =
      hn::Add(hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, d)), hn::Add(hn::Add(e, f), hn::Add(g, h))),
              hn::Add(hn::Add(i, j), hn::Add(k, l)));
  *sink = hn::GetLane(hn::SumOfLanes(kLanes, sum));
  return static_cast<double>(rounds) * 12 * 2 * static_cast<double>(hn::MaxLanes(kLanes));
}

}  // namespace
}  // namespace redblue::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace redblue {
namespace {

HWY_EXPORT(multiply_adds);

}  // namespace

double fma_peak(Index threads, const Topology& topology) {
  using Clock = std::chrono::steady_clock;
  constexpr int kTries = 5;
  constexpr Index kRounds = 100'000;  // about 0.2 ms
  // Without a core for each worker, waiting for the others only takes their time.
  const Index cores = std::thread::hardware_concurrency();
  const std::chrono::milliseconds longest_wait(cores == 0 || threads <= cores ? 1 : 0);
  double best = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    std::vector<double> flops(static_cast<std::size_t>(threads));
    std::vector<Clock::time_point> starts(flops.size());
    std::vector<Clock::time_point> ends(flops.size());
    std::atomic<Index> waiting = threads;
    static_cast<void>(in_parallel(threads, topology, [&](Index worker) {
      const auto w = static_cast<std::size_t>(worker);
      // Wait for the other workers, so that all begin together if each has a core.
      --waiting;
      const auto patience = Clock::now() + longest_wait;
      while (waiting > 0 && Clock::now() < patience) {
      }
      float sink = 0;
      starts[w] = Clock::now();
      flops[w] = HWY_DYNAMIC_DISPATCH(multiply_adds)(kRounds, &sink);
      ends[w] = Clock::now();
      // This use of the result keeps the compiler from removing the loop.
      if (sink < 0) {
        flops[w] = 0;
      }
    }));
    const std::chrono::duration<double> span =
        *std::ranges::max_element(ends) - *std::ranges::min_element(starts);
    double all = 0;
    for (const double of_worker : flops) {
      all += of_worker;
    }
    best = std::max(best, all / span.count() * 1e-9);
  }
  return best;
}

}  // namespace redblue
#endif
