#pragma once
// The points of a sweep of redblue's kernels.

#include <functional>
#include <string>

#include "runtime/observe/topology.hpp"
#include "runtime/run/run.hpp"
#include "runtime/sweep/sweep.hpp"
#include "runtime/system/memory.hpp"

namespace redblue {

// Runs or counts a point of redblue's kernels. A timed point runs three times, or once if that
// takes more than two seconds; the fastest run counts. Points at the same time share `memory`. With
// slow words on a disk `stop` is called repeatedly and may end the run by throwing. Throws: as
// run().
Swept sweep_point(const Point& point, How how, bool timed, MemoryBudget* memory = nullptr,
                  const std::function<void()>& stop = nullptr, Sparsities* sparsities = nullptr);

// The document's "context", the build and the machine, as one line of JSON.
std::string sweep_context(const Topology& topology);

}  // namespace redblue
