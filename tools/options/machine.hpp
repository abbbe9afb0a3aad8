#pragma once
// The machine as the command sees it, with the environment.

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/observe/counters.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/run/options.hpp"
#include "runtime/theory/rates.hpp"

namespace redblue {

// As read_topology(). Throws: UsageError if HWLOC_SYNTHETIC or HWLOC_XMLFILE is set and hwloc makes
// nothing of it; hwloc would silently take this system instead.
Topology machine_topology();

// The counters of these events.
Counters machine_counters(const Topology& topology, const std::vector<std::string>& names);

// The events of PAPI_EVENTS, separated by commas; none if it is not set.
std::vector<std::string> counter_names();

// The file in which `redblue calibrate` leaves what `--M auto` and `--objective time` look for:
// redblue/calibration.json in XDG_CACHE_HOME, or in .cache at HOME if that is not set or, as its
// specification has it, no absolute path. Throws: UsageError if HOME is not set either.
std::filesystem::path calibration_file();

// The rates of that file; the defaults if it does not exist. Throws: as calibrated_rates() and
// read_calibration().
Rates machine_rates();

// The same as options ask for it.
const KnownMachine& machine_at_hand();

}  // namespace redblue
