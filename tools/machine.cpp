#include "tools/machine.hpp"

#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "tools/sizes.hpp"

namespace redblue {

Topology machine_topology() {
  Topology topology = read_topology();
  // A description may be declared to be this system's.
  if (topology.this_system && std::getenv("HWLOC_THISSYSTEM") == nullptr) {
    for (const char* name : {"HWLOC_SYNTHETIC", "HWLOC_XMLFILE"}) {
      const char* text = std::getenv(name);
      if (text != nullptr && *text != '\0') {
        throw UsageError(fmt::format("{} '{}': hwloc makes nothing of it", name, text));
      }
    }
  }
  return topology;
}

}  // namespace redblue
