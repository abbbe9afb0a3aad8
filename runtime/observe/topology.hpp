#pragma once
// A machine as plain values: its caches, the sharing of these, its cores and its processor, as
// hwloc reports them. hwloc follows HWLOC_SYNTHETIC and HWLOC_XMLFILE, so that a topology may be
// that of another machine: `source` and `this_system` say so. Unknown values are absent, never 0.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/words.hpp"
#include "runtime/system/cache_part.hpp"

namespace redblue {

struct Cache {
  std::uint64_t bytes = 0;
  std::optional<Index> line;  // bytes
  std::optional<Index> ways;
  std::vector<std::size_t> cores;  // that share it, as places in Topology::cores
};

struct Topology {
  std::string unavailable = {};  // the reason why the topology is empty, else ""
  std::string source = {};       // "hwloc 2.9.0, this system"
  bool this_system = false;
  std::optional<std::string> model = {};  // of the first processor
  // The processing units of each core, by the operating system's numbers; empty if unknown.
  std::vector<std::vector<int>> cores = {};
  std::array<std::vector<Cache>, 3> caches = {};  // by level; empty if unknown
  std::string unpinnable = {};  // the reason why threads cannot be pinned, else ""

  [[nodiscard]] std::size_t units() const;  // processing units
  // The cache of that level that the first core has; null if unknown.
  [[nodiscard]] const Cache* cache(CacheLevel level) const;
};

// This system as hwloc sees it from this process: without the cores that the process may not use.
// Without hwloc, or if hwloc fails, an empty topology with its reason.
Topology read_topology();
// A topology from a description in hwloc's language:
// "pack:1 l3:1(size=8388608) l2:2 ... core:1 pu:1"; or from a file as lstopo writes it.
Topology synthetic_topology(const std::string& description);
Topology topology_of_xml(const std::filesystem::path& file);

// hwloc's version, or nothing if this was built without hwloc.
std::optional<std::string> hwloc_version();

// Pins the calling thread to a core; worker w takes core w modulo the number of cores. Returns the
// reason if the thread is not pinned; else an empty string.
std::string pin_this_thread(const Topology& topology, std::size_t worker);

// The origin of an M, for reports.
struct FastMemoryOrigin {
  std::string text;  // as it was typed
  CachePart part;
  std::uint64_t bytes = 0;  // of the whole cache
  std::size_t sharers = 1;  // workers of the run that share this cache
  std::string source;
  std::optional<std::string> file = {};  // of the calibration that chose the part
};

// The words of M of each worker, if the first worker runs on the first core, and so on. A cache
// that several workers share is divided among them; of unlike caches the smallest part counts.
// Nothing if the cache is unknown; `words` may be 0.
struct FastMemoryPart {
  Index words = 0;
  std::uint64_t bytes = 0;
  std::size_t sharers = 1;
};
std::optional<FastMemoryPart> fast_memory(const Topology& topology, const CachePart& part,
                                          std::size_t workers = 1);

}  // namespace redblue
