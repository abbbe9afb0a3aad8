#pragma once
// Describes this machine for the commands: caches, event counters and the calibration file. Reads
// the environment variables that affect them.

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/observe/counters.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/run/options.hpp"
#include "runtime/theory/rates.hpp"

namespace redblue {

// Returns the result of read_topology(). A process reads it once for the same variables of hwloc
// and the same processors. Throws: UsageError if HWLOC_SYNTHETIC or HWLOC_XMLFILE is set and hwloc
// cannot use it. Without the check hwloc would silently describe this system instead.
Topology machine_topology();

// Returns counters for the events with these names.
Counters machine_counters(const Topology& topology, const std::vector<std::string>& names);

// Returns the comma-separated events of PAPI_EVENTS; empty if it is not set.
std::vector<std::string> counter_names();

// Returns the file that `redblue calibrate` writes, and that `--M auto` and `--objective time`
// read: $XDG_CACHE_HOME/redblue/calibration.json. The directory is $HOME/.cache if XDG_CACHE_HOME
// is not set or is not an absolute path, as the XDG specification says. Throws: UsageError if HOME
// is needed and not set.
std::filesystem::path calibration_file();

// Returns the rates from that file, or the default rates if the file does not exist. Throws: as
// calibrated_rates() and read_calibration().
Rates machine_rates();

// Returns this machine in the form that the option parser asks for.
const KnownMachine& machine_at_hand();

}  // namespace redblue
