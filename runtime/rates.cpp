#include "runtime/rates.hpp"

#include <algorithm>
#include <cmath>

#include "memsim/range.hpp"

namespace redblue {
namespace {

double number(Words words) {
  return static_cast<double>(words.value());
}

}  // namespace

double KernelRates::seconds_per_flop(double words_per_flop) const {
  const auto above =
      std::ranges::lower_bound(samples, words_per_flop, {}, &RateSample::words_per_flop);
  if (above == samples.begin()) {
    return above->seconds_per_flop;
  }
  const RateSample& low = *(above - 1);
  if (above == samples.end()) {
    return low.seconds_per_flop * words_per_flop / low.words_per_flop;
  }
  const double along =
      (words_per_flop - low.words_per_flop) / (above->words_per_flop - low.words_per_flop);
  return std::lerp(low.seconds_per_flop, above->seconds_per_flop, along);
}

bool Rates::measured(std::string_view kernel) const {
  return std::ranges::find(kernels, kernel, &KernelRates::kernel) != kernels.end();
}

double words_per_flop(const Plan& plan, Index granule) {
  const PhaseCost all = total(plan.phases);
  const double words = number(all.reads + all.writes) / number(all.flops);
  if (!plan.blocks.contains("B")) {
    return words;
  }
  const Index piece = std::min(plan.blocks["B"], plan.shape.d);
  return words * number(Words(ceil_div(piece, granule)) * granule) / static_cast<double>(piece);
}

double seconds(const Plan& plan, const Rates& rates) {
  const double words = words_per_flop(plan, rates.granule);
  const double flops = number(total(plan.phases).flops);
  const auto own = std::ranges::find(rates.kernels, plan.kernel, &KernelRates::kernel);
  if (own != rates.kernels.end()) {
    return flops * own->seconds_per_flop(words);
  }
  std::vector<double> all;
  for (const KernelRates& other : rates.kernels) {
    all.push_back(other.seconds_per_flop(words));
  }
  return flops * median(std::move(all));
}

void add_sample(KernelRates& rates, const RateSample& sample) {
  const auto at = std::ranges::lower_bound(rates.samples, sample.words_per_flop, {},
                                           &RateSample::words_per_flop);
  if (at != rates.samples.end() && at->words_per_flop == sample.words_per_flop) {
    *at = sample;
  } else {
    rates.samples.insert(at, sample);
  }
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// What `redblue calibrate` found on an AMD EPYC of the Zen 3 kind, with caches of 32 KiB and 512
// KiB, in AVX2 by g++ 12.2.
const Rates& default_rates() {
  static const Rates rates{
      .origin = "default (AMD EPYC, Zen 3)",
      .granule = 16,
      .kernels = {
          {"matmul/blocked",
           {{0.009766, 23.8e-12}, {0.01367, 32.5e-12}, {0.02813, 35.3e-12}, {0.03229, 44.3e-12}}},
          {"forward/naive", {{0.000924, 21.9e-12}, {0.0009514, 30.5e-12}}},
          {"forward/small",
           {{0.01297, 41.1e-12}, {0.02088, 55e-12}, {0.04133, 62.2e-12}, {0.04847, 98.3e-12}}},
          {"forward/flash",
           {{0.00233, 25.7e-12}, {0.002714, 28.9e-12}, {0.0123, 198e-12}, {0.02208, 365e-12}}},
          {"forward/rows",
           {{0.00144, 19.6e-12}, {0.002389, 17.5e-12}, {0.01609, 36.5e-12}, {0.04633, 58.5e-12}}},
          {"backward/naive", {{0.000633, 32.9e-12}, {0.0006415, 40.5e-12}}},
          {"backward/small",
           {{0.01792, 53.2e-12}, {0.03109, 72.4e-12}, {0.04716, 91e-12}, {0.06136, 101e-12}}},
          {"backward/large", {{0.002112, 48.2e-12}, {0.002709, 42e-12}, {0.01209, 85.4e-12}}},
          {"backward/flash",
           {{0.002193, 30.5e-12}, {0.003246, 25.5e-12}, {0.01826, 280e-12}, {0.03601, 306e-12}}},
          {"backward/rows",
           {{0.001984, 18.3e-12}, {0.002732, 16.9e-12}, {0.02783, 41.3e-12}, {0.03456, 56.1e-12}}},
          {"backward/rows-onepass",
           {{0.001392, 19.2e-12}, {0.002553, 17.7e-12}, {0.01713, 48.5e-12}, {0.03604, 87.2e-12}}},
          {"backward/score-rows",
           {{0.01592, 28.3e-12}, {0.01624, 22.8e-12}, {0.2544, 249e-12}, {0.2595, 428e-12}}},
          {"backward/rows-xg", {{0.001561, 20.2e-12}, {0.002127, 19.9e-12}}},
          {"forward/rows-shared",
           {{0.0009802, 19.9e-12}, {0.001521, 16.3e-12}, {0.008735, 35.2e-12}, {0.0178, 32.4e-12}}},
          {"backward/rows-shared",
           {{0.001371, 17.4e-12}, {0.001864, 15.7e-12}, {0.01382, 31.2e-12}, {0.02096, 39.7e-12}}},
          {"backward/rows-onepass-shared",
           {{0.0009255, 18.3e-12}, {0.00166, 16.1e-12}, {0.01113, 41.1e-12}, {0.02175, 55e-12}}},
          {"backward/rows-xg-shared", {{0.001013, 18.7e-12}, {0.001259, 17.5e-12}}},
      }};
  return rates;
}

}  // namespace redblue
