#pragma once
// Describes a machine with plain values: its caches, the cores that share them, and its processor,
// as hwloc reports them. hwloc follows HWLOC_SYNTHETIC and HWLOC_XMLFILE, so the topology may
// describe another machine; `source` and `this_system` tell. Unknown values are absent, never 0.

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
  std::vector<std::size_t> cores;  // that share it, as indices into Topology::cores
};

struct Topology {
  std::string unavailable = {};  // why the topology is empty, else ""
  std::string source = {};       // "hwloc 2.9.0, this system"
  bool this_system = false;
  std::optional<std::string> model = {};  // the first processor
  // The processing units of each core, by the operating system's numbers; empty if unknown.
  std::vector<std::vector<int>> cores = {};
  std::array<std::vector<Cache>, 3> caches = {};  // by level; empty if unknown
  std::string unpinnable = {};                    // why threads cannot be pinned, else ""

  [[nodiscard]] std::size_t units() const;  // processing units
  // Returns the first core's cache of that level; null if unknown.
  [[nodiscard]] const Cache* cache(CacheLevel level) const;
};

// Returns this system as hwloc reports it to this process, without cores that the process may not
// use. Without hwloc, or if hwloc fails, returns an empty topology with the reason.
Topology read_topology();
// Return the topology of a description in hwloc's language, or of a file that lstopo wrote. Such a
// description is "pack:1 l3:1(size=8388608) l2:2 ... core:1 pu:1".
Topology synthetic_topology(const std::string& description);
Topology topology_of_xml(const std::filesystem::path& file);

// Returns hwloc's version, or nullopt in a build without hwloc.
std::optional<std::string> hwloc_version();

// Pins the calling thread to core `worker` modulo the number of cores. Returns the reason if the
// thread is not pinned; else "".
std::string pin_this_thread(const Topology& topology, std::size_t worker);

// The cache from which M was derived, for reports.
struct FastMemoryOrigin {
  std::string text;  // as the user typed it
  CachePart part;
  std::uint64_t bytes = 0;  // the whole cache
  std::size_t sharers = 1;  // workers of the run that share this cache
  std::string source;
  std::optional<std::string> file = {};  // the calibration that chose the part
};

// The fast memory of each worker. fast_memory() assigns worker w to core w modulo the number of
// cores, and divides a shared cache among its workers. If the workers' parts differ, the smallest
// counts. Returns nullopt if the cache is unknown. `words` may be 0.
struct FastMemoryPart {
  Index words = 0;
  std::uint64_t bytes = 0;
  std::size_t sharers = 1;
};
std::optional<FastMemoryPart> fast_memory(const Topology& topology, const CachePart& part,
                                          std::size_t workers = 1);

}  // namespace redblue
