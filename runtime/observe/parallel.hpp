#pragma once
// Runs work on several threads, each pinned to one core. Each thread has an equal share of the work
// (memsim/share.hpp).

#include <functional>
#include <string>

#include "memsim/share.hpp"
#include "runtime/observe/topology.hpp"

namespace redblue {

// An upper limit that is more than any machine has, to refuse typing errors.
inline constexpr Index kMostWorkers = 4096;

// Calls work(w) for each worker concurrently. The first worker runs on the calling thread, and its
// CPU affinity is restored afterwards. A single worker is not pinned. The other threads wait for
// later teams of any caller; a child of fork() starts its own. Returns the reason why threads are
// not pinned; else "".
// Throws: the first failure of a worker, after all workers have ended. Or std::system_error if the
// system refuses a thread, before any worker begins.
std::string in_parallel(Index workers, const Topology& topology,
                        const std::function<void(Index worker)>& work);

}  // namespace redblue
