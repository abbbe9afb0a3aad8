#pragma once
// How long a plan takes, by what its formulas say:
//
//   seconds = flops * (seconds a flop, at the words a flop that the plan asks for)
//
// A kernel that moves more words for a flop works on smaller blocks, and pays for both: for the
// words, and for the loops and the registers that small blocks keep busy. How much differs from
// kernel to kernel, and so each has a curve of its own through what was measured of it; `redblue
// calibrate` does. Words asked for are those of whole granules, the least that the slow store
// brings, where a plan's square blocks tell of rows that end within one; what other blocks cost by
// that is in their kernel's curve.
//
// Values, from any thread.

#include <string>
#include <string_view>
#include <vector>

#include "kernels/plan.hpp"

namespace redblue {

// Of one run.
struct RateSample {
  double words_per_flop = 0;
  double seconds_per_flop = 0;

  friend bool operator==(const RateSample&, const RateSample&) = default;
};

struct KernelRates {
  std::string kernel;
  std::vector<RateSample> samples;  // by words_per_flop, no two alike, at least one

  // On the line between two samples; below all as long a flop, above all as long a word as there.
  [[nodiscard]] double seconds_per_flop(double words_per_flop) const;
};

struct Rates {
  std::string origin = {};  // "calibrated on 2026-01-31T12:00:00Z"
  Index granule = 16;       // words
  std::vector<KernelRates> kernels = {};

  [[nodiscard]] bool measured(std::string_view kernel) const;
};

// Of the machine that rates.cpp names: where nobody has calibrated.
const Rates& default_rates();

// Reads and writes in whole granules, for each flop. Where a plan has square blocks (B), their rows
// are pieces of B words; other kernels move whole rows, which lie one after the other.
double words_per_flop(const Plan& plan, Index granule);

// On one thread. A kernel that nobody measured takes as long as the median of the measured would
// at its words a flop. Requires: flops in the plan, a measured kernel in the rates.
double seconds(const Plan& plan, const Rates& rates);

// Adds a sample where it belongs; in place of one of the same words_per_flop.
void add_sample(KernelRates& rates, const RateSample& sample);

// The middle one, or the mean of the two in the middle. Requires: at least one value.
double median(std::vector<double> values);

}  // namespace redblue
