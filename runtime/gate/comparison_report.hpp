#pragma once
// Writes the report of a comparison, for people, programs and CI services.

#include <string>
#include <string_view>
#include <vector>

#include "runtime/gate/comparison.hpp"

namespace redblue {

struct ComparisonForm {
  std::string_view name;
  std::string (*text)(const GateComparison& comparison);
};
// Returns all forms: table, json and csv, markdown for a job's summary, github for annotations, and
// junit. The forms customSmallerIsBetter and bmf contain only the new counts.
const std::vector<ComparisonForm>& comparison_forms();

// "same, all 12 points", or "DIFFERENT, 2 of 12 points; 3 differences hidden by tolerances".
std::string verdict(const GateComparison& comparison);

}  // namespace redblue
