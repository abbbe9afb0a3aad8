#pragma once
// Estimates of how long a plan takes, from its formulas:
//
//   seconds = flops * (seconds a flop, at the plan's words a flop)
//
// A kernel that moves more words for a flop works on smaller blocks. It pays for the words, and for
// loops and registers that small blocks keep busy. The price differs from kernel to kernel, and so
// each has a curve through measured samples, which `redblue calibrate` takes. Words are counted in
// whole granules, the least that the slow store brings, if a plan's square blocks say that rows end
// within a granule. What other blocks lose so is part of their kernel's curve.
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

  // Linear between two samples. Below the first sample a flop takes as long as there; above the
  // last, a word does.
  [[nodiscard]] double seconds_per_flop(double words_per_flop) const;
};

// The time of a message from one rank to another: so long, and so long for each of its words.
struct LinkCosts {
  std::string origin = {};
  double seconds_a_message = 0;
  double seconds_a_word = 0;

  friend bool operator==(const LinkCosts&, const LinkCosts&) = default;
};

// What a word costs that comes from a cache, or from the memory beyond all caches, in nanoseconds.
struct WordCost {
  std::string from = {};    // "L2", "memory"
  std::uint64_t bytes = 0;  // of the cache; 0: memory
  double nanoseconds = 0;

  friend bool operator==(const WordCost&, const WordCost&) = default;
};

struct Rates {
  std::string origin = {};  // "calibrated on 2026-01-31T12:00:00Z"
  Index granule = 16;       // words
  std::vector<KernelRates> kernels = {};
  std::optional<LinkCosts> links = {};
  // From the smallest cache to the largest one, and memory. Empty: not measured.
  std::vector<WordCost> words = {};

  [[nodiscard]] bool measured(std::string_view kernel) const;
};

// The rates of runtime/theory/rates.json, which are those of a file of `redblue calibrate` and are
// compiled in. They serve a machine without a calibration.
const Rates& default_rates();

// Reads and writes in whole granules, divided by flops. The rows of square blocks (B) are pieces of
// B words; other kernels move whole rows, which lie one after the other.
double words_per_flop(const Plan& plan, Index granule);

// The time on one thread. A kernel without a curve of its spelling takes that of the kernel without
// shared keys, or else that of its kin; without any, the median of all curves at its words a flop.
// Requires: flops in the plan, a measured kernel in the rates.
double seconds(const Plan& plan, const Rates& rates);

// Nanoseconds of a word at each level of fast memory, from the innermost out. A word comes into a
// level from the smallest cache in which the next level fits, and into the last one from memory.
// Requires: costs of words, the last of memory.
std::vector<double> word_nanoseconds(const Rates& rates, const Memory& memory);

// Adds a sample in order, and replaces one of the same words_per_flop.
void add_sample(KernelRates& rates, const RateSample& sample);

// The middle value, or the mean of the two in the middle. Requires: at least one value.
double median(std::vector<double> values);

}  // namespace redblue
