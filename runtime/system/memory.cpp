#include "runtime/system/memory.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace redblue {
namespace {

using std::filesystem::path;

// The file names of the same quantities in cgroups v1 and v2.
struct Names {
  const char* limit;
  const char* usage;
  const char* reclaimable;  // in memory.stat
};
constexpr Names kV2 = {"memory.max", "memory.current", "inactive_file"};
constexpr Names kV1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

// Returns the number in a file, or nullopt for "max".
std::optional<std::uint64_t> number_in(const path& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

// Returns the number in the line that begins with `word`.
std::optional<std::uint64_t> number_after(std::string_view word, const path& file) {
  std::ifstream in(file);
  std::string first;
  std::uint64_t value = 0;
  for (std::string rest; in >> first; std::getline(in, rest)) {
    if (first == word && in >> value) {
      return value;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> left_in(const path& cgroup, const Names& names) {
  const auto limit = number_in(cgroup / names.limit);
  const auto usage = number_in(cgroup / names.usage);
  if (!limit || !usage) {
    return std::nullopt;
  }
  const std::uint64_t cache = number_after(names.reclaimable, cgroup / "memory.stat").value_or(0);
  const std::uint64_t held = *usage - std::min(cache, *usage);
  return *limit - std::min(held, *limit);
}

// Adds the free bytes of this cgroup and of each cgroup above it, because the limit of a cgroup
// holds for all below it. In a container the path may be the host's, with a lower end that is not
// mounted. Then only the mounted part counts.
void collect(const path& mount, path cgroup, const Names& names,
             std::vector<std::uint64_t>& bounds) {
  cgroup = ("/" / cgroup).lexically_normal().relative_path();
  for (;; cgroup = cgroup.parent_path()) {
    if (const auto left = left_in(mount / cgroup, names)) {
      bounds.push_back(*left);
    }
    if (cgroup.empty()) {
      return;
    }
  }
}

}  // namespace

std::uint64_t memory_available(const path& root) {
  std::vector<std::uint64_t> bounds;
  if (const auto kib = number_after("MemAvailable:", root / "proc/meminfo")) {
    bounds.push_back(*kib * 1024);
  }
  // The lines are "0::/path" for v2 and "4:memory:/path" for v1. In v1, other controllers may share
  // the line of memory.
  std::ifstream cgroups(root / "proc/self/cgroup");
  for (std::string line; std::getline(cgroups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string cgroup = line.substr(second + 1);
    if (controllers == ",,") {
      collect(root / "sys/fs/cgroup", cgroup, kV2, bounds);
    } else if (controllers.find(",memory,") != std::string::npos) {
      collect(root / "sys/fs/cgroup/memory", cgroup, kV1, bounds);
    }
  }
  if (!bounds.empty()) {
    return *std::min_element(bounds.begin(), bounds.end());
  }
  const long pages = ::sysconf(_SC_AVPHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0
             ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)
             : std::numeric_limits<std::uint64_t>::max();  // unknown: no limit
}

MemoryClaim::MemoryClaim(MemoryBudget* shared, const Words& bytes, std::string_view who,
                         std::string_view remedy)
    : budget_(shared == nullptr ? own_ : *shared) {
  // A small run takes less time than reading the available memory.
  constexpr Index kLittle = 1 << 22;
  if (shared == nullptr && bytes <= Words(kLittle)) {
    return;
  }
  std::unique_lock lock(budget_.mutex_);
  budget_.one_gone_.wait(
      lock, [&] { return budget_.claims_ == 0 || budget_.bytes_ + bytes <= budget_.available_; });
  if (budget_.claims_ == 0) {
    const std::uint64_t available = memory_available(budget_.root_);
    budget_.available_ = Words(
        static_cast<Index>(std::min<std::uint64_t>(available, std::numeric_limits<Index>::max())));
    if (bytes > budget_.available_) {
      throw std::runtime_error(
          fmt::format("{} would need {} of memory, but {} are available: {}", who,
                      bytes.overflowed() ? "more than 8 EiB"
                                         : format_bytes(static_cast<std::uint64_t>(bytes.value())),
                      format_bytes(available), remedy));
    }
  }
  claimed_ = true;
  bytes_ = bytes.value();
  budget_.bytes_ += bytes;
  ++budget_.claims_;
}

MemoryClaim::~MemoryClaim() {
  if (!claimed_) {
    return;
  }
  {
    const std::lock_guard lock(budget_.mutex_);
    budget_.bytes_ = Words(budget_.bytes_.value() - bytes_);
    --budget_.claims_;
  }
  budget_.one_gone_.notify_all();
}

std::uint64_t resident_bytes(const path& root) {
  return 1024 * number_after("VmHWM:", root / "proc/self/status").value_or(0);
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) {
    return fmt::format("{} B", bytes);
  }
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {  // no "1024.0 KiB"
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace redblue
