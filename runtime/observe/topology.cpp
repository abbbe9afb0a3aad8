#include "runtime/observe/topology.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include "runtime/system/loaded_library.hpp"

#ifdef REDBLUE_WITH_HWLOC
#include <hwloc.h>
#endif

namespace redblue {

#ifdef REDBLUE_WITH_HWLOC
namespace {

// The functions of hwloc that this file uses.
struct Hwloc {
  LoadedLibrary library{REDBLUE_HWLOC_FILE};
  decltype(hwloc_topology_init)* topology_init = library["hwloc_topology_init"];
  decltype(hwloc_topology_load)* topology_load = library["hwloc_topology_load"];
  decltype(hwloc_topology_destroy)* topology_destroy = library["hwloc_topology_destroy"];
  decltype(hwloc_topology_set_synthetic)* set_synthetic = library["hwloc_topology_set_synthetic"];
  decltype(hwloc_topology_set_xml)* set_xml = library["hwloc_topology_set_xml"];
  decltype(hwloc_topology_is_thissystem)* is_thissystem = library["hwloc_topology_is_thissystem"];
  decltype(hwloc_topology_get_topology_cpuset)* cpuset =
      library["hwloc_topology_get_topology_cpuset"];
  decltype(hwloc_get_type_depth)* type_depth = library["hwloc_get_type_depth"];
  decltype(hwloc_get_nbobjs_by_depth)* objects_by_depth = library["hwloc_get_nbobjs_by_depth"];
  decltype(hwloc_get_obj_by_depth)* object_by_depth = library["hwloc_get_obj_by_depth"];
  decltype(hwloc_get_cpubind)* cpubind = library["hwloc_get_cpubind"];
  decltype(hwloc_bitmap_alloc)* bitmap_alloc = library["hwloc_bitmap_alloc"];
  decltype(hwloc_bitmap_free)* bitmap_free = library["hwloc_bitmap_free"];
  decltype(hwloc_bitmap_isincluded)* bitmap_isincluded = library["hwloc_bitmap_isincluded"];
  decltype(hwloc_bitmap_weight)* bitmap_weight = library["hwloc_bitmap_weight"];
  decltype(hwloc_bitmap_next)* bitmap_next = library["hwloc_bitmap_next"];
};
const Hwloc& hwloc() {
  static const Hwloc functions;
  return functions;
}

class LoadedTopology {
 public:
  LoadedTopology() : good_(hwloc().topology_init(&topology_) == 0) {}
  LoadedTopology(const LoadedTopology&) = delete;
  LoadedTopology& operator=(const LoadedTopology&) = delete;
  ~LoadedTopology() {
    if (good_) {
      hwloc().topology_destroy(topology_);
    }
  }
  // `set` returns 0 for success, as hwloc's functions do.
  template <class Set>
  [[nodiscard]] bool load(Set set) {
    return good_ && set(topology_) == 0 && hwloc().topology_load(topology_) == 0;
  }
  [[nodiscard]] hwloc_topology_t get() const { return topology_; }

 private:
  hwloc_topology_t topology_ = nullptr;
  bool good_;
};

std::string info(hwloc_obj_t object, const char* name) {
  const char* text = object == nullptr ? nullptr : hwloc_obj_get_info_by_name(object, name);
  return text == nullptr ? "" : text;
}

std::vector<hwloc_obj_t> objects(hwloc_topology_t topology, hwloc_obj_type_t type) {
  std::vector<hwloc_obj_t> found;
  const int depth = hwloc().type_depth(topology, type);
  for (unsigned i = 0; depth >= 0 && i < hwloc().objects_by_depth(topology, depth); ++i) {
    found.push_back(hwloc().object_by_depth(topology, depth, i));
  }
  return found;
}

std::string source_of(hwloc_topology_t topology) {
  hwloc_obj_t root = hwloc().object_by_depth(topology, 0, 0);
  std::string from = "this system";
  if (hwloc().is_thissystem(topology) == 0) {
    from = info(root, "Backend") == "Synthetic" ? "synthetic: " + info(root, "SyntheticDescription")
                                                : "another system's description";
  }
  return fmt::format("hwloc {}, {}", info(root, "hwlocVersion"), from);
}

// Returns the reason why a thread of this process cannot be pinned to every core; else "".
std::string unpinnable(hwloc_topology_t topology) {
  if (hwloc().is_thissystem(topology) == 0) {
    return "the topology is not of this system";
  }
  hwloc_bitmap_t allowed = hwloc().bitmap_alloc();
  const hwloc_const_bitmap_t all = hwloc().cpuset(topology);
  const bool known = hwloc().cpubind(topology, allowed, HWLOC_CPUBIND_THREAD) == 0;
  const bool whole = known && hwloc().bitmap_isincluded(all, allowed) != 0;
  const int units = known ? hwloc().bitmap_weight(allowed) : 0;
  hwloc().bitmap_free(allowed);
  if (whole) {
    return "";
  }
  return known ? fmt::format("this process may use {} of {} processing units", units,
                             hwloc().bitmap_weight(all))
               : "nobody says which processing units this process may use";
}

std::vector<Cache> caches_of(hwloc_topology_t topology, hwloc_obj_type_t type,
                             const std::vector<hwloc_obj_t>& cores) {
  std::vector<Cache> found;
  for (const hwloc_obj_t object : objects(topology, type)) {
    const auto& attributes = object->attr->cache;
    if (attributes.size == 0) {
      continue;  // hwloc's value for unknown
    }
    Cache& cache = found.emplace_back();
    cache.bytes = attributes.size;
    if (attributes.linesize > 0) {
      cache.line = attributes.linesize;
    }
    if (attributes.associativity > 0) {
      cache.ways = attributes.associativity;
    } else if (attributes.associativity < 0 && cache.line) {  // fully associative
      cache.ways = static_cast<Index>(cache.bytes) / *cache.line;
    }
    for (std::size_t core = 0; core < cores.size(); ++core) {
      if (hwloc().bitmap_isincluded(cores[core]->cpuset, object->cpuset) != 0) {
        cache.cores.push_back(core);
      }
    }
  }
  return found;
}

template <class Set>
Topology load(const std::string& what, Set set) {
  Topology result;
  if (!hwloc().library.problem().empty()) {
    result.unavailable = "hwloc cannot be loaded: " + hwloc().library.problem();
    return result;
  }
  LoadedTopology loaded;
  if (!loaded.load(set)) {
    result.unavailable = "hwloc makes nothing of " + what;
    return result;
  }
  hwloc_topology_t topology = loaded.get();
  result.source = source_of(topology);
  result.this_system = hwloc().is_thissystem(topology) != 0;
  const auto packages = objects(topology, HWLOC_OBJ_PACKAGE);
  const std::string model = info(packages.empty() ? nullptr : packages.front(), "CPUModel");
  if (!model.empty()) {
    result.model = model;
  }
  const auto cores = objects(topology, HWLOC_OBJ_CORE);
  for (const hwloc_obj_t core : cores) {
    std::vector<int>& units = result.cores.emplace_back();
    for (int unit = -1; (unit = hwloc().bitmap_next(core->cpuset, unit)) >= 0;) {
      units.push_back(unit);
    }
  }
  result.caches = {caches_of(topology, HWLOC_OBJ_L1CACHE, cores),
                   caches_of(topology, HWLOC_OBJ_L2CACHE, cores),
                   caches_of(topology, HWLOC_OBJ_L3CACHE, cores)};
  result.unpinnable = cores.empty() ? "hwloc knows no cores here" : unpinnable(topology);
  return result;
}

}  // namespace

Topology read_topology() {
  return load("this system", [](hwloc_topology_t) { return 0; });
}

Topology synthetic_topology(const std::string& description) {
  return load("'" + description + "'", [&](hwloc_topology_t topology) {
    return hwloc().set_synthetic(topology, description.c_str());
  });
}

Topology topology_of_xml(const std::filesystem::path& file) {
  return load(file.string(),
              [&](hwloc_topology_t topology) { return hwloc().set_xml(topology, file.c_str()); });
}

std::optional<std::string> hwloc_version() {
  return HWLOC_VERSION;
}

#else

std::optional<std::string> hwloc_version() {
  return std::nullopt;
}
Topology read_topology() {
  return {.unavailable = "built without hwloc"};
}
Topology synthetic_topology(const std::string&) {
  return read_topology();
}
Topology topology_of_xml(const std::filesystem::path&) {
  return read_topology();
}

#endif

std::size_t Topology::units() const {
  std::size_t sum = 0;
  for (const auto& core : cores) {
    sum += core.size();
  }
  return sum;
}

const Cache* Topology::cache(CacheLevel level) const {
  const std::vector<Cache>& all = caches[static_cast<std::size_t>(level)];
  return all.empty() ? nullptr : &all.front();
}

std::string pin_this_thread(const Topology& topology, std::size_t worker) {
  if (!topology.unavailable.empty()) {
    return topology.unavailable;
  }
  if (!topology.unpinnable.empty()) {
    return topology.unpinnable;
  }
  if (topology.cores.empty()) {
    return "the cores are not known";
  }
  const std::vector<int>& units = topology.cores[worker % topology.cores.size()];
  const auto size = static_cast<std::size_t>(std::ranges::max(units)) + 1;
  cpu_set_t* set = CPU_ALLOC(size);
  if (set == nullptr) {
    return "no memory for a set of processing units";
  }
  const std::size_t bytes = CPU_ALLOC_SIZE(size);
  CPU_ZERO_S(bytes, set);
  for (const int unit : units) {
    CPU_SET_S(static_cast<std::size_t>(unit), bytes, set);
  }
  const int error = ::pthread_setaffinity_np(::pthread_self(), bytes, set);
  CPU_FREE(set);
  return error == 0 ? ""
                    : fmt::format("the system does not put a thread on core {} (error {})",
                                  worker % topology.cores.size(), error);
}

std::optional<FastMemoryPart> fast_memory(const Topology& topology, const CachePart& part,
                                          std::size_t workers) {
  const std::vector<Cache>& caches = topology.caches[static_cast<std::size_t>(part.level)];
  std::optional<FastMemoryPart> least;
  const auto consider = [&](const Cache& cache, std::size_t sharers) {
    // The factor absorbs rounding errors: 0.29 of 100 words must be 29, although 0.29 is not exact
    // in binary.
    constexpr double kRoundings = 1 + 4 * std::numeric_limits<double>::epsilon();
    const double words = static_cast<double>(cache.bytes) / sizeof(float) /
                         static_cast<double>(sharers) * part.share * kRoundings;
    const FastMemoryPart found{static_cast<Index>(words), cache.bytes, sharers};
    if (!least || found.words < least->words) {
      least = found;
    }
  };
  for (const Cache& cache : caches) {
    if (topology.cores.empty()) {
      consider(cache, workers);  // the sharing is unknown: perhaps by all workers
      continue;
    }
    std::size_t sharers = 0;
    for (std::size_t worker = 0; worker < workers; ++worker) {
      sharers +=
          static_cast<std::size_t>(std::ranges::count(cache.cores, worker % topology.cores.size()));
    }
    if (sharers > 0) {
      consider(cache, sharers);
    }
  }
  return least;
}

}  // namespace redblue
