#pragma once
// Runs work on several threads, each pinned to one core. Each has an equal share of it
// (memsim/share.hpp).

#include <functional>
#include <string>

#include "memsim/share.hpp"
#include "runtime/observe/topology.hpp"

namespace redblue {

// More than any machine has; a typing error is refused.
inline constexpr Index kMostWorkers = 4096;

// Calls work(w) for each worker, at the same time. The first worker runs on the calling thread; its
// CPU affinity is restored afterwards. One worker alone is not pinned. Returns the reason why
// threads are not pinned; else an empty string. Throws: the first failure of a worker, when all
// workers have ended; or as run_together(), and then no worker has begun.
std::string in_parallel(Index workers, const Topology& topology,
                        const std::function<void(Index worker)>& work);

}  // namespace redblue
