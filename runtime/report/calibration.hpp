#pragma once
// The measurements of `redblue calibrate` on one machine, and the file that stores them. They are
// the speed and the cache traffic for several M, each a share of a cache, and the rates of all
// kernels. `--M auto` and `--objective time` read the file.

#include <cstdint>
#include <filesystem>
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

// Reads the fastest share of L2 from the text of the file `name`; of L1 on a machine without a
// known L2. Throws: InputError with the remedy if the text is not such JSON, or if its machine has
// another processor or other caches than `topology`.
CachePart calibrated_part(std::string_view text, const std::string& name, const Topology& topology);
// Reads the rates of the kernels. Throws: as calibrated_part(), and for an older file without
// rates.
Rates calibrated_rates(std::string_view text, const std::string& name, const Topology& topology);

// Returns the text of a calibration file. Throws: InputError unless it is a regular file;
// std::system_error.
std::string read_calibration(const std::filesystem::path& file);

}  // namespace redblue
