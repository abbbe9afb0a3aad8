#pragma once
// The report of `redblue tune`: the fastest kernels and fast memories for a problem.

#include <string>

#include "runtime/run/tuned.hpp"
#include "runtime/run/tuning.hpp"
#include "runtime/text/description.hpp"

namespace redblue {

struct TuneReport {
  const Tuning& tuning;
  const Topology& topology;
  std::string date;  // "2026-01-31T12:00:00Z"
  std::string file;  // in which the answer is saved
};

// Returns the answer for the file.
TunedProblem tuned_problem(const Tuning& tuning, const std::string& date);

Description describe(const TuneReport& report);

}  // namespace redblue
