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
           {{0.009766, 20.3e-12}, {0.01367, 20.1e-12}, {0.02813, 27.5e-12}, {0.03229, 28.1e-12}}},
          {"matmul/stationary-a",
           {{0.005371, 20.7e-12}, {0.008789, 19.5e-12}, {0.01416, 50.5e-12}, {0.01611, 97.7e-12}}},
          {"matmul/stationary-b",
           {{0.005371, 28.4e-12}, {0.008789, 40.8e-12}, {0.01416, 51.2e-12}, {0.01611, 91e-12}}},
          {"matmul/stationary-c",
           {{0.007324, 31.7e-12}, {0.01123, 44.6e-12}, {0.01758, 61.8e-12}, {0.02148, 71.5e-12}}},
          {"forward/naive", {{0.000924, 18.6e-12}, {0.0009514, 22.1e-12}}},
          {"forward/small",
           {{0.01297, 32.5e-12}, {0.02088, 30.9e-12}, {0.04133, 52e-12}, {0.04847, 61.5e-12}}},
          {"forward/flash",
           {{0.00233, 21.7e-12}, {0.002714, 21.3e-12}, {0.0123, 142e-12}, {0.02208, 302e-12}}},
          {"forward/rows",
           {{0.00144, 15.2e-12}, {0.002389, 15.7e-12}, {0.01609, 28.1e-12}, {0.04633, 44.9e-12}}},
          {"forward/columns",
           {{0.001684, 15.5e-12}, {0.00306, 15.7e-12}, {0.02366, 30.3e-12}, {0.04578, 44.6e-12}}},
          {"forward/tiles",
           {{0.0057, 22.3e-12}, {0.009227, 21.9e-12}, {0.01474, 51.4e-12}, {0.01547, 89e-12}}},
          {"backward/naive", {{0.000633, 17.5e-12}, {0.0006415, 23.9e-12}}},
          {"backward/small",
           {{0.01792, 37.9e-12}, {0.03109, 44.5e-12}, {0.04716, 63.2e-12}, {0.06136, 60.6e-12}}},
          {"backward/large", {{0.002112, 31.9e-12}, {0.002709, 35.9e-12}, {0.01209, 57.6e-12}}},
          {"backward/flash",
           {{0.002193, 21.5e-12}, {0.003246, 22.1e-12}, {0.01826, 266e-12}, {0.03601, 294e-12}}},
          {"backward/rows",
           {{0.001984, 14.3e-12}, {0.002732, 13.3e-12}, {0.02783, 29.9e-12}, {0.03456, 42.9e-12}}},
          {"backward/rows-w",
           {{0.002233, 14.7e-12}, {0.00284, 13.9e-12}, {0.02592, 27.5e-12}, {0.02972, 45e-12}}},
          {"backward/rows-onepass",
           {{0.001392, 15.6e-12}, {0.002553, 16.2e-12}, {0.01713, 32e-12}, {0.03604, 70.3e-12}}},
          {"backward/score-rows",
           {{0.01592, 19.1e-12}, {0.01624, 17.7e-12}, {0.2544, 229e-12}, {0.2595, 347e-12}}},
          {"backward/rows-xg", {{0.001561, 14.7e-12}, {0.002127, 15.8e-12}}},
          {"backward/columns",
           {{0.002001, 15.1e-12}, {0.002744, 14.6e-12}, {0.02472, 32.2e-12}, {0.03477, 46e-12}}},
          {"backward/rows-q",
           {{0.004287, 17.2e-12}, {0.006628, 19.3e-12}, {0.01397, 37.5e-12}, {0.01742, 47.5e-12}}},
          {"backward/rows-q-onepass",
           {{0.003446, 15.8e-12}, {0.00505, 17.4e-12}, {0.0125, 46.8e-12}, {0.01667, 65.5e-12}}},
          {"backward/tiles",
           {{0.007147, 18.2e-12}, {0.01198, 18.8e-12}, {0.01698, 76.6e-12}, {0.01735, 45.2e-12}}},
          {"backward/tiles-sqp",
           {{0.01033, 30.6e-12}, {0.01904, 28.7e-12}, {0.02017, 92.3e-12}, {0.0244, 74.5e-12}}},
          {"backward/tiles-sq",
           {{0.008017, 33.1e-12}, {0.01413, 31.1e-12}, {0.01887, 130e-12}, {0.01965, 76.3e-12}}},
          {"forward/rows-shared",
           {{0.0009802, 14.6e-12}, {0.001521, 15.9e-12}, {0.008735, 24.8e-12}, {0.0178, 28.8e-12}}},
          {"forward/tiles-shared",
           {{0.0057, 22.7e-12}, {0.009227, 23.7e-12}, {0.01474, 49.3e-12}, {0.01547, 119e-12}}},
          {"backward/rows-shared",
           {{0.001371, 13.8e-12}, {0.001864, 14e-12}, {0.01382, 22.7e-12}, {0.02096, 31e-12}}},
          {"backward/rows-onepass-shared",
           {{0.0009255, 15.9e-12}, {0.00166, 13.7e-12}, {0.01113, 28.8e-12}, {0.02175, 46.6e-12}}},
          {"backward/rows-xg-shared", {{0.001013, 15.6e-12}, {0.001259, 15.4e-12}}},
          {"backward/rows-w-shared",
           {{0.00162, 14.5e-12}, {0.001972, 13.3e-12}, {0.01229, 25.3e-12}, {0.01612, 34.4e-12}}},
          {"backward/tiles-shared",
           {{0.005996, 18.5e-12}, {0.008629, 22.4e-12}, {0.01557, 56.2e-12}, {0.0168, 64.3e-12}}},
      }};
  return rates;
}

}  // namespace redblue
