#include "runtime/theory/rates.hpp"

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
  const Index piece = std::min(plan.blocks["B"], plan.problem.shape.d);
  return words * number(Words(ceil_div(piece, granule)) * granule) / static_cast<double>(piece);
}

double seconds(const Plan& plan, const Rates& rates) {
  const double words = words_per_flop(plan, rates.granule);
  const double flops = number(total(plan.phases).flops);
  const auto own = std::ranges::find(rates.kernels, spelled(plan), &KernelRates::kernel);
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
// KiB, in AVX2 by g++ 12.2. The resident kernels have the rates of rows and of rows-onepass, with
// which they share what they do to a key.
const Rates& default_rates() {
  static const Rates rates{
      .origin = "default (AMD EPYC, Zen 3)",
      .granule = 16,
      .kernels = {
          {"matmul/blocked",
           {{0.009766, 16.1e-12}, {0.01367, 19.6e-12}, {0.02813, 23.4e-12}, {0.03229, 26.9e-12}}},
          {"matmul/stationary-a",
           {{0.005371, 13.9e-12}, {0.008789, 17e-12}, {0.01416, 45.7e-12}, {0.01611, 68.9e-12}}},
          {"matmul/stationary-b",
           {{0.005371, 26e-12}, {0.008789, 38e-12}, {0.01416, 47.9e-12}, {0.01611, 72.6e-12}}},
          {"matmul/stationary-c",
           {{0.007324, 29.8e-12}, {0.01123, 42.7e-12}, {0.01758, 50.4e-12}, {0.02148, 63.8e-12}}},
          {"forward/naive", {{0.000924, 16e-12}, {0.0009514, 19.6e-12}}},
          {"forward/small",
           {{0.01297, 26.8e-12}, {0.02088, 26.7e-12}, {0.04133, 41.3e-12}, {0.04847, 52.8e-12}}},
          {"forward/flash",
           {{0.00233, 19.3e-12}, {0.002714, 20.1e-12}, {0.0123, 139e-12}, {0.02208, 225e-12}}},
          {"forward/rows",
           {{0.00144, 14.5e-12}, {0.002389, 12.8e-12}, {0.01609, 23.8e-12}, {0.04633, 37.4e-12}}},
          {"forward/rows-resident",
           {{0.00144, 14.5e-12}, {0.002389, 12.8e-12}, {0.01609, 23.8e-12}, {0.04633, 37.4e-12}}},
          {"forward/columns",
           {{0.001684, 15e-12}, {0.00306, 13.5e-12}, {0.02366, 28.6e-12}, {0.04578, 33.2e-12}}},
          {"forward/tiles",
           {{0.0057, 17.5e-12}, {0.009227, 21.5e-12}, {0.01474, 48.6e-12}, {0.01547, 80e-12}}},
          {"backward/naive", {{0.000633, 15.7e-12}, {0.0006415, 23e-12}}},
          {"backward/small",
           {{0.01792, 26.9e-12}, {0.03109, 43e-12}, {0.04716, 48.8e-12}, {0.06136, 59.3e-12}}},
          {"backward/large", {{0.002112, 29.2e-12}, {0.002709, 34.9e-12}, {0.01209, 54.7e-12}}},
          {"backward/flash",
           {{0.002193, 19.2e-12}, {0.003246, 22.9e-12}, {0.01826, 223e-12}, {0.03601, 288e-12}}},
          {"backward/rows",
           {{0.001984, 13.3e-12}, {0.002732, 12.5e-12}, {0.02783, 26.5e-12}, {0.03456, 54.8e-12}}},
          {"backward/rows-w",
           {{0.002233, 13.5e-12}, {0.00284, 13.1e-12}, {0.02592, 26e-12}, {0.02972, 41.5e-12}}},
          {"backward/rows-onepass",
           {{0.001392, 16e-12}, {0.002553, 13e-12}, {0.01713, 31.6e-12}, {0.03604, 55e-12}}},
          {"backward/score-rows",
           {{0.01592, 18.4e-12}, {0.01624, 15.9e-12}, {0.2544, 192e-12}, {0.2595, 332e-12}}},
          {"backward/rows-xg", {{0.001561, 14.8e-12}, {0.002127, 13.4e-12}}},
          {"backward/rows-resident",
           {{0.001392, 16e-12}, {0.002553, 13e-12}, {0.01713, 31.6e-12}, {0.03604, 55e-12}}},
          {"backward/columns",
           {{0.002001, 14.5e-12}, {0.002744, 13.1e-12}, {0.02472, 31.2e-12}, {0.03477, 46.5e-12}}},
          {"backward/rows-q",
           {{0.004287, 15.9e-12}, {0.006628, 18.6e-12}, {0.01397, 33.2e-12}, {0.01742, 44.8e-12}}},
          {"backward/rows-q-onepass",
           {{0.003446, 15.3e-12}, {0.00505, 17.7e-12}, {0.0125, 38.6e-12}, {0.01667, 61.3e-12}}},
          {"backward/tiles",
           {{0.007147, 15.5e-12}, {0.01198, 19e-12}, {0.01698, 74.6e-12}, {0.01735, 47.4e-12}}},
          {"backward/tiles-sqp",
           {{0.01033, 22.6e-12}, {0.01904, 28.6e-12}, {0.02017, 86.7e-12}, {0.0244, 68.4e-12}}},
          {"backward/tiles-sq",
           {{0.008017, 24.8e-12}, {0.01413, 29.1e-12}, {0.01887, 122e-12}, {0.01965, 70e-12}}},
          {"forward/rows-shared",
           {{0.0009802, 15.2e-12}, {0.001521, 12.7e-12}, {0.008735, 24e-12}, {0.0178, 22.9e-12}}},
          {"forward/rows-resident-shared",
           {{0.0009802, 15.2e-12}, {0.001521, 12.7e-12}, {0.008735, 24e-12}, {0.0178, 22.9e-12}}},
          {"forward/tiles-shared",
           {{0.0057, 17.2e-12}, {0.009227, 21.5e-12}, {0.01474, 48.8e-12}, {0.01547, 68.3e-12}}},
          {"backward/rows-shared",
           {{0.001371, 13e-12}, {0.001864, 12.3e-12}, {0.01382, 20.5e-12}, {0.02096, 27.2e-12}}},
          {"backward/rows-w-shared",
           {{0.00162, 13.2e-12}, {0.001972, 12.4e-12}, {0.01229, 20.3e-12}, {0.01612, 29.6e-12}}},
          {"backward/rows-onepass-shared",
           {{0.0009255, 16.6e-12}, {0.00166, 12.8e-12}, {0.01113, 27.9e-12}, {0.02175, 38.1e-12}}},
          {"backward/rows-xg-shared", {{0.001013, 13.7e-12}, {0.001259, 12.9e-12}}},
          {"backward/rows-resident-shared",
           {{0.0009255, 16.6e-12}, {0.00166, 12.8e-12}, {0.01113, 27.9e-12}, {0.02175, 38.1e-12}}},
          {"backward/tiles-shared",
           {{0.005996, 16.9e-12}, {0.008629, 20.9e-12}, {0.01557, 49.4e-12}, {0.0168, 48.7e-12}}},
      }};
  return rates;
}

}  // namespace redblue
