#include "runtime/observe/exp_speed.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/machine.hpp"

namespace redblue {

double exps_per_second() {
  using Clock = std::chrono::steady_clock;
  constexpr Index kSide = 48;
  constexpr int kSamples = 99;
  constexpr int kCalls = 30;  // long compared with reading the clock
  Machine machine(2 * kSide * kSide + kSide);
  Tile scores = machine.initialize("s", kSide, kSide, -1);
  Tile maximum = machine.initialize("max", kSide);
  Tile results = machine.initialize("f", kSide, kSide);
  std::vector<double> samples;
  for (int sample = 0; sample < kSamples; ++sample) {
    const auto start = Clock::now();
    for (int call = 0; call < kCalls; ++call) {
      exponentiate(scores, maximum, results);
    }
    const std::chrono::duration<double> span = Clock::now() - start;
    samples.push_back(span.count());
  }
  const auto middle = samples.begin() + kSamples / 2;
  std::ranges::nth_element(samples, middle);
  return kCalls * static_cast<double>(kSide * kSide) / *middle;
}

}  // namespace redblue
