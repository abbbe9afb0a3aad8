#pragma once
// Runs a kernel and records its accesses, so that caches can replay them.

#include "runtime/replay/replay_report.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

struct KernelAccesses : TouchedRun {
  Report report;
};

// Runs the kernel on inputs from a seed and records all accesses. Throws: as run(). Throws
// UsageError for several threads or heads, and for a kernel that does not report all its
// operations. Throws UsageError or InputError for too many accesses.
KernelAccesses accesses_of(const Request& request, ReplayUnit unit = ReplayUnit::word);

}  // namespace redblue
