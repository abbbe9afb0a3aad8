#pragma once
// Describes this machine for the commands: caches, event counters and the calibration file. Reads
// the environment variables that affect them.

#include <filesystem>
#include <optional>
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

// Same, for commands that measure. Throws: std::runtime_error if the caches are not known;
// UsageError if they belong to another machine.
Topology measured_topology();

// Returns counters for the events with these names.
Counters machine_counters(const Topology& topology, const std::vector<std::string>& names);

// Returns the comma-separated events of PAPI_EVENTS; empty if it is not set.
std::vector<std::string> counter_names();

// Return the files of this user that `redblue calibrate` and `redblue tune` write
// (machine_file_path()). Throw: UsageError if neither XDG_CACHE_HOME nor HOME says where.
std::filesystem::path calibration_file();
std::filesystem::path tuned_file();

// Returns the rates from the calibration. Without a calibration it returns the default rates.
// Throws: as calibrated_rates() and read_machine_file().
Rates machine_rates();
// Returns the rates from the calibration, or nullopt without a valid one.
std::optional<Rates> calibration_if_any();

// Returns this machine in the form that the option parser asks for.
const KnownMachine& machine_at_hand();

}  // namespace redblue
