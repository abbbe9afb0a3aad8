#include "runtime/report/part_times.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "kernels/kernel.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

bool has_exponentials(const Plan& plan) {
  return plan.pass != Pass::product && !is_linear(plan.pass) && plan.pass != Pass::own &&
         plan.problem.activation != Activation::relu;
}

Words live_pairs(const Problem& problem) {
  return problem.sparsity.dense() ? problem.pairs() : problem.sparsity.pairs();
}

// Returns whether the counts are within 63 bits.
bool is_counted(const Work& work) {
  return std::isfinite(work.flops) && std::isfinite(work.exps);
}

// Returns the part that takes longest.
std::string_view longest(const PartTimes& times) {
  const double exps = times.exps.value_or(0);
  return times.words >= std::max(times.flops, exps) ? "words"
         : times.flops >= exps                      ? "flops"
                                                    : "exp";
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.3g} ms", 1e3 * seconds);
}

}  // namespace

void add_operations(Work& work, const Plan& plan, Index heads, std::optional<Index> workers) {
  // Times are those of work.workers workers.
  const double longer =
      static_cast<double>(work.workers) / static_cast<double>(workers.value_or(work.workers));
  const auto number = [&](Words words) {
    const Words all = words * heads;
    return all.overflowed() ? std::numeric_limits<double>::infinity()
                            : static_cast<double>(all.value()) * longer;
  };
  work.flops += number(total(plan.phases).flops);
  if (has_exponentials(plan)) {
    const bool twice = (plan.pass == Pass::gradients || plan.pass == Pass::layer) &&
                       find_kernel(plan.kernel).numerics.recomputes;
    work.exps += number(live_pairs(plan.problem)) * (twice ? 2 : 1);
  }
}

std::optional<PartTimes> part_times(const Work& work, const Rates& rates, const Memory& memory) {
  if (rates.words.empty() || !rates.core || !is_counted(work)) {
    return std::nullopt;
  }
  const auto workers = static_cast<double>(work.workers);
  PartTimes times{.flops = work.flops / rates.core->flops_per_second / workers,
                  .exps = work.exps / rates.core->exps_per_second / workers,
                  .from = rates.origin};
  const std::vector<double> nanoseconds = word_nanoseconds(rates, memory);
  for (std::size_t level = 0; level < work.moved.words.size(); ++level) {
    times.words = std::max(times.words, 1e-9 * nanoseconds[level] * work.moved.floats(level));
  }
  return times;
}

std::optional<PartTimes> part_times(const Work& work, const Device& device) {
  if (!device.flops_per_second || !is_counted(work)) {
    return std::nullopt;
  }
  const auto workers = static_cast<double>(work.workers);
  PartTimes times{.flops = work.flops / *device.flops_per_second / workers,
                  .from = "by the figures of device " + printable(device.name)};
  if (device.exps_per_second) {
    times.exps = work.exps / *device.exps_per_second / workers;
  }
  for (std::size_t level = 0; level < device.levels.size(); ++level) {
    const std::optional<double>& bandwidth = device.levels[level].bytes_per_second;
    if (!bandwidth) {
      return std::nullopt;
    }
    times.words = std::max(times.words, work.moved.floats(level) * kFloatBytes / *bandwidth);
  }
  return times;
}

std::optional<PartTimes> part_times(const Work& work, const std::optional<Device>& device,
                                    const std::optional<Rates>& calibration, const Memory& memory) {
  if (device && !is_this_machine(*device)) {
    return part_times(work, *device);
  }
  return calibration ? part_times(work, *calibration, memory) : std::nullopt;
}

Description describe(const PartTimes& times) {
  Description of;
  of.facts({{in_json("words_seconds"), times.words},
            {in_json("flops_seconds"), times.flops},
            {in_json("exp_seconds"), times.exps},
            {in_json("longest"), longest(times)},
            {in_json("from"), times.from}});
  of.say("alone, words take {}, flops {}, exp {} ({}): {}", milliseconds(times.words),
         milliseconds(times.flops), times.exps ? milliseconds(*times.exps) : "an unknown time",
         times.from,
         longest(times) == "words"   ? "the traffic dominates"
         : longest(times) == "flops" ? "the flops dominate"
                                     : "exp dominates");
  return of;
}

}  // namespace redblue
