#pragma once
// Which share of a cache makes the best M, and how long each kernel takes, as `redblue calibrate`
// found by measuring on a machine: the values, how they become a choice, and the file that
// `--M auto` and `--objective time` read.

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

// M as a share of a cache, and what was measured with it.
struct MeasuredShare {
  double share = 1;
  Index words = 0;
  // The median of GF/s over what multiply-adds reach; none where the kernel needs a larger M.
  std::optional<double> of_peak = {};
  // Words that the cache moved over words counted; none if they were not measured.
  std::optional<double> ratio = {};
};

// The share that runs fastest: the largest median, and of those within 2% of it, which is noise,
// the smallest share. Nothing where none was timed.
std::optional<MeasuredShare> fastest(std::span<const MeasuredShare> shares);
// The share whose ratio is nearest to 1 (2 is as far as 0.5); of equals the smallest.
std::optional<MeasuredShare> agreeing(std::span<const MeasuredShare> shares);

struct CalibratedCache {
  CacheLevel level = CacheLevel::L1;
  std::uint64_t bytes = 0;
  std::vector<MeasuredShare> shares = {};
  std::string via = {};         // what measured the traffic: "callgrind-3.19.0"
  std::string no_traffic = {};  // why nothing did; else empty
  Index side = 0;               // of the matrices whose traffic was measured
};

// Kernels and what was timed.
inline constexpr std::string_view kTimedKernel = "backward/rows";
inline constexpr std::string_view kTrafficKernel = "matmul/blocked";

struct Calibration {
  Topology topology;
  std::string simd;
  std::string date;  // "2026-01-31T12:00:00Z"
  Index n = 0;       // of the problem that was timed
  Index d = 0;
  Index rounds = 0;
  std::vector<CalibratedCache> levels = {};
  Rates rates = {};
  Index rates_n = 0;  // of the problems that these are from
};

std::string to_table(const Calibration& calibration);
std::string to_json(const Calibration& calibration);  // what the file holds
std::string to_csv(const Calibration& calibration);   // of the shares alone

// The fastest share of L2, or of L1 where no L2 was known, from the text of a file called `name`.
// Throws: InputError, with the remedy, where the text is not what to_json writes, or is of a
// machine whose processor or caches are not those of the topology.
CachePart calibrated_part(std::string_view text, const std::string& name, const Topology& topology);
// How long the kernels take, likewise. Throws: as above, also where an older file has no rates.
Rates calibrated_rates(std::string_view text, const std::string& name, const Topology& topology);

// The text of such a file. Throws: InputError where it is no regular file; std::system_error.
std::string read_calibration(const std::filesystem::path& file);

}  // namespace redblue
