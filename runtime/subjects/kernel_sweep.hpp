#pragma once
// Runs or counts the points of a sweep of redblue's kernels.

#include <functional>
#include <string>

#include "runtime/observe/topology.hpp"
#include "runtime/run/run.hpp"
#include "runtime/sweep/sweep.hpp"
#include "runtime/system/memory.hpp"

namespace redblue {

// Runs or counts one point. A timed point runs three times, or once if a run takes more than two
// seconds. The fastest run counts. Concurrent points share `memory`. `stop` is called regularly
// during a run, and an exception from it ends the run. Throws: as run().
Swept sweep_point(const Point& point, How how, bool timed, MemoryBudget* memory = nullptr,
                  const std::function<void()>& stop = nullptr, Sparsities* sparsities = nullptr);

// Returns the build and the machine as one line of JSON: the "context" of a document.
std::string sweep_context(const Topology& topology);

}  // namespace redblue
