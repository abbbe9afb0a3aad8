// Output of `redblue calibrate`, read on a machine of one core with L1 and L2.

#include "runtime/report/calibration.hpp"

#include "runtime/system/input_error.hpp"
#include "runtime/text/description.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {

void calibration(std::string_view input) {
  Topology topology{.model = "a processor", .cores = {{0}}};
  topology.caches = {{{{.bytes = 32768, .line = {}, .ways = {}, .cores = {0}}},
                      {{.bytes = 1048576, .line = {}, .ways = {}, .cores = {0}}},
                      {}}};
  const auto rates = read_or_refused<InputError>(
      "a.json", [&] { return calibrated_rates(input, "a.json", topology); });
  if (!rates) {
    return;
  }
  demand(rates->granule > 0 && !rates->kernels.empty(), "no rates");
  for (const KernelRates& of : rates->kernels) {
    demand(!of.samples.empty(), "a kernel without a rate");
    double before = 0;
    for (const RateSample& sample : of.samples) {
      demand(sample.words_per_flop > before && sample.seconds_per_flop > 0, "rates out of order");
      before = sample.words_per_flop;
      demand(of.seconds_per_flop(sample.words_per_flop) > 0, "a rate that is not above 0");
    }
  }
  Calibration same;
  same.topology = topology;
  same.rates = *rates;
  const Rates again = calibrated_rates(to_json(same), "again.json", topology);
  demand(again.granule == rates->granule && again.kernels.size() == rates->kernels.size(),
         "what is written is read as other rates");
  demand(again.words == rates->words && again.core == rates->core,
         "what is written is read as other costs of words, or another core");
  for (std::size_t k = 0; k < again.kernels.size(); ++k) {
    demand(again.kernels[k].kernel == rates->kernels[k].kernel &&
               again.kernels[k].samples == rates->kernels[k].samples,
           "what is written is read as other rates");
  }
}

}  // namespace redblue::fuzz
