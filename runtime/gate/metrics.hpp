#pragma once
// The numbers of a phase that a gate compares.

#include <algorithm>
#include <iterator>
#include <string_view>

#include "memsim/phase.hpp"

namespace redblue {

struct Metric {
  std::string_view name;
  Index (*of)(const PhaseCounts& counts);
  // True: the total is the sum over phases. False: it is the largest phase.
  bool adds_up;
};
inline constexpr Metric kMetrics[] = {
    {"reads", [](const PhaseCounts& counts) { return counts.io.reads; }, true},
    {"writes", [](const PhaseCounts& counts) { return counts.io.writes; }, true},
    {"index_reads", [](const PhaseCounts& counts) { return counts.indices.reads; }, true},
    {"index_writes", [](const PhaseCounts& counts) { return counts.indices.writes; }, true},
    {"peak", [](const PhaseCounts& counts) { return counts.peak; }, false}};
// Returns null if no metric has this name.
inline const Metric* find_metric(std::string_view name) {
  const auto* const found = std::ranges::find(kMetrics, name, &Metric::name);
  return found == std::end(kMetrics) ? nullptr : found;
}
// More metrics of budgets: reads plus writes; and for whole points only, the least M and the words
// over the lower bound.
inline constexpr std::string_view kWords = "words";
inline constexpr std::string_view kLeastM = "least_M";
inline constexpr std::string_view kOverBound = "over_bound";

}  // namespace redblue
