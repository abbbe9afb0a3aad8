#pragma once
// Work on several threads at once, each on a core of its own. Which worker does what is a formula:
// worker w of p has the part [total w / p, total (w + 1) / p).

#include <functional>
#include <string>

#include "memsim/range.hpp"
#include "runtime/observe/topology.hpp"

namespace redblue {

// More than any machine has; a slip of the finger is refused.
inline constexpr Index kMostWorkers = 4096;

Range share_of(Index total, Index worker, Index workers);

// Calls work(w) for each worker, at the same time, each on its own thread and, where the
// topology says how, pinned to its own core. Throws what the first of them to fail threw, when
// all have ended. Says why threads are not pinned; empty where they are. One worker is the calling
// thread, as it is; of several, too, the first is, and may go where it might before when they end.
std::string in_parallel(Index workers, const Topology& topology,
                        const std::function<void(Index worker)>& work);

}  // namespace redblue
