#pragma once
// The machine as the command sees it: the environment included.

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/observe/topology.hpp"
#include "runtime/theory/rates.hpp"

namespace redblue {

// As read_topology(). Throws: UsageError where HWLOC_SYNTHETIC or HWLOC_XMLFILE is set and hwloc
// makes nothing of it; alone it would go on with this system instead, and say nothing.
Topology machine_topology();

// The events of PAPI_EVENTS, commas between; none where it is not set.
std::vector<std::string> counter_names();

// Where `redblue calibrate` leaves what `--M auto` and `--objective time` look for:
// redblue/calibration.json in XDG_CACHE_HOME, or in .cache at HOME where that is not set or, as its
// specification has it, no absolute path. Throws: UsageError where HOME is not set either.
std::filesystem::path calibration_file();

// By that file; the defaults where there is none. Throws: as calibrated_rates() and
// read_calibration().
Rates machine_rates();

}  // namespace redblue
