#pragma once
// The measurements of `redblue calibrate` on one machine: the speed and the traffic of M as a share
// of a cache, and the rates of all kernels; the choices that follow; and the file with which
// `--M auto` and `--objective time` work.

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
  // The median speed as a share of the multiply-add peak; none if the kernel needs a larger M.
  std::optional<double> of_peak = {};
  // Words that the cache moved over words counted; none if not measured.
  std::optional<double> ratio = {};
};

// The smallest of the shares whose median is within 2%, which is noise, of the largest median.
// Nothing if no share was timed.
std::optional<MeasuredShare> fastest(std::span<const MeasuredShare> shares);
// The share whose ratio is nearest to 1 on a logarithmic scale; of equally near ones the smallest.
std::optional<MeasuredShare> agreeing(std::span<const MeasuredShare> shares);

struct CalibratedCache {
  CacheLevel level = CacheLevel::L1;
  std::uint64_t bytes = 0;
  std::vector<MeasuredShare> shares = {};
  std::string via = {};         // what measured the traffic: "callgrind-3.19.0"
  std::string no_traffic = {};  // why it was not measured, else empty
  Index side = 0;               // of the square matrices whose traffic was measured
};

// The kernel whose speed, and the one whose traffic is measured.
inline constexpr std::string_view kTimedKernel = "backward/rows";
inline constexpr std::string_view kTrafficKernel = "matmul/blocked";

struct Calibration {
  Topology topology;
  std::string simd;
  std::string date;  // "2026-01-31T12:00:00Z"
  Index n = 0;       // of the timed problem
  Index d = 0;
  Index rounds = 0;
  std::vector<CalibratedCache> levels = {};
  Rates rates = {};
  Index rates_n = 0;  // of the problems behind the rates
};

// The text of such a file with these links in place of its own. Throws: InputError.
std::string with_links(std::string_view text, const std::string& name, const LinkCosts& links);
std::string to_words(const LinkCosts& links);

// JSON is the content of the file; CSV has the shares only.
Description describe(const Calibration& calibration);

// The fastest share of L2, or of L1 on a machine without a known L2, from the text of the file
// `name`. Throws: InputError with the remedy if the text is not that JSON, or comes from a machine
// with another processor or other caches than the topology's.
CachePart calibrated_part(std::string_view text, const std::string& name, const Topology& topology);
// The rates of the kernels. Throws: as above, and for an older file without rates.
Rates calibrated_rates(std::string_view text, const std::string& name, const Topology& topology);

// The text of such a file. Throws: InputError unless it is a regular file; std::system_error.
std::string read_calibration(const std::filesystem::path& file);

}  // namespace redblue
