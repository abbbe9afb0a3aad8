#pragma once
// The report of a comparison, for people, for programs and for CI services.

#include <string>
#include <string_view>
#include <vector>

#include "runtime/gate/comparison.hpp"

namespace redblue {

struct ComparisonForm {
  std::string_view name;
  std::string (*text)(const Comparison& comparison);
};
// table, json, csv; markdown (a job's summary) and github (annotations); junit;
// customSmallerIsBetter and bmf, which hold the counts of now alone.
const std::vector<ComparisonForm>& comparison_forms();

// "same, all 12 points", or "DIFFERENT, 2 of 12 points; 3 differences hidden by tolerances".
std::string verdict(const Comparison& comparison);

}  // namespace redblue
