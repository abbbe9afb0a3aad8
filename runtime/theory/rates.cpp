#include "runtime/theory/rates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "kernels/kernel.hpp"
#include "memsim/range.hpp"

namespace redblue {
namespace {

// Returns infinity above 63 bits.
double number(Words words) {
  return words.overflowed() ? std::numeric_limits<double>::infinity()
                            : static_cast<double>(words.value());
}

// Returns the first curve that was measured: of the plan's kernel as spelled, of the kernel without
// shared keys, then likewise of its kin. Null if there is no such curve.
const KernelRates* curve_of(const Plan& plan, const Rates& rates) {
  const auto timed = [&](const std::string& name) {
    const auto found = std::ranges::find(rates.kernels, name, &KernelRates::kernel);
    return found == rates.kernels.end() ? nullptr : &*found;
  };
  for (std::string_view name = plan.kernel; !name.empty();) {
    for (const Sharing sharing : {plan.problem.sharing, Sharing::none}) {
      if (const KernelRates* found = timed(spelled(name, sharing))) {
        return found;
      }
    }
    const std::optional<KernelName> kernel = parse_kernel_name(name);
    name = kernel ? kernel->kernel->kin : std::string_view();
  }
  return nullptr;
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
  const double flops = number(total(plan.phases).flops);
  if (flops == 0) {
    return 0;  // no pair is live
  }
  const double words = words_per_flop(plan, rates.granule);
  if (const KernelRates* curve = curve_of(plan, rates)) {
    return flops * curve->seconds_per_flop(words);
  }
  std::vector<double> all;
  for (const KernelRates& other : rates.kernels) {
    all.push_back(other.seconds_per_flop(words));
  }
  return flops * median(std::move(all));
}

std::vector<double> word_nanoseconds(const Rates& rates, const Memory& memory) {
  std::vector<double> costs;
  for (std::size_t next = 1; next < memory.levels(); ++next) {
    const Words bytes = Words(memory.words(next)) * Index{sizeof(float)};
    const auto home = std::ranges::find_if(rates.words, [&](const WordCost& cost) {
      return cost.bytes == 0 || bytes <= Words(static_cast<Index>(cost.bytes));
    });
    costs.push_back(home->nanoseconds);
  }
  costs.push_back(rates.words.back().nanoseconds);
  return costs;
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

}  // namespace redblue
