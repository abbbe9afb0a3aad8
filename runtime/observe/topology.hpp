#pragma once
// The machine under us as plain values: its caches, who shares them, its cores and its
// processor, as hwloc tells them. hwloc itself follows HWLOC_SYNTHETIC and HWLOC_XMLFILE, so a
// topology may be that of another machine: `source` and `this_system` say so. What is not
// known is not there; nothing is 0 that stands for unknown.

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
  std::vector<std::size_t> cores;  // that share it: places in Topology::cores
};

struct Topology {
  std::string unavailable = {};  // why there is nothing here; empty where there is something
  std::string source = {};       // "hwloc 2.9.0, this system"
  bool this_system = false;
  std::optional<std::string> model = {};  // of the first processor
  // Each core's processing units by the operating system's numbers; empty where unknown.
  std::vector<std::vector<int>> cores = {};
  std::array<std::vector<Cache>, 3> caches = {};  // by level; none where unknown
  std::string unpinnable = {};                    // why threads cannot be pinned; else empty

  [[nodiscard]] std::size_t units() const;  // processing units
  // The cache of that level that the first core has; null where unknown.
  [[nodiscard]] const Cache* cache(CacheLevel level) const;
};

// As hwloc finds it, from this process's place: cores that it is not allowed to use are not
// there. Without hwloc, or where hwloc fails: an empty topology with its reason.
Topology read_topology();
// From a description, in hwloc's language: "pack:1 l3:1(size=8388608) l2:2 ... core:1 pu:1";
// or from a file as lstopo writes it.
Topology synthetic_topology(const std::string& description);
Topology topology_of_xml(const std::filesystem::path& file);

// hwloc's version, or nothing where this was built without.
std::optional<std::string> hwloc_version();

// Binds the calling thread to a core, counted around where there are fewer cores than workers.
// Returns why not, where it did nothing; else an empty string.
std::string pin_this_thread(const Topology& topology, std::size_t worker);

// Where an M came from, for reports.
struct FastMemoryOrigin {
  std::string text;  // as it was typed
  CachePart part;
  std::uint64_t bytes = 0;  // of the whole cache
  std::size_t sharers = 1;  // workers of the run that share this cache
  std::string source;
  std::optional<std::string> file = {};  // of the calibration that chose the part
};

// The words of M that each of the workers has when the first core has the first worker, and so
// on: a cache that several of them share is divided among them; of unlike caches the smallest
// part counts. Nothing where the cache is unknown; `words` may be 0.
struct FastMemoryPart {
  Index words = 0;
  std::uint64_t bytes = 0;
  std::size_t sharers = 1;
};
std::optional<FastMemoryPart> fast_memory(const Topology& topology, const CachePart& part,
                                          std::size_t workers = 1);

}  // namespace redblue
