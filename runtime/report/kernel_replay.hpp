#pragma once
// A kernel's run, as its own schedule has it and as caches would.

#include "runtime/replay/replay_report.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

struct KernelAccesses : TouchedRun {
  Report report;
};

// Runs the kernel, on inputs from a seed, for what it touches. Throws: as run(); UsageError for
// several threads or heads, and where operations are not told; InputError for too many accesses.
KernelAccesses accesses_of(const Request& request, ReplayUnit unit = ReplayUnit::word);

}  // namespace redblue
