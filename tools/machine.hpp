#pragma once
// The machine as the command sees it: the environment included.

#include <string>
#include <vector>

#include "runtime/topology.hpp"

namespace redblue {

// As read_topology(). Throws: UsageError where HWLOC_SYNTHETIC or HWLOC_XMLFILE is set and hwloc
// makes nothing of it; alone it would go on with this system instead, and say nothing.
Topology machine_topology();

// The events of PAPI_EVENTS, commas between; none where it is not set.
std::vector<std::string> counter_names();

}  // namespace redblue
