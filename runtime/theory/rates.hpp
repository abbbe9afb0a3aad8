#pragma once
// Estimates how long a plan takes, from its formulas:
//
//   seconds = flops * (seconds a flop, at the plan's words a flop)
//
// A kernel that moves more words for a flop works on smaller blocks. It spends time on the words,
// and on loops and registers that small blocks keep busy. This price differs between kernels, so
// each kernel has a curve through measured samples, which `redblue calibrate` takes. If a plan has
// square blocks, their rows may end within a granule, the least that slow memory delivers. Words
// are then counted in whole granules. For other blocks, the same loss is part of the kernel's
// curve.
//
// All are values and may be used from any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/plan.hpp"

namespace redblue {

// One timed run.
struct RateSample {
  double words_per_flop = 0;
  double seconds_per_flop = 0;

  friend bool operator==(const RateSample&, const RateSample&) = default;
};

struct KernelRates {
  std::string kernel;
  std::vector<RateSample> samples;  // in ascending order of words_per_flop, at least one

  // Returns the seconds of a flop. Linear between two samples. Below the first sample a flop takes
  // as long as at that sample. Above the last sample a word does.
  [[nodiscard]] double seconds_per_flop(double words_per_flop) const;
};

// The time of a message from one rank to another: a fixed time plus a time for each of its words.
struct LinkCosts {
  std::string origin = {};
  double seconds_a_message = 0;
  double seconds_a_word = 0;

  friend bool operator==(const LinkCosts&, const LinkCosts&) = default;
};

// The time of a word that comes from a cache, or from the memory beyond all caches.
struct WordCost {
  std::string from = {};    // "L2", "memory"
  std::uint64_t bytes = 0;  // size of the cache; 0: memory
  double nanoseconds = 0;

  friend bool operator==(const WordCost&, const WordCost&) = default;
};

// The speed of one core: flops of multiply-adds, and exponentials of scores in the L1.
struct CoreSpeed {
  double flops_per_second = 0;
  double exps_per_second = 0;

  friend bool operator==(const CoreSpeed&, const CoreSpeed&) = default;
};

struct Rates {
  std::string origin = {};  // "calibrated on 2026-01-31T12:00:00Z"
  Index granule = 16;       // words
  std::vector<KernelRates> kernels = {};
  std::optional<LinkCosts> links = {};
  // From the smallest cache to the largest, then memory. Empty: not measured.
  std::vector<WordCost> words = {};
  std::optional<CoreSpeed> core = {};

  [[nodiscard]] bool measured(std::string_view kernel) const;
};

// Returns the rates of runtime/theory/rates.json, a file of `redblue calibrate` that is compiled
// in. They serve machines without a calibration.
const Rates& default_rates();

// Returns reads and writes in whole granules, divided by flops. Rows of square blocks (B) are
// pieces of B words. Other kernels move whole consecutive rows.
double words_per_flop(const Plan& plan, Index granule);

// Returns the time on one thread. Uses the first curve that was measured: of the kernel as spelled,
// of the kernel without shared keys, then likewise of its kin. If there is no such curve, it uses
// the median of all curves at the plan's words a flop. Requires: flops in the plan, a measured
// kernel in the rates.
double seconds(const Plan& plan, const Rates& rates);

// Returns the nanoseconds of a word at each level of fast memory, from the innermost out. A word
// enters a level from the smallest cache in which the next level fits. It enters the last level
// from memory. Requires: costs of words, the last one of memory.
std::vector<double> word_nanoseconds(const Rates& rates, const Memory& memory);

// Inserts a sample in order, or replaces the sample with the same words_per_flop.
void add_sample(KernelRates& rates, const RateSample& sample);

// Returns the middle value, or the mean of the two in the middle. Requires: at least one value.
double median(std::vector<double> values);

}  // namespace redblue
