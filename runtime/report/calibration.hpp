#pragma once
// The measurements of `redblue calibrate` on one machine, and the file that stores them. They are
// the speed and the cache traffic for several M, each a share of a cache, and the rates of all
// kernels. `--objective time` reads the file.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/words.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/theory/rates.hpp"

namespace redblue {

class Description;

// M as a share of a cache, with its measurements.
struct MeasuredShare {
  double share = 1;
  Index words = 0;
  // Median speed divided by the multiply-add peak. Not set if the kernel needs a larger M.
  std::optional<double> of_peak = {};
  // Words that the cache moved divided by words counted. Not set if not measured.
  std::optional<double> ratio = {};
};

// Returns the smallest share with a median speed within 2% of the best; 2% is noise. Returns
// nullopt if no share was timed.
std::optional<MeasuredShare> fastest(std::span<const MeasuredShare> shares);
// Returns the share with the ratio nearest to 1 on a logarithmic scale. Among equally near ratios
// it returns the smallest share.
std::optional<MeasuredShare> agreeing(std::span<const MeasuredShare> shares);

struct CalibratedCache {
  CacheLevel level = CacheLevel::L1;
  std::uint64_t bytes = 0;
  std::vector<MeasuredShare> shares = {};
  std::string via = {};         // the tool that measured the traffic: "callgrind-3.19.0"
  std::string no_traffic = {};  // the reason if the traffic was not measured, else empty
  Index side = 0;               // side of the square matrices in the traffic measurement
};

inline constexpr const char* kCalibrate = "redblue calibrate";
inline constexpr const char* kCalibrationFile = "calibration.json";

// The kernel that is timed, and the kernel that has its cache traffic measured.
inline constexpr std::string_view kTimedKernel = "backward/rows";
inline constexpr std::string_view kTrafficKernel = "matmul/blocked";

struct Calibration {
  Topology topology;
  std::string simd;
  std::string date;  // "2026-01-31T12:00:00Z"
  Index n = 0;       // n of the timed problem
  Index d = 0;
  Index rounds = 0;
  std::vector<CalibratedCache> levels = {};
  Rates rates = {};
  Index rates_n = 0;  // n of the problems that gave the rates
};

// Returns the text of a calibration file, with its links replaced by these. Throws: InputError.
std::string with_links(std::string_view text, const std::string& name, const LinkCosts& links);
std::string to_words(const LinkCosts& links);

// The JSON form is the content of the file. CSV has the shares only.
Description describe(const Calibration& calibration);

// Reads the rates of the kernels from the text of the file `name`. Throws: InputError with the
// remedy if the text is not such JSON, or has no rates, or if its machine has another processor or
// other caches than `topology`.
Rates calibrated_rates(std::string_view text, const std::string& name, const Topology& topology);

}  // namespace redblue
